"""The number of records if nobody published it: a prior in its place."""

import reprlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import scipy

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import (
    Obstacle,
    check_array,
    check_count,
    check_free,
    check_number,
    check_positive,
    fail,
    is_traced,
    name_of,
    summarize_error,
)
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.numerics.counts import (
    LARGEST_MEAN,
    draw_negative_binomial,
    draw_poisson,
    negative_binomial_log_probability,
    poisson_log_probability,
)

__all__ = [
    "COUNT_PRIORS",
    "CountPrior",
    "KnownTail",
    "NegativeBinomialCount",
    "PoissonCount",
    "UniformCount",
    "UnknownCount",
    "check_number_known",
    "expected_number",
    "is_unknown",
    "read_number",
]


LARGEST_NUMBER = 2**53
"""Of records, known or not."""


LARGEST_BOUND = 2**31 - 2
"""Draws are of type int32 if double precision is off."""


@runtime_checkable
class CountPrior(Protocol):
    """A distribution over 0, 1, ..., such as `dpjax.models.PoissonCount`; hashable: programs are compiled for it."""

    def log_probability(self, n: Array) -> Array:
        """The log-probability of each whole number [...]."""

    def sample(self, key: Key) -> Array:
        """A draw, int []."""

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least and the greatest possible number, None if there is no greatest."""


@runtime_checkable
class KnownTail(Protocol):
    """A prior whose quantiles are known, so that a bound can be found for numbers that have none."""

    def quantile_beyond(self, mass: float) -> int:
        """The least number with at most this probability above it."""


@dataclass(frozen=True)
class UnknownCount(NamesArguments):
    """In place of `Release.n`: the number of records is unknown, and drawn with everything else.

    Parameters
    ----------
    prior
        What is believed of the number before the release is seen, beside the model of the records:
        `dpjax.models.UniformCount`, `dpjax.models.PoissonCount`, `dpjax.models.NegativeBinomialCount`, or a hashable
        object with ``log_probability(n)``, ``sample(key)`` and ``bounds``.
    capacity
        The rows of the arrays that records are imputed in; by default as many as prior and release ask for.

    Raises
    ------
    TypeError, ValueError
        If the prior has not these parts, or they return something else, or the capacity is no whole number above 0.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.cells("cell", num_categories=2)
    >>> n = dpjax.UnknownCount(dpjax.models.PoissonCount(20.0))
    >>> release = dpjax.Release([12, 8], dpjax.DiscreteLaplace(1.0), statistic, n=n)
    >>> release.n.prior.mean
    20.0
    """

    prior: CountPrior
    capacity: int | None = None

    def __post_init__(self) -> None:
        if self.capacity is not None:
            check_count("capacity", self.capacity, "Pass the most records that arrays shall hold, or leave it out.")
        remedy = "Pass one such as dpjax.models.UniformCount(low, high)."
        prior = self.prior
        if isinstance(prior, type) or not isinstance(prior, CountPrior):
            fail(
                "prior",
                name_of(prior),
                "a distribution with log_probability, sample and bounds",
                remedy,
                error=TypeError,
            )
        if not isinstance(prior, Hashable) or not is_hashed(prior):
            fail(
                "prior",
                name_of(prior),
                "a hashable distribution",
                "Make it a frozen dataclass of numbers.",
                error=TypeError,
            )
        check_distribution(prior, remedy)


def is_hashed(prior: Hashable) -> bool:
    """Whether a prior holds nothing, such as an array, that has no hash."""
    try:
        hash(prior)
    except TypeError:
        return False
    return True


def check_distribution(prior: CountPrior, remedy: str) -> None:
    """Raise unless the functions of a prior return numbers of the right shapes, and its bounds are in order."""
    numbers = jax.ShapeDtypeStruct((3,), jnp.result_type(int))
    try:
        found = jax.eval_shape(prior.log_probability, numbers), jax.eval_shape(prior.sample, jax.random.key(0))
        low, high = prior.bounds
    except Exception as error:  # whatever a prior of the user's own may raise
        fail(
            "prior",
            f"{name_of(prior)}, which failed with {summarize_error(error)}",
            "a distribution of whole numbers",
            remedy,
        )
    shapes = [getattr(part, "shape", None) for part in found]
    if shapes != [(3,), ()] or not jnp.issubdtype(found[1].dtype, jnp.integer):
        given = f"log_probability of shape {shapes[0]} for 3 numbers, and a draw {found[1]}"
        fail("prior", given, "shape (3,), and a draw int []", remedy)
    if low < 0 or (high is not None and high < low):
        fail("prior.bounds", (low, high), "0 <= low <= high, or None for no greatest number", remedy)


def is_unknown(release: Any) -> bool:
    """Whether a release has a prior in place of its number of records."""
    return isinstance(release.n, UnknownCount)


def read_number(n: Any) -> Any:
    """The number of records or what stands for it, or an error."""
    if isinstance(n, UnknownCount):
        return n
    if isinstance(n, CountPrior) and not isinstance(n, type):
        fail("n", repr(n), "a number or an UnknownCount", "Pass n=dpjax.UnknownCount(prior).", error=TypeError)
    number = check_count("n", n, "Pass the public number of records, or dpjax.UnknownCount(prior).")
    if number > LARGEST_NUMBER:
        fail("n", reprlib.repr(number), "at most 2^53, up to which float64 holds every whole number", "Check the unit.")
    return number


def number_in_words(n: Any) -> str:
    """The number of records."""
    return "an unknown number of records" if isinstance(n, UnknownCount) else f"n = {quantity(n, 'record')}"


def expected_number(n: Any) -> int:
    """The number of records; if it is unknown its median if the prior tells, else the least possible."""
    if not isinstance(n, UnknownCount):
        return int(n)
    if isinstance(n.prior, KnownTail) and not is_traced(n.prior):
        return int(n.prior.quantile_beyond(0.5))
    return int(n.prior.bounds[0])


REMEDY = "Call dpjax.sample, gibbs, sample_smc or sbc with dpjax.imwg(), or sample_clt."


def check_number_known(release: Any, remedy: str = REMEDY) -> None:
    """Raise if a release of an unknown number of records comes if their number is needed."""
    check_free(obstacle_of_number(release, remedy))


def obstacle_of_number(release: Any, remedy: str = REMEDY) -> Obstacle | None:
    """An unknown number of records, where their number is needed."""
    if not is_unknown(release):
        return None
    return Obstacle("release.n", repr(release.n), "a known number of records here", remedy)


@frozen_pytree
@dataclass(frozen=True)
class UniformCount(NamesArguments):
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
    >>> import dpjax
    >>> prior = dpjax.models.UniformCount(low=0, high=9)
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
        if not low <= high <= LARGEST_BOUND:
            fail("high", high, f"a whole number from low = {low} to {LARGEST_BOUND}", "Swap or narrow the bounds.")
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
class PoissonCount(NamesArguments):
    """The Poisson distribution: that of records which come independently of each other.

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
    >>> n = dpjax.UnknownCount(dpjax.models.PoissonCount(100.0))
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
class NegativeBinomialCount(NamesArguments):
    """A Poisson distribution whose mean is Gamma distributed: of this mean, and of variance mean + mean² / size.

    Parameters
    ----------
    mean : []
        The mean; above 0, up to 2^30.
    size : []
        The shape of that distribution, above 0: the standard deviation is about mean / √size if the mean is large.

    Raises
    ------
    TypeError, ValueError
        If the two are not single numbers in their ranges.

    Examples
    --------
    >>> import dpjax
    >>> n = dpjax.UnknownCount(dpjax.models.NegativeBinomialCount(100.0, 5.0))
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


COUNT_PRIORS: dict[str, type] = {
    "uniform_count": UniformCount,
    "poisson_count": PoissonCount,
    "negative_binomial_count": NegativeBinomialCount,
}
"""By their names in JSON text."""


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
