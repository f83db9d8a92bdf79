"""Pairs of occupied cells: the chance of a pair, the law of its window, and the groups that pairs are drawn from."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.data_augmentation.counts import drawn_moves, moves as core
from dpjax.data_augmentation.counts.counts import make_groups
from dpjax.data_augmentation.counts.form import count_form
from dpjax.data_augmentation.counts.sums import CellSums
from dpjax.data_augmentation.counts.table import table_of
from tests.data_augmentation.counts import cases, perfect
from tests.data_augmentation.counts.test_moves import CLOSE, WIDTH, Built, build, tables_of
from tests.data_augmentation.counts.test_perfect_start import p_value

CASES = ("skewed", "known columns", "naive Bayes", "row totals", "uniform size", "known zero and columns")
QUICK = CASES[:3]


def groups_of(name: str) -> drawn_moves.MoveGroups:
    case = cases.build(name)
    return make_groups(table_of(count_form(case.model, case.release)[1]), True)


def chances(is_occupied: np.ndarray) -> np.ndarray:
    """How likely each cell [k] of a group is to be drawn."""
    return (is_occupied + 1 / len(is_occupied)) / (is_occupied.sum() + 1)


GROUPS = drawn_moves.MoveGroups(np.array([0, 1] * 3 + [-1] + [0] * 20), np.array([[0, 1]]))
COUNTS = np.array([0, 4, 2, 0, 1, 7, 5] + [0] * 18 + [3, 1])


def test_cells_are_drawn_with_the_chance_that_the_formula_says() -> None:
    """By all uniforms of a grid that has as many in each cell as there should be."""
    rows, size = drawn_moves.find_occupied(GROUPS, jnp.asarray(COUNTS)), jnp.asarray(GROUPS.size)
    middles = (np.arange(5 * 23) + 0.5) / (5 * 23)
    for label, members in enumerate([np.r_[0:6:2, 7:27], np.r_[1:6:2]]):
        is_occupied = COUNTS[members] > 0
        ranks, anywhere = np.meshgrid((np.arange(is_occupied.sum() + 1) + 0.5) / (is_occupied.sum() + 1), middles)
        drawn = np.zeros(len(members))
        for rank, cell in zip(ranks.ravel(), anywhere.ravel(), strict=True):
            draws = drawn_moves.draw_round(jax.random.key(0), GROUPS, WIDTH)
            draws = draws._replace(rank=jnp.full((2, 2), rank), anywhere=jnp.full((2, 2), cell))
            place = np.asarray(CHOOSE(rows, size, draws))[label]
            assert place[0] == place[1]
            drawn[np.flatnonzero(members == GROUPS.cells[label].ravel()[place[0]])] += 1
        np.testing.assert_allclose(drawn / drawn.sum(), chances(is_occupied), atol=0.3 / len(middles))
        for one in (0, 1):
            found = drawn_moves.log_chance(jnp.asarray(one), jnp.asarray(is_occupied.sum()), size[label])
            expected = chances(is_occupied)[is_occupied == one]
            np.testing.assert_allclose(np.exp(found), expected[:1], rtol=1e-6)


CHOOSE = jax.jit(drawn_moves.choose_places)


def compile_windows(built: Built, groups: drawn_moves.MoveGroups) -> Callable:
    """The log-weights [g, W + 1] of a batch's windows and their offsets [g], of counts, the batch and places [g, 2]."""
    move = drawn_moves.template(built.target, drawn_moves.PAIR_SIGNS, groups.batches.shape[1], WIDTH)

    @jax.jit
    def windows(counts: jax.Array, batch: jax.Array, places: jax.Array) -> tuple[jax.Array, jax.Array]:
        seen: list[jax.Array] = []
        draws = drawn_moves.draw_round(jax.random.key(1), groups, WIDTH)._replace(batch=batch)
        held = drawn_moves.find_occupied(groups, counts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawn_moves, "choose_places", lambda *rest: places)
            patch.setattr(core, "choose_steps", lambda weights, uniform: seen.append(weights) or 0)
            drawn_moves.move_in_window(built.target, groups, move, core.state_at(built.target, counts), held, draws)
        return seen.pop(), draws.offset

    return windows


