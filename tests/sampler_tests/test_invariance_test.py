"""The invariance test's verdicts on draws that are right or wrong by construction."""

import dataclasses
import sys

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.base import ImputationInfo, Latent
from dpjax.models.simulation import draw_position_at, init_state
from tests.sampler_tests import cases

ACCEPT = 1e-3


LONG = {"a table": [pytest.mark.slow], "few exponential records": [pytest.mark.slow]}
"""Each has a program of its own; wrong draws of few exponential records are quick to be called so."""


@pytest.mark.x64
@pytest.mark.parametrize("case", [pytest.param(case, marks=LONG.get(case, [])) for case in cases.RIGHT])
def test_right_draws_pass(case: str) -> None:
    result = dpjax.invariance_test(jax.random.key(1), cases.RIGHT[case]())
    assert result.passed, result
    assert "No drift was seen" in repr(result)
    assert np.all(result.correlation < 0.5)
    assert np.all(result.detectable < 0.5)


@pytest.mark.x64
@pytest.mark.parametrize("case", cases.WRONG)
def test_wrong_draws_do_not(case: str) -> None:
    result = dpjax.invariance_test(jax.random.key(1), cases.WRONG[case]())
    assert result.outcome == "wrong", result
    assert not result.passed
    assert "The draws are wrong" in repr(result)


@pytest.mark.keys
def test_the_ends_have_the_exact_law() -> None:
    """Chains come from a mean three standard deviations off."""
    result = dpjax.invariance_test(jax.random.key(2), cases.summed(cases.MEAN + 3 * cases.SD, cases.SD)())
    assert stats.kstest(result.after["mean"], stats.norm(cases.MEAN, cases.SD).cdf).pvalue > ACCEPT
    assert abs(result.comparison[0][0, 0] + 3) < 5 * result.comparison[1][0, 0] + 0.1


def start_blindly(key: jax.Array, model: dpjax.Model, release: dpjax.Release, plan: object, parameters: dict) -> object:
    """Records from the model that know nothing of the release."""

    def start(key: jax.Array, own: dict) -> object:
        return init_state(release, draw_position_at(key, model, own, release.n))

    return jax.vmap(start)(jax.random.split(key, len(parameters["mean"])), parameters)


def test_the_warm_up_of_the_records_is_needed_and_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it right draws are called wrong."""
    monkeypatch.setattr(sys.modules["dpjax.sampler_tests.invariance_test"], "start_at", start_blindly)
    mean, sd = cases.conjugate(sigma=1.0)
    quiet = dataclasses.replace(cases.SUM, mechanism=dpjax.Gaussian(1.0))
    right = cases.posterior_of(cases.NORMAL, quiet, cases.normal_draws(mean, sd))
    hasty, patient = (
        dpjax.invariance_test(jax.random.key(3), right, num_sweeps=1, num_warmup=number, interweave=False)
        for number in (0, None)
    )
    assert hasty.p_value < 1e-6 < 1e-2 < patient.p_value
    assert patient.settled
    assert patient.num_warmup >= 8


@pytest.mark.x32
def test_chains_that_hardly_move_are_not_trusted() -> None:
    """Without interweaving a thousand records hold their mean."""
    release = dpjax.Release([500.0], dpjax.Gaussian(100.0), dpjax.statistics.total("y"), 1_000)
    precision = 1 + 1_000**2 / (1_000 + 100.0**2)
    draws = cases.normal_draws((precision - 1) * 0.5 / precision, precision**-0.5)
    posterior = cases.posterior_of(cases.NORMAL, release, draws)
    options = {"num_samples": 50, "num_sweeps": 2, "num_warmup": 4, "interweave": False}
    result = dpjax.invariance_test(jax.random.key(4), posterior, **options)
    assert result.outcome == "inconclusive"
    assert not result.passed
    assert "moved too little" in repr(result)
    assert "num_sweeps" in repr(result)


def keep_records(model: dpjax.Model, release: dpjax.Release):
    """A kernel that leaves every law of the records invariant."""

    def step(rng_key: jax.Array, latent: Latent, parameters: dict) -> tuple[Latent, ImputationInfo]:
        accepted = jax.numpy.zeros(release.n, int)
        return latent, ImputationInfo(jax.numpy.zeros(()), accepted, jax.numpy.zeros((), int))

    return step


def test_records_that_do_not_settle_leave_it_open() -> None:
    right = cases.summed(cases.MEAN, cases.SD)()
    result = dpjax.invariance_test(jax.random.key(5), right, num_samples=50, num_sweeps=1, imputation=keep_records)
    assert result.outcome == "inconclusive"
    assert not result.settled
    assert "not settled" in repr(result)
    assert "num_warmup" in repr(result)


@pytest.mark.x64
@pytest.mark.slow
@pytest.mark.parametrize("case", ["a clamped sum", "a table", "the clamp is ignored"])
def test_unbiased_estimates_agree_with_the_draws_where_these_are_right(case: str) -> None:
    result = dpjax.invariance_test(
        jax.random.key(7), (cases.RIGHT | cases.WRONG)[case](), num_samples=200, unbiased=True
    )
    assert result.passed == (case in cases.RIGHT)
    assert np.all(result.unbiased.error < 0.2)
    off = np.max(np.abs(result.unbiased.drift / result.unbiased.error))
    assert off < 5 if case in cases.RIGHT else off > 20
    assert result.table.columns["unbiased"] == pytest.approx(result.unbiased.drift[0])


@pytest.mark.slow
def test_p_values_of_right_draws_are_uniform() -> None:
    p_values = []
    for number in range(150):
        draws = cases.normal_draws(cases.MEAN, cases.SD, seed=number)
        posterior = cases.posterior_of(cases.NORMAL, cases.SUM, draws)
        key = jax.random.fold_in(jax.random.key(6), number)
        p_values.append(
            dpjax.invariance_test(key, posterior, num_samples=200, num_sweeps=20, num_warmup=8).p_values[:, 0]
        )
    for column in np.stack(p_values, axis=1):
        assert stats.kstest(column, "uniform").pvalue > ACCEPT
