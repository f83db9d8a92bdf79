"""The bounds of Xiong and Ju (2025) hold for every chain on a few values, and some of them are attained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import dpjax
from dpjax.coupling import theory
from dpjax.models.simulation import init_latent
from tests.coupling.finite import (
    Target,
    acceptance,
    coupled_pairs,
    distances_after,
    imwg_choices,
    matrix,
    random_target,
    second_modulus,
    soma_choices,
)

CASES = [(epsilon, n) for epsilon in (0.5, 3.0) for n in (2, 3)]
SLACK = 1e-12


def targets(epsilon: float, n: int) -> list[Target]:
    rng = np.random.default_rng(1)
    return [random_target(rng, n, 3, epsilon) for _ in range(5)]


def lone_proposal(epsilon: float, n: int) -> Target:
    """Proposals are nearly always another value, and any other value is e^ε times less likely than the first."""
    plain = random_target(np.random.default_rng(1), n, 2, 0.0)
    density = {state: float(np.exp(-epsilon * any(state))) for state in plain.density}
    return Target(n, np.array([0.0, 1.0]), density)


@pytest.mark.parametrize(("epsilon", "n"), CASES)
def test_proposals_are_accepted_as_often_as_theorem_12_says(epsilon: float, n: int) -> None:
    for target in targets(epsilon, n):
        for records in target.density:
            least = theory.soma_acceptance_bound(epsilon, n), theory.imwg_acceptance_bound(epsilon)
            for choices, bound in zip((soma_choices, imwg_choices), least, strict=True):
                assert acceptance(target, records, choices) >= bound - SLACK
    worst = lone_proposal(epsilon, n)
    assert acceptance(worst, (0,) * n, soma_choices) == pytest.approx(float(least[0]))
    assert acceptance(worst, (0,) * n, imwg_choices) == pytest.approx(float(least[1]))


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_chains_of_two_records_are_as_fast_as_theorem_13_says(epsilon: float) -> None:
    for target in targets(epsilon, 2):
        assert second_modulus(matrix(target, soma_choices)) < theory.soma_rate_bound(epsilon)
        assert second_modulus(matrix(target, imwg_choices)) < theory.imwg_random_rate_bound(epsilon)
        sweep = second_modulus(matrix(target, imwg_choices, range(2)))
        assert sweep < theory.imwg_systematic_rate_bound(epsilon) ** 2


@pytest.mark.parametrize("n", [2, 3, 4, 10, 100])
def test_soma_takes_each_proposal_more_often_as_lemma_16_says(n: int) -> None:
    rng = np.random.default_rng(n)
    weights, current = rng.normal(size=(2_000, n)) * rng.exponential(3, size=(2_000, 1)), rng.normal(size=2_000)
    soma, imwg = theory.soma_proposal_acceptance(weights, current), theory.imwg_proposal_acceptance(weights, current)
    assert np.all((soma >= imwg - SLACK) & (soma <= 1 + SLACK))
    assert np.mean(soma > imwg + 0.01) > 0.5


@pytest.mark.parametrize(("epsilon", "n"), CASES)
def test_theorems_9_and_10_and_the_variance_of_corollary_15(epsilon: float, n: int) -> None:
    """Over multisets; the acceptance of a proposal is that of the weights, and its mean over proposals Theorem 10's."""
    for target in targets(epsilon, n):
        soma, imwg = matrix(target, soma_choices), matrix(target, imwg_choices)
        assert np.all((soma - n * imwg)[~np.eye(len(soma), dtype=bool)] <= SLACK)
        for records in target.density:
            rates = [
                sum(
                    chance * accepted(np.log(target.weights(records, y)), np.log(target.weight(records)))
                    for y, chance in enumerate(target.proposals)
                )
                for accepted in (theory.soma_proposal_acceptance, theory.imwg_proposal_acceptance)
            ]
            own = [acceptance(target, records, choices) for choices in (soma_choices, imwg_choices)]
            np.testing.assert_allclose(rates, own, rtol=1e-10)
            assert own[0] >= own[1] - SLACK
        function = np.random.default_rng(2).normal(size=len(soma))
        slow, fast = (asymptotic(chain, function) for chain in (imwg, soma))
        assert fast[0] >= theory.soma_variance_bound(*slow, n) - SLACK


def asymptotic(transition: np.ndarray, function: np.ndarray) -> tuple[float, float]:
    """The asymptotic variance of a mean, and the variance of the function, by the fundamental matrix."""
    size = len(transition)
    law = np.linalg.lstsq(np.vstack([transition.T - np.eye(size), np.ones(size)]), np.eye(size + 1)[-1], rcond=None)[0]
    centred = function - law @ function
    solved = np.linalg.solve(np.eye(size) - transition + np.outer(np.ones(size), law), centred)
    variance = law @ centred**2
    return 2 * (law * centred) @ solved - variance, variance


