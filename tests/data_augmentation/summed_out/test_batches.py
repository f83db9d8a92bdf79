"""Batches of releases whose records are summed out, and the tests of samplers that run on them."""

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
from dpjax.data_augmentation.summed_out import sum_out_each
from dpjax.data_augmentation.summed_out.terms import Windows

NUMBERS, RATES = np.arange(300), np.linspace(0.05, 40.0, 4_000)
EXPOSURE = np.array([1.0, 0.5, 2.0])
RELEASED = [np.array([7, 3, 12]), np.array([60, 3, -4]), np.array([0, 1, -2])]
"""The first count of the second release is far from anything that the prior expects."""


def visits(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    with numpyro.plate("weeks", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate), obs=y)


MODEL = dpjax.from_numpyro(visits, ["y"], exposure=EXPOSURE)
RELEASES = [dpjax.LocalRelease(value, dpjax.DiscreteLaplace(2.0), "y") for value in RELEASED]
QUIET = {"progress": False}


def by_grid(released: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The mean and the deviation of the rate, and the mean of each count."""
    of_noise = stats.dlaplace.logpmf(released[:, None] - NUMBERS, 0.5)
    joint = stats.poisson.logpmf(NUMBERS, (RATES[:, None] * EXPOSURE)[..., None]) + of_noise
    weight = special.softmax(stats.gamma.logpdf(RATES, 5.0) + special.logsumexp(joint, axis=2).sum(axis=1))
    mean = weight @ RATES
    return mean, np.sqrt(weight @ RATES**2 - mean**2), weight @ (special.softmax(joint, axis=2) @ NUMBERS)


def check_mean(draws: np.ndarray, mean: Any) -> None:
    error = dpjax.diagnostics.mcse_mean(np.asarray(draws, float))
    assert np.all(np.abs(np.mean(draws, axis=(0, 1)) - mean) < 4.5 * error)


def records_of(state: Any) -> Any:
    return state.latent.records["y"]


def test_each_release_of_a_batch_has_its_posterior_and_its_records() -> None:
    """The windows of all releases are as long as the longest."""
    settings = {"num_warmup": 320, "num_samples": 1_000, "collect": records_of}
    batch = dpjax.sample_batch(jax.random.key(1), MODEL, RELEASES, **settings, **QUIET)
    assert batch.plan.sums_out
    for number, released in enumerate(RELEASED):
        mean, deviation, counts = by_grid(released)
        check_mean(batch.draws["rate"][number], mean)
        np.testing.assert_allclose(np.std(batch.draws["rate"][number]), deviation, rtol=0.08)
        check_mean(batch.collected[number], counts)
    assert np.max(batch.info["left_out"]) < 1e-4
    assert "records: summed out" in batch[1].describe()
    assert batch[1].completed(jax.random.key(2), 3)[0]["y"].shape == (3,)


def areas(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 0.3))
    with numpyro.plate("areas", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate * jnp.exp(slope)), obs=y)


@pytest.mark.x64
def test_a_batch_by_nuts_has_a_step_size_for_each_release() -> None:
    model = dpjax.from_numpyro(areas, ["y"], exposure=EXPOSURE)
    settings = {"num_warmup": 320, "num_samples": 500}
    batch = dpjax.sample_batch(jax.random.key(1), model, RELEASES, **settings, **QUIET)
    alone = dpjax.sample(jax.random.key(3), model, RELEASES[0], **settings, **QUIET)
    assert len(set(np.asarray(batch.tuning.step_size).tolist())) == 3
    draws, other = batch.draws["rate"][0], alone.draws["rate"]
    error = np.hypot(*(dpjax.diagnostics.mcse_mean(np.asarray(each)) for each in (draws, other)))
    assert abs(draws.mean() - other.mean()) < 4.5 * error


SBC = {"num_replicates": 200, "num_samples": 19, "thin": 3, "num_warmup": 152}


def p_values(**changes: Any) -> dict[str, float]:
    found = dpjax.sbc(jax.random.key(4), MODEL, RELEASES[0], **SBC, **changes)
    bins = {name: np.bincount(ranks, minlength=20) for name, ranks in found.ranks.items()}
    return {name: float(stats.chisquare(counts).pvalue) for name, counts in bins.items()}


@pytest.mark.x64
def test_simulation_based_calibration_of_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks are uniform; a forgotten weight of the windows and a dropped offset are each rejected."""
    assert min(p_values().values()) > 1e-3
    dropped = dpjax.from_numpyro(visits, ["y"], exposure=np.ones(3))
    assert min(p_values(fit=dropped).values()) < 1e-4
    right = Windows.build

    def forgotten(self: Windows, model: Any) -> Any:
        flat = jnp.where(self.log_released > -jnp.inf, 0.0, -jnp.inf)
        return right(replace(self, log_released=flat), model)

    monkeypatch.setattr(Windows, "build", forgotten)
    jax.clear_caches()
    try:
        assert min(p_values().values()) < 1e-4
    finally:
        jax.clear_caches()


def test_equal_answers_of_a_batch_are_rows_with_weights() -> None:
    """Releases have as many rows each, of which some stand for nobody."""
    kept = dpjax.RandomizedResponse(keep=0.75, num_categories=4)
    answered = [np.arange(200) % 2, np.arange(200) % 4]
    releases = [dpjax.LocalRelease(values, kept) for values in answered]
    model = dpjax.models.categorical(np.ones(4))
    both = sum_out_each(model, releases, [None, None])
    assert both.weights.shape == (2, 4)
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    for number, values in enumerate(answered):
        one = jax.tree.map(lambda leaf, number=number: leaf[number], both)
        expected = np.log(0.25 / 3 * (1 - shares) + 0.75 * shares)[values].sum()
        np.testing.assert_allclose(one({"probabilities": jnp.asarray(shares)}), expected, rtol=1e-5)
        assert one.sample_records(jax.random.key(1), {"probabilities": jnp.asarray(shares)})["cell"].shape == (200,)


@pytest.mark.x64
def test_draws_with_the_records_summed_out_are_tested_by_imputation() -> None:
    posterior = dpjax.sample(jax.random.key(5), MODEL, RELEASES[0], num_warmup=160, num_samples=200, **QUIET)
    assert posterior.plan.sums_out
    result = dpjax.invariance_test(jax.random.key(6), posterior, num_samples=40, num_sweeps=10, num_warmup=5, **QUIET)
    assert result.passed is not False
