"""How often intervals of coefficients hold the true ones, where only privately fitted coefficients are published.

Parameters are drawn from the prior, records from the model, and coefficients fitted with objective perturbation. Beside
the posterior's intervals are those of taking the published coefficients for an ordinary fit.
"""

from collections.abc import Iterator
from time import process_time
from typing import Any

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import Timing

N = 500
EPSILON = 1.0
CLIP = 2.0
RELEASES, FEW = 100, 10
LEVEL = 0.9
TOLERANCE = 0.04
"""Of 200 intervals the share that holds varies by about 0.02."""

NORMAL_QUANTILE = 1.6449
PENALTY = np.array([0.0, 1.0])
SAMPLING = {"num_chains": 4, "num_warmup": 400, "num_samples": 400, "progress": False}


def logistic(n: int) -> None:
    """A response of 0 and 1 given one covariate."""
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * x))


def measure(quick: bool) -> Iterator[Row]:
    """One row: shares of 90 % intervals that hold the truth, over releases and both coefficients."""
    releases = min(RELEASES, FEW) if quick else RELEASES
    model = dpjax.from_numpyro(logistic, records=["x", "y"])
    loss = dpjax.statistics.Logistic(norm=CLIP)
    begin = process_time()
    held: dict[str, list[np.ndarray]] = {"posterior": [], "plug-in": []}
    for number in range(releases):
        rng = np.random.default_rng(number)
        truth = rng.normal(size=2)
        design, response = draw_records(rng, truth)
        scale = 2 * float(np.hypot(1.0, CLIP)) / EPSILON
        fitted = fit(design, response, draw_noise(rng, scale))
        release = dpjax.releases.objective_perturbation(
            fitted, loss, noise=dpjax.VectorLaplace(scale), regularization=PENALTY, n=N
        )
        posterior = dpjax.sample(jax.random.key(number), model, release, **SAMPLING)
        draws = posterior.draws["coef"].reshape(-1, 2)
        held["posterior"].append(holds(np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0), truth))
        error = NORMAL_QUANTILE * np.sqrt(np.diag(np.linalg.inv(curvature(design, fitted))))
        held["plug-in"].append(holds(np.array([fitted - error, fitted + error]), truth))
    seconds = (process_time() - begin) / releases
    figures = {name: float(np.mean(each)) for name, each in held.items()} | {"releases": float(releases)}
    timing = Timing(None, seconds, seconds, releases)
    target = ("posterior", ">=", LEVEL - TOLERANCE)
    yield Row("coverage", f"logistic regression, ε = {EPSILON:g}", N, 2, 4, timing, figures, target=target)


def draw_records(rng: np.random.Generator, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The clipped design [n, 2] and responses [n] of records drawn at the true coefficients."""
    covariate = rng.normal(size=N)
    response = rng.uniform(size=N) < 1 / (1 + np.exp(-truth[0] - truth[1] * covariate))
    return np.column_stack([np.ones(N), np.clip(covariate, -CLIP, CLIP)]), response.astype(float)


def draw_noise(rng: np.random.Generator, scale: float) -> np.ndarray:
    """A linear term [2] of density ∝ exp(-|b| / scale)."""
    direction = rng.normal(size=2)
    return rng.gamma(2.0, scale) * direction / np.linalg.norm(direction)


def fit(design: np.ndarray, response: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """The minimiser [2] of the perturbed objective, by Newton steps that are halved until they descend."""

    def objective(coefficients: np.ndarray) -> Any:
        predictor = design @ coefficients
        risk = np.sum(np.logaddexp(0, predictor) - response * predictor)
        return risk + PENALTY @ coefficients**2 / 2 + linear @ coefficients

    coefficients = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ coefficients))
        gradient = design.T @ (chance - response) + PENALTY * coefficients + linear
        step = np.linalg.solve(curvature(design, coefficients), gradient)
        while objective(coefficients - step) > objective(coefficients) and np.linalg.norm(step) > 1e-12:
            step /= 2
        coefficients = coefficients - step
    return coefficients


def curvature(design: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The Hessian [2, 2] of the objective."""
    chance = 1 / (1 + np.exp(-design @ coefficients))
    return (design.T * (chance * (1 - chance))) @ design + np.diag(PENALTY)


def holds(interval: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Whether intervals [2, k] hold the truth [k]."""
    return (interval[0] <= truth) & (truth <= interval[1])
