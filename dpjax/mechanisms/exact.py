"""Numbers that are known without noise: totals of a table, margins, and cells that must be empty."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mechanisms.noise import as_floating
from dpjax.pytree import frozen_pytree

__all__ = ["Exact"]


@frozen_pytree
@dataclass(frozen=True)
class Exact:
    """Releases the statistic as it is: a total that is public, or the zeros of a table.

    Notes
    -----
    Given its value only the records with this very sum are possible. Records that move one by one could hardly reach
    each other, so that `dpjax.imwg`, `dpjax.soma` and `dpjax.pcn` refuse it; moves of counts keep known totals.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.cells("cell", num_categories=2)
    >>> known = dpjax.Release([12, 8], Exact(), statistic, n=20)
    >>> noisy = dpjax.Release([11, 9], dpjax.DiscreteLaplace(1.0), statistic, n=20)
    >>> dpjax.joint(known, noisy).value.shape
    (4,)
    """

    exact: ClassVar[bool] = True
    integer_noise: ClassVar[bool] = False

    def log_noise(self, noise: Array) -> Array:
        """0 where a coordinate's noise [..., d] is 0, and ``-inf`` elsewhere."""
        noise = as_floating(noise)
        return jnp.where(noise == 0, jnp.zeros_like(noise), -jnp.inf)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """0 where a coordinate of the value [..., d] is that of the statistic [..., d], and ``-inf`` elsewhere."""
        return self.log_noise(as_floating(value) - as_floating(statistic))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the value [d] given the statistic [d]: 0 where they are equal, else ``-inf``."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d]."""
        del key
        return as_floating(statistic)
