"""The log-probabilities of a released value given all whole sums, as a table, and mechanisms of some coordinates."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax.base import Array
from dpjax.mechanisms.base import Mechanism

__all__ = ["Tabulated", "at_coordinates"]


@frozen_pytree
@dataclass(frozen=True)
class Tabulated(Mechanism):
    """A mechanism as a kernel needs it: the log-probability of the one value that was released, given whole sums.

    Parameters
    ----------
    rows : [d]
        The row of the table for each coordinate.
    table : [r, m + 1]
        The log-probability of a coordinate's value if its sum is 0, ..., m. Other sums are impossible.
    """

    rows: Array
    table: Array

    @property
    def integer_noise(self) -> bool:
        """Yes: the table is of whole sums."""
        return True

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each coordinate of the value, which is in the table [..., d]."""
        del value
        # Sums are whole up to rounding: a coordinate of a float32 residual may be off by as much.
        count = jnp.round(statistic).astype(int)
        most = self.table.shape[1] - 1
        terms = self.table[self.rows, jnp.clip(count, 0, most)]
        return jnp.where((count >= 0) & (count <= most), terms, -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The sum of the terms []."""
        return jnp.sum(self.log_density_terms(value, statistic))


def at_coordinates(mechanism: Mechanism, index: Any) -> Mechanism:
    """The mechanism of the coordinates at an index, with each parameter [d] as [..., 1]; numbers and tables stay."""
    return jax.tree.map(lambda leaf: leaf[index][..., None] if jnp.ndim(leaf) == 1 else leaf, mechanism)
