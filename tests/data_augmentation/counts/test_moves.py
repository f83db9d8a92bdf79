"""The core of counts, a function of its random numbers: every window holds the conditional law, and is symmetric."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from dpjax.data_augmentation.counts import moves as core
from dpjax.data_augmentation.counts.counts import draw_proposals, make_moves, make_target
from dpjax.data_augmentation.counts.form import as_count_model, count_form
from dpjax.data_augmentation.counts.table import table_of
from tests.data_augmentation.counts import cases, oracle

WIDTH = 6


QUICK = ("skewed", "row totals", "known margins", "known zero and columns", "uniform size", "naive Bayes")


DIRICHLET = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
    for name in cases.BUILDS
    if name not in ("impossible cell", "log-linear")
]


CLOSE = 1e-10 if jax.config.jax_enable_x64 else 3e-4
"""Of a difference of logarithms; in float32 their terms are up to 100."""


class Built(NamedTuple):
    """The law and the moves that the kernel of a case is made of, and the law that they should have."""

    target: core.CountTarget
    moves: tuple[core.Move, ...]
    exact: oracle.Tables


def build(name: str, parameters: dict[str, Any] | None = None) -> Built:
    """The moves with parameters integrated out, or given some."""
    case = cases.build(name)
    model, release = count_form(case.model, case.release)
    table, collapsed = table_of(release), parameters is None
    target, moves = make_target(model, release, collapsed, parameters), make_moves(table, collapsed, WIDTH)
    if parameters is None:
        return Built(target, moves, case.law)
    return Built(target, moves, given(case, np.asarray(as_count_model(model).of_cells(parameters), float)))


def given(case: cases.Case, log_cells: np.ndarray) -> oracle.Tables:
    """The law of the tables of a case whose cells have these log-probabilities [c]."""
    tables = case.law.tables
    log_prior = oracle.log_ways(tables) + special.xlogy(tables, np.exp(log_cells)).sum(axis=1)
    return oracle.condition(tables, log_prior, case.seen)


def tables_of(exact: oracle.Tables, number: int) -> np.ndarray:
    """Tables [number, c] as they come in the posterior."""
    rows = np.random.default_rng(7).choice(len(exact.tables), number, p=exact.weights)
    return exact.tables[rows]


def batches(move: core.Move, orders: int = 3) -> Iterator[core.MoveBatch]:
    """All batches of a few orders."""
    for order, batch in np.ndindex(*move.directions.real.shape[:2]):
        if order < orders:
            yield jax.tree.map(lambda leaf, at=(order, batch): jnp.asarray(leaf)[at], core.all_batches(move))


def window(move: core.Move, plan: core.MoveBatch, counts: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The tables [move, W + 1, c] that each move chooses from."""
    steps = np.arange(move.width + 1)[None] - below[:, None]
    result = np.tile(counts, (*steps.shape, 1))
    for sign, cell in zip(move.directions.signs, np.asarray(plan.cells).T, strict=True):
        result[np.arange(len(cell)), :, cell] += sign * steps
    return result


def check_windows(built: Built) -> None:
    rng = np.random.default_rng(8)
    assert built.moves
    start = jax.jit(partial(core.state_at, built.target))
    for move in built.moves:
        log_weights = jax.jit(partial(core.log_weights, built.target, move))
        for counts, plan in product(tables_of(built.exact, 4), batches(move)):
            below = rng.integers(0, WIDTH + 1, len(plan.real))
            found = log_weights(plan, start(jnp.asarray(counts)), jnp.asarray(below))
            expected = built.exact.log_weight_of(window(move, plan, counts, below))
            real = np.asarray(plan.real)
            compare(np.asarray(found, float)[real], expected[real], below[real])


def compare(found: np.ndarray, expected: np.ndarray, below: np.ndarray) -> None:
    """Raise unless log-weights [move, W + 1] are equal but for a constant of each move."""
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    found, expected = (array - np.take_along_axis(array, below[:, None], 1) for array in (found, expected))
    np.testing.assert_allclose(found, expected, atol=CLOSE)


@pytest.mark.x32
@pytest.mark.parametrize("name", DIRICHLET)
def test_windows_hold_the_law_with_parameters_integrated_out(name: str) -> None:
    check_windows(build(name))


@pytest.mark.parametrize(("name", "place"), [("skewed", 0), ("uniform size", 1)])
def test_a_forgotten_factorial_is_noticed(name: str, place: int) -> None:
    """A mutation: that of the counts, or of their sum where births change it."""
    built = build(name)
    gammas = list(built.target.gammas)
    gammas[place] = gammas[place]._replace(sign=0 * gammas[place].sign)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_windows(built._replace(target=built.target._replace(gammas=tuple(gammas))))


SHARES = jnp.array([0.1, 0.05, 0.2, 0.4, 0.15, 0.1])


PARAMETERS = {
    "skewed": {"probabilities": SHARES},
    "known margins": {"probabilities": SHARES},
    "uniform size": {"probabilities": jnp.array([0.4, 0.1, 0.2, 0.3])},
    "log-linear": {"effect": jnp.array([0.7, -0.4])},
    "impossible cell": {"probabilities": jnp.array([0.3, 0.1, 0.2, 0.25, 0.15])},
}


@pytest.mark.x32
@pytest.mark.parametrize("name", PARAMETERS)
def test_windows_hold_the_law_given_the_parameters(name: str) -> None:
    check_windows(build(name, PARAMETERS[name]))


