"""Without noise and clipping the trajectory and the test are BlackJAX's; with them the noise is what is stated."""

from functools import partial
from math import inf

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc import metrics
from blackjax.mcmc.integrators import IntegratorState, velocity_verlet

from dpjax import private
from dpjax.private import noise
from dpjax.private.fixed_point import Limbs, steps_of
from dpjax.private.kernels.base import build_answer
from dpjax.private.kernels.hmc import HMCInnovations, HMCSettings, hmc_core, leapfrog, metric
from dpjax.private.kernels.penalty import PenaltyTest, ProposedMove, exact
from dpjax.private.kernels.schedules import as_schedule, halton_steps
from dpjax.private.sums.clipped import clipped_gradients
from tests.private.cases import BOUND, tilted

RECORDS = jnp.asarray(np.random.default_rng(5).normal(size=(20, 3)))


def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
    return -0.1 * jnp.sum((record - theta) ** 2) - 0.05 * jnp.sum(theta**4)


def log_prior(theta: jax.Array) -> jax.Array:
    return -0.5 * jnp.dot(theta, theta) - jnp.sum(jnp.cos(theta))


TARGET = private.target(log_likelihood, log_prior, RECORDS, jnp.zeros(3), chunk_size=6)
START = jnp.array([0.3, -0.7, 1.1])
DENSE = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.5]])


def log_density(theta: jax.Array) -> jax.Array:
    return jnp.sum(jax.vmap(log_likelihood, (None, 0))(theta, RECORDS)) + log_prior(theta)


MASSES = [1.0, pytest.param(np.array([0.5, 1.0, 2.0]), marks=pytest.mark.slow), DENSE]


@pytest.mark.x64
@pytest.mark.parametrize("mass", MASSES, ids=["scalar", "diagonal", "dense"])
def test_the_limit_without_noise_is_blackjax(mass) -> None:
    matrix = np.diag(np.broadcast_to(mass, 3)) if np.ndim(mass) < 2 else mass
    inverse = np.linalg.inv(matrix) if np.ndim(mass) == 2 else 1 / np.broadcast_to(mass, 3)
    momentum = jnp.array([0.4, -1.0, 0.2])
    integrate = velocity_verlet(log_density, metrics.default_metric(jnp.asarray(inverse)).kinetic_energy)
    state = IntegratorState(START, momentum, *jax.value_and_grad(log_density)(START))
    end, _ = jax.lax.scan(lambda at, _: (integrate(at, 0.05), None), state, length=30)

    settings = HMCSettings(as_schedule(0.05), 30, metric(mass, 3), inf, 0.0, PenaltyTest(inf, 0.0))
    normals = jnp.linalg.solve(jnp.linalg.cholesky(jnp.asarray(matrix)), momentum)
    core = jax.jit(
        lambda log_uniform: hmc_core(
            TARGET, settings, exact, jnp.asarray(0.05), START, HMCInnovations(normals, log_uniform)
        )
    )
    np.testing.assert_allclose(core(-jnp.inf)[0], end.position, rtol=0, atol=1e-8)

    def energy(one: IntegratorState) -> float:
        return float(-one.logdensity + 0.5 * one.momentum @ np.linalg.solve(matrix, one.momentum))

    threshold = energy(state) - energy(end)
    assert core(jnp.asarray(threshold - 1e-8))[1].is_accepted
    vector, info = core(jnp.asarray(threshold + 1e-8))
    assert not info.is_accepted
    np.testing.assert_array_equal(vector, START)


SCALE = np.array([[0.5, 0.2, 0.0], [0.0, 0.1, 0.0], [0.3, 0.0, 2.0]])
SETTINGS = {"step_size": 0.05, "num_leapfrog": 4, "gradient_bound": 0.3, "ratio_bound": 0.2, "mass": DENSE}


@pytest.mark.x64
def test_another_scale_is_the_target_as_a_function_of_the_scaled_parameters() -> None:
    """Clipping, noise and moves are those of a target written as a function of u, by hand; one that stays is at θ."""
    by_hand = private.target(
        lambda u, record: log_likelihood(SCALE @ u, record), lambda u: log_prior(SCALE @ u), RECORDS, jnp.zeros(3)
    )
    taus = {"tau_g": 0.5, "tau_l": 0.3}
    kernel = private.dp_hmc(TARGET, noise.jax, scale=SCALE, **SETTINGS, **taus)
    other = private.dp_hmc(by_hand, noise.jax, **SETTINGS, **taus)
    assert kernel.queries == other.queries
    step, other_step = jax.jit(kernel.step), jax.jit(other.step)
    accepted = 0
    for number in range(12):
        state, info = step(jax.random.key(number), kernel.init(START))
        moved, other_info = other_step(jax.random.key(number), other.init(jnp.linalg.solve(SCALE, START)))
        np.testing.assert_allclose(state.position, SCALE @ moved.position, atol=1e-9)
        assert info.is_accepted == other_info.is_accepted
        assert info.not_private.clipped_gradients == other_info.not_private.clipped_gradients > 0
        accepted += int(info.is_accepted)
        if not info.is_accepted:
            np.testing.assert_array_equal(state.position, START)
    assert 0 < accepted < 12


def test_blackjax_can_run_the_kernels() -> None:
    kernel = private.hmc(TARGET, step_size=0.1, num_leapfrog=3)
    _, (states, _) = blackjax.util.run_inference_algorithm(
        jax.random.key(1), kernel, 5, initial_state=kernel.init(START)
    )
    assert states.position.shape == (5, 3)


