"""Programs whose time on an accelerator is measured and whose sequential steps tests count, as steps of one chain.

Counties, whose records are summed out, are a run of `dpjax.sample`: `counties_of` of the benchmarks.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import coupling, mixture, models, private, statistics
from problems.regression import make_model, published_release


class Case(NamedTuple):
    """A step ``(key, state) -> (state, info)`` of one chain with n records, and its start ``key -> state``."""

    n: int
    step: Callable[[jax.Array, Any], Any]
    start: Callable[[jax.Array], Any]


def sweep(model: dpjax.Model, release: dpjax.Release, imputation: Any = None) -> Case:
    """A sweep of data augmentation from a draw of the prior; the state has the tuning beside."""

    def start(key: jax.Array) -> Any:
        parameter_key, record_key, tuning_key = jax.random.split(key, 3)
        tuning = dpjax.data_augmentation.initial_tuning(tuning_key, model)
        algorithm = dpjax.gibbs(model, release, imputation, tuning=tuning)
        return algorithm.init(model.sample_prior(parameter_key), record_key), tuning

    def step(key: jax.Array, carried: Any) -> Any:
        state, tuning = carried
        state, info = dpjax.gibbs(model, release, imputation, tuning=tuning).step(key, state)
        return (state, tuning), info

    return Case(release.n, step, start)


def regression(imputation: Any = None) -> Case:
    """A sweep of the private regression, by default with every default."""
    return sweep(make_model(), published_release(1), imputation)


def pairs() -> Case:
    """A step of two coupled chains of the private regression."""
    release = published_release(1)
    kernel = coupling.coupled_gibbs(make_model(), release)

    def start(key: jax.Array) -> Any:
        first, second = jax.random.split(key)
        return kernel.join(kernel.sample_start(first), kernel.sample_start(second), jnp.array(False))

    return Case(release.n, kernel.step, start)


def dp_hmc(n: int = 100_000, noise: Any = private.noise.jax) -> Case:
    """An iteration of DP-HMC with ten leapfrog steps, for the mean of two coordinates."""
    target = private.target(
        lambda theta, record: -jnp.sum(jnp.square(record - theta)) / 2,
        lambda theta: -jnp.sum(jnp.square(theta)) / 2,
        np.random.default_rng(0).normal(size=(n, 2)),
        jnp.zeros(2),
    )
    bounds = {"gradient_bound": 1.0, "ratio_bound": 1.0, "tau_g": 1.0, "tau_l": 1.0}
    kernel = private.dp_hmc(target, noise, step_size=0.1, num_leapfrog=10, **bounds)
    return Case(n, kernel.step, lambda key: kernel.init(jnp.zeros(2)))


def neal5(n: int = 10_000) -> Case:
    """A sweep of a mixture of noisy values by Neal's algorithm 5."""
    values = np.random.default_rng(0).normal(size=n)
    base = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    options = {"component": base, "concentration": 1.0, "sampler": mixture.neal5(), "capacity": 32}
    algorithm = mixture.gibbs(values, dpjax.Laplace(0.6), **options)
    return Case(n, algorithm.step, partial(algorithm.init, jnp.zeros(n, int)))


def table(n: int = 10_000, cells: int = 252) -> Case:
    """A sweep of a table of noisy counts, whose records are counts, too."""
    model = models.categorical(concentration=np.ones(cells))
    release = dpjax.Release(
        np.full(cells, n // cells), dpjax.DiscreteGaussian(10.0), statistics.cells("cell", cells), n
    )
    return sweep(model, release, dpjax.counts(16))


STEPS: dict[str, Callable[[], Case]] = {
    "IMwG by default, with interweaving": regression,
    "SOMA, all n attempts": partial(regression, "soma"),
    "coupled pairs": pairs,
    "DP-HMC": dp_hmc,
    "mixture, neal5": neal5,
    "table of 252 cells, records as counts": table,
}
