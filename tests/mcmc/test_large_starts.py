"""Chains that start at draws from the Normal approximation are in the exact posterior from their first step on."""

from importlib import import_module
from math import sqrt

import jax
import numpy as np
import pytest

import dpjax
from dpjax._util.validation import fail
from dpjax.clt import inputs as clt_inputs
from dpjax.mcmc import inputs, starts

sample = import_module("dpjax.mcmc.sample")  # the package has a function of this name

N, NOISE, VALUE = 400, 100.0, 520.0
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 10.0), 4.0)
RELEASE = dpjax.Release([VALUE], dpjax.Gaussian(NOISE), dpjax.statistics.total("y"), N)
PRECISION = 1 / 100 + N**2 / (4 * N + NOISE**2)
MEAN, SD = VALUE * N / (4 * N + NOISE**2) / PRECISION, 1 / sqrt(PRECISION)
NUM_CHAINS = 300


@pytest.fixture
def few(monkeypatch):
    """The Normal approximation is sampled for no longer than its draws have to be spread."""
    monkeypatch.setattr(starts, "NUM_WARMUP", 60)
    monkeypatch.setattr(starts, "NUM_DRAWS", 20)


def first_draws(initial: str | None = "large-sample") -> np.ndarray:
    """Standardised draws [chain, draw] without warm-up, by a kernel that remembers where it began."""
    options = {"num_chains": NUM_CHAINS, "num_warmup": 0, "num_samples": 4, "interweave": False, "refresh": False}
    draws = dpjax.sample(jax.random.key(1), MODEL, RELEASE, initial=initial, progress=False, **options).draws["mean"]
    return (draws.astype(float) - MEAN) / SD


def errors(scores: np.ndarray) -> np.ndarray:
    """Of the mean and the mean square of independent chains at each step [2, draw], in standard errors."""
    return np.sqrt(NUM_CHAINS) * np.stack([scores.mean(axis=0), ((scores**2).mean(axis=0) - 1) / sqrt(2)])


@pytest.mark.x32
def test_the_first_draws_are_the_posteriors(few):
    """Here the sum is Normal, so that the starts are draws of the exact posterior."""
    assert np.max(np.abs(errors(first_draws()))) < 4


@pytest.mark.x64
def test_many_records_start_there_by_default_and_few_do_not(few, monkeypatch):
    monkeypatch.setattr(inputs, "RECORDS_FOR_LARGE_STARTS", N)
    assert np.max(np.abs(errors(first_draws(None)))) < 4
    monkeypatch.setattr(inputs, "RECORDS_FOR_LARGE_STARTS", N + 1)
    assert np.max(np.abs(errors(first_draws(None)))) > 6


@pytest.mark.x64
def test_starts_that_are_not_found_there_are_found_in_the_prior(monkeypatch):
    def none_found(*arguments):
        fail("release", "no mode", "one that is found", "Take another.")

    monkeypatch.setattr(inputs, "RECORDS_FOR_LARGE_STARTS", N)
    monkeypatch.setattr(sample, "draw_large", none_found)
    options = {"num_warmup": 0, "num_samples": 2, "progress": False}
    with pytest.warns(UserWarning, match=r"start from the prior: the Normal approx.* failed \(release: given no mode"):
        posterior = dpjax.sample(jax.random.key(1), MODEL, RELEASE, **options)
    assert np.all(np.isfinite(posterior.draws["mean"]))
    with pytest.raises(ValueError, match="given no mode"):
        dpjax.sample(jax.random.key(1), MODEL, RELEASE, initial="large-sample", **options)


def test_what_has_no_approximation_starts_from_the_prior(monkeypatch):
    monkeypatch.setattr(inputs, "RECORDS_FOR_LARGE_STARTS", 1)
    local = dpjax.LocalRelease(np.zeros(4), dpjax.Laplace(0.8), field="y")
    posterior = dpjax.sample(jax.random.key(1), MODEL, local, num_warmup=0, num_samples=2, progress=False)
    assert posterior.draws["mean"].shape == (4, 2)


@pytest.mark.x64
def test_starts_that_are_too_wide_are_noticed(few, monkeypatch):
    draw = starts.draw_large

    def draw_wide(*arguments):
        return {name: MEAN + 1.4 * (leaf - MEAN) for name, leaf in draw(*arguments).items()}

    monkeypatch.setattr(sample, "draw_large", draw_wide)
    assert np.max(np.abs(errors(first_draws()))) > 6


@pytest.mark.x64
def test_the_whitening_is_that_of_the_draws_and_stays(few):
    """Warm-up of this length would fit another one to its own draws."""
    options = {"initial": "large-sample", "num_samples": 2, "parameter_kernel": "hmc", "progress": False}
    tunings = [
        dpjax.sample(jax.random.key(2), MODEL, RELEASE, num_warmup=number, **options).tuning for number in (0, 64)
    ]
    np.testing.assert_array_equal(tunings[0].factor, tunings[1].factor)
    assert float(tunings[0].factor[0, 0]) == pytest.approx(1.5 * SD, rel=0.4)


def test_an_interrupted_run_continues_to_the_same_draws(few, tmp_path):
    """Its file holds the whitening, and the starts are not looked for again."""
    options = {"initial": "large-sample", "num_warmup": 16, "progress": False, "checkpoint": tmp_path / "run.npz"}
    first = dpjax.sample(jax.random.key(3), MODEL, RELEASE, num_samples=8, **options)
    again = dpjax.sample(jax.random.key(3), MODEL, RELEASE, num_samples=8, **options)
    np.testing.assert_array_equal(again.draws["mean"], first.draws["mean"])


@pytest.mark.slow
def test_starts_need_no_fine_quadrature(few, monkeypatch):
    """They may be a little off; draws of the approximation by the same points are refused."""
    monkeypatch.setattr(clt_inputs, "DEFAULT_POINTS", 8)
    model = MODEL._replace(statistic_moments=None)
    release = dpjax.Release([2_400.0], dpjax.Gaussian(5.0), dpjax.statistics.total("y", -1.0, 1.0), 4_000)
    with pytest.raises(ValueError, match="num_points: given 8 points"):
        dpjax.sample_clt(jax.random.key(4), model, release, num_warmup=60, num_samples=20, progress=False)
    options = {"num_warmup": 8, "num_samples": 8, "progress": False}
    posterior = dpjax.sample(jax.random.key(4), model, release, initial="large-sample", **options)
    assert np.all(np.isfinite(posterior.draws["mean"]))
