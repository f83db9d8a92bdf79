"""`dpjax.sample_clt` on the private regression: its speed for any number of records, and exact chains beside it."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import summarize, time_call
from dpjax.diagnostics import ess_bulk, mcse_mean, mcse_sd, split_r_hat
from problems.regression import STATISTIC, make_mechanism, make_model, parameters, simulated_release

CHAINS = 4
WANTED = 100.0
EXACT_WANTED = {10_000: 100.0, 100_000: 8.0}
"""The effective draws per second wanted of exact chains, by the number of records."""
SIMULATED = 100_000
"""Records by which the covariance of a contribution is estimated."""


@dataclass(frozen=True)
class Size:
    """Numbers of records, of them those of exact chains, and steps of warm-up and draws of both."""

    records: tuple[int, ...] = (1_000, 100_000, 10_000_000, 100_000_000)
    exact_records: tuple[int, ...] = (1_000, 10_000, 100_000)
    steps: tuple[int, int] = (500, 2_000)
    exact_steps: tuple[int, int] = (200, 2_000)


SIZES = {
    "full": Size(),
    "quick": Size(records=(1_000, 100_000), exact_records=(1_000,)),
    "tiny": Size((), (100,), (50, 100), (50, 100)),
}


def measure(size: Size) -> Iterator[Row]:
    """A row for each number of records; programs are compiled for each."""
    model = make_model()
    for n in size.records:
        release = normal_release(model, n)
        options = {"num_chains": CHAINS, **steps_of(size.steps), "progress": False}
        timing, draws = time_call(lambda: draw(model, release, options), 1)  # noqa: B023, called at once
        effective = float(np.min(ess_bulk(draws)))
        figures = {
            "effective per s": effective / timing.best_seconds,
            "effective per draw": effective / (CHAINS * size.steps[1]),
            "R-hat": float(np.max(split_r_hat(draws))),
        }
        target = ("effective per s", ">=", WANTED)
        yield Row("large", "sample_clt", n, release.value.size, CHAINS, timing, figures, target=target)
    for n in size.exact_records:
        yield measure_exact(model, n, size)


def steps_of(steps: tuple[int, int]) -> dict[str, int]:
    """Steps of warm-up and draws as arguments."""
    return {"num_warmup": steps[0], "num_samples": steps[1]}


def measure_exact(model: dpjax.Model, n: int, size: Size) -> Row:
    """Exact chains that start under the normal law, and how far means and sds there are off: the worst of each.

    A run of one draw is the warm-up; the draws are what a full run takes more.
    """
    release = simulated_release(model, n)
    options = {"num_chains": CHAINS, "progress": False}
    chains = {"num_warmup": size.exact_steps[0], "initial": "large-sample"}

    def draw_exact(num_samples: int) -> np.ndarray:
        posterior = dpjax.sample(jax.random.key(2), model, release, num_samples=num_samples, **options, **chains)
        return posterior.draws["coef"].astype(float)

    warmup, _ = time_call(lambda: draw_exact(1), 1)
    began = time.process_time()
    exact = draw_exact(size.exact_steps[1])
    timing = summarize(warmup.compile_seconds, [time.process_time() - began - warmup.best_seconds])
    other = draw(model, release, {**steps_of(size.steps), **options}).astype(float)
    sd = exact.std(axis=(0, 1))
    effective = float(np.min(ess_bulk(exact)))
    figures = {
        "effective per s": effective / timing.best_seconds,
        "effective per draw": effective / (CHAINS * size.exact_steps[1]),
        "warm-up s": warmup.best_seconds,
        "R-hat": float(np.max(split_r_hat(exact))),
        "mean off, sd": float(np.max(np.abs(other.mean(axis=(0, 1)) - exact.mean(axis=(0, 1))) / sd)),
        "its error": float(np.max(np.hypot(mcse_mean(exact), mcse_mean(other)) / sd)),
        "sd off": float(np.max(np.abs(other.std(axis=(0, 1)) / sd - 1))),
        "error of that": float(np.max(np.hypot(mcse_sd(exact), mcse_sd(other)) / sd)),
    }
    wanted = EXACT_WANTED.get(n)
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
