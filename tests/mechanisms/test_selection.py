"""Chosen candidates: distributions against formulas that share no code, and samplers."""

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import QuantileScores, Utilities

UTILITY = np.array([0.0, -1.2, 0.7, 0.6, -3.0])


RATE = 0.75


EPSILON, SENSITIVITY = 1.2, 0.8


TOLERANCE = 1e-10 if jax.config.jax_enable_x64 else 1e-4


def identity(statistic: jax.Array) -> jax.Array:
    return statistic


def softmax(scaled: np.ndarray) -> np.ndarray:
    return np.exp(scaled) / np.sum(np.exp(scaled))


def permute_and_flip(scaled: np.ndarray) -> np.ndarray:
    """By all orders of the candidates."""
    heads, found = np.exp(scaled - scaled.max()), np.zeros(len(scaled))
    orders = list(permutations(range(len(scaled))))
    for order in orders:
        missed = 1.0
        for place in order:
            found[place] += missed * heads[place] / len(orders)
            missed *= 1 - heads[place]
    return found


def noisy_max(scaled: np.ndarray) -> np.ndarray:
    """With Laplace noise, by adaptive quadrature."""

    def wins(place: int) -> float:
        def density(x: float) -> float:
            others = np.delete(scaled, place)
            return float(stats.laplace.pdf(x - scaled[place]) * np.prod(stats.laplace.cdf(x - others)))

        return integrate.quad(density, -60, 60, points=np.sort(scaled), limit=500, epsabs=1e-13)[0]

    return np.array([wins(place) for place in range(len(scaled))])


CASES = {
    "exponential": (dpjax.ExponentialMechanism(identity, EPSILON, SENSITIVITY), softmax),
    "permute and flip": (dpjax.PermuteAndFlip(identity, EPSILON, SENSITIVITY), permute_and_flip),
    "max by Gumbel": (dpjax.ReportNoisyMax(identity, EPSILON, SENSITIVITY, "gumbel"), softmax),
    "max by exponential": (dpjax.ReportNoisyMax(identity, EPSILON, SENSITIVITY), permute_and_flip),
    "max by Laplace": (dpjax.ReportNoisyMax(identity, EPSILON, SENSITIVITY, "laplace"), noisy_max),
}


def probabilities(mechanism: dpjax.Mechanism, utility: np.ndarray) -> np.ndarray:
    numbers = jnp.arange(float(len(utility)))[:, None]
    density = jax.vmap(mechanism.log_density, in_axes=(0, None))
    return np.exp(np.asarray(density(numbers, jnp.asarray(utility, float))))


@pytest.mark.parametrize("name", CASES)
def test_probabilities(name: str) -> None:
    mechanism, formula = CASES[name]
    expected = formula(RATE * UTILITY)
    np.testing.assert_allclose(probabilities(mechanism, UTILITY), expected, rtol=max(TOLERANCE, 1e-8))


@pytest.mark.parametrize("name", CASES)
def test_epsilon_without_its_half_is_another_distribution(name: str) -> None:
    mechanism, formula = CASES[name]
    wrong = formula(2 * RATE * UTILITY)
    assert np.max(np.abs(probabilities(mechanism, UTILITY) - wrong)) > 0.05


@pytest.mark.parametrize("name", CASES)
def test_draws(name: str) -> None:
    mechanism, formula = CASES[name]
    keys = jax.random.split(jax.random.key(3), 20_000)
    drawn = np.asarray(jax.vmap(mechanism.sample, in_axes=(0, None))(keys, jnp.asarray(UTILITY, float)))
    counts = np.bincount(drawn[:, 0].astype(int), minlength=len(UTILITY))
    assert stats.chisquare(counts, len(keys) * formula(RATE * UTILITY)).pvalue > 1e-4


@pytest.mark.parametrize("name", CASES)
def test_all_ends(name: str) -> None:
    """Far and equal utilities: normalised, and equal candidates have equal chances."""
    mechanism, _ = CASES[name]
    far = probabilities(mechanism, np.array([0.0, 4000.0, 3999.0]))
    np.testing.assert_allclose(far.sum(), 1.0, rtol=1e-5)
    np.testing.assert_allclose(probabilities(mechanism, np.zeros(7)), np.full(7, 1 / 7), rtol=1e-5)
    no_candidate = mechanism.log_density(jnp.array([1.5]), jnp.zeros(3))
    assert np.isneginf(no_candidate)


