"""How often intervals of coefficients hold the true ones, where only privately fitted coefficients are published.

Parameters are drawn from the prior, records from the model, and coefficients fitted with objective perturbation. Beside
the posterior's intervals are those of taking the published coefficients for an ordinary fit. A second row says what
effective draws cost, beside those given noisy sums of the same ε.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from time import process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import time_call, timing_since
from dpjax.diagnostics import ess_bulk, split_r_hat

EPSILON = 1.0
LEVEL = 0.9
TOLERANCE = 0.04
"""Of 200 intervals the share that holds varies by about 0.02."""

NORMAL_QUANTILE = 1.6449


@dataclass(frozen=True)
class Setting:
    """One size of the experiment.

    n, d
        Records and coefficients, with the intercept.
    releases
        How many are simulated.
    chains, steps
        Chains of each release, and their steps of warm-up and draws.
    """

    n: int
    d: int
    releases: int
    chains: int
    steps: tuple[int, int]

    @property
    def clip(self) -> float:
        """The norm to which covariates are clipped: beyond most of them."""
        return float(np.sqrt(self.d - 1)) + 1

    @property
    def scale(self) -> float:
        """That of the linear term, whose density is ∝ exp(-|b| / scale): gradients of two records differ so much."""
        return 2 * float(np.hypot(1.0, self.clip)) / EPSILON

    @property
    def penalty(self) -> np.ndarray:
        """One for each coefficient but the intercept [d]."""
        return np.append(0.0, np.ones(self.d - 1))

    @property
    def loss(self) -> Any:
        """Of logistic regression."""
        return dpjax.statistics.Logistic(norm=self.clip)


SETTINGS = (
    Setting(500, 2, 200, 2, (300, 300)),
    Setting(500, 5, 200, 2, (300, 300)),
    Setting(500, 10, 200, 2, (250, 250)),
    Setting(10_000, 2, 200, 2, (150, 150)),
    Setting(10_000, 5, 200, 2, (300, 150)),
    Setting(10_000, 10, 200, 2, (300, 150)),
)
FEW = 4
"""Releases of a quick run, and those that are timed."""

SIZES = {
    "full": SETTINGS,
    "quick": tuple(replace(setting, releases=FEW) for setting in SETTINGS),
    "tiny": (Setting(20, 2, 2, 2, (20, 20)),),
}


class Fit(NamedTuple):
    """One simulated fit.

    Attributes
    ----------
    truth
        The coefficients [d] of the records.
    coefficients
        Those that are published [d].
    error
        Their standard errors [d] in an ordinary fit.
    """

    truth: np.ndarray
    coefficients: np.ndarray
    error: np.ndarray


def measure(settings: tuple[Setting, ...]) -> Iterator[Row]:
    """Two rows for each setting: shares of 90 % intervals that hold the truth, and the cost of effective draws."""
    for setting in settings:
        yield measure_coverage(setting)
        yield measure_cost(setting)


def measure_coverage(setting: Setting) -> Row:
    """Shares of intervals that hold the truth, over releases and coefficients."""
    fits = [simulate(np.random.default_rng(number), setting) for number in range(setting.releases)]
    begin = process_time()
    draws = sample(setting, [release_of(setting, fit) for fit in fits])
    timing = timing_since(begin)
    held, plain = [], []
    for fit, drawn in zip(fits, draws, strict=True):
        interval = np.quantile(drawn.reshape(-1, setting.d), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        held.append(holds(interval, fit.truth))
        margin = NORMAL_QUANTILE * fit.error
        plain.append(holds(np.array([fit.coefficients - margin, fit.coefficients + margin]), fit.truth))
    figures = {
        "posterior": float(np.mean(held)),
        "plug-in": float(np.mean(plain)),
        "standard error": float(np.std(np.mean(held, axis=1)) / np.sqrt(setting.releases)),
        "releases": float(setting.releases),
        "median R-hat": float(np.median([np.max(split_r_hat(drawn)) for drawn in draws])),
        "s per release": timing.best_seconds / setting.releases,
    }
    target = ("posterior", ">=", LEVEL - TOLERANCE)
    return Row("coverage", "intervals", setting.n, setting.d, setting.chains, timing, figures, target=target)


def measure_cost(setting: Setting) -> Row:
    """Effective draws per CPU second given fitted coefficients, and given noisy sums."""
    fits = [simulate(np.random.default_rng(number), setting) for number in range(min(FEW, setting.releases))]
    fitted = [release_of(setting, fit) for fit in fits]
    summed = [noisy_sums(np.random.default_rng(number), setting) for number in range(len(fits))]
    timing, draws = time_call(lambda: sample(setting, fitted), repeats=1)
    sums_timing, sums_draws = time_call(lambda: sample(setting, summed), repeats=1)
    figures = {
        "effective per s": effective(draws) / timing.best_seconds,
        "given noisy sums": effective(sums_draws) / sums_timing.best_seconds,
    }
    return Row("coverage", "effective draws", setting.n, setting.d, setting.chains, timing, figures)


def effective(draws: np.ndarray) -> float:
    """Effective draws of the worst coefficient, added up over releases."""
    return float(sum(np.min(ess_bulk(drawn)) for drawn in draws))


@cache
def make_model(d: int) -> dpjax.Model:
    """A response of 0 and 1 given d − 1 covariates, with an intercept."""

    def logistic(n: int) -> None:
        coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([d]).to_event(1))
        with numpyro.plate("records", n):
            x = numpyro.sample("x", dist.Normal(0.0, 1.0).expand([d - 1]).to_event(1))
            numpyro.sample("y", dist.Bernoulli(logits=coef[0] + jnp.sum(coef[1:] * x, axis=-1)))

    return dpjax.from_numpyro(logistic, records=["x", "y"])


def sample(setting: Setting, releases: list[dpjax.Release]) -> np.ndarray:
    """Draws [release, chain, draw, d] of the coefficients."""
    warmup, number = setting.steps
    batch = dpjax.sample_batch(
        jax.random.key(1),
        make_model(setting.d),
        releases,
        num_chains=setting.chains,
        num_warmup=warmup,
        num_samples=number,
        progress=False,
    )
    return np.asarray(batch.draws["coef"])


def release_of(setting: Setting, fit: Fit) -> dpjax.Release:
    """The release of fitted coefficients."""
    return dpjax.releases.objective_perturbation(
        fit.coefficients,
        setting.loss,
        noise=dpjax.mechanisms.VectorLaplace(setting.scale),
        regularization=setting.penalty,
        n=setting.n,
    )


def noisy_sums(rng: np.random.Generator, setting: Setting) -> dpjax.Release:
    """Sums of clipped covariates where the response is 1, in place of a fit: of the same noise and sensitivity."""
    _, design, response = draw_records(rng, setting)
    value = design.T @ response + draw_noise(rng, setting)
    return dpjax.Release(value, dpjax.mechanisms.VectorLaplace(setting.scale), make_statistic(setting.clip), setting.n)


@cache
def make_statistic(clip: float) -> Any:
    """The record's response times one and its clipped covariates."""

    def statistic(record: dict[str, jax.Array]) -> jax.Array:
        x, y = record["x"], record["y"].astype(record["x"].dtype)
        shrunk = x * jnp.minimum(1.0, clip / jnp.sqrt(jnp.sum(x**2)))
        return y * jnp.append(jnp.ones_like(y), shrunk)

    return statistic