def test_the_variance_bound_is_nearly_attained() -> None:
    """By a target whose weights are all the same: then n attempts bring nothing."""
    target = random_target(np.random.default_rng(1), 3, 3, 0.0)
    soma, imwg = matrix(target, soma_choices), matrix(target, imwg_choices)
    np.testing.assert_allclose(soma, imwg, atol=SLACK)
    # Of functions with a large asymptotic variance the bound is a third of it, less two thirds of their variance.
    assert theory.soma_variance_bound(12.0, 1.0, 3) == pytest.approx(10 / 3)
    assert theory.soma_variance_bound(1.0, 1.0, 3) == 0


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_chains_are_as_far_from_their_law_as_corollary_11_says(epsilon: float) -> None:
    """On few values the start has mass, by which the bound is too large."""
    steps = np.array([1, 5, 20])
    for target in targets(epsilon, 3):
        states, chain = sorted(target.density), matrix(target, imwg_choices)
        law = np.linalg.matrix_power(chain, 20_000)[0]
        for place, records in enumerate(states):
            powers = np.stack([np.linalg.matrix_power(chain, t)[place] for t in steps])
            rate = min(1.0, acceptance(target, records, imwg_choices))
            bound = theory.imwg_distance_bound(rate, steps)
            assert np.all(np.abs(powers - law).sum(axis=1) / 2 >= bound - law[place] - 1e-9)


@pytest.mark.parametrize(("epsilon", "n"), CASES)
def test_coupled_chains_move_as_lemmas_18_and_19_say(epsilon: float, n: int) -> None:
    attained = False
    for target in targets(epsilon, n):
        for first, second, d in coupled_pairs(target):
            soma = distances_after(target, first, second, soma_choices)
            imwg = distances_after(target, first, second, imwg_choices)
            assert soma[d - 1] >= theory.soma_approach_bound(epsilon, n, d) - SLACK
            assert soma[d + 1] <= theory.soma_departure_bound(epsilon, n, d) + SLACK
            assert imwg[d - 1] >= theory.imwg_approach_bound(epsilon, n, d) - SLACK
            # A mutation: a bound for a smaller ε would be too good.
            attained |= bool(imwg[d - 1] < theory.imwg_approach_bound(epsilon - 0.1, n, d))
    assert attained


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 2), (0.5, 2), (0.1, 3), (0.3, 3), (0.2, 4)])
def test_coupled_chains_of_many_records_contract(epsilon: float, n: int) -> None:
    """On average over a proposal, and the chain alone is no slower."""
    bound = float(theory.soma_contraction_bound(epsilon, n))
    assert bound < 1
    for target in targets(epsilon, n):
        assert second_modulus(matrix(target, soma_choices)) <= bound + SLACK
        for first, second, d in coupled_pairs(target):
            law = distances_after(target, first, second, soma_choices)
            assert sum(chance * after for after, chance in law.items()) <= bound * d + SLACK


def test_the_proof_of_the_contraction_has_the_right_polynomial() -> None:
    """P of the page on it, which is positive wherever 4 sinh ε ≤ 1: the lemmas put over one denominator."""
    for epsilon in (0.0, 0.1, np.arcsinh(0.25), 0.5, 2.0):
        for n in (3, 4, 10, 1_000):
            d, x = np.arange(1.0, n + 1), np.exp(-epsilon)
            m = n - d
            p = x * d**3 + d**2 * m * (2 * x**2 + x - 1) + d * m**2 * (2 * x**2 - 1) - m**2 * (1 - x)
            p -= d * m * (1 - x) / x
            gained = theory.soma_approach_bound(epsilon, n, d) - theory.soma_departure_bound(epsilon, n, d)
            np.testing.assert_allclose(p / ((n + 1 / x - 1) * (m * x + d) * (m + d * x)), gained, atol=1e-12)
            assert np.all(p > 0) or epsilon > 0.25
    big = 10**6
    assert big * (1 - theory.soma_contraction_bound(0.1, big)) == pytest.approx(1 - 4 * np.sinh(0.1), rel=1e-3)


