"""Every public kernel as a program ``(key, state) -> (state, info)`` of tiny shapes, and its start ``key -> state``."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import dpjax
from dpjax import coupling, exchangeable, mixture, models, private, statistics
from dpjax._util.jit import in_full_precision
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.parameters.coordinates import build_log_density
from dpjax.data_augmentation.plan import Noise
from dpjax.data_augmentation.problem import augment, with_noise
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.models.simulation import Position, init_state
from dpjax.models.unconstrained import to_vector
from dpjax.private import noise
from dpjax.smc.sampler import run_island

N = 8


class Program(NamedTuple):
    """A step, and the function that starts it; only the shapes of the start are used."""

    step: Callable[[jax.Array, Any], Any]
    start: Callable[[jax.Array], Any]


NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))
REGRESSION = models.linear_regression(
    covariate_mean=[0.5],
    covariate_cov=[[1.0]],
    noise_variance=models.NormalInverseGammaPrior(np.zeros(2), np.eye(2), 4.0, 3.0),
)
LEARNED = models.linear_regression(
    covariate_prior=models.NormalInverseWishartPrior([0.0], 1.0, 4.0, [[1.0]]),
    coef_prior=models.NormalPrior(0.0, 2.0),
    noise_variance=1.0,
)
TABLE = models.categorical(concentration=[2.0, 1.0, 3.0])
BAYES = models.naive_bayes([2.0, 1.0], np.full((2, 2, 2), 1.5))
DIRICHLET = models.dirichlet(shape_prior=models.GammaPrior(3.0, 1.0), dim=2)
BETA = models.beta(models.GammaPrior(3.0, 1.0), models.GammaPrior(3.0, 1.0))
EXPONENTIAL = models.exponential(models.GammaPrior(3.0, 1.0))

TOTAL = dpjax.Release(jnp.zeros(1), dpjax.Laplace(1.0), statistics.total("y", -2.0, 2.0), N)
GRAM = dpjax.Release(jnp.zeros(5), dpjax.Gaussian(0.7), statistics.gram(lower=[-3], upper=[3], response=(-3, 3)), N)
CELLS = dpjax.Release(jnp.zeros(3), dpjax.DiscreteGaussian(1.0), statistics.cells("cell", 3), N)
CLASSES = dpjax.Release(jnp.zeros(8), dpjax.Laplace(1.0), statistics.class_features(2, 2, 2), N)
LOGS = dpjax.Release(jnp.zeros(2), dpjax.Gaussian(1.5), statistics.log_composition("share", 0.05, dimension=2), N)
UNKNOWN = dpjax.Release(
    jnp.zeros(1), dpjax.Laplace(1.0), TOTAL.statistic, dpjax.UnknownCount(models.UniformCount(2, 9))
)
KNOWN_TOTALS = dpjax.joint(
    CELLS, dpjax.Release(jnp.array([3.0, 5.0]), dpjax.Exact(), statistics.grouped("cell", [0, 1, 1]), N)
)
NOISY = dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(1.0), field="y")
UNKNOWN_CELLS = dpjax.Release(jnp.zeros(3), dpjax.Laplace(1.0), CELLS.statistic, UNKNOWN.n)
NOISY_COUNTS = dpjax.LocalRelease(np.zeros(N, int), dpjax.DiscreteLaplace(1.0), field="count")
ANSWERS = dpjax.LocalRelease(np.zeros(N, int), dpjax.RandomizedResponse(keep=0.7, num_categories=3), field="cell")


def sweep(model: dpjax.Model, release: Any, imputation: Any = None, noise: Noise = "held", **options: Any) -> Program:
    """A sweep of `dpjax.gibbs`."""
    problem = with_noise(augment(model, release, imputation, **options), noise)
    model, release = problem.model, problem.release
    kernel = build_kernel(model, release, problem.plan)

    def start(key: jax.Array) -> Any:
        parameter_key, record_key = jax.random.split(key)
        parameters = model.sample_prior(parameter_key)
        records = model.sample_records(record_key, parameters, release.n)
        return init_state(release, Position(parameters, records)), initial_tuning(jax.random.key(0), model)

    def step(key: jax.Array, carried: Any) -> Any:
        state, tuning = carried
        return kernel(key, state, tuning)

    return Program(step, start)


def pair(kernel: coupling.CoupledKernel) -> Program:
    """A step of two coupled chains."""

    def start(key: jax.Array) -> Any:
        first_key, second_key = jax.random.split(key)
        return kernel.join(kernel.sample_start(first_key), kernel.sample_start(second_key), jnp.array(False))

    return Program(kernel.step, start)


def free(build: Callable, summed: bool = False) -> Program:
    """A sweep over exchangeable records without a release."""
    algorithm = build(
        lambda numbers: -jnp.sum(jnp.square(numbers)),
        lambda key: jax.random.normal(key),
        lambda record: -jnp.square(record) / 2,
        statistic=jnp.atleast_1d if summed else None,
    )
    return Program(algorithm.step, lambda key: algorithm.init(jax.random.normal(key, (N,))))


def clusters(sampler: Any, values: Any, channel: Any, component: Any) -> Program:
    """A sweep of a mixture of three records."""
    where = (values,) if isinstance(values, dpjax.Release) else (values, channel)
    algorithm = mixture.gibbs(*where, component=component, concentration=0.8, sampler=sampler, capacity=10)
    return Program(algorithm.step, lambda key: algorithm.init(jnp.zeros(3, int), key))


def holder(build: Callable, *noise: Any, **options: Any) -> Program:
    """An iteration of the data holder's chain."""
    target = private.target(
        lambda theta, record: jnp.dot(record, theta),
        lambda theta: -0.5 * jnp.dot(theta, theta),
        jnp.asarray(np.linspace(-1, 1, 14).reshape(7, 2), float),
        jnp.zeros(2),
        chunk_size=3,
    )
    kernel = build(target, *noise, **options)
    return Program(kernel.step, lambda key: kernel.init(jnp.zeros(2)))


