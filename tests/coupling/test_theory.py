"""The bounds of Xiong and Ju (2025) hold for every chain on a few values, and some of them are attained."""

import numpy as np
import pytest

from dpjax.coupling import theory
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
