"""Cycles: the moves that keep two known margins if published numbers limit single cells, too.

Rows and columns are the nodes of a graph, and cells that are free to move its edges. Along a simple cycle of the graph
cells gain and lose in turn, and no margin changes. Two tables with the same margins differ by cycles of which none
moves a cell beyond the other table's count. (The cycles are the circuits of a unimodular matrix, and its Graver basis.)
So all of them connect the tables within any limits on single cells, which swaps of four cells need not do.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

__all__ = ["find_cycles"]

MAX_CYCLES = 256
"""Largest number of cycles: a sweep makes a move along each."""

MAX_STEPS = 100_000
"""Of the search, which may meet many paths that close no cycle."""


def find_cycles(rows: np.ndarray, columns: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """All simple cycles of free cells between two partitions, by their length; None if there are too many.

    Parameters
    ----------
    rows : [c]
        The row of each cell.
    columns : [c]
        Its column.
    free : [c]
        Which cells may move.

    Returns
    -------
    tuple
        Cells [m, a] of cycles of a = 2, 4, ... cells, of which each has its row in common with one neighbour and its
        column with the other.
    """
    found: dict[int, list[list[int]]] = {}
    steps = islice(_walks(rows, columns, np.flatnonzero(free)), MAX_STEPS + 1)
    for number, (cells, is_closed) in enumerate(steps):
        if number == MAX_STEPS:
            return None
        if is_closed and cells[0] < cells[-1]:  # each cycle is walked in both directions
            found.setdefault(len(cells), []).append(cells)
        if sum(map(len, found.values())) > MAX_CYCLES:
            return None
    return tuple(np.array(found[size], int) for size in sorted(found))


def _walks(rows: np.ndarray, columns: np.ndarray, cells: np.ndarray) -> Iterator[tuple[list[int], bool]]:
    """All paths from the first of their rows, as lists of cells, and whether they return there."""
    in_row = {int(row): cells[rows[cells] == row].tolist() for row in np.unique(rows[cells])}
    in_column = {int(column): cells[columns[cells] == column].tolist() for column in np.unique(columns[cells])}
    for start in in_row:
        pending: list[list[int]] = [[]]
        while pending:
            path = pending.pop()
            used = {int(columns[cell]) for cell in path}
            passed = {start, *(int(rows[cell]) for cell in path)}
            for out in in_row[int(rows[path[-1]]) if path else start]:
                for back in [] if int(columns[out]) in used else in_column[int(columns[out])]:
                    end = int(rows[back])
                    if end == start and back != out:
                        yield [*path, out, back], True
                    if end > start and end not in passed:
                        pending.append([*path, out, back])
                        yield pending[-1], False
