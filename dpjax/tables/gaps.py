"""Cells that no record can be in, whatever the parameters: whether the moves still reach every table.

The arguments of `dpjax.tables.fibre` take every cell as possible. One that the model makes impossible may cut a chain
of exchanges, or a swap, and the release does not tell of it.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from dpjax.tables.fibre import find_fibre
from dpjax.tables.moves import Move
from dpjax.tables.sums import CellSums
from dpjax.tables.table import Table
from dpjax.validation import fail

__all__ = ["check_gaps"]


def check_gaps(table: Table, moves: Sequence[Move]) -> None:
    """Raise unless the moves are known to connect the tables with nobody in cells that the model makes impossible."""
    gaps = table.impossible
    if not np.any(gaps):
        return
    empty = CellSums(np.where(gaps, 0, -1)[:, None], gaps[:, None].astype(float), 1)
    find_fibre(table.num_cells, (*table.known, (empty, np.zeros(1))), table.prior is None)
    pairs = [move.directions.cells[move.directions.real] for move in moves if move.directions.signs == (1, -1)]
    if not are_joined(np.where(gaps, -1, table.fibre.groups), np.concatenate([np.zeros((0, 2), int), *pairs])):
        given = f"a model in which {np.sum(gaps)} of {table.num_cells} cells have probability 0"
        remedy = "Say so in the release: join a dpjax.Release([0], dpjax.Exact(), ...) of the sum of these cells."
        fail("model", given, "cells between which pairs of possible cells connect all tables", remedy)


def are_joined(groups: np.ndarray, pairs: np.ndarray) -> bool:
    """Whether pairs [m, 2] of cells connect each group [c]; cells of group −1 and their pairs do not count."""
    first, second = pairs[np.all(groups[pairs] >= 0, axis=1)].T
    edges = coo_matrix((np.ones(len(first)), (first, second)), shape=(len(groups), len(groups)))
    label = connected_components(edges, directed=False)[1][groups >= 0]
    return len(np.unique(label)) == len(np.unique(groups[groups >= 0]))
