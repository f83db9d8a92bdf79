"""Estimates from coupled chains: their means are those of enumerated posteriors, and their intervals are honest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.coupling import CoupledKernel, UnbiasedEstimates, coupled_gibbs, unbiased_estimates
from tests.coupling.enumerated import STATES, exact_law, kernel, ones
from tests.posterior.cases import discrete_gaussian_table

REPEATS, PAIRS = 200, 50
EXACT = {"ones": exact_law() @ STATES.sum(axis=1), "all": exact_law()[-1]}


def estimate(*, k: int, m: int, lag: int, num_pairs: int) -> UnbiasedEstimates:
    options = {"num_pairs": num_pairs, "max_steps": 4_000, "batch_size": 100}
    return unbiased_estimates(jax.random.key(1), kernel(), ones, k=k, m=m, lag=lag, **options)


def check(run: UnbiasedEstimates) -> None:
    found = run.estimate()
    for name, expected in EXACT.items():
        assert abs(found.mean[name] - expected) < 5 * found.standard_error[name]
        assert found.inefficiency[name] > 0
    assert found.cost == run.cost.sum()
    # A mutation: the average without its correction starts too near to the start.
    plain = run.averages["ones"]
    assert abs(plain.mean() - EXACT["ones"]) > 5 * plain.std() / np.sqrt(len(plain))


TOGETHER = 40
"""Where the numbers of the second chain begin in a table of both."""


def made_up_pairs(steps_together: int) -> CoupledKernel:
    """Chains that count their steps, and meet after so many together: the second begins at `TOGETHER`."""
    return CoupledKernel(
        sample_start=lambda key: jnp.array(0),
        join=lambda first, second, met: (first, jnp.where(met, first, second + TOGETHER), jnp.asarray(met)),
        step=lambda key, pair: ((pair[0] + 1, pair[1] + 1, pair[1] + 1 >= TOGETHER + steps_together), None),
        met=lambda pair: pair[2],
        first=lambda pair: pair[0],
        second=lambda pair: jnp.where(pair[2], pair[0], pair[1]),
    )


@pytest.mark.parametrize(("k", "m", "lag"), [(0, 0, 1), (2, 5, 1), (1, 6, 3), (4, 14, 2)])
def test_estimates_of_made_up_chains_are_those_of_the_formula(k: int, m: int, lag: int) -> None:
    """One term of the correction more or less, or a lag, moves a mean by less than its error."""
    table = np.random.default_rng(4).normal(size=2 * TOGETHER)
    one, other, meeting = table[:TOGETHER], table[TOGETHER:], 7 + lag

    def single(start: int) -> float:
        later = range(start + lag, meeting, lag)
        return one[start] + sum(one[time] - other[time - lag] for time in later)

    options = {"k": k, "m": m, "lag": lag, "num_pairs": 1, "max_steps": 20, "progress": False}
    function = jnp.asarray(table).__getitem__
    found = unbiased_estimates(jax.random.key(1), made_up_pairs(7), function, **options)
    assert found.values[0] == pytest.approx(np.mean([single(start) for start in range(k, m + 1)]), rel=1e-5)
    assert found.averages[0] == pytest.approx(np.mean(one[k : m + 1]), rel=1e-5)
    assert found.meetings.times.tolist() == [meeting]
    assert found.cost.tolist() == [lag + 2 * (meeting - lag) + max(0, m - meeting)]


@pytest.mark.keys
def test_estimates_from_one_draw_are_unbiased() -> None:
    check(estimate(k=0, m=0, lag=1, num_pairs=2_000))


@pytest.mark.slow
def test_estimates_from_a_window_are_unbiased() -> None:
    check(estimate(k=2, m=9, lag=3, num_pairs=4_000))


@pytest.fixture(scope="module")
def run() -> UnbiasedEstimates:
    """With k above all but the longest meetings: from shorter windows few pairs would decide the spread."""
    return estimate(k=60, m=240, lag=3, num_pairs=REPEATS * PAIRS)


def coverage(values: np.ndarray, expected: float, inflation: float = 1.0) -> float:
    """The share of repeats whose interval of nominal 95 % holds the exact value; of values [repeats, pairs]."""
    half = stats.t.ppf(0.975, PAIRS - 1) * values.std(axis=1, ddof=1) / np.sqrt(inflation * PAIRS)
    return float(np.mean(abs(values.mean(axis=1) - expected) < half))


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("name", EXACT)
def test_standard_errors_are_honest(run: UnbiasedEstimates, name: str) -> None:
    values = run.values[name].reshape(REPEATS, PAIRS)
    assert 0.92 <= coverage(values, EXACT[name]) <= 0.98
    # A mutation: every chain counted for itself, as if the two of a pair were independent.
    assert coverage(values, EXACT[name], inflation=2.0) < 0.92


def probabilities(position: dpjax.data_augmentation.Position) -> jax.Array:
    return position.parameters["probabilities"]


@pytest.mark.slow
@pytest.mark.x64
def test_the_posterior_of_a_released_table_is_met() -> None:
    """400 records in four cells, from discrete Gaussian counts: the means are known by enumeration."""
    case = discrete_gaussian_table()
    kernel = coupled_gibbs(case.model, case.release, dpjax.imwg(scan="random"))
    options = {"num_pairs": 128, "max_steps": 400, "batch_size": 32}
    found = unbiased_estimates(jax.random.key(1), kernel, probabilities, k=12, m=36, lag=1, **options).estimate()
    exact, deviation = case.figures["mean"][0], case.figures["sd"][0]
    assert np.all(abs(found.mean - exact) < 5 * found.standard_error)
    assert np.all(found.standard_error < deviation / 5)
    # The prior's mean, from where chains start, is far away.
    assert np.any(abs(0.25 - exact) > 20 * found.standard_error)