def draw_records(rng: np.random.Generator, setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True coefficients [d] from the prior, and the clipped design [n, d] and responses [n] of their records."""
    truth = rng.normal(size=setting.d)
    covariates = rng.normal(size=(setting.n, setting.d - 1))
    response = rng.uniform(size=setting.n) < chances(np.column_stack([np.ones(setting.n), covariates]), truth)
    shrink = np.minimum(1, setting.clip / np.linalg.norm(covariates, axis=1))
    return truth, np.column_stack([np.ones(setting.n), covariates * shrink[:, None]]), response.astype(float)


def chances(design: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The probabilities [n] of a response of 1."""
    return 1 / (1 + np.exp(-design @ coefficients))


def draw_noise(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    """A linear term [d] of density ∝ exp(-|b| / scale)."""
    direction = rng.normal(size=setting.d)
    return rng.gamma(setting.d, setting.scale) * direction / np.linalg.norm(direction)


def simulate(rng: np.random.Generator, setting: Setting) -> Fit:
    """A fit of records from the model at coefficients from the prior."""
    truth, design, response = draw_records(rng, setting)
    fitted = fit_perturbed(design, response, setting.penalty, draw_noise(rng, setting))
    error = np.sqrt(np.diag(np.linalg.inv(curvature(design, setting.penalty, fitted))))
    return Fit(truth, fitted, error)


def fit_perturbed(design: np.ndarray, response: np.ndarray, penalty: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """The minimiser [d] of the perturbed objective, by Newton steps that are halved until they descend."""

    def objective(coefficients: np.ndarray) -> Any:
        predictor = design @ coefficients
        risk = np.sum(np.logaddexp(0, predictor) - response * predictor)
        return risk + penalty @ coefficients**2 / 2 + linear @ coefficients

    coefficients = np.zeros(design.shape[1])
    for _ in range(100):
        gradient = design.T @ (chances(design, coefficients) - response) + penalty * coefficients + linear
        step = np.linalg.solve(curvature(design, penalty, coefficients), gradient)
        while objective(coefficients - step) > objective(coefficients) and np.linalg.norm(step) > 1e-12:
            step /= 2
        coefficients = coefficients - step
    return coefficients


def curvature(design: np.ndarray, penalty: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The Hessian [d, d] of the objective."""
    chance = chances(design, coefficients)
    return (design.T * (chance * (1 - chance))) @ design + np.diag(penalty)


def holds(interval: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Whether intervals [2, d] hold the truth [d]."""
    return (interval[0] <= truth) & (truth <= interval[1])
