"""Partition selection: only keys that somebody has are given noise and compared with a threshold."""

from dataclasses import dataclass

import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mechanisms.censored import Censored
from dpjax.mechanisms.noise import as_floating
from dpjax.pytree import frozen_pytree
from dpjax.validation import fail, name_of

__all__ = ["PartitionSelection"]


@frozen_pytree
@dataclass(frozen=True)
class PartitionSelection:
    """Releases a clamped noisy count where the count is above 0; where it is 0, the lower bound with certainty.

    So a value above the bound says that the count is not 0, while one at the bound says that it is 0 or that its noisy
    value fell below.

    Parameters
    ----------
    mechanism
        `dpjax.Censored` with a lower bound, at which it puts the counts that are not published.

    Raises
    ------
    TypeError, ValueError
        If the mechanism is another, or has no lower bound.

    Notes
    -----
    The law where keys are found in the records and kept if their noisy count reaches a threshold, as in Wilson, Zhang,
    Lam, Desfontaines, Simmons-Marengo and Gipson (2020, Differentially private SQL with bounded user contribution),
    provided that the count compared is the one published. The noise that keeps most keys is near a truncated geometric
    law: Desfontaines, Voss, Gipson and Mandayam (2022, Differentially private partition selection).

    Examples
    --------
    >>> import dpjax
    >>> rule = dpjax.mechanisms.PartitionSelection(dpjax.Censored(dpjax.Laplace(2.0), lower=20.0))
    """

    mechanism: Censored

    def __post_init__(self) -> None:
        remedy = "Pass Censored(noise, lower=...) with the value at which unpublished counts are put."
        if not isinstance(self.mechanism, Censored):
            fail("mechanism", name_of(self.mechanism), "a Censored mechanism", remedy, error=TypeError)
        if self.mechanism.lower is None:
            fail("mechanism", "one without a lower bound", "a Censored mechanism with one", remedy)

    @property
    def lower(self) -> Array:
        """The value [] or [d] of counts that are not published."""
        assert self.mechanism.lower is not None
        return self.mechanism.lower

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given the counts [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        present = self.mechanism.log_density_terms(value, statistic)
        absent = jnp.where(value <= self.lower, jnp.zeros_like(present), -jnp.inf)
        return jnp.where(statistic > 0, present, absent)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the counts [d]."""
        return jnp.where(statistic > 0, self.mechanism.sample(key, statistic), self.lower)