def window_of_pair(
    windows: Callable, groups: drawn_moves.MoveGroups, counts: np.ndarray, pair: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The log-weights of the window of one pair around its present counts, and the tables there [W + 1, c]."""
    label = groups.label[pair[0]]
    batch, place = (int(found[0]) for found in np.nonzero(groups.batches == label))
    cells, is_cell = groups.cells[label].ravel(), groups.is_cell[label].ravel()
    places = [np.flatnonzero((cells == cell) & is_cell)[0] for cell in pair]
    everywhere = jnp.asarray(np.broadcast_to(places, (groups.batches.shape[1], 2)))
    log_weights, offset = jax.device_get(windows(jnp.asarray(counts), jnp.asarray(batch), everywhere))
    below = (counts[pair[0]] + int(offset[place]) % (WIDTH + 1)) % (WIDTH + 1)
    steps = np.arange(WIDTH + 1) - below
    tables = counts + np.outer(steps, np.eye(len(counts), dtype=int)[pair[0]] - np.eye(len(counts), dtype=int)[pair[1]])
    return log_weights[place], tables


def check_windows(name: str) -> None:
    """Raise unless windows hold the law of the table and of the pair."""
    built, groups = build(name), groups_of(name)
    rng, windows = np.random.default_rng(3), compile_windows(built, groups)
    for counts in tables_of(built.exact, 4):
        label = rng.choice(np.flatnonzero(groups.size > 1))
        pair = rng.choice(np.flatnonzero(groups.label == label), 2, replace=False)
        found, tables = window_of_pair(windows, groups, counts, pair)
        inside = np.all(tables >= 0, axis=1)
        members = np.flatnonzero(groups.label == label)
        expected = np.full(len(tables), -np.inf)
        for row in np.flatnonzero(inside):
            law = chances(tables[row][members] > 0)
            expected[row] = built.exact.log_weight_of(tables[row]) + np.log(law[np.isin(members, pair)]).sum()
        possible = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(found), possible)
        start = np.flatnonzero(np.all(tables == counts, axis=1))[0]
        np.testing.assert_allclose(
            found[possible] - found[start], expected[possible] - expected[start], atol=max(CLOSE, 1e-9)
        )


@pytest.mark.x32
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in CASES])
def test_windows_hold_the_law_of_table_and_pair(name: str) -> None:
    check_windows(name)


def forget(*arguments: object) -> jax.Array:
    return jnp.zeros(jnp.shape(arguments[0]))


def test_a_pair_whose_chance_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_moves, "log_chance", forget)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_windows("skewed")


def test_sums_and_numbers_of_occupied_cells_are_carried_along() -> None:
    built, groups = build("row totals"), groups_of("row totals")
    sweep = jax.jit(partial(drawn_moves.move_in_windows, built.target, groups, WIDTH))
    for place, counts in enumerate(tables_of(built.exact, 5)):
        state, changed, met = sweep(core.state_at(built.target, jnp.asarray(counts)), jax.random.key(place))
        jax.tree.map(np.testing.assert_array_equal, state, core.state_at(built.target, state.counts))
        assert 0 <= changed <= met <= drawn_moves.PAIR_ROUNDS * len(groups.size)


def test_groups_hang_together_by_the_noisy_sums_and_touch_none_in_common() -> None:
    rows, columns = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
    parts = [partition(rows), partition(np.arange(6))]
    groups = drawn_moves.find_groups(np.zeros(6, int), parts, parts)
    np.testing.assert_array_equal(groups.label, rows)
    np.testing.assert_array_equal(groups.batches, [[0, 1]])
    # Rows within known columns: each pair of a column changes both rows, so one column moves at a time.
    groups = drawn_moves.find_groups(columns, [], parts)
    np.testing.assert_array_equal(groups.label, columns)
    np.testing.assert_array_equal(groups.batches, [[0], [1], [2]])
    assert drawn_moves.find_groups(np.arange(6), parts, parts) is None
    assert drawn_moves.find_groups(np.full(6, -1), parts, parts) is None


def test_a_sum_whose_weights_cancel_out_is_changed_by_exchanges() -> None:
    """A total of records that are −1 or 1; one whose cells weigh the same is not changed."""
    signs = CellSums(np.zeros((4, 1), int), np.array([[-1.0], [1.0], [2.0], [2.0]]), 1)
    np.testing.assert_array_equal(drawn_moves.places_of(signs, np.array([0, 0, 1, 1])).toarray(), [[1], [0]])
    assert drawn_moves.find_groups(np.zeros(2, int), [], [CellSums(signs.index[:2], signs.weight[:2], 1)]) is not None


def partition(groups: np.ndarray) -> CellSums:
    return CellSums(groups[:, None], np.ones((len(groups), 1)), int(groups.max()) + 1)


@pytest.mark.slow
def test_a_pair_whose_chance_is_forgotten_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_moves, "log_chance", forget)
    monkeypatch.setattr(drawn_moves, "PAIR_ROUNDS", 30)
    assert p_value("pairs") < perfect.REJECT
