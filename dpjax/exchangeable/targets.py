"""What sweeps ask of a density of n exchangeable records, and its form for a released sum."""

from typing import Any, Protocol

import jax.numpy as jnp

from dpjax.base import Array, Records

__all__ = ["ExchangeableTarget", "SummedTarget"]


class ExchangeableTarget(Protocol):
    """A density π of n exchangeable records with offers from q, as proper log-weights of records.

    The proper log-weight of records x is log π(x) − Σ log q(x_j) up to one constant: Xiong and Ju (2025), Corollary 6.
    A sweep holds of each record only the *column* of numbers [d] that the weights depend on, and of all records a
    running *summary* [d], so that an offer costs no pass over the records.
    """

    n: int

    def columns(self, records: Records) -> Array:
        """What the weights need to know of each of m records [d, m]."""

    def summarize(self, columns: Array) -> Array:
        """The running summary of n columns [d]; an offer in the place of a column changes it by the difference."""

    def log_weight(self, summary: Array, columns: Array) -> Array:
        """log w_0 [] of the records as they are."""

    def log_weight_with(self, summary: Array, columns: Array, place: Array, offer: Array) -> Array:
        """log w [] with the offer [d] in one place []."""

    def log_weights_with(self, summary: Array, columns: Array, places: Array | None, offer: Array) -> Array:
        """log w_i [m] with the offer [d] in each of the places [m]; None stands for all."""


class SummedTarget:
    """A density that depends on the sum of the columns alone, so that a weight costs O(d).

    Parameters
    ----------
    density
        A `Release`, or anything of its ``contributions``, ``origin``, ``log_density_at`` and ``log_densities_at``. Of a
        release the offers come from the model, whose density cancels from the weights.
    n
        The number of records.
    """

    def __init__(self, density: Any, n: int) -> None:
        self.density, self.n = density, n

    def columns(self, records: Records) -> Array:
        """The statistic [d, m] of each record."""
        return self.density.contributions(records)

    def summarize(self, columns: Array) -> Array:
        """Minus the residual origin − Σ columns [d], so that it grows with an offer."""
        return jnp.sum(columns, axis=1) - self.density.origin

    def log_weight(self, summary: Array, columns: Array) -> Array:
        """The log-density at the residual."""
        return self.density.log_density_at(-summary)

    def log_weight_with(self, summary: Array, columns: Array, place: Array, offer: Array) -> Array:
        """The log-density with the offer in one place."""
        return self.density.log_density_at(columns[:, place] - (summary + offer))

    def log_weights_with(self, summary: Array, columns: Array, places: Array | None, offer: Array) -> Array:
        """The log-densities with the offer in each place."""
        tried = columns if places is None else columns[:, places]
        return self.density.log_densities_at(tried - (summary + offer)[:, None])
