"""Directions in which counts move: which cells gain and lose together, in batches that do not touch each other's sums.

A direction adds δ to some cells and takes δ from others. Which directions are tried, and in what order, is fixed before
any count is known, but for a choice among several orders that is drawn in each sweep. So every order leaves the target
invariant if every single move does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack

from dpjax.data_augmentation.counts.sums import CellSums, compress

__all__ = ["ChangedSums", "Directions", "line_up", "make_directions", "match_pairs", "spread_out", "touch"]

MAX_MOVES = 2**17
"""Largest number of moves of all orders of one kind: more would only make the program larger."""

MAX_ORDERS = 16

MAX_BATCHES = 64
"""Largest number of batches of a sweep: longer orders are split into several, of which a sweep takes one."""

STEP_COST = 16
"""Fixed cost of a batch, in moves."""


@dataclass(frozen=True, eq=False)
class ChangedSums:
    """The sums that a move along each direction changes.

    Parameters
    ----------
    index
        Their places [order, batch, move, k].
    weight
        What each gains as δ grows by 1, [order, batch, move, k]; 0 where fewer than k change.
    """

    index: np.ndarray
    weight: np.ndarray

    @cached_property
    def is_any(self) -> bool:
        """Whether any sum changes at all."""
        return bool(np.any(self.weight))


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of one kind, in several orders.

    Parameters
    ----------
    cells
        The cells that move [order, batch, move, a]. Moves of a batch touch no sum in common, and are made at once.
    signs
        Whether each of the cells gains (+1) or loses (−1) as δ grows, a numbers.
    real
        False for places [order, batch, move] that hold no move.
    """

    cells: np.ndarray
    signs: tuple[int, ...]
    real: np.ndarray

    @property
    def num_moves(self) -> np.ndarray:
        """How many moves each order makes [order]."""
        return np.asarray(np.sum(self.real, axis=(1, 2)))


def line_up(rng: np.random.Generator, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours [m, 2] in a random order of each group of cells, and the place [m] of the first in its group.

    `groups` [c] has −1 for cells that stay as they are.
    """
    cells = rng.permutation(np.flatnonzero(groups >= 0))
    cells = cells[np.argsort(groups[cells], kind="stable")]
    label = groups[cells]
    rank = np.arange(len(cells)) - np.searchsorted(label, label)
    joined = np.flatnonzero(label[1:] == label[:-1])
    return np.stack([cells[joined], cells[joined + 1]], axis=1), rank[joined]


def match_pairs(rng: np.random.Generator, groups: np.ndarray) -> np.ndarray:
    """Random disjoint pairs [m, 2] of cells of one group."""
    pairs, rank = line_up(rng, groups)
    return pairs[rank % 2 == 0]


def make_directions(
    orders: Sequence[np.ndarray], signs: tuple[int, ...], sums: Sequence[CellSums]
) -> Directions | None:
    """The directions of several orders, each a list [m, a] of cells, in batches; None if there are none.

    Parameters
    ----------
    sums
        The sums that moves of a batch must not have in common; the cells themselves always count.
    """
    if not any(len(order) for order in orders):
        return None
    found = [list(into_batches(order, signs, sums)) for order in orders if len(order)]
    width = choose_width([len(batch) for order in found for batch in order])
    batches = [part for order in found for part in into_parts(order, width)]
    shape = (len(batches), max(map(len, batches)), max(len(batch) for order in batches for batch in order))
    cells, real = np.zeros((*shape, len(signs)), np.int32), np.zeros(shape, bool)
    for row, order in enumerate(batches):
        for place, batch in enumerate(order):
            cells[row, place, : len(batch)], real[row, place, : len(batch)] = batch, True
    return Directions(cells, signs, real)


def choose_width(sizes: Sequence[int]) -> int:
    """How many moves to make at once, so that batches of these sizes cost least; empty places cost as moves do."""
    numbers = np.asarray(sizes)
    candidates = np.unique(numbers)
    cost = [(width + STEP_COST) * np.sum(-(-numbers // width)) for width in candidates]
    return int(candidates[np.argmin(cost)])


def into_parts(batches: Sequence[np.ndarray], width: int) -> Iterator[list[np.ndarray]]:
    """The batches of an order, none of more than `width` moves, in parts that are orders of their own."""
    pieces = [batch[start : start + width] for batch in batches for start in range(0, len(batch), width)]
    for start in range(0, len(pieces), MAX_BATCHES):
        yield pieces[start : start + MAX_BATCHES]


def into_batches(cells: np.ndarray, signs: tuple[int, ...], sums: Sequence[CellSums]) -> Iterator[np.ndarray]:
    """Moves [m, a] in batches whose moves touch no sum in common: each goes right after the last one it touches."""
    if all(each.is_identity for each in sums):
        yield cells
        return
    rows = np.broadcast_to(np.arange(len(cells))[:, None], cells.shape)
    touched = [csr_array((np.ones(cells.size, bool), (rows.ravel(), cells.ravel())))]
    for each in sums:
        index, weight = net_change(cells, signs, each)
        row, slot = np.nonzero(weight)
        touched.append(csr_array((np.ones(len(row), bool), (row, index[row, slot])), shape=(len(cells), each.size)))
    level = spread_out(touched, len(cells))
    for number in range(int(level.max()) + 1):
        yield cells[level == number]


def spread_out(touched: Sequence[csr_array], size: int) -> np.ndarray:
    """Levels [size] for what touches sums [size, q]: on one level nothing is touched twice.

    Each goes right after the last one that touches a sum of its own.
    """
    level = np.zeros(size, int)
    if not touched:
        return level
    places = hstack(touched, format="csr")
    places.eliminate_zeros()
    last = np.full(places.shape[1], -1)
    for row in range(size):
        used = places.indices[places.indptr[row] : places.indptr[row + 1]]
        level[row] = np.max(last[used], initial=-1) + 1
        last[used] = level[row]
    return level


def net_change(cells: np.ndarray, signs: tuple[int, ...], sums: CellSums) -> tuple[np.ndarray, np.ndarray]:
    """What moves along [m, a] change: places [m, k] and weights [m, k], 0 where fewer than k change."""
    index = sums.index[cells]
    weight = sums.weight[cells] * np.asarray(signs, float)[None, :, None]
    flat = compress(index.reshape(len(cells), -1), weight.reshape(len(cells), -1), sums.size)
    return np.maximum(flat.index, 0), flat.weight


def touch(directions: Directions, sums: CellSums) -> ChangedSums:
    """The sums that each direction changes."""
    shape = directions.real.shape
    cells = directions.cells.reshape(-1, len(directions.signs))
    index, weight = net_change(cells, directions.signs, sums)
    weight = np.where(directions.real.reshape(-1, 1), weight, 0)
    return ChangedSums(index.reshape(*shape, -1).astype(np.int32), weight.reshape(*shape, -1))
