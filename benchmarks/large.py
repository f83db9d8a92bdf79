"""`dpjax.sample_clt` on the private regression: its speed for any number of records, and exact chains beside it."""

import time
import warnings
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import summarize, time_call
from dpjax.diagnostics import ess_bulk, mcse_mean, mcse_sd, split_r_hat
from problems.regression import STATISTIC, make_mechanism, make_model, parameters, simulated_release

SIZES = (1_000, 100_000, 10_000_000, 100_000_000)
CHAINS = 4
WARMUP, SAMPLES = 500, 2_000
WANTED = 100.0
EXACT_SIZES, EXACT_WARMUP, EXACT_SAMPLES = {1_000: None, 10_000: 100.0, 100_000: 8.0}, 200, 2_000
"""Numbers of records, and the effective draws per second wanted of exact chains."""
SIMULATED = 100_000
"""Records by which the covariance of a contribution is estimated."""


def measure(quick: bool) -> Iterator[Row]:
    """A row for each number of records; programs are compiled for each."""
    model = make_model()
    for n in SIZES[:2] if quick else SIZES:
        release = normal_release(model, n)
        options = {"num_chains": CHAINS, "num_warmup": WARMUP, "num_samples": SAMPLES, "progress": False}
        timing, draws = time_call(lambda: draw(model, release, options), 1)  # noqa: B023, called at once
        effective = float(np.min(ess_bulk(draws)))
        figures = {
            "effective per s": effective / timing.best_seconds,
            "effective per draw": effective / (CHAINS * SAMPLES),
            "R-hat": float(np.max(split_r_hat(draws))),
        }
        target = ("effective per s", ">=", WANTED)
        yield Row("large", "sample_clt", n, release.value.size, CHAINS, timing, figures, target=target)
    for n, wanted in list(EXACT_SIZES.items())[: 1 if quick else None]:
        yield measure_exact(model, n, wanted)


def measure_exact(model: dpjax.Model, n: int, wanted: float | None) -> Row:
    """Exact chains that start under the normal law, and how far means and sds there are off: the worst of each.

    A run of one draw is the warm-up; the draws are what a full run takes more.
    """
    release = simulated_release(model, n)
    options = {"num_chains": CHAINS, "progress": False}
    chains = {"num_warmup": EXACT_WARMUP, "initial": "large-sample"}

    def draw_exact(num_samples: int) -> np.ndarray:
        posterior = dpjax.sample(jax.random.key(2), model, release, num_samples=num_samples, **options, **chains)
        return posterior.draws["coef"].astype(float)

    warmup, _ = time_call(lambda: draw_exact(1), 1)
    began = time.process_time()
    exact = draw_exact(EXACT_SAMPLES)
    timing = summarize(warmup.compile_seconds, [time.process_time() - began - warmup.best_seconds])
    other = draw(model, release, {"num_warmup": WARMUP, "num_samples": SAMPLES, **options}).astype(float)
    sd = exact.std(axis=(0, 1))
    effective = float(np.min(ess_bulk(exact)))
    figures = {
        "effective per s": effective / timing.best_seconds,
        "effective per draw": effective / (CHAINS * EXACT_SAMPLES),
        "warm-up s": warmup.best_seconds,
        "R-hat": float(np.max(split_r_hat(exact))),
        "mean off, sd": float(np.max(np.abs(other.mean(axis=(0, 1)) - exact.mean(axis=(0, 1))) / sd)),
        "its error": float(np.max(np.hypot(mcse_mean(exact), mcse_mean(other)) / sd)),
        "sd off": float(np.max(np.abs(other.std(axis=(0, 1)) / sd - 1))),
        "error of that": float(np.max(np.hypot(mcse_sd(exact), mcse_sd(other)) / sd)),
    }
    target = None if wanted is None else ("effective per s", ">=", wanted)
    return Row("large", "exact chains", n, release.value.size, CHAINS, timing, figures, target=target)


def draw(model: dpjax.Model, release: dpjax.Release, options: dict) -> np.ndarray:
    """The coefficients [chain, draw, 3]."""
    return dpjax.sample_clt(jax.random.key(1), model, release, **options).draws["coef"]


def normal_release(model: dpjax.Model, n: int) -> dpjax.Release:
    """A release at ε = 1 of a Normal sum with the moments of n records at the true coefficients; none is drawn."""
    record_key, sum_key, noise_key = jax.random.split(jax.random.key(n), 3)
    records = model.sample_records(record_key, parameters(), SIMULATED)
    covariance = np.cov(np.asarray(jax.vmap(STATISTIC)(records), float), rowvar=False)
    mean = np.asarray(model.statistic_moments(parameters(), STATISTIC)[0], float)
    normals = np.asarray(jax.random.normal(sum_key, mean.shape), float)
    total = n * mean + np.sqrt(n) * np.linalg.cholesky(covariance) @ normals
    mechanism = make_mechanism(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpjax.release.PrecisionWarning)
        return dpjax.Release(mechanism.sample(noise_key, jnp.asarray(total, float)), mechanism, STATISTIC, n)
