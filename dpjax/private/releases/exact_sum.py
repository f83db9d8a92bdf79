"""Sums of a statistic over confidential records in whole steps of a grid, each contribution checked on its way."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Records
from dpjax.private.releases.records import Batch
from dpjax.statistics import RecordStatistic

__all__ = ["ExactSum", "rounding_of", "sum_on_grid"]

MOST_ROWS, MOST_NUMBERS = 4_096, 2**22
"""Records whose contributions are computed at once, and numbers in these."""
HALF = 32
"""Bits of the lower half of a contribution: sums of halves fit an int64 for 2^31 records."""


class ExactSum(NamedTuple):
    """A sum over records before any noise: **not private**.

    Attributes
    ----------
    steps
        The sum [d] in steps of the grid, as Python's integers, which have no largest.
    num_records
        How many records there were.
    """

    steps: np.ndarray
    num_records: int


def rounding_of(dimension: int) -> float:
    """How far the computed contribution of a record may be from the true one, relative to the radius."""
    return (dimension + 16) * float(jnp.finfo(jnp.result_type(float)).eps)


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
        If there are no records, or one contributes what the statistic's sensitivities are not about.
    """
    total, count = np.zeros(len(step), object), 0
    for batch in batches:
        for rows in contributions(statistic, batch, len(step)):
            check_rows(statistic, rows)
            total, count = total + add_up(np.rint(rows / step).astype(np.int64)), count + len(rows)
    if not count:
        fail("records", "none", "at least one record", "Pass the records that the sum is over.")
    return ExactSum(total, count)


def contributions(statistic: RecordStatistic, batch: Batch, dimension: int) -> Iterator[np.ndarray]:
    """The contributions [m, d] of some records at a time, by one program whatever their number."""
    size = max(1, min(MOST_ROWS, MOST_NUMBERS // dimension))
    count = len(next(iter(batch.values())))
    for start in range(0, count, size):
        piece = {name: fill(leaf[start : start + size], size) for name, leaf in batch.items()}
        yield np.asarray(contribute(statistic, piece), float)[: min(size, count - start)]


def fill(leaf: np.ndarray, size: int) -> np.ndarray:
    """A field [size, ...] with its last record repeated."""
    return np.concatenate([leaf, np.repeat(leaf[-1:], size - len(leaf), axis=0)])


@partial(jax.jit, static_argnames=("statistic",))
def contribute(statistic: RecordStatistic, records: Records) -> Array:
    """The contributions [m, d] of m records."""
    return jax.vmap(statistic)(records)


def check_rows(statistic: RecordStatistic, rows: np.ndarray) -> None:
    """Raise unless the sensitivities are about such contributions [m, d]; the message reveals no record."""
    if not np.all(statistic.covers(rows, rounding_of(rows.shape[1]))):
        remedy = "Correct or leave out the records that are not what the statistic says, or pass statistics.clipped."
        fail("records", "one outside the statistic's sensitivity", "contributions that it is about", remedy)


def add_up(steps: np.ndarray) -> np.ndarray:
    """The sum [d] of integers [m, d], without overflow."""
    high, low = (np.sum(half, axis=0).astype(object) for half in (steps >> HALF, steps & (2**HALF - 1)))
    return high * 2**HALF + low
