"""Whether a model and a release belong together, by shapes and types."""

from typing import Any

import numpy as np

from dpjax.base import Model, Records
from dpjax.models.checks import check_model
from dpjax.models.whole import check_integer_noise
from dpjax.release import Release
from dpjax.release.base import is_release
from dpjax.simulate import position_shapes
from dpjax.statistics import Cells, Stacked
from dpjax.validation import fail, is_traced

__all__ = ["check_fit"]


def check_fit(model: Model, release: Any) -> None:
    """Raise unless the model's functions fit each other, and its records fit what was released.

    Raises
    ------
    TypeError, ValueError
        If model and release are exchanged, a function of the model breaks its contract, the statistic or the channel
        cannot take the records, the model is of another number of records, a table has categories that are no value of
        the model's records, or noise of whole numbers meets real ones.
    """
    if not is_release(release):
        fail("release", type(release).__name__, "a Release or LocalRelease", "Pass (model, release).", error=TypeError)
    check_model(model)
    release.check_records(position_shapes(model, 1).records)
    if model.num_records not in (None, release.n):
        expected, remedy = f"n = {model.num_records}, as the model has", "Give the model the covariates of all records."
        fail("release", f"a release of n = {release.n} records", expected, remedy)
    if isinstance(release, Release):
        check_categories(model, release.statistic)
    check_integer_noise(model, release)


def check_categories(model: Model, statistic: Any) -> None:
    """Raise if a table has categories that are no value of the model's records; more values than categories may be."""
    support = {} if model.support is None else model.support()
    for part in statistic.statistics if isinstance(statistic, Stacked) else (statistic,):
        if isinstance(part, Cells) and not is_traced(support):
            check_table(support, part)


def check_table(support: Records, table: Cells) -> None:
    """Raise if a category of a table is no value among those of its field."""
    for name, size in zip(table.field, table.num_categories, strict=True):
        missing = np.setdiff1d(np.arange(size), support[name]) if name in support else np.array([])
        if missing.size:
            given = f"a table of {size} categories of {name!r}, of which no record of the model takes {missing[0]}"
            remedy = "Give the model a value for each; leave out of the table what is known to be empty."
            fail("release", given, "categories that are values of the records", remedy)
