"""Every named kernel leaves the joint distribution as it is and finds its step size; mutations are found."""

from collections.abc import Callable
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics, models, statistics
from dpjax.data_augmentation.parameters import build_centred_step, fit_step_size, initial_tuning, parameter_kernel
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.sweep import prior_tuning
from tests.tools.perfect_start import REJECT, corrected

N = 5
NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))
STATISTIC = statistics.total("y", -2.0, 2.0)
STEP_SIZES = {"hmc": 0.4, "mala": 0.1, "normal_random_walk": 0.7, "nuts": 0.3}
NAMES = ("coordinate_slice", "elliptical_slice", "slice_sampling", *STEP_SIZES)
# The key reuse checker takes BlackJAX's own scan over slice directions, and its trees of NUTS, for a reuse.
MARKS = {"hmc": (), "coordinate_slice": (), "mala": pytest.mark.keys}
CHECKED = [pytest.param(name, marks=MARKS.get(name, pytest.mark.slow)) for name in NAMES]
"""The defaults, and one under the key reuse checker; the other kernels are slow tests."""


def p_value(kernel: str | Callable, model: dpjax.Model = NORMAL) -> float:
    """The smallest corrected p-value that chains from the joint distribution of parameters and records stay in it.

    Each of a few sweeps moves the parameters given the records, and then draws records given the parameters.
    """
    tuning = initial_tuning(jax.random.key(20), model)
    tuning = tuning._replace(step_size=jnp.asarray(STEP_SIZES.get(kernel, 1.0)))
    step = build_centred_step(model, parameter_kernel(kernel, 2))

    def sweep(run_key: jax.Array, state: tuple, index: jax.Array) -> tuple:
        records_key, step_key = jax.random.split(jax.random.fold_in(run_key, index))
        records = model.sample_records(records_key, state[0], N)
        return (step(step_key, state[0], records, tuning)[0], records), None

    def chain(key: jax.Array) -> tuple:
        start_key, records_key, run_key = jax.random.split(key, 3)
        parameters = model.sample_prior(start_key)
        records = model.sample_records(records_key, parameters, N)
        return jax.lax.scan(partial(sweep, run_key), (parameters, records), jnp.arange(3))[0]

    parameters, records = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(21), 4_000))
    noise = (records["y"] - parameters["mean"][:, None]) / jnp.sqrt(parameters["variance"])[:, None]
    laws = (
        (parameters["mean"], stats.norm()),
        (parameters["variance"], stats.invgamma(4.0, scale=3.0)),
        (jnp.mean(noise, axis=1) * N**0.5, stats.norm()),
        (jnp.sum(noise**2, axis=1), stats.chi2(N)),
    )
    return corrected([stats.kstest(np.asarray(values), law.cdf).pvalue for values, law in laws])


@pytest.mark.x32
@pytest.mark.parametrize("name", CHECKED)
def test_the_joint_law_is_invariant(name: str) -> None:
    assert p_value(name) > REJECT


def stale(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
    """A mutation: the density in the state is that of another time."""
    algorithm = blackjax.normal_random_walk(log_density, jnp.full(2, 0.7))

    def init(position: jax.Array, rng_key: jax.Array | None = None) -> object:
        return algorithm.init(position)._replace(logdensity=log_density(jnp.zeros_like(position)))

    return dpjax.base.SamplingAlgorithm(init, algorithm.step)


def test_a_stale_density_is_rejected() -> None:
    assert p_value(stale) < REJECT


@pytest.mark.x32
def test_a_forgotten_jacobian_is_rejected() -> None:
    assert p_value("mala", NORMAL._replace(log_jacobian=lambda unconstrained: jnp.zeros(()))) < REJECT


CHAINS, COUNT = 8, 10_000
KNOWN = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)


@pytest.mark.x32
@pytest.mark.parametrize(
    "name", ["hmc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mala", "normal_random_walk"))]
)
def test_the_step_size_meets_its_target_though_it_starts_a_hundred_times_too_wide(name: str) -> None:
    """The parameters given 10,000 records are Normal, with a hundredth of the prior's standard deviation."""
    kernel, keys = parameter_kernel(name), jax.random.split(jax.random.key(5), 4)
    parameters = jax.vmap(KNOWN.sample_prior)(jax.random.split(keys[0], CHAINS))
    record_keys = jax.random.split(keys[1], CHAINS)
    records = jax.vmap(lambda key, p: KNOWN.sample_records(key, p, COUNT))(record_keys, parameters)
    first = initial_tuning(keys[2], KNOWN)
    tuning = fit_step_size(keys[3], KNOWN, kernel, first, parameters, records)
    step = jax.vmap(build_centred_step(KNOWN, kernel), in_axes=(0, 0, 0, None))

    @jax.jit
    def rate(tuning: dpjax.data_augmentation.Tuning) -> jax.Array:
        def body(parameters: dict, index: jax.Array) -> tuple:
            step_keys = jax.vmap(lambda key: jax.random.fold_in(key, index))(record_keys)
            parameters, info, _ = step(step_keys, parameters, records, tuning)
            return parameters, jnp.mean(info.acceptance_rate)

        return jnp.mean(jax.lax.scan(body, parameters, jnp.arange(200))[1])

    assert abs(float(rate(tuning)) - kernel.target_acceptance) < 0.1
    assert float(tuning.step_size) < 0.1
    assert abs(float(rate(first)) - kernel.target_acceptance) > 0.15  # the width that it started from


