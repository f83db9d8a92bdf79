"""Priors of an unknown number of records; `dpjax.models` has their names."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import scipy

from dpjax.base import Array, Key
from dpjax.numerics.count_laws import (
    LARGEST_MEAN,
    draw_negative_binomial,
    draw_poisson,
    negative_binomial_log_probability,
    poisson_log_probability,
)
from dpjax.pytree import frozen_pytree
from dpjax.validation import check_array, check_count, check_number, check_positive, fail, is_traced

__all__ = ["NegativeBinomialCount", "PoissonCount", "UniformCount"]

LARGEST_NUMBER = 2**31 - 2
"""Draws are of type int32 where double precision is off."""


@frozen_pytree
@dataclass(frozen=True)
class UniformCount:
    """All whole numbers from `low` to `high`, both included, equally likely.

    Parameters
    ----------
    low
        The lower bound, at least 0.
    high
        The upper bound, at most 2^31 − 2.

    Raises
    ------
    TypeError, ValueError
        If a bound is no whole number in this range, or they are the wrong way round.

    Examples
    --------
    >>> prior = UniformCount(low=0, high=9)
    >>> round(float(prior.log_probability(3)), 3)
    -2.303
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if is_traced(self.low, self.high):
            return
        low, high = (
            check_count(name, getattr(self, name), "Pass a whole number.", least=0) for name in ("low", "high")
        )
        if not low <= high <= LARGEST_NUMBER:
            fail("high", high, f"a whole number from low = {low} to {LARGEST_NUMBER}", "Swap or narrow the bounds.")
        hold(self, low=low, high=high)

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least and the greatest number."""
        return self.low, self.high

    def log_probability(self, n: Array) -> Array:
        """The log-probability of each whole number [...]."""
        number = jnp.asarray(n, int)
        inside = (number >= self.low) & (number <= self.high)
        return jnp.where(inside, -jnp.log(jnp.asarray(self.high - self.low + 1, float)), -jnp.inf)

    def sample(self, key: Key) -> Array:
        """A draw, int []."""
        return jax.random.randint(key, (), self.low, self.high + 1, int)


@frozen_pytree
@dataclass(frozen=True)
class PoissonCount:
    """The Poisson law: that of records which come independently of each other.

    Parameters
    ----------
    mean : []
        The mean, which is the variance too; above 0, up to 2^30.

    Raises
    ------
    TypeError, ValueError
        If the mean is not one number in this range.

    Examples
    --------
    >>> import dpjax
    >>> n = dpjax.UnknownCount(PoissonCount(100.0))
    """

    mean: float

    def __post_init__(self) -> None:
        hold(self, mean=read_mean(self.mean))

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least number; there is no greatest."""
        return 0, None

    def log_probability(self, n: Array) -> Array:
        """The log-probability of each whole number [...], to rounding in both float types."""
        return poisson_log_probability(n, self.mean)

    def sample(self, key: Key) -> Array:
        """A draw, int []."""
        return draw_poisson(key, self.mean)

    def quantile_beyond(self, mass: float) -> int:
        """The least number with at most this probability above it."""
        return int(scipy.stats.poisson.isf(mass, self.mean))


@frozen_pytree
@dataclass(frozen=True)
class NegativeBinomialCount:
    """A Poisson law whose mean is Gamma distributed: of this mean, and of variance mean + mean² / size.

    Parameters
    ----------
    mean : []
        The mean; above 0, up to 2^30.
    size : []
        The shape of the Gamma law, above 0: the standard deviation is about mean / √size where the mean is large.

    Raises
    ------
    TypeError, ValueError
        If the two are not single numbers in their ranges.

    Examples
    --------
    >>> import dpjax
    >>> n = dpjax.UnknownCount(NegativeBinomialCount(100.0, 5.0))
    """

    mean: float
    size: float

    def __post_init__(self) -> None:
        mean = read_mean(self.mean)
        check_number("size", self.size)
        check_positive("size", self.size)
        hold(self, mean=mean, size=as_float(self.size))

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least number; there is no greatest."""
        return 0, None

    def log_probability(self, n: Array) -> Array:
        """The log-probability of each whole number [...], to rounding in both float types."""
        return negative_binomial_log_probability(n, self.mean, self.size)

    def sample(self, key: Key) -> Array:
        """A draw, int []."""
        return draw_negative_binomial(key, self.mean, self.size)

    def quantile_beyond(self, mass: float) -> int:
        """The least number with at most this probability above it."""
        return int(scipy.stats.nbinom.isf(mass, self.size, self.size / (self.size + self.mean)))


def read_mean(mean: Any) -> Any:
    """The mean as a plain number, or an error; a traced one as it is."""
    check_number("mean", mean)
    expected = "a number above 0 and up to 2^30"
    check_array("mean", mean, lambda array: (array > 0) & (array <= LARGEST_MEAN), expected, "Count in larger units.")
    return as_float(mean)


def as_float(value: Any) -> Any:
    """A plain float, so that priors can be compared and hashed; a traced number as it is."""
    return value if is_traced(value) else float(value)


def hold(prior: Any, **values: Any) -> None:
    """Put checked values into a frozen prior."""
    for name, value in values.items():
        object.__setattr__(prior, name, value)
