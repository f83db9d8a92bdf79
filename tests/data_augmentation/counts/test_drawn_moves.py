"""Swaps that are drawn: which they are, the law of their windows, and tables that the listed ones do not connect."""

from collections import Counter
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.counts import drawn_moves, moves as core
from dpjax.data_augmentation.counts.counts import make_corners, make_moves
from dpjax.data_augmentation.counts.fibre import SIGNS, Swap
from dpjax.data_augmentation.counts.form import count_form
from dpjax.data_augmentation.counts.table import table_of
from tests.data_augmentation.counts import cases
from tests.data_augmentation.counts.test_moves import WIDTH, Built, build, compare, tables_of, window

PARTS = Swap(
    rows=np.array([0, 0, 1, 1, 2, 2, 0, 3, 3, 4, 4, 5, 9]),
    columns=np.array([0, 1, 0, 1, 0, 1, 1, 2, 3, 2, 3, 4, 9]),
    part=np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, -1]),
)
"""Three rows by two columns, with two cells in one place; two by two; and cells that no swap can move."""


def draws(place: int, turn: tuple[int, ...], member: tuple[int, ...]) -> drawn_moves.SwapDraws:
    return drawn_moves.SwapDraws(
        jnp.asarray(place), jnp.asarray(turn), jnp.asarray(member), jnp.zeros(1, int), jnp.ones(1)
    )


def test_all_swaps_are_drawn_alike_often() -> None:
    corners = drawn_moves.find_corners(PARTS)
    numbers = product(range(len(corners.size)), product(range(2), range(1)), product(range(2), repeat=4))
    cells_at = jax.jit(drawn_moves.cells_at, static_argnums=0)
    found = [tuple(cells_at(corners, draws(*number)).tolist()) for number in numbers]
    for one, other in ((0, 1), (2, 3)):
        assert all(PARTS.rows[cells[one]] == PARTS.rows[cells[other]] for cells in found)
    for one, other in ((0, 2), (1, 3)):
        assert all(PARTS.columns[cells[one]] == PARTS.columns[cells[other]] for cells in found)
    assert all(PARTS.rows[a] != PARTS.rows[c] and PARTS.columns[a] != PARTS.columns[b] for a, b, c, _ in found)
    # Six places and two other rows; four places and one other row: of places by their rows and columns.
    kinds = Counter(tuple((PARTS.rows[cell], PARTS.columns[cell]) for cell in cells) for cells in found)
    assert sorted(kinds.values()) == [16] * 12 + [32] * 4
    assert drawn_moves.find_corners(Swap(PARTS.rows[11:], PARTS.columns[11:], PARTS.part[11:])) is None


def check_windows(built: Built) -> None:
    """That windows of drawn swaps hold the law of the tables."""
    case = cases.build("known margins")
    (corners,) = make_corners(table_of(count_form(case.model, case.release)[1]))
    move = drawn_moves.template(built.target, SIGNS, 1, WIDTH)

    @jax.jit
    def window_of(key: jax.Array, counts: jax.Array, below: jax.Array) -> tuple[core.MoveBatch, jax.Array]:
        cells = drawn_moves.cells_at(corners, drawn_moves.draw_swap(key, corners, WIDTH))
        plan = drawn_moves.batch_at(built.target, SIGNS, cells[None], jnp.ones(1, bool))
        return plan, core.log_weights(built.target, move, plan, core.state_at(built.target, counts), below)

    for place, counts in enumerate(tables_of(built.exact, 6)):
        below = np.array([place % (WIDTH + 1)])
        plan, found = window_of(jax.random.key(place), jnp.asarray(counts), jnp.asarray(below))
        compare(np.asarray(found, float), built.exact.log_weight_of(window(move, plan, counts, below)), below)


@pytest.mark.x32
def test_windows_hold_the_law_of_the_tables() -> None:
    check_windows(build("known margins"))


def test_a_sum_that_is_counted_once_for_each_cell_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the number of records, which no swap changes, and which each of its cells adds to."""

    def forget(sums: object, signs: tuple[int, ...], cells: jax.Array) -> tuple[jax.Array, jax.Array]:
        places, weight = net_change(sums, signs, cells)
        return places, jnp.where(weight == 0, 1.0, weight)

    net_change = drawn_moves.net_change
    monkeypatch.setattr(drawn_moves, "net_change", forget)
    with pytest.raises(AssertionError):
        check_windows(build("known margins"))


SIZE = 12


def one_in_each() -> tuple[dpjax.Model, dpjax.Release]:
    """Tables with one record in each row and column."""
    place, ones = np.arange(SIZE**2), np.ones(SIZE)
    table = dpjax.Release(np.zeros(SIZE**2), dpjax.DiscreteGaussian(3.0), statistics.cells("cell", SIZE**2), SIZE)
    margins = [
        dpjax.Release(ones, dpjax.Exact(), statistics.grouped("cell", groups), SIZE)
        for groups in (place // SIZE, place % SIZE)
    ]
    return models.categorical(np.ones(SIZE**2)), dpjax.joint(table, *margins)


def swaps_listed(table: object) -> np.ndarray:
    """The cells [m, 4] of all swaps that the schedule lists."""
    (move,) = make_moves(table, True, 1)
    return move.directions.cells[move.directions.real]


def find_stuck(listed: np.ndarray) -> np.ndarray:
    """A table [c] of one record in each row and column that no listed swap can change."""
    order = np.random.default_rng(5).permuted(np.tile(np.arange(SIZE), (30_000, 1)), axis=1)
    held = order[:, listed // SIZE] == listed % SIZE
    applies = (held[..., 0] & held[..., 3]) | (held[..., 1] & held[..., 2])
    stuck = order[~np.any(applies, axis=1)]
    return np.bincount(np.arange(SIZE) * SIZE + stuck[0], minlength=SIZE**2)


@pytest.mark.x64
def test_a_table_that_no_listed_swap_changes_is_left() -> None:
    model, release = one_in_each()
    table = table_of(count_form(model, release)[1])
    stuck = find_stuck(swaps_listed(table))
    algorithm = dpjax.gibbs(model, release, imputation=dpjax.counts(1))
    start = algorithm.init(
        dpjax.data_augmentation.Position(model.sample_prior(jax.random.key(1)), {"counts": jnp.asarray(stuck)[None]})
    )

    @jax.jit
    def run(key: jax.Array) -> jax.Array:
        def sweep(number: jax.Array, state: dpjax.data_augmentation.GibbsState) -> dpjax.data_augmentation.GibbsState:
            return algorithm.step(jax.random.fold_in(key, number), state)[0]

        return jax.lax.fori_loop(0, 100, sweep, start).latent.records["counts"][0]

    counts = np.asarray(run(jax.random.key(2)))
    assert np.any(counts != stuck)
    np.testing.assert_array_equal(table.known[0][0].total(counts), 1)
    np.testing.assert_array_equal(table.known[1][0].total(counts), 1)