@pytest.mark.x64
def test_last_bits_of_the_chains_do_not_decide_the_step_size() -> None:
    """Programs of other numbers of chains round otherwise, and wide trajectories would take that far apart."""
    spread = models.normal(models.NormalPrior(0.0, 2.0), variance=models.InverseGammaPrior(3.0, 3.0))
    keys = jax.random.split(jax.random.key(6), 3)
    parameters = jax.vmap(spread.sample_prior)(jax.random.split(keys[0], CHAINS))
    record_keys = jax.random.split(keys[1], CHAINS)
    records = jax.vmap(lambda key, p: spread.sample_records(key, p, 50))(record_keys, parameters)
    kernel, first = parameter_kernel("hmc"), initial_tuning(keys[2], spread)
    rounded = jax.tree.map(lambda leaf: leaf * (1 + 4 * jnp.finfo(float).eps), (first, parameters, records))
    sizes = [
        float(fit_step_size(keys[2], spread, kernel, *each).step_size)
        for each in ((first, parameters, records), rounded)
    ]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-12)


def test_a_kernel_without_a_step_size_leaves_the_tuning() -> None:
    tuning = initial_tuning(jax.random.key(1), KNOWN)
    for kernel in (None, parameter_kernel("coordinate_slice"), parameter_kernel(stale)):
        assert fit_step_size(jax.random.key(2), KNOWN, kernel, tuning, {}, {}) is tuning


@pytest.mark.x32
def test_an_algorithm_without_a_tuning_fits_its_step_size_to_the_model() -> None:
    release = dpjax.Release([1.0], dpjax.Laplace(1.0), STATISTIC, COUNT)
    tuning = prior_tuning(KNOWN, release.n, augment(KNOWN, release, parameter_kernel="mala").plan)
    assert 1e-6 < float(tuning.step_size) < 1e-3


def draw(samples: int, **options: object) -> dpjax.Posterior:
    release = dpjax.Release([3.0], dpjax.Laplace(2.0), STATISTIC, 20)
    settings = {"num_warmup": 160, "interweave": False, "progress": False}
    return dpjax.sample(jax.random.key(8), NORMAL, release, num_samples=samples, **settings, **options)


@pytest.mark.slow
def test_nuts_agrees_with_the_exact_update_and_its_step_size_is_frozen() -> None:
    exact, nuts, shorter = draw(1_000), draw(1_000, parameter_kernel="nuts"), draw(30, parameter_kernel="nuts")
    for name in ("mean", "variance"):
        one, other = np.log(exact.draws["variance"]) if name == "variance" else exact.draws[name], nuts.draws[name]
        other = np.log(other) if name == "variance" else other
        error = np.hypot(diagnostics.mcse_mean(one), diagnostics.mcse_mean(other))
        assert abs(one.mean() - other.mean()) < 4 * error
        np.testing.assert_array_equal(shorter.draws[name], nuts.draws[name][:, :30])
    assert "centred_acceptance_rate" in nuts.info
    assert abs(nuts.info["centred_acceptance_rate"].mean() - 0.8) < 0.12
    np.testing.assert_array_equal(shorter.tuning.step_size, nuts.tuning.step_size)


def mclmc(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
    """Langevin dynamics without acceptance, with steps so short that their error is small."""
    return blackjax.mclmc(log_density, L=1.0, step_size=0.1)


def ghmc(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
    """Its state has a momentum and the height of a slice."""
    algorithm = blackjax.ghmc(log_density, step_size=0.4, momentum_inverse_scale=jnp.ones(2), alpha=0.3, delta=0.2)
    # BlackJAX multiplies a number by a flag there, which these tests forbid.
    return dpjax.base.SamplingAlgorithm(algorithm.init, jax.numpy_dtype_promotion("standard")(algorithm.step))


def dynamic_hmc(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
    """Its state has the key of the trajectory's length."""
    return blackjax.dynamic_hmc(log_density, 0.3, jnp.ones(2))


DRAWN_STATES = [mclmc, ghmc, pytest.param(dynamic_hmc, marks=pytest.mark.slow)]


@pytest.mark.x32
@pytest.mark.parametrize("builder", DRAWN_STATES)
def test_kernels_that_draw_their_state_leave_the_joint_law_invariant(builder: Callable) -> None:
    """No other test has kernels whose ``init`` needs a key, as a momentum, a slice or a length does."""
    assert p_value(builder) > REJECT


def test_a_key_that_is_used_twice_is_rejected() -> None:
    """A mutation: momentum and step have one key, as if the kernel's state were drawn with that of the steps."""

    def shared(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
        algorithm = ghmc(log_density)

        def step(rng_key: jax.Array, state: object) -> tuple:
            return algorithm.step(rng_key, algorithm.init(state.position, rng_key))

        return dpjax.base.SamplingAlgorithm(algorithm.init, step)

    assert p_value(shared) < REJECT


@pytest.mark.slow
@pytest.mark.parametrize("builder", [mclmc, ghmc, dynamic_hmc])
def test_a_posterior_by_kernels_that_draw_their_state_is_that_of_the_exact_update(builder: Callable) -> None:
    """Whole runs read the reports of these kernels, which lack an acceptance rate or have another one."""
    exact, other = draw(1_000), draw(1_000, parameter_kernel=parameter_kernel(builder, 4))
    for name, change in (("mean", np.asarray), ("variance", np.log)):
        one, two = change(exact.draws[name]), change(other.draws[name])
        assert abs(one.mean() - two.mean()) < 4 * np.hypot(diagnostics.mcse_mean(one), diagnostics.mcse_mean(two))
