"""Sums of a statistic over confidential records in whole steps of a grid, each contribution checked on its way."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Records
from dpjax.private.releases.records import Batch
from dpjax.statistics import RecordStatistic, Stacked
from dpjax.statistics.base import Norm, dimension_of
from dpjax.statistics.combinators import DOUBLE, bounded

__all__ = ["ExactSum", "sum_on_grid"]

MOST_ROWS, MOST_NUMBERS = 4_096, 2**22
"""Records whose contributions are computed at once, and numbers in these."""
MOST_DENSE = 64
"""Coordinates of a statistic up to which all are computed of each record, though most are 0 in a table."""
HALF = 32
"""Bits of the lower half of a contribution."""


class Faults(NamedTuple):
    """Whether some record was left out of a sum, and why: **not private**, and reported after the charge alone.

    Attributes
    ----------
    unreadable
        It has an entry that its field's type does not hold, or no identifier.
    infinite
        Its contribution is not finite.
    uncovered
        Its contribution is not one that the statistic's sensitivities are about.
    """

    unreadable: bool = False
    infinite: bool = False
    uncovered: bool = False

    def either(self, other: "Faults") -> "Faults":
        """The faults of two sums."""
        return Faults(*(one or another for one, another in zip(self, other, strict=True)))

    def check(self) -> None:
        """Raise if some record was left out; the message reveals which kind, and no record."""
        if self.unreadable:
            given = "an entry that is not finite, or is nothing that the type of its field holds"
            expected = "finite numbers of the types of their fields"
            remedy = "Impute it beforehand, leave the record out, or say another type by dtypes=."
        elif self.infinite:
            given, expected = "one whose contribution is not finite", "finite contributions"
            remedy = "Release statistics.clipped(...), which adds nothing there."
        elif self.uncovered:
            given, expected = "one outside the statistic's sensitivity", "contributions that it is about"
            remedy = "Correct the records that are not what the statistic says, or pass statistics.clipped."
        else:
            return
        fail("records", given, expected, remedy)


class ExactSum(NamedTuple):
    """A sum over records before any noise: **not private**.

    Attributes
    ----------
    steps
        The sum [d] in steps of the grid, as Python's integers, which have no largest.
    num_records
        How many records there were.
    faults
        Why records were left out of the sum.
    """

    steps: np.ndarray
    num_records: int
    faults: Faults


def sum_on_grid(statistic: RecordStatistic, batches: Iterable[Batch], step: np.ndarray, *, norm: Norm = 2) -> ExactSum:
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
    norm
        That of the sensitivities which contributions have to be covered by.
    """
    add = add_listed if statistic.is_sparse and len(step) > MOST_DENSE else add_rows
    widest = max(len(step), sum(dimension_of(leaf) or 0 for leaf in statistic.leaves))
    size = max(1, min(MOST_ROWS, MOST_NUMBERS // (1 if add is add_listed else widest)))
    halves, count, faults = np.zeros((2, len(step)), np.int64), 0, Faults()
    for batch in batches:
        for piece, number in pieces(batch, size):
            added, found = add(halves, statistic, piece, number, step, norm)
            halves, count, faults = carried(added), count + number, faults.either(found)
    high, low = halves.astype(object)
    return ExactSum(high * 2**HALF + low, count, faults)


def pieces(batch: Batch, size: int) -> Iterator[tuple[Batch, int]]:
    """So many records at a time, the last one repeated to fill up a piece, and how many there were.

    So one program computes what a record contributes, wherever it is among the others.
    """
    count = len(batch.is_readable)
    for start in range(0, count, size):
        piece = {name: fill(leaf[start : start + size], size) for name, leaf in batch.fields.items()}
        yield Batch(piece, batch.is_readable[start : start + size]), min(size, count - start)


def fill(leaf: np.ndarray, size: int) -> np.ndarray:
    """A field [size, ...] with its last record repeated."""
    return np.concatenate([leaf, np.repeat(leaf[-1:], size - len(leaf), axis=0)])


def add_rows(
    halves: np.ndarray, statistic: RecordStatistic, piece: Batch, number: int, step: np.ndarray, norm: Norm
) -> tuple[np.ndarray, Faults]:
    """The halves [2, d] of the sum with those of the first records of a piece, and why some were left out."""
    rows, finite, covered = contributions(statistic, piece.fields, number, norm)
    rows = where(piece.is_readable & finite & covered, rows)
    added = halves + np.stack([np.sum(half, axis=0) for half in split(np.rint(rows / step))])
    return added, faults_of(piece, finite, covered)


def contributions(
    statistic: RecordStatistic, records: Records, number: int, norm: Norm
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The contributions [m, d] of the first m records, and which are finite and covered by the sensitivities [m]."""
    parts = [np.asarray(part, float)[:number] for part in contribute(statistic, records)]
    with np.errstate(all="ignore"):  # a warning would tell something of a record
        rows = statistic.assemble(iter(parts))
    finite = are_finite(*parts, rows)
    rows = where(finite, rows)
    covered = within_radius(statistic, rows, norm)
    for leaf, part in zip(statistic.leaves, parts, strict=True):
        known = where(finite, part)
        covered &= leaf.covers(known, tolerance_of(leaf)) & within_radius(leaf, known, norm)
    return rows, finite, covered


def add_listed(
    halves: np.ndarray, statistic: RecordStatistic, piece: Batch, number: int, step: np.ndarray, norm: Norm
) -> tuple[np.ndarray, Faults]:
    """The same from the coordinates that are not 0, for tables of many cells."""
    listed = [tuple(np.asarray(part)[:number] for part in parts) for parts in list_parts(statistic, piece.fields)]
    with np.errstate(all="ignore"):
        places, values = statistic.assemble_listed((places, values.astype(float)) for places, values in listed)
    values = np.where(places >= 0, values, 0.0)
    finite = are_finite(values)
    values = where(finite, values)
    covered = are_covered(statistic, places, values, norm)
    kept = piece.is_readable & finite & covered
    places, values = np.where(kept[:, None], places, -1), where(kept, values)
    added = halves.copy()
    for total, half in zip(added, split(np.rint(values / step[places])), strict=True):
        np.add.at(total, places, half)
    return added, faults_of(piece, finite, covered)


def are_finite(*parts: np.ndarray) -> np.ndarray:
    """Whether all numbers of each record are finite [m], in arrays [m, ...]."""
    return np.all([np.all(np.isfinite(part), axis=1) for part in parts], axis=0)


def where(kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows [m, ...] with 0 in place of those that are not kept [m]."""
    return np.where(kept[:, None], rows, 0.0)


def faults_of(piece: Batch, finite: np.ndarray, covered: np.ndarray) -> Faults:
    """Why records [m] were left out."""
    found = piece.is_readable
    return Faults(not np.all(found), bool(np.any(found & ~finite)), bool(np.any(found & finite & ~covered)))


@partial(jax.jit, static_argnames=("statistic",))
def contribute(statistic: RecordStatistic, records: Records) -> tuple[Array, ...]:
    """The contributions [m, d] of m records to each of the statistics that this one is made of."""
    return tuple(jax.vmap(leaf)(records) for leaf in statistic.leaves)


@partial(jax.jit, static_argnames=("statistic",))
def list_parts(statistic: RecordStatistic, records: Records) -> tuple[tuple[Array, Array], ...]:
    """The places of the coordinates that are not 0, and their values, both [m, k], of each of these."""
    return tuple(leaf.sparse(records) for leaf in statistic.leaves)


def within_radius(statistic: RecordStatistic, rows: np.ndarray, norm: Norm) -> np.ndarray:
    """Whether contributions [m, d] are within the radius of each statistic side by side [m]."""
    within, end = np.ones(len(rows), bool), 0
    for part in side_by_side(statistic):
        start, end = end, end + (dimension_of(part) or 0)
        within &= np.linalg.norm(rows[:, start:end], norm, axis=1) <= longest(part, norm)
    return within


def are_covered(statistic: RecordStatistic, places: np.ndarray, values: np.ndarray, norm: Norm = 2) -> np.ndarray:
    """Whether contributions by places and values [m, k] are within the radius of each statistic side by side [m]."""
    ordered = np.sort(places, axis=1)
    repeated = np.any((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0), axis=1)
    end, covered = 0, ~repeated
    for part in side_by_side(statistic):
        start, end = end, end + (dimension_of(part) or 0)
        inside = (places >= start) & (places < end)
        covered &= np.linalg.norm(np.where(inside, values, 0.0), norm, axis=1) <= longest(part, norm)
    return np.asarray(covered & np.all(places < end, axis=1))


def side_by_side(statistic: RecordStatistic) -> tuple[Any, ...]:
    """The statistics side by side."""
    return statistic.statistics if isinstance(statistic, Stacked) else (statistic,)


def longest(part: RecordStatistic, norm: Norm) -> float:
    """The largest norm of a computed contribution."""
    return bounded(part).radius(norm) * (1 + tolerance_of(part))


def tolerance_of(part: RecordStatistic) -> float:
    """The largest relative error of a computed contribution, and of its norm on the host."""
    return part.rounding() + ((dimension_of(part) or 1) + 16) * DOUBLE


def split(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers of at most 2^62 as a higher and a lower half, whose sums are exact in int64."""
    integers = steps.astype(np.int64)
    return integers >> HALF, integers & (2**HALF - 1)


def carried(halves: np.ndarray) -> np.ndarray:
    """The same sum with a lower half below 2^32; the higher ones have room for 2^33 records."""
    high, low = halves
    return np.stack([high + (low >> HALF), low & (2**HALF - 1)])
