"""Noise that leaves zeros as they are."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import fail, is_traced, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating, convert_mechanisms
from dpjax.mechanisms.largest_density import largest_density, overlaps
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import ProtectedSums, Unpromised

__all__ = ["KeptZeros"]

NEAR_ZERO = 1e-30, 1e-20
"""A number that no mechanism releases, and a distance from it within which 0 alone may have positive probability."""


@frozen_pytree
@dataclass(frozen=True)
class KeptZeros(Mechanism):
    """Releases a count of 0 as 0, and the value of a mechanism of every other count.

    Parameters
    ----------
    mechanism
        The noise on counts above 0, each by itself, such as `dpjax.mechanisms.Rounded` Laplace noise, perhaps clamped.

    Raises
    ------
    TypeError
        If the mechanism is none of that kind.

    Notes
    -----
    A published 0 may be another count, too, if the noise can lead to 0: if it is whole, rounded, or clamped at 0. Real
    noise does not, and then a published 0 is a count of 0. Any other number is no count of 0. So there is no
    differential privacy.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> noise = dpjax.mechanisms.KeptZeros(dpjax.mechanisms.Rounded(dpjax.Laplace(2.0), step=1.0))
    >>> terms = noise.log_density_terms(jnp.array([0.0, 0.0, 1.0]), jnp.array([0.0, 1.0, 0.0]))
    >>> [round(float(p), 3) for p in jnp.exp(terms)]
    [1.0, 0.153, 0.0]
    """

    json_name: ClassVar[str | None] = "kept_zeros"

    mechanism: Mechanism | Any
    gives_zero: bool = field(init=False, default=False, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        convert_mechanisms(self, "mechanism")
        if not (self.mechanism._is_elementwise and self.mechanism._can_sample) or self.mechanism._is_categorical:
            remedy = "Pass noise such as dpjax.DiscreteLaplace(scale), rounded or clamped if it was."
            fail("mechanism", name_of(self.mechanism), "noise on each count by itself", remedy, error=TypeError)
        object.__setattr__(self, "gives_zero", can_give_zero(self.mechanism))

    def _words(self) -> str:
        """The noise, and where there is none."""
        return f"{self.mechanism.promise.words()}, but none on counts of 0"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: counts of 0 are published as they are."""
        del sums
        raise Unpromised("Counts of 0 are published as they are.")

    def _json_fields(self) -> dict[str, Any]:
        """The mechanism; the rest follows from it."""
        return {"mechanism": self.mechanism}

    @property
    def _layers(self) -> Any:
        """The mechanism alone, which checks values by those that it wraps: a 0 need be no value of theirs."""
        yield self

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each value is 0 or one of the noise."""
        if is_traced(self, value):
            return
        others = np.asarray(value) != 0
        if others.any():
            self.mechanism._check_some(argument, np.asarray(value), others)

    @property
    def sums(self) -> PossibleSums:
        """A published 0 is a count of 0 for sure, unless noise leads there; of counts above 0 none is known."""
        inside = super().sums
        return inside._replace(
            bounds=self._possible_counts,
            largest=None if largest_density(self.mechanism) is None else self._largest,
            reveals=not self.gives_zero,
            tells=False,
            whole=all_whole,
        )

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """That of the noise on counts above 0; of a count of 0 that of a 0."""
        noisy: Any = largest_density(self.mechanism)
        value = as_floating(value)
        has_zero, is_zero = overlaps(low, high, 0.0, 0.0), value == 0
        others = noisy(value, jnp.where(low == 0, 1.0, low), jnp.where(low == 0, jnp.maximum(high, 1.0), high))
        is_other = ((low != 0) | (high != 0)) & (~is_zero if not self.gives_zero else True)
        others = jnp.where(is_other, others, -jnp.inf)
        return jnp.where(has_zero & is_zero, jnp.maximum(others, 0.0), others)

    def _possible_counts(self, value: Array) -> tuple[Array, Array]:
        """The least and the greatest count [d] that each number can stand for."""
        value = as_floating(value)
        is_zero = value == 0
        return jnp.where(is_zero, 0.0, jnp.ones_like(value)), jnp.where(is_zero & (not self.gives_zero), 0.0, jnp.inf)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each number [..., d] given its count [..., d]."""
        value, count = as_floating(value), jnp.round(as_floating(statistic))
        is_zero = value == 0
        noisy = self.mechanism.log_density_terms(value, count)
        if not self.gives_zero:
            noisy = jnp.where(is_zero, -jnp.inf, noisy)
        return jnp.where(count == 0, jnp.where(is_zero, jnp.zeros_like(noisy), -jnp.inf), noisy)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the numbers [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Published numbers [d] given the counts [d]."""
        count = as_floating(statistic)
        return jnp.where(count == 0, jnp.zeros_like(count), self.mechanism.sample(key, count))


def can_give_zero(mechanism: Mechanism) -> bool:
    """Whether noise leads to 0 with positive probability, and 0 is one of the values that can be released."""
    near, error = map(np.array, NEAR_ZERO)
    return not np.any(mechanism._to_atoms(near[None], error[None])) and mechanism._lets_through(0.0)
