"""Sums over the cells of a table: which cells add to which sum, and how much, as sparse columns."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from dpjax.base import Array, Records, Statistic
from dpjax.statistics.base import is_sparse

__all__ = ["CellSums", "contributions_of_cells"]

BLOCK_NUMBERS = 2**24
"""Number of contributions of cells computed at once, for statistics that do not list their nonzero entries."""


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums [q] = A counts [q], where column k of A has the weights [k, m] at the places `index` [k, m]; -1 is none.

    No place occurs twice in a row of `index`.
    """

    index: np.ndarray
    weight: np.ndarray
    size: int

    @cached_property
    def is_identity(self) -> bool:
        """Whether sum k is the count of cell k."""
        cells, width = self.index.shape
        return (
            width == 1 and cells == self.size and bool(np.all(self.index[:, 0] == np.arange(cells)) and self.is_tally)
        )

    @cached_property
    def is_tally(self) -> bool:
        """Whether all weights are 1."""
        return bool(np.all(self.weight[self.index >= 0] == 1))

    @cached_property
    def is_whole(self) -> bool:
        """Whether all weights are whole numbers, so that the sums are."""
        return bool(np.all(self.weight == np.round(self.weight)))

    def total(self, counts: Array) -> Array:
        """The sums [q] of counts [c], which are whole if the weights are."""
        if self.is_identity:
            return counts
        weight = jnp.asarray(self.weight, counts.dtype if self.is_whole else float)
        added = weight * counts[:, None].astype(weight.dtype)
        place = np.where(self.index < 0, self.size, self.index)
        return jnp.zeros(self.size, weight.dtype).at[place].add(added, mode="drop")

    @cached_property
    def matrix(self) -> csr_array:
        """The matrix A [q, c]."""
        cell, slot = np.nonzero(self.index >= 0)
        entries = self.weight[cell, slot], (self.index[cell, slot], cell)
        return csr_array(entries, shape=(self.size, len(self.index)))

    def rows(self, places: np.ndarray) -> "CellSums":
        """The sums at these places."""
        number = np.full(self.size + 1, -1)
        number[places] = np.arange(len(places))
        return compress(number[self.index], self.weight, len(places))

    def part(self, start: int, stop: int) -> "CellSums":
        """The sums from `start` up to `stop`."""
        inside = (self.index >= start) & (self.index < stop)
        return compress(np.where(inside, self.index - start, -1), self.weight, stop - start)


def contributions_of_cells(statistic: Statistic, support: Records, size: int, kind: Any) -> CellSums:
    """What one record of each possible value adds to the sums [size] of a statistic, of floats of this kind."""
    if is_sparse(statistic):
        index, weight = statistic.sparse(support)  # type: ignore[attr-defined]
        return compress(np.asarray(index), np.asarray(weight, float), size)
    num_cells = len(jax.tree.leaves(support)[0])
    block = max(1, BLOCK_NUMBERS // size)
    contributions = jax.jit(jax.vmap(lambda record: statistic(record).astype(kind)))

    def contributions_at(cells: slice) -> tuple[np.ndarray, np.ndarray]:
        return nonzeros(np.asarray(contributions(jax.tree.map(lambda leaf: leaf[cells], support)), float))

    parts = [contributions_at(slice(start, start + block)) for start in range(0, num_cells, block)]
    width = max(index.shape[1] for index, _ in parts)
    index = np.concatenate([pad(index, width, -1) for index, _ in parts])
    return CellSums(index, np.concatenate([pad(weight, width, 0) for _, weight in parts]), size)


def nonzeros(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places and values of what is not 0 in rows [m, q], as rows padded with -1 and 0."""
    row, place = np.nonzero(rows)
    counts = np.bincount(row, minlength=len(rows))
    width = max(int(np.max(counts, initial=0)), 1)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    index, weight = np.full((len(rows), width), -1), np.zeros((len(rows), width))
    index[row, slot], weight[row, slot] = place, rows[row, place]
    return index, weight


def compress(index: np.ndarray, weight: np.ndarray, size: int) -> CellSums:
    """The sums with as few columns as hold what is not 0; equal places of a row are added up."""
    index, weight = merge_places(index, np.where(index < 0, 0.0, weight))
    order = np.argsort(weight == 0, axis=1, kind="stable")
    width = max(int(np.max(np.sum(weight != 0, axis=1), initial=0)), 1)
    index, weight = (np.take_along_axis(array, order, axis=1)[:, :width] for array in (index, weight))
    return CellSums(np.where(weight == 0, -1, index), weight, size)


def merge_places(index: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows [m, k] in which each place keeps its whole weight where it first occurs, and 0 elsewhere."""
    merged = np.zeros_like(weight)
    for slot in range(index.shape[1]):
        same = index == index[:, slot : slot + 1]
        first = ~np.any(same[:, :slot], axis=1)
        merged[:, slot] = np.where(first, np.sum(np.where(same, weight, 0), axis=1), 0)
    return index, merged


def pad(array: np.ndarray, width: int, value: Any) -> np.ndarray:
    """Rows with this many columns."""
    return np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=value)