def test_many_equal_candidates() -> None:
    found = probabilities(dpjax.PermuteAndFlip(identity, 1.0, 1.0), np.zeros(400))
    np.testing.assert_allclose(found, np.full(400, 1 / 400), rtol=max(TOLERANCE, 1e-8))


def test_scores_of_points_and_of_categories() -> None:
    """By counting, with records at candidates too."""
    records, points, alpha = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 4.0]), [0.0, 1.0, 2.0, 3.0, 4.0], 0.3
    below = np.array([np.sum(records < point) for point in points])
    above = np.array([np.sum(records > point) for point in points])
    expected = -np.abs((1 - alpha) * below - alpha * above)
    scores = QuantileScores(alpha, 5)
    counts = jax.vmap(statistics.around("y", points))({"y": jnp.asarray(records)}).sum(axis=0)
    table = jax.vmap(statistics.cells("y", 5))({"y": jnp.asarray(records, int)}).sum(axis=0)
    for found in (scores(counts), scores(table)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
def test_scores_move_by_no_more_than_is_said(neighbours: str) -> None:
    scores, largest = QuantileScores(0.3, 4), 0.0
    rng = np.random.default_rng(2)
    for _ in range(300):
        table = rng.integers(0, 4, size=4).astype(float)
        one, other = rng.integers(0, 4, size=2)
        changed = table + np.eye(4)[one] - (np.eye(4)[other] if neighbours == "replace-one" else 0)
        moved = scores(jnp.asarray(changed)) - scores(jnp.asarray(table))
        largest = max(largest, float(jnp.max(jnp.abs(moved))))
    assert largest == pytest.approx(scores.sensitivity(neighbours), rel=1e-5)


def test_promises() -> None:
    release = dpjax.releases.median(1, candidates=3, field="cell", epsilon=2.0, n=9)
    words = dpjax.describe(release)
    assert "the exponential mechanism chose a candidate, with ε = 2 for utilities of sensitivity 0.5" in words
    assert "remote modes need refreshes or dpjax.sample_smc" in words
    assert "added or removed: ε = 2, and so ρ = 0.5;" in words
    assert "replaced: ε = 4, and so ρ = 2." in words
    own = dpjax.Release([0], dpjax.PermuteAndFlip(identity, 1.0, 1.0), statistics.cells("cell", 3), 9)
    assert "no promise is known. ε = 1 between data sets with utilities that move by at most 1" in dpjax.describe(own)


def test_text_and_back() -> None:
    options = {"candidates": [0.0, 1.0, 2.5], "field": "y", "epsilon": 1.0, "n": 30}
    for noise in ("gumbel", "exponential", "laplace"):
        release = dpjax.releases.quantile(1.0, 0.25, noise=noise, **options)
        again = dpjax.from_json(release.to_json())
        assert (again.mechanism, again.statistic) == (release.mechanism, release.statistic)
    ends = {"lower": 0.0, "upper": 4.0, "num_bins": 8}
    drawn = dpjax.releases.interval_quantile(1.7, 0.5, **ends, field="y", epsilon=1.0, n=30)
    assert dpjax.from_json(drawn.to_json()).mechanism == drawn.mechanism
    flip = dpjax.Release([0], dpjax.PermuteAndFlip(QuantileScores(0.5, 3), 1.0, 1.0), statistics.cells("a", 3), 9)
    assert dpjax.from_json(flip.to_json()).mechanism == flip.mechanism
    own = dpjax.Release([0], dpjax.PermuteAndFlip(identity, 1.0, 1.0), statistics.cells("cell", 3), 9)
    with pytest.raises(TypeError, match=r"mechanism\.utilities: given identity; expected one of \['quantile_scores'\]"):
        own.to_json()


class Silent(Utilities):
    """Utilities that do not know how far a record moves them."""

    def __call__(self, statistic: jax.Array) -> jax.Array:
        return statistic


CELLS = statistics.cells("cell", 3)


def test_unknown_sensitivity_promises_nothing() -> None:
    release = dpjax.Release([0], dpjax.PermuteAndFlip(Silent(), 1.0, 1.0), CELLS, 9)
    assert "How far one record can move Silent is not known" in dpjax.describe(release)
