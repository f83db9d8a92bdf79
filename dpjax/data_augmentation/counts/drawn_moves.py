"""Moves whose cells are drawn during a sweep: the sums that they change are looked up at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array, csr_matrix, vstack
from scipy.sparse.csgraph import connected_components

from dpjax.base import Array, Key
from dpjax.data_augmentation.counts.directions import ChangedSums, Directions, spread_out
from dpjax.data_augmentation.counts.fibre import SIGNS, Swap
from dpjax.data_augmentation.counts.moves import (
    CountState,
    CountTarget,
    Move,
    MoveBatch,
    draw_place,
    log_weights,
    move_batch,
    running_sums,
    window_start,
)
from dpjax.data_augmentation.counts.sums import CellSums
from dpjax.numerics.loops import scan_short

__all__ = [
    "MoveGroups",
    "SwapCells",
    "batch_at",
    "find_corners",
    "find_groups",
    "move_in_windows",
    "swap_drawn",
    "template",
]


SWAP_ROUNDS = 4
"""Number of swaps of each kind that a sweep draws, to reach tables that listed swaps do not."""

LARGEST = 2**31 - 1


PAIR_ROUNDS = 16
"""Number of pairs of each group that a sweep moves."""

PAIR_SIGNS = (1, -1)
"""The first cell of a pair gains what the second loses."""

BLOCK = 16
"""Number of cells in a block, in which occupied cells are counted, to find one without running sums over all."""


def template(target: CountTarget, signs: tuple[int, ...], number: int, width: int) -> Move:
    """A template for `number` moves of any cells with these signs, which may change any of their sums."""
    shape = (1, 1, number)

    def touched(sums: CellSums) -> ChangedSums:
        slots = (*shape, len(signs) * sums.index.shape[1])
        # The cells that gain may all add to one sum.
        reach = signs.count(1) if sums.is_tally else len(signs) * np.max(np.abs(sums.weight))
        return ChangedSums(np.zeros(slots, np.int32), np.full(slots, reach))

    gammas, noisy = (tuple(touched(factor.sums) for factor in factors) for factors in (target.gammas, target.noisy))
    cells = np.zeros((*shape, len(signs)), np.int32)
    return Move(Directions(cells, signs, np.ones(shape, bool)), gammas, noisy, width)


def batch_at(target: CountTarget, signs: tuple[int, ...], cells: Array, real: Array) -> MoveBatch:
    """The batch of moves of given cells [move, a]; moves that are not real do nothing."""
    gammas = (net_change(each.sums, signs, cells) for each in target.gammas)
    return MoveBatch(
        cells,
        real,
        tuple((index, weight.astype(int)) for index, weight in gammas),
        tuple(net_change(each.sums, signs, cells) for each in target.noisy),
    )


def net_change(sums: CellSums, signs: tuple[int, ...], cells: Array) -> tuple[Array, Array]:
    """Places and weights [move, k] of what cells [move, a] change; a sum of several has one weight that is not 0."""
    index, weight = jnp.asarray(sums.index)[cells], jnp.asarray(sums.weight, float)[cells]
    weight = jnp.where(index < 0, 0.0, weight * jnp.asarray(signs, float)[None, :, None])
    index, weight = index.reshape(len(cells), -1), weight.reshape(len(cells), -1)
    same = index[:, :, None] == index[:, None, :]
    is_first = ~jnp.any(same & np.tri(index.shape[1], k=-1, dtype=bool)[None], axis=2)
    merged = jnp.sum(jnp.where(same, weight[:, None, :], 0.0), axis=2)
    return jnp.maximum(index, 0), jnp.where(is_first, merged, 0.0)


@dataclass(frozen=True, eq=False)
class SwapCells:
    """The meeting places of rows and columns: places (u, v) of each part, numbered part by part and row by row.

    Parameters
    ----------
    cells
        The cells of the first place, then those of the second, and so on.
    start
        Where in `cells` those of each place begin [place].
    size
        How many they are [place].
    first
        Of the part of each place its first place [place].
    rows
        Its number of rows [place].
    columns
        Its number of columns [place].
    """

    cells: np.ndarray
    start: np.ndarray
    size: np.ndarray
    first: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


class SwapDraws(NamedTuple):
    """The random numbers of a swap: its first place [], and those of its window [1].

    Attributes
    ----------
    turn
        Whole numbers that choose the other row and column [2].
    member
        Whole numbers that choose the cell in each place [4].
    """

    place: Array
    turn: Array
    member: Array
    offset: Array
    uniform: Array


def find_corners(swap: Swap) -> SwapCells | None:
    """The places of the parts with two rows and two columns; None if there is no such part."""
    parts, num_places, num_cells = [], 0, 0
    for part in np.unique(swap.part[swap.part >= 0]):
        cells = np.flatnonzero(swap.part == part)
        rows, row = np.unique(swap.rows[cells], return_inverse=True)
        columns, column = np.unique(swap.columns[cells], return_inverse=True)
        if len(rows) < 2 or len(columns) < 2:
            continue
        place = row * len(columns) + column
        size = np.bincount(place)
        start = num_cells + np.cumsum(size) - size
        ends = np.broadcast_to(np.array([[num_places], [len(rows)], [len(columns)]]), (3, len(size)))
        parts.append((cells[np.argsort(place, kind="stable")], start, size, *ends))
        num_places, num_cells = num_places + len(size), num_cells + len(cells)
    return SwapCells(*map(np.concatenate, zip(*parts, strict=True))) if parts else None


def swap_drawn(
    target: CountTarget, corners: SwapCells, width: int, state: CountState, key: Key
) -> tuple[CountState, Array]:
    """The state after `SWAP_ROUNDS` drawn swaps, and how many of them changed it []."""
    move = template(target, SIGNS, 1, width)

    def step(state: CountState, index: Array) -> tuple[CountState, Array]:
        draws = draw_swap(jax.random.fold_in(key, index), corners, width)
        batch = batch_at(target, SIGNS, cells_at(corners, draws)[None], jnp.ones(1, bool))
        return move_batch(target, move, batch, state, draws.offset, draws.uniform)

    state, changed = scan_short(step, state, jnp.arange(SWAP_ROUNDS))
    return state, jnp.sum(changed)


def draw_swap(key: Key, corners: SwapCells, width: int) -> SwapDraws:
    """The random numbers of a swap."""
    place_key, turn_key, member_key, offset_key, uniform_key = jax.random.split(key, 5)
    return SwapDraws(
        jax.random.randint(place_key, (), 0, len(corners.size)),
        jax.random.randint(turn_key, (2,), 0, LARGEST),
        jax.random.randint(member_key, (4,), 0, LARGEST),
        jax.random.randint(offset_key, (1,), 0, width + 1),
        jax.random.uniform(uniform_key, (1,), float),
    )


def cells_at(corners: SwapCells, draws: SwapDraws) -> Array:
    """The cells (u, v), (u, v′), (u′, v), (u′, v′) [4] of a swap of two different rows and columns of one part."""
    first, rows, columns = (jnp.asarray(array)[draws.place] for array in (corners.first, corners.rows, corners.columns))
    row, column = jnp.divmod(draws.place - first, columns)
    other_row = (row + 1 + draws.turn[0] % (rows - 1)) % rows
    other_column = (column + 1 + draws.turn[1] % (columns - 1)) % columns
    pairs = [(row, column), (row, other_column), (other_row, column), (other_row, other_column)]
    places = first + jnp.stack([one * columns + other for one, other in pairs])
    member = draws.member % jnp.asarray(corners.size)[places]
    return jnp.asarray(corners.cells)[jnp.asarray(corners.start)[places] + member]


@dataclass(frozen=True, eq=False)
class MoveGroups:
    """Groups of cells that may be exchanged one for one.

    Parameters
    ----------
    label
        The group of each cell [c]; −1 for cells that stay as they are.
    batches
        Groups [batch, g] whose moves touch no sum in common, padded with −1.
    """

    label: np.ndarray
    batches: np.ndarray

    @cached_property
    def size(self) -> np.ndarray:
        """How many cells each group has [group]."""
        return np.bincount(self.label[self.label >= 0])

    @cached_property
    def cells(self) -> np.ndarray:
        """The cells of each group in blocks [group, block, 16], padded with 0."""
        order = np.argsort(self.label, kind="stable")
        label = self.label[order]
        rank = np.arange(len(order)) - np.searchsorted(label, label)
        cells = np.zeros((len(self.size), -(-int(np.max(self.size)) // BLOCK) * BLOCK), np.int32)
        cells[label[label >= 0], rank[label >= 0]] = order[label >= 0]
        return cells.reshape(len(cells), -1, BLOCK)

    @cached_property
    def is_cell(self) -> np.ndarray:
        """Whether there is a cell in each place [group, block, 16]."""
        places = np.arange(self.cells[0].size).reshape(self.cells.shape[1:])
        return np.asarray(places < self.size[:, None, None])


class PairDraws(NamedTuple):
    """The random numbers of a round: its batch of groups [], and of each group of the batch those of its pair.

    Attributes
    ----------
    rank
        Uniforms [g, 2] that choose among the occupied cells.
    anywhere
        Uniforms [g, 2] that choose among all.
    offset
        Of windows [g].
    uniform
        Of places in them [g].
    """

    batch: Array
    rank: Array
    anywhere: Array
    offset: Array
    uniform: Array


def find_groups(labels: np.ndarray, parts: Sequence[CellSums], sums: Sequence[CellSums]) -> MoveGroups | None:
    """The groups of exchangeable cells `labels` [c]; a single one is cut into what sums of several cells hold together.

    None if no group has two cells.

    Parameters
    ----------
    parts
        The noisy sums, which hold cells together.
    sums
        All sums that moves at the same time must not have in common.
    """
    joined = [part.matrix for part in parts if not part.is_identity]
    if joined and len(np.unique(labels[labels >= 0])) == 1:
        labels = np.where(labels < 0, -1, number(np.stack([labels, together(vstack(joined, format="csr"))])))
    labels = np.where(labels < 0, -1, number(labels[None]) - np.any(labels < 0))
    if np.max(np.bincount(labels[labels >= 0]), initial=0) < 2:
        return None
    places = [places_of(each, labels) for each in sums if not each.is_identity]
    level = spread_out(places, int(np.max(labels)) + 1)
    batches = [np.flatnonzero(level == one) for one in range(int(level.max()) + 1)]
    widest = max(map(len, batches))
    return MoveGroups(labels, np.stack([np.pad(one, (0, widest - len(one)), constant_values=-1) for one in batches]))


def number(rows: np.ndarray) -> np.ndarray:
    """Numbers from 0 on of the different columns of rows [m, c]."""
    return np.unique(rows, axis=1, return_inverse=True)[1].ravel()


def together(matrix: csr_array) -> np.ndarray:
    """Labels [c] of cells that sums [q, c] hold together; all cells that are alone have one label."""
    label = connected_components(csr_matrix(abs(matrix.T) @ abs(matrix)), directed=False)[1]
    return np.where(np.bincount(label)[label] > 1, label + 1, 0)


def places_of(sums: CellSums, labels: np.ndarray) -> csr_array:
    """The sums [group, q] that exchanges within each group change: those whose weights are not all the same."""
    inside = np.flatnonzero(labels >= 0)
    member = csr_array((np.ones(len(inside)), (inside, labels[inside])), shape=(len(labels), int(labels.max()) + 1))
    size = np.bincount(labels[inside])
    first, second = sums.matrix @ member, sums.matrix.power(2) @ member  # weights may cancel out in the first alone
    changes = (second.multiply(size[None]) - first.power(2)).tocoo()
    return csr_array((changes.data != 0, (changes.col, changes.row)), shape=(len(size), sums.size))


def move_in_windows(
    target: CountTarget, groups: MoveGroups, width: int, state: CountState, key: Key
) -> tuple[CountState, Array, Array]:
    """The state after all rounds of a sweep, how many moves changed it [] and how many there were []."""
    move = template(target, PAIR_SIGNS, groups.batches.shape[1], width)

    def step(carry: tuple[CountState, Array], index: Array) -> tuple[tuple[CountState, Array], tuple[Array, Array]]:
        draws = draw_round(jax.random.fold_in(key, index), groups, width)
        state, occupied, met, changed = move_in_window(target, groups, move, *carry, draws)
        return (state, occupied), (jnp.sum(changed), jnp.sum(met))

    carry = state, find_occupied(groups, state.counts)
    (state, _), (changed, met) = scan_short(step, carry, jnp.arange(PAIR_ROUNDS))
    return state, jnp.sum(changed), jnp.sum(met)


def find_occupied(groups: MoveGroups, counts: Array) -> Array:
    """Whether the cells of each group are occupied, 0 or 1 [group, block, 16]."""
    return ((counts[groups.cells] > 0) & groups.is_cell).astype(jnp.int32)


def draw_round(key: Key, groups: MoveGroups, width: int) -> PairDraws:
    """The random numbers of a round."""
    batch_key, rank_key, cell_key, offset_key, uniform_key = jax.random.split(key, 5)
    batches, size = groups.batches.shape
    return PairDraws(
        jax.random.randint(batch_key, (), 0, batches),
        jax.random.uniform(rank_key, (size, 2), float),
        jax.random.uniform(cell_key, (size, 2), float),
        jax.random.randint(offset_key, (size,), 0, width + 1),
        jax.random.uniform(uniform_key, (size,), float),
    )


def move_in_window(
    target: CountTarget, groups: MoveGroups, move: Move, state: CountState, occupied: Array, draws: PairDraws
) -> tuple[CountState, Array, Array, Array]:
    """The state after a move of one pair in each group of a batch, and which cells are then occupied.

    Also which pairs [g] were two cells, and which of these moved.
    """
    label = jnp.asarray(groups.batches)[draws.batch]
    rows, size = occupied[label], jnp.asarray(groups.size)[label]
    place = choose_places(rows, size, draws)
    cells = jnp.asarray(groups.cells.reshape(len(groups.size), -1))[label[:, None], place]
    batch = batch_at(target, PAIR_SIGNS, cells, (place[:, 0] != place[:, 1]) & (label >= 0))
    below = window_start(move, batch, state, draws.offset)
    there = (counts_there(move, state.counts[cells], below) > 0).astype(rows.dtype)
    now = jnp.take_along_axis(there, below[:, None, None], axis=2)
    number = jnp.sum(rows, axis=(1, 2))[:, None] + jnp.sum(there - now, axis=1)
    weights = log_weights(target, move, batch, state, below)
    chance = jnp.sum(log_chance(there, number[:, None], size[:, None, None]), axis=1)
    weights = jnp.where(weights > -jnp.inf, weights + chance.astype(weights.dtype), -jnp.inf)
    state, delta = draw_place(move, batch, state, below, weights, draws.uniform)
    gained = jnp.where(batch.real[:, None], (state.counts[cells] > 0).astype(rows.dtype) - now[..., 0], 0)
    occupied = occupied.at[label[:, None], place // BLOCK, place % BLOCK].add(gained)
    return state, occupied, batch.real, delta != 0


def choose_places(occupied: Array, size: Array, draws: PairDraws) -> Array:
    """Two places [g, 2] in each group [g, block, 16]: of the occupied cells or, as one more choice, of all cells."""
    in_block = jnp.sum(occupied, axis=2)
    rank = whole(draws.rank, jnp.sum(in_block, axis=1) + 1) - 1
    block, before = find_rank(in_block[:, None], rank)
    inside = jnp.take_along_axis(occupied, block[..., None], axis=1)
    slot, _ = find_rank(inside, rank - before)
    return jnp.where(rank < 0, whole(draws.anywhere, size), block * BLOCK + slot)


def whole(uniform: Array, size: Array) -> Array:
    """Whole numbers [g, 2] from 0 to size [g], without it, by uniforms."""
    limit = size[:, None]
    return jnp.minimum((uniform * limit.astype(uniform.dtype)).astype(limit.dtype), limit - 1)


def find_rank(counts: Array, rank: Array) -> tuple[Array, Array]:
    """The places of each rank [g, 2] among counts [g, 1 or 2, w], and how many are before that place."""
    running = running_sums(counts.reshape(-1, counts.shape[-1]).astype(float)).reshape(counts.shape)
    before = (running - counts.astype(running.dtype)).astype(rank.dtype)
    place = jnp.argmax(running > rank[..., None].astype(running.dtype), axis=-1)
    return place, jnp.take_along_axis(jnp.broadcast_to(before, (*rank.shape, before.shape[-1])), place[..., None], -1)[
        ..., 0
    ]


def counts_there(move: Move, counts: Array, below: Array) -> Array:
    """The counts [g, 2, W + 1] of pairs [g, 2] over windows that begin `below` [g] the present value."""
    steps = jnp.arange(move.width + 1, dtype=counts.dtype)[None] - below[:, None].astype(counts.dtype)
    return counts[..., None] + jnp.stack([steps, -steps], axis=1)


def log_chance(is_occupied: Array, number: Array, size: Array) -> Array:
    """log q(k | c) of cells that are occupied or not, 1 or 0, in groups of `size` cells, `number` of them occupied."""
    share = 1 / size.astype(float)
    return jnp.where(is_occupied > 0, jnp.log1p(share), jnp.log(share)) - jnp.log1p(number.astype(float))
