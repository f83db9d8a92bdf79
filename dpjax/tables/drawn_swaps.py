"""Swaps whose rows and columns are drawn in each sweep, so that each swap is possible in each.

The schedule of a sweep lists some of the swaps of two known margins, and in a large table not all. Each of them may be
needed: where rows u, u′ and columns v, v′ have one record each, no other swap exchanges those two. Here any two rows
and columns are drawn, and of the cells in which they meet any, whatever the counts are: a mixture of moves each of
which leaves the law of the counts as it is does so too.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.tables.drawn import plan_at, template
from dpjax.tables.fibre import SIGNS, Swap
from dpjax.tables.moves import Law, State, move_batch

__all__ = ["ROUNDS", "Corners", "find_corners", "swap_drawn"]

ROUNDS = 4
"""How many swaps of each kind a sweep draws: they are there for what the listed ones do not reach."""

LARGEST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Corners:
    """Where rows and columns meet: places (u, v) of each part, numbered part by part and row by row.

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


class Draws(NamedTuple):
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


def find_corners(swap: Swap) -> Corners | None:
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
    return Corners(*map(np.concatenate, zip(*parts, strict=True))) if parts else None


def swap_drawn(law: Law, corners: Corners, width: int, state: State, key: Key) -> tuple[State, Array]:
    """The state after `ROUNDS` drawn swaps, and how many of them changed it []."""
    move = template(law, SIGNS, 1, width)

    def step(state: State, index: Array) -> tuple[State, Array]:
        draws = draw_swap(jax.random.fold_in(key, index), corners, width)
        plan = plan_at(law, SIGNS, cells_at(corners, draws)[None], jnp.ones(1, bool))
        return move_batch(law, move, plan, state, draws.offset, draws.uniform)

    state, changed = jax.lax.scan(step, state, jnp.arange(ROUNDS))
    return state, jnp.sum(changed)


def draw_swap(key: Key, corners: Corners, width: int) -> Draws:
    """The random numbers of a swap."""
    place_key, turn_key, member_key, offset_key, uniform_key = jax.random.split(key, 5)
    return Draws(
        jax.random.randint(place_key, (), 0, len(corners.size)),
        jax.random.randint(turn_key, (2,), 0, LARGEST),
        jax.random.randint(member_key, (4,), 0, LARGEST),
        jax.random.randint(offset_key, (1,), 0, width + 1),
        jax.random.uniform(uniform_key, (1,), float),
    )


def cells_at(corners: Corners, draws: Draws) -> Array:
    """The cells (u, v), (u, v′), (u′, v), (u′, v′) [4] of a swap of two different rows and columns of one part."""
    first, rows, columns = (jnp.asarray(array)[draws.place] for array in (corners.first, corners.rows, corners.columns))
    row, column = jnp.divmod(draws.place - first, columns)
    other_row = (row + 1 + draws.turn[0] % (rows - 1)) % rows
    other_column = (column + 1 + draws.turn[1] % (columns - 1)) % columns
    pairs = [(row, column), (row, other_column), (other_row, column), (other_row, other_column)]
    places = first + jnp.stack([one * columns + other for one, other in pairs])
    member = draws.member % jnp.asarray(corners.size)[places]
    return jnp.asarray(corners.cells)[jnp.asarray(corners.start)[places] + member]
