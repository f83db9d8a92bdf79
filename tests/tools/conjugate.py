"""What tests of runs and of their results share: a conjugate model whose posterior is known, and runs of it.

y ~ N(mean, 1), mean ~ N(0, 2²); the sum of n = 20 records is released with N(0, 5²) noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.base import Model, NonCentred
from dpjax.mcmc import sample
from dpjax.mechanisms import Gaussian
from dpjax.posterior.posterior import Posterior
from dpjax.release import Release

N = 20
PRIOR_SD = 2.0
NOISE_SD = 5.0
RELEASED = 13.0


def sample_prior(key):
    return {"mean": PRIOR_SD * jax.random.normal(key)}


def log_prior(parameters):
    return jax.scipy.stats.norm.logpdf(parameters["mean"], 0.0, PRIOR_SD)


def sample_records(key, parameters, n):
    return {"y": parameters["mean"] + jax.random.normal(key, (n,))}


def log_density(parameters, records):
    return jax.scipy.stats.norm.logpdf(records["y"], parameters["mean"], 1.0)


def update(key, parameters, records):
    precision = 1 / PRIOR_SD**2 + len(records["y"])
    centre = jnp.sum(records["y"]) / precision
    return {"mean": centre + jax.random.normal(key) / jnp.sqrt(precision)}


def derived(parameters):
    return {"squared": parameters["mean"] ** 2}


def statistic(record):
    return record["y"][None]


NONCENTRED = NonCentred(
    noise=lambda key, parameters, records: {"y": records["y"] - parameters["mean"]},
    records=lambda parameters, noise: {"y": noise["y"] + parameters["mean"]},
)
MODEL = Model(sample_prior, log_prior, sample_records, log_density, update, NONCENTRED, derived=derived)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bounded:
    """Uniform noise on an interval: most statistics have zero density."""

    width: float

    def log_density(self, value, statistic):
        return jnp.sum(jnp.where(jnp.abs(value - statistic) < self.width, -jnp.log(2 * self.width), -jnp.inf))

    def sample(self, key, statistic):
        return statistic + self.width * jax.random.uniform(key, statistic.shape, minval=-1.0)


def release_of(value: float = RELEASED, n: int = N) -> Release:
    return Release(jnp.array([value]), Gaussian(NOISE_SD), statistic, n=n)


def short_run(model: Model, release: Release, seed: int = 1, **options: Any) -> Posterior:
    settings = {"num_warmup": 100, "num_samples": 60, "progress": False, **options}
    return sample(jax.random.key(seed), model, release, **settings)


def all_equal(one: Posterior, other: Posterior) -> None:
    """Raise unless all draws, reports and states agree to the last bit."""
    for name in ("draws", "info", "collected", "final_states", "tuning"):
        chex.assert_trees_all_equal(getattr(one, name), getattr(other, name))


class Exact(NamedTuple):
    """The known posterior, Normal, and the log marginal likelihood."""

    mean: float
    sd: float
    log_marginal_likelihood: float


@cache
def exact_posterior() -> Exact:
    """The released sum is N(n mean, n + noise²) given the mean."""
    noise = N + NOISE_SD**2
    precision = 1 / PRIOR_SD**2 + N**2 / noise
    total = N**2 * PRIOR_SD**2 + noise
    log_marginal = -0.5 * np.log(2 * np.pi * total) - RELEASED**2 / (2 * total)
    return Exact(N * RELEASED / noise / precision, precision**-0.5, log_marginal)


@cache
def long_run() -> Posterior:
    """One longer run, for everything that only looks at it."""
    return short_run(MODEL, release_of(), num_warmup=200, num_samples=1_000)


@pytest.fixture(scope="session")
def exact() -> Exact:
    return exact_posterior()


@pytest.fixture(scope="session")
def model() -> Model:
    return MODEL


@pytest.fixture(scope="session")
def release() -> Release:
    return release_of()


@pytest.fixture(scope="session")
def make_release() -> Callable[..., Release]:
    return release_of


@pytest.fixture(scope="session")
def bounded() -> type[Bounded]:
    return Bounded


@pytest.fixture(scope="session")
def run() -> Callable[..., Posterior]:
    return short_run


@pytest.fixture(scope="session")
def assert_same() -> Callable[[Posterior, Posterior], None]:
    return all_equal


@pytest.fixture(scope="session")
def posterior() -> Posterior:
    return long_run()
