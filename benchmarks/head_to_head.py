"""Intervals of published methods and of dpjax, from releases of the same kind, truth and budget.

Repro samples (Awan and Wang 2023, arXiv 2303.05328), in their logistic regression: the covariate is x = 2 z - 1 with z
from a Beta distribution. Objective perturbation with noise of the maximum norm takes nine tenths of ε, and noisy
moments of z the rest. Their 95 % intervals of the slope held it in 0.994 of repetitions, with a mean width of 0.97, in
4,970 s per data set. The settings of the mechanism follow Awan and Slavkovic (2021), with q = 0.85.
"""

from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.coverage import chances, fit_perturbed, holds
from benchmarks.rows import Row
from benchmarks.timing import timing_since
from dpjax.diagnostics import split_r_hat

N = 1_000
EPSILON, SHARE_OF_FIT, Q = 1.0, 0.9, 0.85
COEFFICIENTS, SHAPES = np.array([0.5, 2.0]), (0.5, 0.5)
LEVEL = 0.95

RELEASES, FEW = 8, 2
CHAINS, WARMUP, SAMPLES = 4, 500, 1_000

FIT_SCALE = 2 / (Q * SHARE_OF_FIT * EPSILON)
"""Each number of the gradient of one record differs by at most 2 from that of another."""

MOMENTS_SCALE = 1 / ((1 - SHARE_OF_FIT) * EPSILON)

PENALTY = 0.5 / np.expm1((1 - Q) * SHARE_OF_FIT * EPSILON)
"""A Hessian of one record has no eigenvalue above 1/2."""


class Published(NamedTuple):
    """The published coefficients [2] and noisy sums [2] of z and z²."""

    coefficients: np.ndarray
    moments: np.ndarray


def measure(quick: bool) -> Iterator[Row]:
    """The row of the logistic regression."""
    number = FEW if quick else RELEASES
    published = [simulate(np.random.default_rng(seed)) for seed in range(number)]
    began = process_time()
    batch = dpjax.sample_batch(
        jax.random.key(1),
        make_model(),
        [release_of(one) for one in published],
        num_chains=CHAINS,
        num_warmup=WARMUP,
        num_samples=SAMPLES,
        progress=False,
    )
    timing = timing_since(began)
    slopes = np.asarray(batch.draws["coef"])[..., 1]
    intervals = np.quantile(slopes.reshape(number, -1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    figures = {
        "coverage": float(np.mean(holds(intervals, np.full(number, COEFFICIENTS[1])))),
        "width": float(np.mean(intervals[1] - intervals[0])),
        "releases": float(number),
        "median R-hat": float(np.median([split_r_hat(one) for one in slopes])),
        "s per release": timing.best_seconds / number,
    }
    yield Row("head_to_head", "logistic regression, slope", N, len(COEFFICIENTS), CHAINS, timing, figures)


def make_model() -> dpjax.Model:
    """A response of 0 and 1 given a covariate from a Beta distribution; priors are wide against the release."""

    def logistic(n: int) -> None:
        coef = numpyro.sample("coef", dist.Normal(0.0, 3.0).expand([2]).to_event(1))
        shapes = numpyro.sample("shapes", dist.LogNormal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("records", n):
            z = numpyro.sample("z", dist.Beta(shapes[0], shapes[1]))
            numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * (2 * z - 1)))

    return dpjax.from_numpyro(logistic, records=["z", "y"])


def loss(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    """Of logistic regression on x = 2 z - 1."""
    predictor = coefficients[0] + coefficients[1] * (2 * record["z"] - 1)
    return jnp.logaddexp(0.0, predictor) - record["y"] * predictor


def moments(record: dict[str, jax.Array]) -> jax.Array:
    """z and z²."""
    return jnp.stack([record["z"], record["z"] ** 2])


def release_of(published: Published) -> Any:
    """The coefficients and the moments, of the same people."""
    fitted = dpjax.releases.objective_perturbation(
        published.coefficients, loss, noise=dpjax.mechanisms.KNormLinf(FIT_SCALE), regularization=PENALTY, n=N
    )
    summed = dpjax.Release(published.moments, dpjax.mechanisms.KNormLinf(MOMENTS_SCALE), moments, N)
    return dpjax.joint(fitted, summed)


def simulate(rng: np.random.Generator) -> Published:
    """What is published of new records at the true parameters."""
    z = rng.beta(*SHAPES, size=N)
    design = np.column_stack([np.ones(N), 2 * z - 1])
    response = (rng.uniform(size=N) < chances(design, COEFFICIENTS)).astype(float)
    fitted = fit_perturbed(design, response, np.full(2, PENALTY), draw_noise(rng, FIT_SCALE))
    return Published(fitted, np.array([z.sum(), (z**2).sum()]) + draw_noise(rng, MOMENTS_SCALE))


def draw_noise(rng: np.random.Generator, scale: float) -> np.ndarray:
    """A vector [2] of density ∝ exp(-max |b| / scale): a Gamma radius times a uniform point of the square."""
    return rng.gamma(3, scale) * rng.uniform(-1, 1, size=2)
