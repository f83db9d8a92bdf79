"""The fixed list of a sweep's moves: pairs of cells, matched at random and along the released sums."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from dpjax._util.validation import fail
from dpjax.data_augmentation.counts.directions import (
    MAX_MOVES,
    MAX_ORDERS,
    line_up,
    make_directions,
    match_pairs,
    touch,
)
from dpjax.data_augmentation.counts.fibre import SIGNS, Fibre, find_fibre, swap_cells
from dpjax.data_augmentation.counts.moves import Move
from dpjax.data_augmentation.counts.sums import CellSums
from dpjax.data_augmentation.counts.table import Table

__all__ = ["check_gaps", "list_moves"]

SEED = 20_061
"""Seed of the fixed matchings, which affect how fast chains mix but not their invariant distribution."""

MAX_KINDS = 4

MAX_SINGLES = 64
"""Largest number of cells per sweep that gain or lose records by themselves, changing the number of records."""


@lru_cache(maxsize=64)
def list_moves(table: Table, gammas: tuple[CellSums, ...], noisy: tuple[CellSums, ...], width: int) -> tuple[Move, ...]:
    """The moves of a sweep, for a target that depends on the noisy sums and on those of gamma functions."""
    rng = np.random.default_rng(SEED)
    sums = (*noisy, *gammas, *table.entangled)
    kinds = [make_directions(orders_of_pairs(rng, labels), (1, -1), sums) for labels in groupings(table.fibre, sums)]
    kinds += [
        make_directions([swap_cells(rng, swap) for _ in range(MAX_ORDERS)], SIGNS, sums) for swap in table.fibre.swaps
    ]
    kinds += [make_directions([each], (1, -1) * (each.shape[1] // 2), sums) for each in table.fibre.cycles]
    if np.any(table.fibre.single):
        kinds.append(make_directions(orders_of_singles(rng, table.fibre.single), (1,), sums))
    return tuple(
        Move(kind, tuple(touch(kind, each) for each in gammas), tuple(touch(kind, each) for each in noisy), width)
        for kind in kinds
        if kind is not None
    )


def groupings(fibre: Fibre, sums: Sequence[CellSums]) -> list[np.ndarray]:
    """Groups [c] within which cells are paired: all that may be exchanged, and those that share a released sum."""
    result = [fibre.groups]
    for each in sums:
        if each.is_identity:
            continue
        for column in each.index.T:
            labels = np.unique(np.stack([fibre.groups, column]), axis=1, return_inverse=True)[1].ravel()
            labels = np.where(fibre.groups < 0, -1, labels)
            held = labels[labels >= 0]
            is_new = all(not same_partition(labels, other) for other in result)
            if held.size and np.max(np.bincount(held)) > 1 and is_new:
                result.append(labels)
    return result[:MAX_KINDS]


def same_partition(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two labellings [c] group the cells alike."""
    pairs = np.unique(np.stack([first, second]), axis=1).shape[1]
    return pairs == len(np.unique(first)) == len(np.unique(second))


def orders_of_pairs(rng: np.random.Generator, groups: np.ndarray) -> list[np.ndarray]:
    """Several random matchings of the cells within their groups, enough that every cell can reach every other."""
    num_cells = int(np.sum(groups >= 0))
    number = int(np.clip(2 * MAX_MOVES // max(num_cells, 1), 2, MAX_ORDERS))
    orders = [match_pairs(rng, groups) for _ in range(number)]
    # A chain through each group guarantees it, whatever was drawn.
    return [*orders, *chain_pairs(rng, groups)]


def orders_of_singles(rng: np.random.Generator, single: np.ndarray) -> list[np.ndarray]:
    """Several random choices [m, 1] of cells that gain or lose records by themselves; all of them, if these are few."""
    cells = np.flatnonzero(single)
    return [rng.permutation(cells)[:MAX_SINGLES, None] for _ in range(MAX_ORDERS)]


def chain_pairs(rng: np.random.Generator, groups: np.ndarray) -> list[np.ndarray]:
    """Two matchings of neighbours in a random order of each group: together they connect it."""
    pairs, rank = line_up(rng, groups)
    return [pairs[rank % 2 == parity] for parity in (0, 1)]


def check_gaps(table: Table, moves: Sequence[Move]) -> None:
    """Raise unless the moves are known to connect the tables whose impossible cells are empty."""
    gaps = table.impossible
    if not np.any(gaps):
        return
    empty = CellSums(np.where(gaps, 0, -1)[:, None], gaps[:, None].astype(float), 1)
    find_fibre(table.num_cells, (*table.known, (empty, np.zeros(1))), table.prior is None)
    pairs = [move.directions.cells[move.directions.real] for move in moves if move.directions.signs == (1, -1)]
    if not are_joined(np.where(gaps, -1, table.fibre.groups), np.concatenate([np.zeros((0, 2), int), *pairs])):
        given = f"a model in which {np.sum(gaps)} of {table.num_cells} cells have probability 0"
        remedy = "State it in the release: join a dpjax.Release([0], dpjax.Exact(), ...) of the sum of these cells."
        fail("model", given, "cells between which pairs of possible cells connect all tables", remedy)


def are_joined(groups: np.ndarray, pairs: np.ndarray) -> bool:
    """Whether pairs [m, 2] of cells connect each group [c]; cells of group −1 and their pairs do not count."""
    first, second = pairs[np.all(groups[pairs] >= 0, axis=1)].T
    edges = coo_matrix((np.ones(len(first)), (first, second)), shape=(len(groups), len(groups)))
    label = connected_components(edges, directed=False)[1][groups >= 0]
    return len(np.unique(label)) == len(np.unique(groups[groups >= 0]))
