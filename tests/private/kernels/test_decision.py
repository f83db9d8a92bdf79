"""A decision accepts most of all that show no more than a Gaussian query, and shows no more in floats either."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from dpjax import private
from dpjax.private import noise
from dpjax.private.fixed_point import Limbs
from dpjax.private.kernels.decision import STEEPER, DecisionTest, add, edge, enlarge, probit
from dpjax.private.kernels.penalty import ProposedMove
from tests.private.cases import BOUND, RECORDS, tilted

DEVIATIONS = (1e-4, 1e-3, 0.05, 0.4, 1.0, 2.5, 5.9, 6.1, 20.0)
LENGTH = 20_000


class Curve(NamedTuple):
    """Scores of ratios in standard deviations of the noise [LENGTH], most of them near zero."""

    ratios: np.ndarray
    scores: np.ndarray


@pytest.fixture(scope="module")
def curves() -> dict[float, Curve]:
    """By the deviation of the noise."""
    program = jax.jit(jax.vmap(probit, (0, None)))
    found = {}
    for deviation in DEVIATIONS:
        near, far = np.linspace(-12.0, 12.0, LENGTH // 2), -np.geomspace(1e-6, 40 / min(deviation, 1.0), LENGTH // 2)
        ratios = jnp.asarray(np.sort(np.concatenate([near, far])), float)
        found[deviation] = Curve(*map(np.asarray, (ratios, program(ratios, jnp.asarray(deviation, float)))))
    return found


def exact_probit(ratios: np.ndarray, deviation: float) -> np.ndarray:
    """The scores by SciPy, at the edge that the program has."""
    distance = np.abs(ratios) - float(edge(jnp.asarray(deviation, float)))
    accepted = np.minimum(ratios, 0.0) * deviation + special.log_ndtr(distance)
    with np.errstate(over="ignore", divide="ignore"):
        rejected = -np.expm1(np.minimum(ratios, 0.0) * deviation) + np.exp(accepted - special.log_ndtr(distance)) * (
            special.ndtr(-distance)
        )
        below = np.where(rejected < 0.5, -special.ndtri(np.minimum(rejected, 0.5)), special.ndtri_exp(accepted))
    return np.clip(np.where(ratios < 0, below, distance), -8.0, 8.0)


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_a_score_in_floats_is_within_the_rounding_that_the_noise_covers(
    curves: dict[float, Curve], deviation: float
) -> None:
    ratios, scores = curves[deviation]
    covered = 32 * (4 + deviation) * np.finfo(scores.dtype).eps
    error = np.max(np.abs(scores - exact_probit(ratios.astype(float), deviation)))
    assert error < covered / 5
    least = 40.0 * (1 + STEEPER) / (1 - 80 * covered)
    assert enlarge(20.0, jnp.asarray(deviation, float)) >= least * (1 - 4 * np.finfo(scores.dtype).eps)


@pytest.mark.x64
@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_a_score_grows_no_faster_than_a_gaussian_query_s(curves: dict[float, Curve], deviation: float) -> None:
    """With an edge that is lower than it has to be, by a hundredth, it would."""
    ratios, scores = curves[deviation]
    apart = np.diff(ratios) > 1e-9
    slopes = np.diff(scores)[apart] / np.diff(ratios)[apart]
    assert np.max(np.abs(slopes)) < 1 + STEEPER
    lower = partial(edge_of, deviation, by=0.01)
    score = -special.ndtri(-np.expm1(-1e-6 * deviation) + special.ndtr(lower() - 1e-6))
    assert deviation > 6 or deviation < 1e-3 or (-lower() - score) / 1e-6 > 1 + STEEPER


def edge_of(deviation: float, by: float = 0.0) -> float:
    """The edge, moved down."""
    return float(edge(jnp.asarray(deviation, float))) - by


@pytest.mark.x64
@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_it_is_balanced_and_accepts_at_least_as_often_as_the_penalty(deviation: float) -> None:
    ratios = np.linspace(0.0, 5.0, 400)
    both = jax.jit(jax.vmap(probit, (0, None)))(jnp.concatenate([ratios, -ratios]), jnp.asarray(deviation))
    forth, back = np.split(special.ndtr(np.asarray(both)), 2)
    seen = back > 1e-14
    np.testing.assert_allclose(back[seen], (np.exp(-ratios * deviation) * forth)[seen], rtol=1e-8)
    first, second = ratios, deviation / 2
    penalty = special.ndtr(first - second) + np.exp(ratios * deviation + special.log_ndtr(-first - second))
    assert np.all(forth > penalty - 1e-3 * (deviation < 1e-3) - 1e-12)
    assert deviation != 1.0 or forth[0] > 1.1 * penalty[0]


@pytest.mark.parametrize("source", [noise.jax, noise.secure], ids=["jax", "secure"])
def test_a_proposal_is_accepted_with_the_probability_of_its_score(source: noise.Noise) -> None:
    """The whole path, from records to decisions: sums in steps, prior, energy, enlarged noise and its source."""
    test, move = DecisionTest(BOUND, 0.6), ProposedMove(jnp.array([0.1, 0.2]), jnp.array([0.7, -0.6]), 0.3)
    keys = jax.random.split(jax.random.key(4), 4_000)
    decide = jax.jit(jax.vmap(lambda key: test.decide(TARGET, partial(source.release, key), move, jnp.zeros(()))[0]))
    accepted = np.asarray(decide(keys)).mean()
    start, end = np.asarray(move.start, float), np.asarray(move.end, float)
    ratio = RECORDS.sum(axis=0) @ (end - start) - (end @ end - start @ start) / 2 + 0.3
    deviation = 1.2 * BOUND * np.linalg.norm(end - start)
    expected = special.ndtr(exact_probit(np.array([ratio / deviation]), deviation)[0])
    assert abs(accepted - expected) < 4 * np.sqrt(expected * (1 - expected) / len(keys))


TARGET = tilted()
"""It is read once: programs are compiled for it."""


def score_of(records: np.ndarray, prior: float, tau: float) -> float:
    """What a decision adds noise to, if the noise of the ratio has deviation 2 and the prior prefers one end."""
    dtype, length = jnp.result_type(float), 1 / tau
    rows = jnp.asarray(records, dtype)
    target = private.target(
        lambda theta, x: x * theta[0], lambda theta: prior * theta[0], rows, jnp.zeros(1), chunk_size=len(records)
    )

    @jax.jit
    def score() -> jax.Array:
        seen = []

        def release(parts: Limbs, scale: float) -> jax.Array:
            assert scale == 1.0
            seen.append(parts.high + parts.low)
            return seen[0]

        DecisionTest(1.0, tau).decide(target, release, ProposedMove(jnp.zeros(1), jnp.full(1, length)), jnp.zeros(()))
        return seen[0]

    return float(score())


@pytest.mark.parametrize("tau", [0.7, 300.0])
@pytest.mark.parametrize("against", [0.0, 1.0])
def test_one_record_moves_a_score_by_no_more_than_is_charged(tau: float, against: float) -> None:
    records = np.ones(50_000)
    scores = [score_of(np.r_[records[:-1], last], -against * 49_999.0, tau) for last in (1.0, -1.0)]
    moved = abs(scores[0] - scores[1])
    assert moved <= 1 / tau
    assert not against or moved > 0.3 / tau


def test_a_prior_that_cancels_the_sum_of_the_records_does_not_round_it() -> None:
    """Added in another order, the sum of millions of records in float32 moves by two bounds or by none."""
    large = jnp.asarray(2.0**60, float)
    assert add(Limbs(large, jnp.asarray(5.0, float)), -large) == 5.0


def is_accepted(end: float, noise_drawn: float) -> bool:
    """Whether a move from 0 is accepted that the noise favours by so much."""
    where = jnp.array([end, 0.0], jnp.result_type(float))

    @jax.jit
    def decide(end: jax.Array) -> jax.Array:
        move = ProposedMove(jnp.zeros_like(end), end)
        return DecisionTest(BOUND, 0.6).decide(TARGET, release, move, jnp.zeros(()))[0]

    def release(parts: Limbs, scale: float) -> jax.Array:
        return jnp.nan_to_num(parts.high) + noise_drawn

    return bool(decide(where))


@pytest.mark.parametrize(("end", "noise_drawn"), [(np.inf, 9.0), (np.nan, 9.0), (3e38, 7.0)])
def test_what_is_not_finite_is_never_accepted(end: float, noise_drawn: float) -> None:
    """A score that is NaN is released as if it were zero, and would be accepted every other time."""
    assert not is_accepted(end, noise_drawn)


def test_a_proposal_that_does_not_move_is_accepted() -> None:
    assert is_accepted(0.0, -3.0)


def test_its_query_is_charged_like_that_of_the_penalty() -> None:
    settings = {"proposal_scale": 0.5, "ratio_bound": BOUND, "tau": 20.0}
    one, other = (private.dp_penalty(TARGET, noise.jax, **settings, test=test) for test in ("penalty", "decision"))
    assert one.queries[0].noise_multiplier == other.queries[0].noise_multiplier
    assert other.queries[0].name == "acceptance decision"


@pytest.mark.x32
def test_noise_that_rounding_would_be_seen_through_is_refused() -> None:
    settings = {"proposal_scale": 0.5, "ratio_bound": BOUND}
    with pytest.raises(ValueError, match=r"^tau: given 10000.0; expected at most 8192 .* float32\. Enable jax_enable"):
        private.dp_penalty(TARGET, noise.jax, **settings, tau=1e4, test="decision")