@pytest.mark.keys
def test_the_noise_released_is_the_noise_stated() -> None:
    target, tau, theta, proposal = tilted(), 0.8, jnp.array([0.1, 0.2]), jnp.array([0.7, -0.6])
    keys = jax.random.split(jax.random.key(2), 20_000)

    def answer(key: jax.Array) -> jax.Array:
        return (
            PenaltyTest(BOUND, tau)
            .noisy_ratio(target, partial(noise.jax.release, key), ProposedMove(theta, proposal))
            .difference
        )

    released = np.asarray(jax.jit(jax.vmap(answer))(keys))
    distance = float(jnp.linalg.norm(proposal - theta))
    assert_standard(released, 2 * tau * BOUND * distance, float(np.log(1.0) + density(proposal) - density(theta)))


def density(theta: jax.Array) -> jax.Array:
    target = tilted(7)
    return jnp.sum(jax.vmap(target.log_likelihood, (None, 0))(theta, target.records[0])) + target.log_prior(theta)


def assert_standard(values: np.ndarray, scale: float, mean: float) -> None:
    """The values have this mean and standard deviation to 5 standard errors."""
    count = len(values)
    assert abs(values.mean() - mean) < 5 * scale / np.sqrt(count)
    assert abs(values.std() / scale - 1) < 5 / np.sqrt(2 * count)


def test_every_answer_of_an_iteration_has_noise_of_its_own() -> None:
    """Two answers with one noise tell their difference exactly, and no draw looks wrong."""
    steps, seen = 3, []
    settings = HMCSettings(as_schedule(1e-3), steps, metric(1.0, 2), 2.0, 0.6, PenaltyTest(BOUND, 0.6))

    def spy(index: jax.Array, total: Limbs, scale: float) -> jax.Array:
        jax.debug.callback(lambda number: seen.append(int(number)), index)
        return exact(index, total, scale)

    innovations = HMCInnovations(jnp.zeros(2), jnp.zeros(()))
    hmc_core(tilted(), settings, spy, jnp.asarray(1e-3), START[:2], innovations)
    jax.effects_barrier()
    assert sorted(seen) == list(range(steps + 2))
    answer = build_answer(noise.jax, jax.random.key(4))
    noises = [float(answer(jnp.array(index), jnp.zeros(()), 1.0)) for index in seen]
    assert len(set(noises)) == len(noises)


def test_gradients_are_released_with_the_noise_stated() -> None:
    """Half a kick of a long step from rest: the momentum at the end of a trajectory of one step holds two gradients."""
    target, tau, bound, step = tilted(), 0.6, 2.0, 1e-3
    settings = HMCSettings(as_schedule(step), 1, metric(1e12, 2), bound, tau, PenaltyTest(BOUND, 1e-6))
    ends = []

    def spy(index: jax.Array, total: Limbs, scale: float) -> jax.Array:
        ends.append((total.high.shape, scale / steps_of(total.high.dtype)))
        return exact(index, total, scale)

    jax.make_jaxpr(
        lambda: hmc_core(
            target, settings, spy, jnp.asarray(step), START[:2], HMCInnovations(jnp.zeros(2), jnp.zeros(()))
        )
    )()
    assert ends == [((2,), 2 * tau), ((), 2e-6)]

    def kick(key: jax.Array) -> jax.Array:
        def gradient(index: jax.Array, at: jax.Array) -> tuple[jax.Array, jax.Array]:
            total = clipped_gradients(target, at, bound).value
            answer = build_answer(noise.jax, key)(index, total, jnp.asarray(2 * tau * bound))
            return answer, jnp.zeros(())

        _, momentum, _ = leapfrog(
            gradient, jnp.zeros(2), jnp.zeros(2), jnp.asarray(step), 1, lambda momentum: 0.0 * momentum
        )
        return momentum / step

    kicks = np.asarray(jax.jit(jax.vmap(kick))(jax.random.split(jax.random.key(3), 20_000)))
    exact_gradient = np.asarray(clipped_gradients(target, jnp.zeros(2), bound).value)
    for column, mean in zip(kicks.T, exact_gradient, strict=True):
        assert_standard(column, 2 * tau * bound / np.sqrt(2), mean)  # two fresh draws, each at half weight


def test_halton_steps_cover_their_range_evenly() -> None:
    schedule = halton_steps(0.2, low=0.5, high=1.5, length=64, rng=np.random.default_rng(1))
    steps = np.array([float(schedule(jnp.asarray(i))) for i in range(64)])
    assert 0.1 <= steps.min() < steps.max() <= 0.3
    counts, _ = np.histogram(steps, bins=np.linspace(0.1, 0.3, 9))
    assert np.all(counts == 8)
    assert schedule(jnp.asarray(64)) == steps[0].astype(steps.dtype)


BAD = [
    ({"tau_g": 0.0}, "tau_g"),
    ({"tau_l": -1.0}, "tau_l"),
    ({"gradient_bound": 0.0}, "gradient_bound"),
    ({"ratio_bound": inf}, "ratio_bound"),
    ({"step_size": -0.1}, "step_size"),
    ({"num_leapfrog": 0}, "num_leapfrog"),
    ({"mass": np.ones((3, 3))}, "mass"),
    ({"mass": np.ones(2)}, "mass"),
]


@pytest.mark.parametrize(("change", "name"), BAD)
def test_bad_settings_are_refused(change: dict, name: str) -> None:
    good = {"step_size": 0.1, "num_leapfrog": 3, "gradient_bound": 1.0, "ratio_bound": 1.0, "tau_g": 1.0, "tau_l": 1.0}
    with pytest.raises(ValueError, match=name):
        private.dp_hmc(TARGET, noise.jax, **(good | change))
