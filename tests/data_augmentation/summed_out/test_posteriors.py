"""Whole runs with the records summed out: against a grid, which shares no code with them."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax.data_augmentation.summed_out import sum_out
from dpjax.mcmc import alone

RELEASED = np.array([100, 3, -4])
"""The first is far from anything that the prior expects, and the last below every count."""

NUMBERS = np.arange(300)
RATES = np.linspace(0.05, 40.0, 4_000)


def visits(n, y=None):
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    with numpyro.plate("weeks", n):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


def grid() -> tuple[float, float, np.ndarray]:
    """The mean and the deviation of the rate, and the mean of each count."""
    joint = stats.poisson.logpmf(NUMBERS, RATES[:, None])[:, None] + stats.dlaplace.logpmf(
        RELEASED[:, None] - NUMBERS, 0.5
    )  # [rate, week, count]
    weight = special.softmax(stats.gamma.logpdf(RATES, 5.0) + special.logsumexp(joint, axis=2).sum(axis=1))
    mean = weight @ RATES
    counts = special.softmax(joint, axis=2) @ NUMBERS
    return mean, np.sqrt(weight @ RATES**2 - mean**2), weight @ counts


def records_of(state: Any) -> Any:
    return state.latent.records["y"]


def sample(**options: Any) -> dpjax.Posterior:
    model = dpjax.from_numpyro(visits, ["y"])
    release = dpjax.LocalRelease(RELEASED, dpjax.DiscreteLaplace(2.0), "y")
    # With more than one parameter NUTS is the default; it has a search for its step size to keep.
    options = {"num_warmup": 320, "num_samples": 1_500, "parameter_kernel": "nuts", "progress": False} | options
    return dpjax.sample(jax.random.key(3), model, release, **options)


@pytest.fixture(scope="module")
def posterior() -> dpjax.Posterior:
    return sample()


def check_mean(draws: np.ndarray, mean: Any) -> None:
    error = dpjax.diagnostics.mcse_mean(np.asarray(draws, float))
    assert np.all(np.abs(np.mean(draws, axis=(0, 1)) - mean) < 4.5 * error)


def test_parameters_agree_with_a_grid_where_prior_and_data_are_in_conflict(posterior):
    mean, deviation, _ = grid()
    check_mean(posterior.draws["rate"], mean)
    np.testing.assert_allclose(np.std(posterior.draws["rate"]), deviation, rtol=0.05)
    assert np.max(posterior.info["left_out"]) < (1e-6 if posterior.draws["rate"].dtype == np.float64 else 1e-4)


def test_the_posterior_says_that_records_are_summed_out(posterior):
    assert "records: summed out" in posterior.describe()
    assert posterior.plan.sums_out
    assert posterior.final_states.latent.records == {}
    assert posterior.summary()["rate"]["r_hat"] < 1.02


def test_completed_records_are_drawn_given_the_draws(posterior):
    data = posterior.completed(jax.random.key(4), 1_000)
    drawn = np.stack([one["y"] for one in data])
    error = drawn.std(axis=0) / np.sqrt(len(drawn) / 2)
    assert np.all(np.abs(drawn.mean(axis=0) - grid()[2]) < 4.5 * error)
    assert posterior.predict(jax.random.key(5), 20).values.shape == (20, 3)


def test_collected_records_are_drawn_given_the_draws():
    found = sample(collect=records_of)
    check_mean(found.collected, grid()[2])
    check_mean(found.draws["rate"], grid()[0])


def test_an_interrupted_run_goes_on_to_the_same_draws(posterior, tmp_path, monkeypatch):
    made, calls = alone.AloneRun.make_chunk, iter(range(1_000))

    def interrupt(run: Any, status: Any, length: int) -> Any:
        if run.is_last(status) and status.filled and next(calls) == 0:
            raise KeyboardInterrupt
        return made(run, status, min(length, 100))

    monkeypatch.setattr(alone.AloneRun, "make_chunk", interrupt)
    with pytest.warns(UserWarning, match="sample was interrupted after"):
        partial = sample(checkpoint=tmp_path / "run.npz")
    assert partial.interrupted
    for _ in range(2):  # goes on, and then reads a run that is complete
        again = sample(checkpoint=tmp_path / "run.npz")
        np.testing.assert_array_equal(again.draws["rate"], posterior.draws["rate"])


def test_a_run_whose_windows_were_too_small_is_made_again(monkeypatch):
    """Catches windows that are never looked at again: here those fitted before the run are six numbers long."""
    calls = iter(range(100))

    def narrowed(*arguments: Any) -> Any:
        whole = sum_out(*arguments)
        if next(calls):
            return whole
        released = whole.terms.log_released
        terms = replace(
            whole.terms,
            numbers=whole.terms.numbers[:6],
            size_of_window=jnp.minimum(whole.terms.size_of_window, 6),
            log_released=released[:6],
            log_outside=jnp.max(released, axis=0),
        )
        return replace(whole, terms=terms)

    monkeypatch.setattr("dpjax.mcmc.climb.sum_out", narrowed)
    found = sample()
    assert next(calls) > 1
    check_mean(found.draws["rate"], grid()[0])
