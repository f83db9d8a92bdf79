"""Records of an unknown number: the pair of model and release whose one record is a whole data set."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import jit_unoptimized
from dpjax._util.validation import fail, is_traced
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Model, Records, Statistic
from dpjax.models.data_sets import NUMBER, DataSetsModel, check_names_free, split
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_parameters, position_shapes
from dpjax.release import PrivateRelease, Release
from dpjax.release.unknown_count import CountPrior, KnownTail, UnknownCount
from dpjax.statistics.base import TakenAtValue, dimension_of, statistic_at

__all__ = [
    "DataSetSum",
    "check_model_of_any_number",
    "check_room",
    "data_set_form",
    "log_probabilities",
    "rows_of",
    "warn_of_room",
    "with_capacity",
]

ROOM = "Pass n=dpjax.UnknownCount(prior, capacity={}), or impute counts if records take few values."


MAX_CAPACITY = 2**20
"""Largest number of rows."""

NEGLIGIBLE = 1e-12
"""Prior probability that an unbounded number exceeds the capacity."""

LEAST_LOG_RATIO = -35.0
"""Smallest log-ratio of prior times likelihood to its largest value for which a number is given rows."""

NUM_PARAMETERS, NUM_ROWS = 128, 1_024

NUMBERS = np.unique(np.append(np.arange(1, 2_048), np.rint(np.geomspace(2_048, MAX_CAPACITY, 256)))).astype(int)
"""The numbers at which the likelihood is bounded."""

REACH = 4.0
"""Largest distance of a sum from its mean, in standard deviations."""

REMEDY = (
    "Pass dpjax.models.UniformCount(low, high) of what is possible, or use dpjax.counts() if records take few values."
)


@dataclass(frozen=True)
class DataSetSum(TakenAtValue):
    """The released statistic of a data set: the sum over its real rows.

    Parameters
    ----------
    statistic
        That of one row.
    prior
        The prior of the number of real rows.
    capacity
        The number of all rows.
    """

    statistic: Statistic
    prior: CountPrior
    capacity: int

    @property
    def dimension(self) -> int | None:
        """The length d of the sum, None if it depends on the record."""
        return dimension_of(self.statistic)

    def at(self, value: Array) -> "DataSetSum":
        """The sum if this value was released."""
        return replace(self, statistic=statistic_at(self.statistic, value))

    def __call__(self, record: Records) -> Array:
        """The sum [d] of one data set."""
        rows, number = split(record)
        return self.total(rows, jnp.arange(self.capacity) < number)

    def total(self, rows: Records, real: Array) -> Array:
        """The sum [d] over those rows [capacity, ...] that are real [capacity]."""
        contributions = jax.vmap(self.statistic)(rows)
        return jnp.sum(jnp.where(real[:, None], contributions, jnp.zeros_like(contributions)), axis=0)


def data_set_form(model: Model, release: Release) -> tuple[Model, Release]:
    """The model of whole data sets, and the release of one, if the number of records is unknown; else as they are.

    Parameters
    ----------
    model
        A model of exchangeable records.
    release
        A release whose n is an `UnknownCount`; others need no such form.

    Returns
    -------
    model
        The model of `dpjax.models.data_sets`, whose parameters are those of the given one.
    release
        The release of n = 1 data set, of the same value.

    Raises
    ------
    ValueError
        If records are not identically distributed, a name is taken, or arrays cannot be large enough for the numbers
        that the prior allows.
    """
    if not isinstance(release.n, UnknownCount):
        return model, release
    check_model_of_any_number(model)
    prior = release.n.prior
    capacity = find_capacity(model, release)
    statistic = DataSetSum(release.statistic, prior, capacity)
    return DataSetsModel(model, prior, capacity), replace(release, statistic=statistic, n=1)


def with_capacity(model: Model, release: Any, capacity: int) -> tuple[Model, Any]:
    """Model and release of whole data sets with arrays of so many rows."""
    assert isinstance(model, DataSetsModel), "others have no rows"
    statistic = replace(release.statistic, capacity=capacity)
    return replace(model, capacity=capacity), replace(release, statistic=statistic)


def check_model_of_any_number(model: Model) -> None:
    """Raise unless records of the model can be added and deleted, and no name of its own is that of their number."""
    if model.num_records is not None or not model.exchangeable:
        remedy = "Its records have covariates or are not identically distributed: their number is known."
        fail("release.n", "an UnknownCount with such a model", "a number of records", remedy)
    parameters, records = position_shapes(model, 1)
    check_names_free([*records, *parameters, *jax.eval_shape(model.derived, parameters)])


def rows_of(release: PrivateRelease) -> DataSetSum | None:
    """The statistic of whole data sets, whose rows may be too few; None if there is no such thing."""
    statistic = None if release.summed is None else release.summed.statistic
    if not isinstance(statistic, DataSetSum) or statistic.prior.bounds[1] == statistic.capacity:
        return None
    return statistic


def check_room(release: PrivateRelease, drawn: Mapping[str, Any]) -> None:
    """Raise if chains have filled all rows, so that the prior of the number would be cut off there."""
    rows = rows_of(release)
    if rows is not None and np.max(drawn[NUMBER], initial=0) >= rows.capacity:
        given, remedy = f"chains that fill all {rows.capacity} rows of their arrays", ROOM.format(2 * rows.capacity)
        fail("release.n", given, "room for more records", remedy)


def warn_of_room(release: PrivateRelease, drawn: Mapping[str, Any]) -> None:
    """Warn if draws have filled all rows."""
    rows = rows_of(release)
    if rows is not None and np.max(drawn[NUMBER], initial=0) >= rows.capacity:
        text = f"Some draws have as many records as the arrays have rows, {rows.capacity}: larger numbers are cut off. "
        warn_at_the_call(text + ROOM.format(2 * rows.capacity))


def find_capacity(model: Model, release: Release) -> int:
    """The rows that hold all numbers which the prior allows or the release makes likely.

    Without the release these are all but a probability of 1e-12. A released value that the prior did not expect may
    need more. A capacity that the user gave is taken as it is.

    Raises
    ------
    ValueError
        If the prior has neither a bound nor quantiles, or would need too many rows. If it leaves out numbers in
        between, which records added and deleted one by one never get past.
    """
    assert isinstance(release.n, UnknownCount)
    prior, capacity = release.n.prior, release.n.capacity
    if capacity is None:
        capacity = capacity_by_prior(prior)
        if prior.bounds[1] is None and not is_traced(release.value):
            likely = capacity_by_release(model, release, prior)
            # A power of two, so that values a little apart share their programs.
            capacity = capacity if likely <= capacity else min(1 << (likely - 1).bit_length(), MAX_CAPACITY)
    check_capacity(prior, capacity)
    return capacity


def capacity_by_prior(prior: CountPrior) -> int:
    """The rows that hold all numbers but for a probability of 1e-12."""
    high = prior.bounds[1]
    if high is None and not isinstance(prior, KnownTail):
        given = f"{prior!r}, which has no greatest number"
        fail("release.n", given, "a bound or `quantile_beyond(mass)`", REMEDY)
    return max(prior.quantile_beyond(NEGLIGIBLE) if high is None else high, 1)  # type: ignore[attr-defined]


def check_capacity(prior: CountPrior, capacity: int) -> None:
    """Raise if there are too many rows, or numbers between the least and the greatest are impossible."""
    if capacity > MAX_CAPACITY:
        expected = f"at most {MAX_CAPACITY}, where records are imputed one by one"
        fail("release.n", f"{prior!r}, which with this release allows {capacity} records", expected, REMEDY)
    possible = np.flatnonzero(np.isfinite(log_probabilities(prior, np.arange(capacity + 1))))
    if not possible.size or np.any(np.diff(possible) != 1):
        given = f"{prior!r}, of positive probability at {possible.size} numbers up to {capacity}"
        fail("release.n", given, "a prior of all numbers between the least and the greatest", REMEDY)


@partial(jit_unoptimized, static_argnames=("prior",))
def log_probabilities(prior: CountPrior, numbers: Array | np.ndarray) -> Array:
    """The log-probabilities of whole numbers [...], as one program in place of one for each operation."""
    return prior.log_probability(jnp.asarray(numbers, int))


def capacity_by_release(model: Model, release: Release, prior: CountPrior) -> int:
    """The largest number with a non-negligible probability given the release.

    The likelihood of a number is bounded from above, at parameters drawn from the prior. The bound is the likelihood of
    the sums most favourable to the value among those within reach of their mean.
    """
    # The points of the prior are the same for every run.
    moments = moments_of_rows.unoptimized(model, release.statistic, release.value, jax.random.key(0))
    bound = np.asarray(bound_log_likelihood(release, *moments, jnp.asarray(NUMBERS)), np.float64)
    bound = bound + np.asarray(log_probabilities(prior, NUMBERS))
    if not np.any(bound > -np.inf):
        return 1
    likely = np.flatnonzero(bound > np.max(bound) + LEAST_LOG_RATIO)
    return int(NUMBERS[min(likely[-1] + 1, len(NUMBERS) - 1)])


@partial(jit_model, static_argnames=("statistic",))
def moments_of_rows(model: Model, statistic: Statistic, value: Array, key: Key) -> tuple[Array, Array]:
    """The mean and standard deviation of a row's statistic [parameters, d] at parameters from the prior."""
    contribution = statistic_at(statistic, value)
    parameter_key, row_key = jax.random.split(key)
    parameters = draw_parameters(parameter_key, model, NUM_PARAMETERS)

    def moments(key: Key, parameters: Any) -> tuple[Array, Array]:
        contributions = jax.vmap(contribution)(model.sample_records(key, parameters, NUM_ROWS)).astype(float)
        return jnp.mean(contributions, axis=0), jnp.std(contributions, axis=0)

    return jax.vmap(moments)(jax.random.split(row_key, NUM_PARAMETERS), parameters)


@jax.jit
def bound_log_likelihood(release: Release, mean: Array, sd: Array, numbers: Array) -> Array:
    """An upper bound of log p(value | n) for each number n [k], from the rows' moments [parameters, d]."""
    value = release.noisy_sum

    def of_sum(number: Array, mean: Array, sd: Array) -> Array:
        # The mean itself is known from some rows only.
        reach = REACH * sd * (jnp.sqrt(number) + number / np.sqrt(NUM_ROWS))
        centre = number * mean
        total = jnp.clip(value.astype(float), centre - reach, centre + reach)
        rounded = jnp.rint(total) if jnp.issubdtype(value.dtype, jnp.integer) else total
        return release.log_density_at(value - rounded.astype(value.dtype))

    over_parameters = jax.vmap(of_sum, in_axes=(None, 0, 0))
    densities = jax.lax.map(lambda number: over_parameters(number, mean, sd), numbers.astype(float))
    return jnp.max(jnp.where(jnp.isnan(densities), -jnp.inf, densities), axis=1)