def large(model: dpjax.Model, release: dpjax.Release) -> Program:
    """A step of `dpjax.sample_clt`."""
    likelihood = dpjax.normal_sum(16).sum_out(model, release)
    whole, tuning = likelihood.extend(model), initial_tuning(jax.random.key(0), likelihood.extend(model))
    unravel = to_vector(whole, whole.sample_prior(jax.random.key(0)))[1]
    target = build_log_density(whole, tuning, unravel, likelihood.build())
    algorithm = blackjax.nuts(target, 0.1, jnp.eye(tuning.location.size))
    return Program(in_full_precision(algorithm.step), lambda key: algorithm.init(tuning.location))


def tempered(model: dpjax.Model, release: dpjax.Release) -> Program:
    """A run of `dpjax.sample_smc`, whose state is the release."""
    plan = augment(model, release).plan
    run = partial(run_island, model, plan, 4, 1)
    return Program(lambda key, release: run(key, release, jnp.array(0.9)), lambda key: release)


def number_of_visits() -> dpjax.Model:
    """Whole numbers without a bound, which only a NumPyro model has."""

    def visits(n: int) -> None:
        rate = numpyro.sample("rate", dist.Gamma(3.0, 1.0))
        with numpyro.plate("people", n):
            numpyro.sample("count", dist.Poisson(rate))

    return dpjax.from_numpyro(visits, records=["count"])


VALUES = np.array([-1.4, 0.6, 2.0])
PAIRS = np.array([[-1.4, 0.2], [0.6, 0.1], [2.0, -0.3]])
SHARES = np.array([0.2, 0.5, 0.9])
GAUSSIAN = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
TRUNCATED = mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0)
VECTORS = mixture.NormalInverseWishart(np.zeros(2), 0.5, 5.0, np.eye(2))
BETAS = mixture.GammaShapes(2.0, 0.5)
BINS = statistics.histogram("y", [-6.0, -0.6, 0.9, 6.0])
COUNTED = dpjax.Release([1.9, -0.4, 1.2], dpjax.Laplace(0.8), BINS, 3)
LAPLACE = dpjax.Laplace(0.6)

NOISY_QUERIES = {"gradient_bound": 1.0, "ratio_bound": 1.0, "tau_g": 1.0, "tau_l": 1.0}
LEAPFROG = {"step_size": 0.1, "num_leapfrog": 2}
SAMPLED = {"step_size": 1e-3, "sampling_rate": 0.5, "gradient_bound": 1.0, "noise_multiplier": 1.0}
WALK = {"proposal_scale": 1.0, "ratio_bound": 1.0, "tau": 1.0}

QUICK: dict[str, Callable[[], Program]] = {
    "imwg": partial(sweep, NORMAL, TOTAL, dpjax.imwg(window=1), interweave=False),
    "imwg in windows, interweaving": partial(sweep, REGRESSION, GRAM, dpjax.imwg(window=4)),
    "imwg, random scan": partial(sweep, TABLE, CELLS, dpjax.imwg("random")),
    "imwg, noise moved by surrogate": partial(sweep, NORMAL, TOTAL, dpjax.imwg(window=4), noise="moved by surrogate"),
    "soma": partial(sweep, NORMAL, TOTAL, dpjax.soma(4)),
    "pcn in windows": partial(sweep, NORMAL, TOTAL, dpjax.pcn(2, 0.5, window=4)),
    "births": partial(sweep, NORMAL, UNKNOWN, dpjax.imwg()),
    "counts": partial(sweep, TABLE, CELLS, dpjax.counts(8)),
    "local, finite": partial(sweep, TABLE, ANSWERS),
    "local, normal": partial(sweep, NORMAL, NOISY),
    "coupled imwg": lambda: pair(coupling.coupled_gibbs(NORMAL, TOTAL)),
    "coupled soma": lambda: pair(coupling.coupled_gibbs(TABLE, CELLS, dpjax.soma(4))),
    "exchangeable soma": partial(free, exchangeable.soma),
    "mixture, conditional": partial(clusters, mixture.conditional(), VALUES, LAPLACE, GAUSSIAN),
    "mixture, neal 5": partial(clusters, mixture.neal5(), VALUES, LAPLACE, GAUSSIAN),
    "private hmc": partial(holder, private.dp_hmc, noise.jax, **LEAPFROG, **NOISY_QUERIES),
    "private langevin": partial(holder, private.dp_sgld, noise.jax, **SAMPLED),
    "sample_clt": partial(large, NORMAL, TOTAL),
}
"""Those of every change."""

