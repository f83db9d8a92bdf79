"""Known totals: which moves keep them, and whether these reach every table that has them.

Tables with given totals form a *fibre*. Three arguments show that moves connect it:

* Cells whose records add the same to every known total may be exchanged one for one. These additions, with the number
  of records if that is known, may be linearly independent between groups of such cells. Then the totals fix the number
  of records in each group, and exchanges within groups reach every table.
* Two known margins: partitions U and V of the cells. Two margins: let every class of U meet every class of V, within
  each part that the two do not cut apart. Then the margins leave two-way tables with fixed row and column totals. Swaps
  (u, v) + (u′, v′) − (u, v′) − (u′, v) connect these (Diaconis and Sturmfels 1998, section 3). All of them may be
  needed: see `dpjax.data_augmentation.counts.drawn_moves`.
* Decomposable sets of margins: if the margins are the cliques of a junction tree, the swaps of all its edges connect
  the fibre (Dobra 2003, theorem 4.2). An edge cuts the margins into two sides, U and V are the common refinements of
  either side, and classes meet as above.

If published numbers limit single cells beside two known margins, swaps may not suffice. If few cells are free, all
cycles of cells are moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from dpjax._util.validation import fail
from dpjax.data_augmentation.counts.cycles import find_cycles
from dpjax.data_augmentation.counts.sums import CellSums

__all__ = ["SIGNS", "Fibre", "Swap", "find_fibre", "swap_cells"]

SIGNS = (1, -1, -1, 1)
"""Which of the cells (u, v), (u, v′), (u′, v), (u′, v′) of a swap gain and which lose."""

MAX_MARGINS = 4
"""Largest number of known, dependent margins for which junction trees are searched."""


@dataclass(frozen=True, eq=False)
class Swap:
    """Two labellings [c] of the cells whose classes all meet, within each of the parts that they do not cut apart.

    Cells of structural zeros, and others that are known, have part −1.
    """

    rows: np.ndarray
    columns: np.ndarray
    part: np.ndarray


@dataclass(frozen=True, eq=False)
class Fibre:
    """The moves that keep what is known.

    Parameters
    ----------
    groups
        Cells of one label may be exchanged one for one [c]; −1 for cells that are known, such as empty ones.
    swaps
        Pairs of labellings between which swaps are made.
    single
        Cells that may gain or lose records by themselves [c]: those that add to no known total, if the number of
        records is unknown.
    cycles
        Cells [m, a] that gain and lose in turn; see `dpjax.data_augmentation.counts.cycles`.
    """

    groups: np.ndarray
    swaps: tuple[Swap, ...]
    single: np.ndarray
    cycles: tuple[np.ndarray, ...] = ()


def find_fibre(
    num_cells: int,
    known: Sequence[tuple[CellSums, np.ndarray]],
    is_size_known: bool,
    limited: Sequence[CellSums] = (),
) -> Fibre:
    """The moves that connect all tables with the known sums.

    Parameters
    ----------
    known
        Sums that were released exactly, with their values.
    is_size_known
        Whether the number of records is known, which is one more total.
    limited
        Sums of which the published numbers allow a few values only.

    Raises
    ------
    ValueError
        If no known argument shows that the moves reach every such table.
    """
    zero = np.zeros(num_cells, bool)
    for sums, values in known:
        zero |= empty_cells(sums, values)
        if is_incomplete(sums):
            zero |= lone_cells(sums)
    known = [(sums, values) for sums, values in known if not (is_incomplete(sums) and is_held(sums, zero))]
    columns = label_columns([sums for sums, _ in known], num_cells)
    groups = np.where(zero, -1, columns)
    single = ~zero & (not is_size_known)
    for sums, _ in known:
        single &= np.all(sums.weight == 0, axis=1)
    # No total restricts cells that may change by themselves.
    if is_independent([sums for sums, _ in known], np.where(single, -1, groups), is_size_known):
        return Fibre(groups, swaps_within([sums for sums, _ in known], limited, zero), single)
    margins = independent_margins([margin_of(sums) for sums, _ in known], zero)
    if len(margins) == 2 and any(np.any(lone_cells(part)) for part in limited):
        cycles = find_cycles(margins[0], margins[1], ~zero)
        if cycles is not None:
            return Fibre(groups, (), single, cycles)
    return Fibre(groups, find_swaps(margins, zero), single)


def empty_cells(sums: CellSums, values: np.ndarray) -> np.ndarray:
    """Cells [c] that add to a sum of nonnegative additions that is known to be 0."""
    negative = np.zeros(sums.size, bool)
    np.logical_or.at(negative, sums.index[sums.weight < 0], True)
    is_zero = np.append((values == 0) & ~negative, False)
    return np.any(is_zero[sums.index] & (sums.weight > 0), axis=1)


def is_incomplete(sums: CellSums) -> bool:
    """Whether some cells add to none of the sums, as where a table was published with gaps."""
    return bool(np.any(np.all(sums.index < 0, axis=1)))


def lone_cells(sums: CellSums) -> np.ndarray:
    """Cells [c] that alone add to a known sum, and so are known."""
    number = np.bincount(sums.index[sums.index >= 0], minlength=sums.size)
    return np.any((sums.index >= 0) & (np.append(number, 0)[sums.index] == 1), axis=1)


def is_held(sums: CellSums, fixed: np.ndarray) -> bool:
    """Whether only cells that are known add to the sums."""
    return bool(np.all(fixed[np.any(sums.index >= 0, axis=1)]))


def label_columns(known: Sequence[CellSums], num_cells: int) -> np.ndarray:
    """Labels [c]: equal for cells whose records add the same to every known sum."""
    if not known:
        return np.zeros(num_cells, int)
    parts = []
    for sums in known:
        order = np.argsort(np.where(sums.index < 0, sums.size, sums.index), axis=1, kind="stable")
        parts += [np.take_along_axis(sums.index, order, 1), np.take_along_axis(sums.weight, order, 1)]
    return np.unique(np.concatenate(parts, axis=1), axis=0, return_inverse=True)[1].ravel()


def is_independent(known: Sequence[CellSums], groups: np.ndarray, is_size_known: bool) -> bool:
    """Whether the totals fix the number of records of each group: additions of groups are linearly independent."""
    labels, first = np.unique(groups, return_index=True)
    cells = first[labels >= 0]
    tags = [tags for part in known if (tags := tags_of(part)).size]
    if any(len(np.unique(tag[cells])) == len(cells) for tag in tags):
        return True  # one partition separates all groups
    if len(cells) > sum(part.size for part in known) + is_size_known:
        return False
    columns = [part.matrix.T[cells].toarray() for part in known] + [np.ones((len(cells), int(is_size_known)))]
    return bool(np.linalg.matrix_rank(np.concatenate(columns, axis=1)) == len(cells))


def tags_of(sums: CellSums) -> np.ndarray:
    """The sum [c] that each cell adds 1 to; empty if the sums are not a partition."""
    is_partition = sums.index.shape[1] == 1 and sums.is_tally and not np.any(sums.index < 0)
    return sums.index[:, 0] if is_partition else np.zeros(0, int)


def margin_of(sums: CellSums) -> np.ndarray:
    """The partition [c] that a known margin is, or an error if the totals are not those of a partition."""
    tags = tags_of(sums)
    if not tags.size:
        refuse_totals("totals that are not the margins of a table")
    return tags


def independent_margins(margins: list[np.ndarray], zero: np.ndarray) -> list[np.ndarray]:
    """The margins that no other refines; the others are sums of its totals."""
    kept: list[np.ndarray] = []
    for place, margin in enumerate(margins):
        others = [*kept, *margins[place + 1 :]]
        if not any(refines(other[~zero], margin[~zero]) for other in others):
            kept.append(margin)
    return kept


def refines(fine: np.ndarray, coarse: np.ndarray) -> bool:
    """Whether every class of one partition lies within a class of the other."""
    return len(np.unique(fine)) == np.unique(np.stack([fine, coarse]), axis=1).shape[1]


def find_swaps(margins: list[np.ndarray], zero: np.ndarray) -> tuple[Swap, ...]:
    """The swaps of a junction tree of the margins, or an error if there is none."""
    if len(margins) <= MAX_MARGINS:
        for tree in junction_trees(len(margins)):
            swaps = [swap_of(margins, edge, tree, zero) for edge in tree]
            if all(swap is not None for swap in swaps):
                return tuple(swap for swap in swaps if swap is not None)
    return refuse_totals(f"{len(margins)} margins that are not decomposable, or that structural zeros cut apart")


def swaps_within(known: Sequence[CellSums], limited: Sequence[CellSums], zero: np.ndarray) -> tuple[Swap, ...]:
    """Swaps that keep the margins among sums of which published numbers allow a few values only, and known totals.

    If a margin is at the end of what is allowed, pairs of cells alone may not reach every table.
    """
    tags = [tags_of(part) for part in (*known, *limited) if not part.is_identity]
    margins = independent_margins([tag for tag in tags if tag.size], zero)
    if known and len(margins) != 2:
        return ()
    pairs = ([first, second] for place, first in enumerate(margins) for second in margins[place + 1 :])
    swaps = [swap_of(pair, (0, 1), [(0, 1)], zero) for pair in pairs]
    return tuple(swap for swap in swaps if swap is not None)


def refuse_totals(given: str) -> tuple[Swap, ...]:
    """Raise for known totals whose fibre no known argument connects."""
    expected = (
        "known totals of one margin, of nested or of decomposable margins, with structural zeros of whole classes"
    )
    remedy = "Leave out some of the known totals, or give them a little noise such as dpjax.DiscreteGaussian(0.5)."
    return fail("release", given, expected, remedy)


def junction_trees(size: int) -> list[list[tuple[int, int]]]:
    """All trees on few margins, each a list of edges towards the root 0."""
    choices = product(*[[parent for parent in range(size) if parent != child] for child in range(1, size)])
    trees = [[(child, parent) for child, parent in enumerate(parents, start=1)] for parents in choices]
    return [tree for tree in trees if is_tree(size, tree)]


def is_tree(size: int, edges: list[tuple[int, int]]) -> bool:
    """Whether the edges connect everything."""
    return len(set(side_of(size, edges, 0))) == size


def side_of(size: int, edges: Sequence[tuple[int, int]], root: int) -> list[int]:
    """The margins that edges connect to one."""
    found = [root]
    for place in found:
        found += [b if a == place else a for a, b in edges if place in (a, b) and (b if a == place else a) not in found]
    return found


def swap_of(
    margins: list[np.ndarray], edge: tuple[int, int], tree: list[tuple[int, int]], zero: np.ndarray
) -> Swap | None:
    """The swap of an edge of a junction tree, or None if the edge does not separate its sides."""
    rest = [other for other in tree if other != edge]
    sides = [side_of(len(margins), rest, end) for end in edge]
    rows, columns = (refine([margins[place] for place in side]) for side in sides)
    part = np.where(zero, -1, coarsen(rows, columns, ~zero))
    ends = coarsen(margins[edge[0]], margins[edge[1]], ~zero)
    is_separator = refines(part[~zero], ends[~zero])
    return Swap(rows, columns, part) if is_separator and is_crossed(rows, columns, part) else None


def refine(margins: Sequence[np.ndarray]) -> np.ndarray:
    """The common refinement of partitions [c]."""
    return np.unique(np.stack(margins), axis=1, return_inverse=True)[1].ravel()


def coarsen(first: np.ndarray, second: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """The finest partition [c] that both partitions refine, of the cells inside."""
    offset = int(np.max(first)) + 1
    size = offset + int(np.max(second)) + 1
    edges = coo_matrix((np.ones(int(inside.sum())), (first[inside], second[inside] + offset)), shape=(size, size))
    return connected_components(edges, directed=False)[1][first]


def is_crossed(rows: np.ndarray, columns: np.ndarray, part: np.ndarray) -> bool:
    """Whether within each part every row meets every column."""
    inside = part >= 0
    met = np.unique(np.stack([part[inside], rows[inside], columns[inside]]), axis=1)
    by_part = np.unique(met[0], return_counts=True)[1]
    num_rows = np.unique(np.unique(met[:2], axis=1)[0], return_counts=True)[1]
    num_columns = np.unique(np.unique(met[[0, 2]], axis=1)[0], return_counts=True)[1]
    return bool(np.all(by_part == num_rows * num_columns))


def swap_cells(rng: np.random.Generator, swap: Swap) -> np.ndarray:
    """Random swaps [m, 4] of cells (u, v), (u, v′), (u′, v), (u′, v′) of one part, with no cell twice."""
    moves = []
    for part in np.unique(swap.part[swap.part >= 0]):
        cells = rng.permutation(np.flatnonzero(swap.part == part))
        rows, row = np.unique(swap.rows[cells], return_inverse=True)
        columns, column = np.unique(swap.columns[cells], return_inverse=True)
        if len(rows) < 2 or len(columns) < 2:
            continue
        place = np.zeros((len(rows), len(columns)), int)
        place[row, column] = cells  # of several cells of a row and column a random one
        pairs = [rng.permutation(size)[: size // 2 * 2].reshape(-1, 2) for size in place.shape]
        (r1, r2), (c1, c2) = pairs[0].T[:, :, None], pairs[1].T[:, None, :]
        corners = np.broadcast_arrays(place[r1, c1], place[r1, c2], place[r2, c1], place[r2, c2])
        moves.append(np.stack([corner.ravel() for corner in corners], axis=1))
    return np.concatenate(moves) if moves else np.zeros((0, 4), int)
