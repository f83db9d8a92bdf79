"""Records of an unknown number: the pair of model and release whose one record is a whole data set."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Model, Records, Statistic
from dpjax.imputation.capacity import find_capacity
from dpjax.models.data_sets import NUMBER, data_sets, split
from dpjax.numbered import split as take_apart
from dpjax.release import PrivateRelease, Release
from dpjax.release.unknown import CountPrior, UnknownCount
from dpjax.simulate import parameter_shapes, position_shapes
from dpjax.statistics.base import dimension_of
from dpjax.validation import fail

__all__ = ["DataSetSum", "check_room", "data_set_form", "warn_of_room", "with_equal_capacity"]

ROOM = "Pass n=dpjax.UnknownCount(prior, capacity={}), or use dpjax.counts()."


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
    capacity = find_capacity(model, release)
    statistic = DataSetSum(release.statistic, prior, capacity)
    return data_sets(*take_apart(model), prior, capacity), replace(release, statistic=statistic, n=1)


def with_equal_capacity(formed: Sequence[PrivateRelease], given: Sequence[PrivateRelease]) -> list[PrivateRelease]:
    """The given releases, to be formed with as many rows as the one of them that needs most."""
    rows = [statistic.capacity for each in formed if (statistic := rows_of(each)) is not None]
    if not rows:
        return list(given)
    return [replace(each, n=UnknownCount(each.n.prior, max(rows))) for each in given]  # type: ignore[attr-defined]


def check_model_of_any_number(model: Model) -> None:
    """Raise unless records of the model can be added and deleted, and no name of its own is that of their number."""
    if model.num_records is not None or not model.exchangeable:
        remedy = "Its records have covariates or laws of their own: their number is known."
        fail("release.n", "an UnknownCount with such a model", "a number of records", remedy)
    derived = {} if model.derived is None else jax.eval_shape(model.derived, parameter_shapes(model))
    if NUMBER in {*position_shapes(model, 1).records, *parameter_shapes(model), *derived}:
        fail("model", f"a name {NUMBER!r}", "other names", "The number of records is reported under it: rename yours.")


def rows_of(release: PrivateRelease) -> DataSetSum | None:
    """The statistic of whole data sets, whose rows may be too few; None where there is no such thing."""
    statistic = release.statistic if isinstance(release, Release) else None
    if not isinstance(statistic, DataSetSum) or statistic.prior.bounds[1] == statistic.capacity:
        return None
    return statistic


def check_room(release: PrivateRelease, drawn: Mapping[str, Any]) -> None:
    """Raise if chains have filled all rows, so that the prior of the number would be cut off there."""
    rows = rows_of(release)
    if rows is not None and np.max(drawn[NUMBER], initial=0) >= rows.capacity:
        given, remedy = f"chains that fill all {rows.capacity} rows of their arrays", ROOM.format(2 * rows.capacity)
        fail("release.n", given, "room for more records", remedy)


def warn_of_room(release: PrivateRelease, drawn: Mapping[str, Any], stacklevel: int) -> None:
    """Warn if draws have filled all rows."""
    rows = rows_of(release)
    if rows is not None and np.max(drawn[NUMBER], initial=0) >= rows.capacity:
        text = f"Some draws have as many records as the arrays have rows, {rows.capacity}: larger numbers are cut off. "
        warnings.warn(text + ROOM.format(2 * rows.capacity), stacklevel=stacklevel)
