"""Sums of a statistic over confidential records in whole steps of a grid, each contribution checked on its way."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Records
from dpjax.private.releases.records import Batch
from dpjax.statistics import RecordStatistic, Stacked
from dpjax.statistics.base import dimension_of
from dpjax.statistics.combinators import bounded

__all__ = ["ExactSum", "rounding_of", "sum_on_grid"]

MOST_ROWS, MOST_NUMBERS = 4_096, 2**22
"""Records whose contributions are computed at once, and numbers in these."""
MOST_DENSE = 64
"""Coordinates of a statistic up to which all are computed of each record, though most are 0 in a table."""
HALF = 32
"""Bits of the lower half of a contribution."""


class ExactSum(NamedTuple):
    """A sum over records before any noise: **not private**.

    Attributes
    ----------
    steps
        The sum [d] in steps of the grid, as Python's integers, which have no largest.
    num_records
        How many records there were.
    is_finite
        Whether all contributions were finite; others are left out of the sum.
    """

    steps: np.ndarray
    num_records: int
    is_finite: bool


def rounding_of(statistic: RecordStatistic) -> float:
    """How far the computed contribution of a record may be from the true one, relative to the radius.

    Lengths of vectors [d] are off by d units in the last place at most; tables compute none.
    """
    sums = 1 if statistic.is_sparse else dimension_of(statistic) or 1
    return (sums + 16) * float(jnp.finfo(jnp.result_type(float)).eps)


def sum_on_grid(statistic: RecordStatistic, batches: Iterable[Batch], step: np.ndarray) -> ExactSum:
    """The sum of the contributions, each rounded to the nearest whole number of steps.

    Integers have the same sum in any order and in any batches, and replacing a record changes it by what that record
    contributes.

    Parameters
    ----------
    statistic
        What is summed, of a known dimension d.
    batches
        The records, one batch after the other.
    step : [d]
        The steps of the grid, powers of two, of which a contribution has at most 2^62.

    Raises
    ------
    ValueError
        If a record contributes finite numbers that the statistic's sensitivities are not about.
    """
    add = add_listed if statistic.is_sparse and len(step) > MOST_DENSE else add_rows
    size = max(1, min(MOST_ROWS, MOST_NUMBERS // (1 if add is add_listed else len(step))))
    halves, count, is_finite = np.zeros((2, len(step)), np.int64), 0, True
    for batch in batches:
        for piece, number in pieces(batch, size):
            added, are_finite = add(halves, statistic, piece, number, step)
            halves, count, is_finite = carried(added), count + number, is_finite and are_finite
    high, low = halves.astype(object)
    return ExactSum(high * 2**HALF + low, count, is_finite)


def pieces(batch: Batch, size: int) -> Iterator[tuple[Batch, int]]:
    """So many records at a time, the last one repeated to fill up a piece, and how many there were.

    So one program computes what a record contributes, wherever it is among the others.
    """
    count = len(next(iter(batch.values())))
    for start in range(0, count, size):
        piece = {name: fill(leaf[start : start + size], size) for name, leaf in batch.items()}
        yield piece, min(size, count - start)


def fill(leaf: np.ndarray, size: int) -> np.ndarray:
    """A field [size, ...] with its last record repeated."""
    return np.concatenate([leaf, np.repeat(leaf[-1:], size - len(leaf), axis=0)])


def add_rows(
    halves: np.ndarray, statistic: RecordStatistic, piece: Batch, number: int, step: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The halves [2, d] of the sum with those of the first records of a piece, and whether these are all finite."""
    rows = np.asarray(contribute(statistic, piece), float)[:number]
    finite = np.all(np.isfinite(rows), axis=1)
    rows = np.where(finite[:, None], rows, 0.0)
    refuse_unless(np.all(statistic.covers(rows, rounding_of(statistic)) | ~finite))
    return halves + np.stack([np.sum(half, axis=0) for half in split(np.rint(rows / step))]), bool(np.all(finite))


def add_listed(
    halves: np.ndarray, statistic: RecordStatistic, piece: Batch, number: int, step: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The same from the coordinates that are not 0, for tables of many cells."""
    places, values = (np.asarray(part)[:number] for part in list_contributions(statistic, piece))
    values = np.where(places >= 0, values, 0.0).astype(float)
    finite = np.isfinite(values)
    values = np.where(finite, values, 0.0)
    refuse_unless(is_covered(statistic, places, values))
    added = halves.copy()
    for total, half in zip(added, split(np.rint(values / step[places])), strict=True):
        np.add.at(total, places, half)
    return added, bool(np.all(finite))


@partial(jax.jit, static_argnames=("statistic",))
def contribute(statistic: RecordStatistic, records: Records) -> Array:
    """The contributions [m, d] of m records."""
    return jax.vmap(statistic)(records)


@partial(jax.jit, static_argnames=("statistic",))
def list_contributions(statistic: RecordStatistic, records: Records) -> tuple[Array, Array]:
    """The places of the coordinates that are not 0, and their values, both [m, k]."""
    return statistic.sparse(records)


def is_covered(statistic: RecordStatistic, places: np.ndarray, values: np.ndarray) -> bool:
    """Whether contributions by places and values [m, k] are within the radius of each statistic side by side."""
    ordered = np.sort(places, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    end, covered = 0, not np.any(repeated)
    for part in statistic.statistics if isinstance(statistic, Stacked) else (statistic,):
        start, end = end, end + (dimension_of(part) or 0)
        inside = (places >= start) & (places < end)
        lengths = np.linalg.norm(np.where(inside, values, 0.0), axis=1)
        covered = covered and bool(np.all(lengths <= bounded(part).radius(2) * (1 + rounding_of(statistic))))
    return covered and bool(np.all(places < end))


def refuse_unless(covered: Any) -> None:
    """Raise unless the sensitivities are about the contributions; the message reveals no record."""
    if not covered:
        remedy = "Correct or leave out the records that are not what the statistic says, or pass statistics.clipped."
        fail("records", "one outside the statistic's sensitivity", "contributions that it is about", remedy)


def split(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers of at most 2^62 as a higher and a lower half, whose sums are exact in int64."""
    integers = steps.astype(np.int64)
    return integers >> HALF, integers & (2**HALF - 1)


def carried(halves: np.ndarray) -> np.ndarray:
    """The same sum with a lower half below 2^32; the higher ones have room for 2^33 records."""
    high, low = halves
    return np.stack([high + (low >> HALF), low & (2**HALF - 1)])
