"""Sums of a statistic over confidential records in whole steps of a grid, each contribution checked on its way."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Records
from dpjax.private.releases.records import Batch
from dpjax.statistics import RecordStatistic, Stacked
from dpjax.statistics.base import Norm, dimension_of
from dpjax.statistics.combinators import DOUBLE, bounded

__all__ = ["ExactSum", "find_fixed", "sum_on_grid"]

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
    num_replaced
        How many of these had an entry that is none, or a contribution that is not finite or not covered by the
        sensitivities, with those that were left out.
    """

    steps: np.ndarray
    num_records: int
    num_replaced: int


class Found(NamedTuple):
    """What each of m records contributes, and whether that is right.

    Attributes
    ----------
    parts
        The contributions [m, d]; or in place of them, for tables of many cells, the places and the values, both [m, k],
        of the coordinates that are not 0.
    is_right : [m]
        Whether they are finite, and covered by the sensitivities.
    """

    parts: tuple[np.ndarray, ...]
    is_right: np.ndarray


def find(statistic: RecordStatistic, records: Records, number: int, norm: Norm) -> Found:
    """What each of the first m records contributes."""
    find_parts = find_listed if is_listed(statistic) else find_rows
    return find_parts(statistic, records, number, norm)


def find_fixed(statistic: RecordStatistic, fixed: Records, norm: Norm) -> Found:
    """What a record contributes of which nothing can be read, or an error unless the sensitivities are about it."""
    repeated = {name: np.broadcast_to(one, (size_of_piece(statistic), *one.shape)) for name, one in fixed.items()}
    found = find(statistic, repeated, 1, norm)
    if not found.is_right[0]:
        given = f"{name_of(statistic)}, which is out of its own bounds where entries that are none are replaced"
        remedy = "Say by its fixed_values what stands for such an entry of each field, or pass statistics.clipped."
        fail("statistic", given, "one that is finite and within its radius there", remedy)
    return found


def sum_on_grid(
    statistic: RecordStatistic, batches: Iterable[Batch], step: np.ndarray, fixed: Records, *, norm: Norm = 2
) -> ExactSum:
    """The sum of the contributions, each rounded to the nearest whole number of steps.

    Integers have the same sum in any order and in any batches, and replacing a record changes it by what that record
    contributes. A contribution that is not right is replaced by that of a fixed record.

    Parameters
    ----------
    statistic
        What is summed, of a known dimension d.
    batches
        The records, one batch after the other.
    step : [d]
        The steps of the grid, powers of two, of which a contribution has at most 2^62.
    fixed
        The record that stands for one of which nothing can be read.
    norm
        That of the sensitivities which contributions have to be covered by.
    """
    instead = find_fixed(statistic, fixed, norm).parts
    halves, count, replaced = np.zeros((2, len(step)), np.int64), 0, 0
    for batch in batches:
        replaced += batch.num_left_out
        for piece, number in pieces(batch, size_of_piece(statistic)):
            parts, is_right = find(statistic, piece.fields, number, norm)
            parts = tuple(np.where(is_right[:, None], *pair) for pair in zip(parts, instead, strict=True))
            halves = carried(added(halves, parts, step))
            count, replaced = count + number, replaced + int(np.sum(~(piece.is_readable & is_right)))
    high, low = halves.astype(object)
    return ExactSum(high * 2**HALF + low, count, replaced)


def is_listed(statistic: RecordStatistic) -> bool:
    """Whether contributions are found as places and values."""
    return statistic.is_sparse and (dimension_of(statistic) or 0) > MOST_DENSE


def size_of_piece(statistic: RecordStatistic) -> int:
    """How many records are computed at once."""
    widest = max(dimension_of(statistic) or 0, sum(dimension_of(leaf) or 0 for leaf in statistic.leaves))
    return max(1, min(MOST_ROWS, MOST_NUMBERS // (1 if is_listed(statistic) else widest)))


def added(halves: np.ndarray, parts: tuple[np.ndarray, ...], step: np.ndarray) -> np.ndarray:
    """The halves [2, d] of a sum with contributions, in rows or in places and values."""
    if len(parts) == 1:
        return np.asarray(halves + np.stack([np.sum(half, axis=0) for half in split(np.rint(parts[0] / step))]))
    total, (places, values) = halves.copy(), parts
    for sums, half in zip(total, split(np.rint(values / step[places])), strict=True):
        np.add.at(sums, places, half)
    return total


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


def find_rows(statistic: RecordStatistic, records: Records, number: int, norm: Norm) -> Found:
    """The contributions [m, d] of the first m records; 0 where they are not finite."""
    parts = [np.asarray(part, float)[:number] for part in contribute(statistic, records)]
    with np.errstate(all="ignore"):  # a warning would tell something of a record
        rows = statistic.assemble(iter(parts))
    finite = are_finite(*parts, rows)
    rows = where(finite, rows)
    covered = within_radius(statistic, rows, norm)
    for leaf, part in zip(statistic.leaves, parts, strict=True):
        known = where(finite, part)
        covered &= leaf.covers(known, tolerance_of(leaf)) & within_radius(leaf, known, norm)
    return Found((rows,), finite & covered)


def find_listed(statistic: RecordStatistic, records: Records, number: int, norm: Norm) -> Found:
    """The same from the coordinates that are not 0, for tables of many cells."""
    listed = [tuple(np.asarray(part)[:number] for part in parts) for parts in list_parts(statistic, records)]
    with np.errstate(all="ignore"):
        places, values = statistic.assemble_listed((places, values.astype(float)) for places, values in listed)
    values = np.where(places >= 0, values, 0.0)
    finite = are_finite(values)
    values = where(finite, values)
    return Found((places, values), finite & are_covered(statistic, places, values, norm))


def are_finite(*parts: np.ndarray) -> np.ndarray:
    """Whether all numbers of each record are finite [m], in arrays [m, ...]."""
    return np.all([np.all(np.isfinite(part), axis=1) for part in parts], axis=0)


def where(kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows [m, ...] with 0 in place of those that are not kept [m]."""
    return np.where(kept[:, None], rows, 0.0)


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
