"""Records of an unknown number: the pair of model and release whose one record is a whole data set."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Model, Records, Statistic
from dpjax.models.data_sets import NUMBER, data_sets, split
from dpjax.numbered import split as take_apart
from dpjax.release import Release
from dpjax.release.unknown import CountPrior, KnownTail, UnknownCount
from dpjax.simulate import parameter_shapes, position_shapes
from dpjax.statistics.base import dimension_of
from dpjax.validation import fail

__all__ = ["MAX_CAPACITY", "DataSetSum", "data_set_form"]

MAX_CAPACITY = 2**20
"""The rows of the largest arrays."""

NEGLIGIBLE = 1e-12
"""The probability, by its prior, that a number without a bound exceeds the capacity."""


@dataclass(frozen=True)
class DataSetSum:
    """The released statistic of a data set: the sum over its real rows.

    Parameters
    ----------
    statistic
        That of one row.
    prior
        The law of the number of real rows.
    capacity
        The number of all rows.
    """

    statistic: Statistic
    prior: CountPrior
    capacity: int

    @property
    def dimension(self) -> int | None:
        """The length d of the sum, None where it depends on the record."""
        return dimension_of(self.statistic)

    def __call__(self, record: Records) -> Array:
        """The sum [d] of one data set."""
        rows, number = split(record)
        return self.total(rows, jnp.arange(self.capacity) < number)

    def total(self, rows: Records, real: Array) -> Array:
        """The sum [d] over those rows [capacity, ...] that are real [capacity]."""
        contributions = jax.vmap(self.statistic)(rows)
        return jnp.sum(jnp.where(real[:, None], contributions, jnp.zeros_like(contributions)), axis=0)


def data_set_form(model: Model, release: Release) -> tuple[Model, Release]:
    """The model of whole data sets, and the release of one, where the number of records is unknown; else as they are.

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
        If records have laws of their own, a name is taken, or arrays cannot be large enough for the numbers that the
        prior allows.
    """
    if not isinstance(release.n, UnknownCount):
        return model, release
    check_model_of_any_number(model)
    prior = release.n.prior
    capacity = find_capacity(prior)
    statistic = DataSetSum(release.statistic, prior, capacity)
    return data_sets(*take_apart(model), prior, capacity), replace(release, statistic=statistic, n=1)


def check_model_of_any_number(model: Model) -> None:
    """Raise unless records of the model can be added and deleted, and no name of its own is that of their number."""
    if model.num_records is not None or not model.exchangeable:
        remedy = "Its records have covariates or laws of their own: their number is known."
        fail("release.n", "an UnknownCount with such a model", "a number of records", remedy)
    derived = {} if model.derived is None else jax.eval_shape(model.derived, parameter_shapes(model))
    if NUMBER in {*position_shapes(model, 1).records, *parameter_shapes(model), *derived}:
        fail("model", f"a name {NUMBER!r}", "other names", "The number of records is reported under it: rename yours.")


def find_capacity(prior: CountPrior) -> int:
    """The rows that hold all numbers which a prior allows, but for a probability of 1e-12.

    Raises
    ------
    ValueError
        If the prior has neither a bound nor quantiles, would need too many rows, or leaves out numbers in between,
        which records added and deleted one by one never get past.
    """
    remedy = "Use dpjax.counts(), or pass dpjax.models.UniformCount(low, high) of what is possible."
    high = prior.bounds[1]
    if high is None and not isinstance(prior, KnownTail):
        fail("release.n", f"{prior!r}, which has no greatest number", "a bound or `quantile_beyond(mass)`", remedy)
    capacity = max(prior.quantile_beyond(NEGLIGIBLE) if high is None else high, 1)  # type: ignore[attr-defined]
    if capacity > MAX_CAPACITY:
        expected = f"at most {MAX_CAPACITY}, where records are imputed one by one"
        fail("release.n", f"{prior!r}, which allows {capacity} records", expected, remedy)
    possible = np.flatnonzero(np.isfinite(prior.log_probability(jnp.arange(capacity + 1))))
    if not possible.size or np.any(np.diff(possible) != 1):
        given = f"{prior!r}, of positive probability at {possible.size} numbers up to {capacity}"
        fail("release.n", given, "a prior of all numbers between the least and the greatest", remedy)
    return capacity