def test_where_soma_contracts() -> None:
    edge = np.arcsinh(0.25)
    assert np.all(theory.soma_contraction_bound(edge, [2, 3, 10, 1_000]) < 1)
    assert np.all(theory.soma_contraction_bound([0.7, 0.36, 0.28, edge + 0.01], [2, 3, 10, 1_000]) == 1)
    assert theory.soma_contraction_bound(0.0, 10) == pytest.approx(0.9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_rates_are_second_eigenvalues_of_the_dominating_chains(epsilon: float) -> None:
    """The matrices (49), (52) and (55) of the distance of two chains of two records."""
    e = np.exp(epsilon)
    soma = dominating(
        theory.soma_approach_bound(epsilon, 2, 1), theory.soma_departure_bound(epsilon, 2, 1), 2 / (e + 1)
    )
    assert second_modulus(soma) == pytest.approx(theory.soma_rate_bound(epsilon))
    random = dominating(theory.imwg_approach_bound(epsilon, 2, 1), (1 - 1 / e) / 2, 1 / e)
    assert second_modulus(random) == pytest.approx(theory.imwg_random_rate_bound(epsilon))
    meets, apart = e**-2, (1 - 1 / e) ** 2
    sweep = np.array([[1, 0, 0], [meets, 1 - meets - apart, apart], [meets, 1 - meets - apart, apart]])
    assert second_modulus(sweep) == pytest.approx(theory.imwg_systematic_rate_bound(epsilon) ** 2)


def dominating(meets: float, departs: float, approaches: float) -> np.ndarray:
    return np.array([[1, 0, 0], [meets, 1 - meets - departs, departs], [0, approaches, 1 - approaches]])


def test_which_rate_bound_is_the_least() -> None:
    grid = np.linspace(0.3, 2.0, 171)
    least = np.minimum(theory.imwg_random_rate_bound(grid), theory.imwg_systematic_rate_bound(grid))
    below = grid[theory.soma_rate_bound(grid) < least]
    assert below[[0, -1]] == pytest.approx([0.37, 0.89], abs=0.015)


def test_formulas_as_printed() -> None:
    e = np.exp(np.array([0.5, 2.0]))
    printed = (e**2 + 3 * e - 2 + np.sqrt(e**4 + 2 * e**3 + 9 * e**2 - 8 * e)) / (2 * (1 + e) ** 2)
    np.testing.assert_allclose(theory.soma_rate_bound(np.log(e)), printed, rtol=1e-12)
    np.testing.assert_allclose(theory.soma_acceptance_bound(np.log(e), 10), 10 / (10 + e - 1), rtol=1e-12)
    n, d = 5, 2
    away = (n - d) * e / ((n - d) * e + d) - n / (n + e - 1) * (n - d) / (n - d + d * e)
    np.testing.assert_allclose(theory.soma_departure_bound(np.log(e), n, d), away, rtol=1e-12)
    np.testing.assert_allclose(theory.soma_departure_bound(np.log(e), 2, 1), e * (e - 1) / (e + 1) ** 2, rtol=1e-12)
    assert np.all(np.isfinite(theory.soma_rate_bound(np.array([0.0, 400.0]))))


@pytest.mark.parametrize(
    ("noise", "total_variation"),
    [(dpjax.Gaussian(1.0), 2 * norm.cdf(0.5) - 1), (dpjax.Laplace(0.5), 1 - np.exp(-1.0))],
    ids=["Gaussian", "Laplace"],
)
def test_the_mean_acceptance_is_one_less_the_mean_total_variation(noise, total_variation: float) -> None:
    """Over releases of two fair coins; a proposal is the other face half of the time."""
    model = dpjax.Model(
        sample_prior=lambda key: {},
        log_prior=lambda parameters: jnp.zeros(()),
        sample_records=lambda key, parameters, n: {"y": jax.random.bernoulli(key, 0.5, (n,)).astype(float)},
        log_density=lambda parameters, records: jnp.full(records["y"].shape, jnp.log(0.5)),
    )
    template = dpjax.Release([0.0], noise, dpjax.statistics.total("y", 0.0, 1.0), n=2)

    def accepted(key: jax.Array) -> jax.Array:
        record_key, noise_key, sweep_key = jax.random.split(key, 3)
        records = model.sample_records(record_key, {}, 2)
        release = template.sample(noise_key, records)
        _, info = dpjax.imwg()(model, release)(sweep_key, init_latent(release, records), {})
        return info.acceptance_rate

    rates = np.asarray(jax.jit(jax.vmap(accepted))(jax.random.split(jax.random.key(5), 40_000)), float)
    error = rates.std() / np.sqrt(len(rates))
    assert abs(rates.mean() - (1 - total_variation / 2)) < 5 * error


def test_the_bounds_of_the_mean_acceptance_are_those_of_the_total_variation() -> None:
    rho = np.array([0.01, 0.5, 2.0, 8.0])
    exact = 2 * norm.cdf(-np.sqrt(rho / 2))  # Gaussian noise with rho = 1 / (2 sigma^2) and a shift of 1
    assert np.all(theory.imwg_mean_acceptance_bound_zcdp(rho) <= exact)
    assert np.all(theory.imwg_mean_acceptance_bound(0.0, 1 - exact) == pytest.approx(exact))
    epsilon = np.array([0.1, 1.0, 5.0])
    assert np.all(theory.imwg_mean_acceptance_bound(epsilon) >= theory.imwg_acceptance_bound(epsilon))
    # Randomized response attains it: the answer is kept with probability e^eps / (1 + e^eps).
    kept = 1 / (1 + np.exp(-epsilon))
    assert theory.imwg_mean_acceptance_bound(epsilon) == pytest.approx(1 - (2 * kept - 1))