def sweep_from_tables(built: Built, number: int = 3) -> Iterator[core.CountState]:
    """The states after a sweep from each of a few tables."""

    @jax.jit
    def sweep(counts: jax.Array, keys: jax.Array) -> core.CountState:
        state = core.state_at(built.target, counts)
        for key, move in zip(keys, built.moves, strict=True):
            state, _ = core.move_all(built.target, move, state, draw_proposals(key, move))
        return state

    for place, counts in enumerate(tables_of(built.exact, number)):
        yield sweep(jnp.asarray(counts), jax.random.split(jax.random.key(place), len(built.moves)))


@pytest.mark.parametrize("name", DIRICHLET)
def test_sums_are_carried_along(name: str) -> None:
    """After a sweep the cached sums are those of the counts, which still fit what is known."""
    built = build(name)
    for state in sweep_from_tables(built):
        assert np.isfinite(built.exact.log_weight_of(np.asarray(state.counts)))
        jax.tree.map(np.testing.assert_array_equal, state, core.state_at(built.target, state.counts))


def test_a_swap_that_leaves_the_fibre_is_noticed() -> None:
    """A mutation: its signs are those of two exchanges within rows, so that known columns are not kept."""
    built = build("known margins")
    moves = [move._replace(directions=replace(move.directions, signs=(1, -1, 1, -1))) for move in built.moves]
    states = sweep_from_tables(built._replace(moves=tuple(moves)), 20)
    assert not all(np.isfinite(built.exact.log_weight_of(np.asarray(state.counts))) for state in states)


Shift = Callable[[Any, Any], Any]


def transitions(built: Built, move: core.Move, plan: core.MoveBatch, line: np.ndarray, shift: Shift) -> np.ndarray:
    """The law of one move between the tables of a line [t, c] along it, over all offsets of its window.

    `shift` changes the offset as a function of the present count of the first cell.
    """
    width, cell = move.width + 1, int(plan.cells[0, 0])
    seen: list[jax.Array] = []

    @jax.jit
    def first_choice(counts: jax.Array, offset: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Where the window begins, and the chances of its places."""
        offsets = jnp.full(len(plan.real), shift(offset, counts[cell]))
        state, _ = core.move_batch(
            built.target, move, plan, core.state_at(built.target, counts), offsets, jnp.zeros(offsets.shape)
        )
        return state.counts[cell] - counts[cell], jax.nn.softmax(seen.pop()[0])

    matrix = np.zeros((len(line), len(line)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "choose_steps", lambda log_weight, uniform: seen.append(log_weight) or 0)
        for (row, counts), offset in product(enumerate(line), range(width)):
            begin, chances = first_choice(jnp.asarray(counts), jnp.asarray(offset))
            places = row + int(begin) + np.flatnonzero(chances)
            matrix[row, places] += np.asarray(chances)[np.flatnonzero(chances)] / width
    return matrix


def line_through(move: core.Move, plan: core.MoveBatch, counts: np.ndarray, exact: oracle.Tables) -> np.ndarray:
    """All tables that the first move of a batch can reach in the end, in the order of its first cell."""
    direction = np.zeros(len(counts), int)
    direction[np.asarray(plan.cells[0])] = move.directions.signs
    line = counts + np.arange(-60, 61)[:, None] * direction
    return line[np.isfinite(exact.log_weight_of(line))]


def imbalance(name: str, shift: Any) -> float:
    """The largest difference between the chances of a move and of its reverse, over a few lines."""
    built, worst = build(name), 0.0
    for move in built.moves:
        plan = next(batches(move))
        line = line_through(move, plan, tables_of(built.exact, 1)[0], built.exact)
        matrix = transitions(built, move, plan, line, shift)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-5)
        flow = special.softmax(built.exact.log_weight_of(line))[:, None] * matrix
        worst = max(worst, np.abs(flow - flow.T).max())
    return worst


@pytest.mark.parametrize("name", ["skewed", "known margins", "uniform size"])
def test_moves_are_reversible(name: str) -> None:
    assert imbalance(name, lambda offset, count: offset) < CLOSE


def test_a_window_that_is_not_symmetric_is_not_reversible() -> None:
    """A mutation: windows that always begin at the present value, or end there."""
    assert imbalance("skewed", lambda offset, count: -count) > 1e-2


def test_places_are_chosen_by_their_weights() -> None:
    """By inversion of the distribution function: intervals of uniforms as long as the probabilities."""
    log_weight = np.array([-np.inf, -2.0, 1.0, -np.inf, 0.5, -1.0, -np.inf])
    edges = np.cumsum(special.softmax(log_weight))
    uniforms = np.linspace(0.0, 1.0, 2_001)[:-1]
    uniforms = uniforms[np.abs(uniforms[:, None] - edges).min(axis=1) > 1e-6]
    repeated = jnp.tile(jnp.asarray(log_weight, float), (len(uniforms), 1))
    chosen = core.choose_steps(repeated, jnp.asarray(uniforms, float))
    np.testing.assert_array_equal(chosen, np.searchsorted(edges, uniforms, side="right"))
    last = core.choose_steps(jnp.asarray(log_weight, float)[None], jnp.ones(1))
    assert np.isfinite(log_weight[int(last[0])])


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0])
def test_a_place_of_weight_zero_is_never_chosen(uniform: float) -> None:
    """A table that leaves the known totals never comes back, and one draw in millions is enough."""
    log_weight = jnp.array([[-np.inf, 0.0, -np.inf], [0.0, -np.inf, -np.inf], [-np.inf, -np.inf, 0.0]])
    np.testing.assert_array_equal(core.choose_steps(log_weight, jnp.full(3, uniform)), [1, 0, 2])
