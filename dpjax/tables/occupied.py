"""Pairs of occupied cells: moves whose pairs are drawn by where the records are.

In a sparse table a few cells of many are occupied, and records go from one of these to another only when the two happen
to be paired. Here each cell of a pair is drawn from a group of K cells, of which m are occupied, with probability

    q(k | c) = (1{c_k > 0} + 1 / K) / (m + 1),

and counts move along the pair within random windows as in `dpjax.tables.moves`. The law of a window is
π(c) q(k | c) q(l | c) in place of π(c): the pair is then as likely after the move as before.
"""

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
from dpjax.tables.directions import spread_out
from dpjax.tables.drawn import plan_at, template
from dpjax.tables.moves import Law, Move, State, draw_place, log_weights, running_sums, window_start
from dpjax.tables.sums import CellSums

__all__ = ["Groups", "find_groups", "meet_all"]

ROUNDS = 16
"""How many pairs of each group a sweep moves."""

SIGNS = (1, -1)
"""The first cell of a pair gains what the second loses."""

BLOCK = 16
"""Occupied cells are counted in blocks of so many cells, so that one is found without running sums over all."""


@dataclass(frozen=True, eq=False)
class Groups:
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


class Draws(NamedTuple):
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


def find_groups(labels: np.ndarray, parts: Sequence[CellSums], sums: Sequence[CellSums]) -> Groups | None:
    """The groups of exchangeable cells `labels` [c]; a single one is cut into what sums of several cells hold together.

    None where no group has two cells.

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
    return Groups(labels, np.stack([np.pad(one, (0, widest - len(one)), constant_values=-1) for one in batches]))


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
    first, second = (sums.matrix @ member).tocoo(), (sums.matrix.power(2) @ member).tocoo()
    changes = second.data * size[second.col] != first.data**2
    return csr_array((changes, (second.col, second.row)), shape=(len(size), sums.size))


def meet_all(law: Law, groups: Groups, width: int, state: State, key: Key) -> tuple[State, Array, Array]:
    """The state after all rounds of a sweep, how many moves changed it [] and how many there were []."""
    move = template(law, SIGNS, groups.batches.shape[1], width)

    def step(carry: tuple[State, Array], index: Array) -> tuple[tuple[State, Array], tuple[Array, Array]]:
        draws = draw_round(jax.random.fold_in(key, index), groups, width)
        state, occupied, met, changed = meet(law, groups, move, *carry, draws)
        return (state, occupied), (jnp.sum(changed), jnp.sum(met))

    carry = state, find_occupied(groups, state.counts)
    (state, _), (changed, met) = jax.lax.scan(step, carry, jnp.arange(ROUNDS))
    return state, jnp.sum(changed), jnp.sum(met)


def find_occupied(groups: Groups, counts: Array) -> Array:
    """Whether the cells of each group are occupied, 0 or 1 [group, block, 16]."""
    return ((counts[groups.cells] > 0) & groups.is_cell).astype(jnp.int32)


def draw_round(key: Key, groups: Groups, width: int) -> Draws:
    """The random numbers of a round."""
    batch_key, rank_key, cell_key, offset_key, uniform_key = jax.random.split(key, 5)
    batches, size = groups.batches.shape
    return Draws(
        jax.random.randint(batch_key, (), 0, batches),
        jax.random.uniform(rank_key, (size, 2), float),
        jax.random.uniform(cell_key, (size, 2), float),
        jax.random.randint(offset_key, (size,), 0, width + 1),
        jax.random.uniform(uniform_key, (size,), float),
    )


def meet(
    law: Law, groups: Groups, move: Move, state: State, occupied: Array, draws: Draws
) -> tuple[State, Array, Array, Array]:
    """The state after a move of one pair in each group of a batch, and which cells are then occupied.

    Also which pairs [g] were two cells, and which of these moved.
    """
    label = jnp.asarray(groups.batches)[draws.batch]
    rows, size = occupied[label], jnp.asarray(groups.size)[label]
    place = choose_places(rows, size, draws)
    cells = jnp.asarray(groups.cells.reshape(len(groups.size), -1))[label[:, None], place]
    plan = plan_at(law, SIGNS, cells, (place[:, 0] != place[:, 1]) & (label >= 0))
    below = window_start(move, plan, state, draws.offset)
    there = (counts_there(move, state.counts[cells], below) > 0).astype(rows.dtype)
    now = jnp.take_along_axis(there, below[:, None, None], axis=2)
    number = jnp.sum(rows, axis=(1, 2))[:, None] + jnp.sum(there - now, axis=1)
    weights = log_weights(law, move, plan, state, below)
    chance = jnp.sum(log_chance(there, number[:, None], size[:, None, None]), axis=1)
    weights = jnp.where(weights > -jnp.inf, weights + chance.astype(weights.dtype), -jnp.inf)
    state, delta = draw_place(move, plan, state, below, weights, draws.uniform)
    gained = jnp.where(plan.real[:, None], (state.counts[cells] > 0).astype(rows.dtype) - now[..., 0], 0)
    occupied = occupied.at[label[:, None], place // BLOCK, place % BLOCK].add(gained)
    return state, occupied, plan.real, delta != 0


def choose_places(occupied: Array, size: Array, draws: Draws) -> Array:
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
    """Where among counts [g, 1 or 2, w] the one of each rank [g, 2] is, and how many are before that place."""
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