MOVES = ("elliptical_slice", "coordinate_slice", "slice_sampling", "normal_random_walk", "mala", "hmc", "nuts")
LONG: dict[str, Callable[[], Program]] = {
    **{f"parameters by {move}": partial(sweep, NORMAL, TOTAL, parameter_kernel=move) for move in MOVES},
    "naive bayes": partial(sweep, BAYES, CLASSES),
    "dirichlet": partial(sweep, DIRICHLET, LOGS),
    "beta": partial(sweep, BETA, TOTAL),
    "exponential": partial(sweep, EXPONENTIAL, TOTAL),
    "learned covariates": partial(sweep, LEARNED, GRAM),
    "noise moved": partial(sweep, REGRESSION, GRAM, noise="moved"),
    "joint release": partial(sweep, TABLE, dpjax.joint(CELLS, CELLS), dpjax.soma()),
    "soma of all records": partial(sweep, REGRESSION, GRAM, dpjax.soma()),
    "counts, given the parameters": partial(sweep, TABLE, CELLS, dpjax.counts(8, collapse=False)),
    "counts, known totals": partial(sweep, TABLE, KNOWN_TOTALS, dpjax.counts(8)),
    "counts, naive bayes": partial(sweep, BAYES, CLASSES, dpjax.counts(8)),
    "counts, unknown number": partial(sweep, TABLE, UNKNOWN_CELLS, dpjax.counts(8)),
    "births of a table": partial(sweep, TABLE, UNKNOWN_CELLS, dpjax.imwg()),
    "local, metropolis": partial(sweep, EXPONENTIAL, NOISY),
    "local, windows of counts": lambda: sweep(number_of_visits(), NOISY_COUNTS),
    "coupled counts": lambda: pair(coupling.coupled_gibbs(TABLE, CELLS, dpjax.counts(8))),
    "coupled, relabelled between": lambda: pair(coupling.coupled_gibbs(NORMAL, TOTAL, dpjax.soma(), relabel="between")),
    "coupled, no relabelling": lambda: pair(coupling.coupled_gibbs(REGRESSION, GRAM, dpjax.imwg(), relabel=False)),
    "exchangeable imwg": partial(free, exchangeable.imwg),
    "exchangeable imwg of a sum": partial(free, exchangeable.imwg, summed=True),
    "mixture, neal 2": partial(clusters, mixture.neal2(), VALUES, None, GAUSSIAN),
    "mixture, neal 3": partial(clusters, mixture.neal3(), VALUES, None, GAUSSIAN),
    "mixture, neal 8": partial(clusters, mixture.neal8(2), VALUES, LAPLACE, GAUSSIAN),
    "mixture, vectors": partial(clusters, mixture.conditional(), PAIRS, LAPLACE, VECTORS),
    "mixture, truncated": partial(clusters, mixture.conditional(), VALUES, dpjax.Gaussian(0.6), TRUNCATED),
    "mixture, betas": partial(clusters, mixture.conditional(), SHARES, LAPLACE, BETAS),
    "mixture, one release": partial(clusters, mixture.conditional(), COUNTED, None, GAUSSIAN),
    "mixture, one release, neal 5": partial(clusters, mixture.neal5(), COUNTED, None, GAUSSIAN),
    "private penalty": partial(holder, private.dp_penalty, noise.jax, **WALK),
    "private penalty, guided": partial(holder, private.dp_penalty, noise.jax, components="one", guided=True, **WALK),
    "private thermostat": partial(holder, private.dp_sgnht, noise.jax, diffusion=10.0, **SAMPLED),
    "hmc": partial(holder, private.hmc, **LEAPFROG),
    "random walk": partial(holder, private.rwmh, proposal_scale=1.0),
    "sample_clt of a regression": partial(large, REGRESSION, GRAM),
    "sample_clt of a table": partial(large, TABLE, CELLS),
    "sample_smc": partial(tempered, NORMAL, TOTAL),
}
"""And all others."""
