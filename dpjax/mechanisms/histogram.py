"""A global mechanism for densities on the unit interval: values drawn from a smoothed histogram."""

from dataclasses import dataclass, field
from math import expm1, log1p
from typing import ClassVar

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, check_number, check_positive_number
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised, pure

__all__ = ["SmoothedHistogram", "smoothing_weight"]


def smoothing_weight(epsilon: float, num_draws: int, num_bins: int, n: int) -> float:
    """The smallest weight δ of the uniform distribution for which k draws from a smoothed histogram are ε-private.

    Replacing one of n records changes the density at a draw by a factor of at most 1 + (1 - δ) m / (δ n). So k draws
    are ε-private if k times its logarithm is at most ε.

    Parameters
    ----------
    epsilon
        The budget of the whole release, for replacing one record.
    num_draws
        The number k of draws.
    num_bins
        The number m of bins.
    n
        The number of records.

    Raises
    ------
    TypeError, ValueError
        If ε is not finite and positive, or a number is not whole and at least 1.

    Notes
    -----
    Theorem 4.2 of Wasserman and Zhou (2010): δ = (m / n) / (m / n + e^(ε/k) - 1).

    Examples
    --------
    >>> from dpjax.mechanisms.histogram import smoothing_weight
    >>> smoothing_weight(epsilon=1.0, num_draws=50, num_bins=10, n=1_000)
    0.331
    """
    check_positive_number("epsilon", epsilon)
    for name, number in {"num_draws": num_draws, "num_bins": num_bins, "n": n}.items():
        check_count(name, number)
    per_record = num_bins / n
    return float(per_record / (per_record + expm1(epsilon / num_draws)))


@frozen_pytree
@dataclass(frozen=True)
class SmoothedHistogram(Mechanism):
    """Releases draws from (1 - δ) m Σ_j (c_j / n) 1[B_j] + δ on [0, 1], given the counts c of m equal bins.

    Parameters
    ----------
    weight : []
        The weight δ of the uniform distribution, in (0, 1]; `smoothing_weight` computes one.
    num_draws
        The number k of values that are released.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the weight is not in (0, 1], or the number of draws is not whole and at least 1.

    Notes
    -----
    Wasserman and Zhou (2010); equation 12 of Beraha, Favaro and Rao (2025) with the factor m that it lacks.

    Examples
    --------
    >>> import dpjax
    >>> weight = dpjax.mechanisms.smoothing_weight(epsilon=1.0, num_draws=50, num_bins=10, n=1_000)
    >>> mechanism = dpjax.mechanisms.SmoothedHistogram(weight, num_draws=50)
    """

    json_name: ClassVar[str | None] = "smoothed_histogram"

    weight: Array | float
    num_draws: int = field(metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "smoothing_weight(epsilon, num_draws, num_bins, n) computes one."
        check_number("weight", self.weight)
        check_array("weight", self.weight, lambda array: (array > 0) & (array <= 1), "a number in (0, 1]", remedy)
        check_count("num_draws", self.num_draws)

    @property
    def value_size(self) -> int:
        """How many numbers are released."""
        return self.num_draws

    def _words(self) -> str:
        """The number of draws, and the weight of the uniform distribution."""
        weight = amount(self.weight)
        return f"{self.num_draws} draws from the histogram, mixed with a uniform distribution of weight {weight}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """Theorem 4.2 of Wasserman and Zhou (2010), of a public number of records."""
        if sums.neighbours != "replace-one" or sums.n is None or sums.num_bins is None:
            raise Unpromised("It is known of a histogram of a public number of records only, where one is replaced.")
        weight = float(self.weight)
        height = (1 - weight) * sums.num_bins / (weight * sums.n)
        return pure(log1p(height), self.num_draws)

    @property
    def sums(self) -> PossibleSums:
        """Each bin adds its own to the log-density."""
        return PossibleSums(log_density_by_bin=self._log_density_by_bin)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the released values lie in [0, 1]."""
        remedy = "It releases draws of a density on [0, 1]: rescale them."
        check_array(argument, value, lambda array: (array >= 0) & (array <= 1), "values from 0 to 1", remedy)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the released values [k] given the counts [m]."""
        counts = as_floating(statistic)
        possible = jnp.all((value >= 0) & (value <= 1))
        return jnp.where(possible, jnp.sum(self._log_density_by_bin(value, counts, jnp.sum(counts))), -jnp.inf)

    def _log_density_by_bin(self, value: Array, counts: Array, n: Array) -> Array:
        """What each bin adds to the log-density of the released values [k], given its count [m] of n records."""
        num_bins = counts.shape[0]
        bins = jnp.clip(jnp.floor(value * num_bins), 0, num_bins - 1).astype(int)
        drawn = jnp.sum(bins[:, None] == jnp.arange(num_bins)[None, :], axis=0, dtype=counts.dtype)
        return drawn * jnp.log((1 - self.weight) * num_bins * counts / n + self.weight)

    def sample(self, key: Key, statistic: Array) -> Array:
        """Released values [k] given the counts [m]."""
        key_smooth, key_bin, key_place = jax.random.split(key, 3)
        counts = as_floating(statistic)
        place = jax.random.uniform(key_place, (self.num_draws,), counts.dtype)
        bins = jax.random.categorical(key_bin, jnp.log(counts), shape=(self.num_draws,)).astype(counts.dtype)
        smooth = jax.random.bernoulli(key_smooth, self.weight, (self.num_draws,))
        return jnp.where(smooth, place, (bins + place) / counts.shape[0])
