"""Posteriors whose law is known, and draws that are wrong by construction."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.base import Model
from dpjax.posterior.posterior import Posterior
from dpjax.release import PrivateRelease

SHAPE = (4, 2_000)


def posterior_of(model: Model, release: PrivateRelease, draws: dict[str, Any], size: int = SHAPE[0]) -> Posterior:
    """Draws [chain * draw, ...] in the form of a posterior that no chain has made."""
    chains = {name: np.asarray(leaf).reshape(size, -1, *np.shape(leaf)[1:]) for name, leaf in draws.items()}
    rate = np.ones(next(iter(chains.values())).shape[:2])
    nothing: Any = None
    return Posterior(chains, {"acceptance_rate": rate}, None, False, model, release, nothing, nothing, nothing)


def normal_draws(mean: float, sd: float, seed: int = 0) -> dict[str, Any]:
    return {"mean": np.random.default_rng(seed).normal(mean, sd, np.prod(SHAPE))}


N, SIGMA, VALUE = 20, 4.0, 14.0
NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
SUM = dpjax.Release([VALUE], dpjax.Gaussian(SIGMA), statistics.total("y"), N)


def conjugate(prior_sd: float = 1.0, sigma: float = SIGMA) -> tuple[float, float]:
    """Mean and sd of the mean's posterior given the noisy sum."""
    variance = 1 / (prior_sd**-2 + N**2 / (N + sigma**2))
    return variance * N * VALUE / (N + sigma**2), variance**0.5


MEAN, SD = conjugate()

CLAMPED = dpjax.Release([11.0], dpjax.Laplace(1.0), statistics.total("y", -1.0, 1.0), N)


def weighted(model: Model, release: PrivateRelease) -> Posterior:
    """By importance sampling, which shares no code with the chains."""
    sample = dpjax.importance_sample(jax.random.key(11), model, release, 200_000)
    return posterior_of(model, release, sample.resample(jax.random.key(12), 2_000))


def clamped() -> Posterior:
    return weighted(NORMAL, CLAMPED)


def ignoring_the_clamp() -> Posterior:
    """The posterior given Laplace noise on a sum of records that is thought to be unclamped, on a grid."""
    grid = np.linspace(-2, 3, 2_001)
    sums = np.linspace(-40, 60, 2_001)
    noise = stats.laplace.pdf(float(CLAMPED.value[0]), sums, 1.0)
    density = stats.norm.pdf(grid) * (stats.norm.pdf(sums[None], N * grid[:, None], N**0.5) @ noise)
    return posterior_of(NORMAL, CLAMPED, {"mean": on_grid(grid, density)})


def on_grid(grid: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Independent draws by the inverse of the distribution function."""
    ends = np.cumsum(density)
    return np.interp(np.random.default_rng(3).uniform(size=np.prod(SHAPE)), ends / ends[-1], grid)


FEW, TOP, EPSILON = 10, 5.0, 10.0
RATE = models.exponential(models.GammaPrior(5.0, 1.0))
SHORT_SUM = dpjax.Release([10.0], dpjax.Laplace(TOP / EPSILON), statistics.total("y", 0.0, TOP), FEW)


def normal_sum() -> Posterior:
    """The rate's posterior as if the clamped sum were Normal, on a grid."""
    grid = np.linspace(0.01, 8, 4_000)
    first = (1 - np.exp(-grid * TOP)) / grid
    second = 2 / grid**2 - 2 * np.exp(-grid * TOP) * (TOP / grid + 1 / grid**2)
    scale = np.sqrt(FEW * (second - first**2))
    sums = np.linspace(-20, 60, 2_001)
    noise = stats.laplace.pdf(float(SHORT_SUM.value[0]), sums, TOP / EPSILON)
    density = grid**4 * np.exp(-grid) * (stats.norm.pdf(sums[None], FEW * first[:, None], scale[:, None]) @ noise)
    return posterior_of(RATE, SHORT_SUM, {"rate": on_grid(grid, density)})


def few_exponentials() -> Posterior:
    return weighted(RATE, SHORT_SUM)


def table() -> Posterior:
    """Counts stand for the records, with the shares integrated out."""
    cells = dpjax.Release([31.0, 12.0, 5.0], dpjax.DiscreteLaplace(2.0), statistics.cells("cell", 3), 50)
    return weighted(models.categorical(jnp.ones(3)), cells)


def local() -> Posterior:
    """Each record has Gaussian noise of its own: a Normal posterior."""
    values = np.linspace(-2.0, 3.0, N)
    precision = 1 + N / 5.0
    release = dpjax.LocalRelease(values, dpjax.Gaussian(2.0), "y")
    return posterior_of(NORMAL, release, normal_draws(values.sum() / 5.0 / precision, precision**-0.5))


def summed(mean: float, sd: float) -> Callable[[], Posterior]:
    return lambda: posterior_of(NORMAL, SUM, normal_draws(mean, sd))


RIGHT: dict[str, Callable[[], Posterior]] = {
    "a noisy sum": summed(MEAN, SD),
    "a clamped sum": clamped,
    "few exponential records": few_exponentials,
    "a table": table,
    "noise of each record": local,
}

WRONG: dict[str, Callable[[], Posterior]] = {
    "noise is ignored": summed(*conjugate(sigma=0.0)),
    "another prior": summed(*conjugate(prior_sd=0.25)),
    "another epsilon": summed(*conjugate(sigma=2 * SIGMA)),
    "a mean that is off": summed(MEAN + 0.3 * SD, SD),
    "an interval that is narrow": summed(MEAN, 0.8 * SD),
    "the clamp is ignored": ignoring_the_clamp,
    "a sum of few records as if Normal": normal_sum,
}
