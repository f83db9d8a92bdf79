"""The core of counts, a function of its random numbers: every window holds the conditional law, and is symmetric."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from dpjax.tables import moves as core
from dpjax.tables.counts import draw_offers, make_law, make_moves
from dpjax.tables.form import count_form, table_of
from tests.tables import cases, oracle

WIDTH = 6
DIRICHLET = [name for name in cases.BUILDS if name not in ("impossible cell", "log-linear")]
CLOSE = 1e-10 if jax.config.jax_enable_x64 else 3e-4
"""Of a difference of logarithms; in float32 their terms are up to 100."""


class Built(NamedTuple):
    """The law and the moves that the kernel of a case is made of, and the law that they should have."""

    law: core.Law
    moves: tuple[core.Move, ...]
    exact: oracle.Tables


def build(name: str, parameters: dict[str, Any] | None = None) -> Built:
    """The moves with parameters integrated out, or given some."""
    case = cases.build(name)
    _, release = count_form(case.model, case.release)
    table, collapsed = table_of(release), parameters is None
    law, moves = make_law(table, release, collapsed, parameters), make_moves(table, collapsed, WIDTH)
    if parameters is None:
        return Built(law, moves, case.law)
    return Built(law, moves, given(case, np.asarray(table.log_probability(parameters), float)))


def given(case: cases.Case, log_cells: np.ndarray) -> oracle.Tables:
    """The law of the tables of a case whose cells have these log-probabilities [c]."""
    tables = case.law.tables
    log_prior = oracle.log_ways(tables) + special.xlogy(tables, np.exp(log_cells)).sum(axis=1)
    return oracle.condition(tables, log_prior, case.seen)


def tables_of(exact: oracle.Tables, number: int) -> np.ndarray:
    """Tables [number, c] as they come in the posterior."""
    rows = np.random.default_rng(7).choice(len(exact.tables), number, p=exact.weights)
    return exact.tables[rows]


def batches(move: core.Move, orders: int = 3) -> Iterator[core.Plan]:
    """The plans of all batches of a few orders."""
    for order, batch in np.ndindex(*move.directions.real.shape[:2]):
        if order < orders:
            yield jax.tree.map(lambda leaf, at=(order, batch): jnp.asarray(leaf)[at], core.plan_of(move))


def window(move: core.Move, plan: core.Plan, counts: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The tables [move, W + 1, c] that each move chooses from."""
    steps = np.arange(move.width + 1)[None] - below[:, None]
    result = np.tile(counts, (*steps.shape, 1))
    for sign, cell in zip(move.directions.signs, np.asarray(plan.cells).T, strict=True):
        result[np.arange(len(cell)), :, cell] += sign * steps
    return result


def check_windows(built: Built) -> None:
    rng, kinds = np.random.default_rng(8), 0

    for counts in tables_of(built.exact, 4):
        state = core.start(built.law, jnp.asarray(counts))
        for move in built.moves:
            kinds += 1
            for plan in batches(move):
                below = rng.integers(0, WIDTH + 1, len(plan.real))
                found = np.asarray(core.log_weights(built.law, move, plan, state, jnp.asarray(below)), float)
                expected = built.exact.log_weight_of(window(move, plan, counts, below))
                real = np.asarray(plan.real)
                compare(found[real], expected[real], below[real])
    assert kinds


def compare(found: np.ndarray, expected: np.ndarray, below: np.ndarray) -> None:
    """Raise unless log-weights [move, W + 1] are equal but for a constant of each move."""
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    found, expected = (array - np.take_along_axis(array, below[:, None], 1) for array in (found, expected))
    np.testing.assert_allclose(found, expected, atol=CLOSE)


@pytest.mark.parametrize("name", DIRICHLET)
def test_windows_hold_the_law_with_parameters_integrated_out(name: str) -> None:
    check_windows(build(name))


SHARES = jnp.array([0.1, 0.05, 0.2, 0.4, 0.15, 0.1])
PARAMETERS = {
    "skewed": {"probabilities": SHARES},
    "known margins": {"probabilities": SHARES},
    "uniform size": {"probabilities": jnp.array([0.4, 0.1, 0.2, 0.3])},
    "log-linear": {"effect": jnp.array([0.7, -0.4])},
    "impossible cell": {"shares": jnp.array([0.3, 0.1, 0.2, 0.25, 0.15])},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_windows_hold_the_law_given_the_parameters(name: str) -> None:
    check_windows(build(name, PARAMETERS[name]))


@pytest.mark.parametrize("name", DIRICHLET)
def test_sums_are_carried_along(name: str) -> None:
    """After a sweep the cached sums are those of the counts, which still fit what is known."""
    built = build(name)
    key, start_key = jax.random.split(jax.random.key(9))
    del start_key
    for counts in tables_of(built.exact, 3):
        state = core.start(built.law, jnp.asarray(counts))
        for place, move in enumerate(built.moves):
            state, _ = core.move_all(built.law, move, state, draw_offers(jax.random.fold_in(key, place), move))
        assert np.isfinite(built.exact.log_weight_of(np.asarray(state.counts)))
        jax.tree.map(np.testing.assert_array_equal, state, core.start(built.law, state.counts))


def transitions(built: Built, move: core.Move, plan: core.Plan, line: np.ndarray, shift: Any) -> np.ndarray:
    """The law of one move between the tables of a line [t, c] through them, over all offsets of its window.

    `shift` changes the offset as a function of the present count.
    """
    matrix, width = np.zeros((len(line), len(line))), move.width + 1
    for row, counts in enumerate(line):
        state = core.start(built.law, jnp.asarray(counts))
        for offset in range(width):
            with pytest.MonkeyPatch.context() as patch:
                seen = []
                patch.setattr(core, "choose", lambda log_weight, uniform, seen=seen: seen.append(log_weight) or 0)
                offsets = jnp.full(len(plan.real), shift(offset, counts[plan.cells[0, 0]]))
                state_at_first, _ = core.move_batch(built.law, move, plan, state, offsets, jnp.zeros(len(plan.real)))
            first = row + int(state_at_first.counts[plan.cells[0, 0]] - counts[plan.cells[0, 0]])
            chance = special.softmax(np.asarray(seen[0][0], float))
            for place in np.flatnonzero(chance):
                matrix[row, first + place] += chance[place] / width
    return matrix


def line_through(move: core.Move, plan: core.Plan, counts: np.ndarray, exact: oracle.Tables) -> np.ndarray:
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
    """A planted fault: windows that always begin at the present value, or end there."""
    assert imbalance("skewed", lambda offset, count: -count) > 1e-2


def test_places_are_chosen_by_their_weights() -> None:
    """By inversion of the distribution function: intervals of uniforms as long as the probabilities."""
    log_weight = np.array([-np.inf, -2.0, 1.0, -np.inf, 0.5, -1.0, -np.inf])
    edges = np.cumsum(special.softmax(log_weight))
    uniforms = np.linspace(0.0, 1.0, 2_001)[:-1]
    uniforms = uniforms[np.abs(uniforms[:, None] - edges).min(axis=1) > 1e-6]
    chosen = core.choose(jnp.tile(jnp.asarray(log_weight, float), (len(uniforms), 1)), jnp.asarray(uniforms, float))
    np.testing.assert_array_equal(chosen, np.searchsorted(edges, uniforms, side="right"))
    last = core.choose(jnp.asarray(log_weight, float)[None], jnp.ones(1))
    assert np.isfinite(log_weight[int(last[0])])
