"""The subsampled algorithms: the temperature is right, and nothing but the sum tells of the records."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private import noise
from dpjax.private.fixed_point import arithmetic
from dpjax.private.kernels.penalty import exact
from dpjax.private.kernels.sgld import (
    SGLDSettings,
    check_sampling,
    largest_langevin_noise,
    sgld_core,
)
from dpjax.private.kernels.sgnht import PhasePoint, SGNHTSettings, sgnht_core
from dpjax.private.runs import sample as runs
from dpjax.private.sums.clipped import ClippedSum, clipped_gradients
from dpjax.private.sums.poisson import SampledSum, sampled_gradients
from tests.private.cases import ledger, normal_mean

N, RATE = 40, 0.3


RECORDS = np.random.default_rng(8).normal(size=N)


TARGET = normal_mean(RECORDS)


VARIANCE = 1 / (N + 0.01)


MEAN = RECORDS.sum() * VARIANCE


def stationary(build: Callable, position: Callable, num_steps: int, num_chains: int = 10_000) -> np.ndarray:
    """Positions [chains] after steps from a start in the posterior."""

    def chain(key: jax.Array) -> jax.Array:
        start_key, run_key = jax.random.split(key)
        state = position(build.init, start_key)

        def step(state, index):
            return build.step(jax.random.fold_in(run_key, index), state)[0], None

        return jax.lax.scan(step, state, jnp.arange(num_steps))[0].position[0]

    return np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(6), num_chains)))


def posterior_start(init: Callable, key: jax.Array):
    return init(MEAN + VARIANCE**0.5 * jax.random.normal(key, (1,)))


STEP, SAMPLED, BOUND = VARIANCE / 20, 0.8, 6.0


MULTIPLIER = 0.7 * largest_langevin_noise(STEP, SAMPLED, BOUND)


def sgld() -> private.PrivateKernel:
    return private.dp_sgld(
        TARGET, noise.jax, step_size=STEP, sampling_rate=SAMPLED, gradient_bound=BOUND, noise_multiplier=MULTIPLIER
    )


def test_queries_are_stated_at_their_rate() -> None:
    """At the rate 1 a run would cost more, and end sooner: nothing else would tell."""
    assert [(query.noise_multiplier, query.sampling_rate) for query in sgld().queries] == [(MULTIPLIER, SAMPLED)]


@pytest.mark.x64
@pytest.mark.keys
def test_the_stationary_variance_of_sgld_is_the_posterior_s() -> None:
    draws = stationary(sgld(), posterior_start, 40)
    assert abs(draws.var() / VARIANCE - 1) < 0.05
    assert abs(draws.mean() - MEAN) < 5 * np.sqrt(VARIANCE / len(draws))


@pytest.mark.x64
def test_a_full_step_with_noise_of_its_own_size_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: θ += η ∇̂ + N(0, η), which targets the squared posterior."""
    module = sys.modules["dpjax.private.kernels.sgld"]
    right = module.noisy_gradient

    def doubled(target, settings, release, vector, total):
        return right(target, settings, release, vector, total) + right(target, settings, exact, vector, total)

    monkeypatch.setattr(module, "noisy_gradient", doubled)
    draws = stationary(sgld(), posterior_start, 40)
    assert draws.var() / VARIANCE < 0.7


def test_the_thermostat_is_set_to_the_temperature_one() -> None:
    """A step by hand from the gradient of all records; at other temperatures chains are as stationary."""
    step, settings = 0.1, SGNHTSettings(0.1, 10.0, 1.0, 1e3, 0.0, N)
    point = PhasePoint(jnp.array([0.2]), jnp.array([-0.7]), jnp.array(3.0))
    total = SampledSum(clipped_gradients(TARGET, point.vector, 1e3), jnp.array(N))
    end = sgnht_core(TARGET, settings, exact, point, total, jnp.array([0.4]))
    gradient = np.sum(RECORDS - 0.2) - 0.2 / 100
    momentum = -0.7 * (1 - step * 3.0) + step * gradient + np.sqrt(2 * 10.0 * step) * 0.4
    found = np.array([end.momentum[0], end.friction, end.vector[0]], float)
    expected = [momentum, 3.0 + step * (momentum**2 - 1), 0.2 + step * momentum]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.slow
def test_the_thermostat_keeps_the_posterior() -> None:
    kernel = private.dp_sgnht(
        TARGET,
        noise.jax,
        step_size=0.01,
        diffusion=10.0,
        sampling_rate=SAMPLED,
        gradient_bound=BOUND,
        noise_multiplier=1.0,
    )

    def start(init: Callable, key: jax.Array):
        position_key, momentum_key = jax.random.split(key)
        return posterior_start(init, position_key)._replace(momentum=jax.random.normal(momentum_key, (1,)))

    draws = stationary(kernel, start, 60)
    assert abs(draws.var() / VARIANCE - 1) < 0.05
    assert abs(draws.mean() - MEAN) < 5 * np.sqrt(VARIANCE / len(draws))


def test_a_release_hotter_than_the_step_is_refused() -> None:
    with pytest.raises(ValueError, match="smaller step size"):
        private.dp_sgld(
            TARGET,
            noise.jax,
            step_size=STEP,
            sampling_rate=SAMPLED,
            gradient_bound=BOUND,
            noise_multiplier=2 * MULTIPLIER,
        )


def test_nothing_but_the_sum_tells_the_number_of_records() -> None:
    """Where n is confidential: the queries, the noise and the scale of the sum are those of any other n."""
    settings = {"step_size": STEP, "sampling_rate": SAMPLED, "gradient_bound": BOUND, "noise_multiplier": MULTIPLIER}
    vector, moves, queries = jnp.array([0.2]), [], []
    for size in (N, N + 7):
        target = normal_mean(np.zeros(size))
        kernel = private.dp_sgld(target, noise.jax, **settings)
        queries.append(kernel.queries)
        chosen = SGLDSettings(STEP, *check_sampling(target, SAMPLED, BOUND, MULTIPLIER, 20))
        adder = arithmetic(BOUND, vector.dtype)
        total = SampledSum(ClippedSum(adder.floats(adder.zeros((1,))), adder.unit, jnp.zeros(())), jnp.ones(()))
        moves.append(sgld_core(target, chosen, exact, vector, total, jnp.ones(1)))
    assert queries[0] == queries[1]
    assert queries[0][0].sampling_rate == SAMPLED
    np.testing.assert_array_equal(*moves)


def test_records_that_do_not_count_are_in_no_sample() -> None:
    """The rehearsal leaves all records out. Samples counted such records, which told their number before any charge."""
    nobody = replace(TARGET, count=jnp.zeros_like(TARGET.count))
    found = sampled_gradients(nobody, jax.random.key(1), jnp.ones(1), rate=1.0, bound=BOUND, block=N)
    assert (float(found.gradients.value[0]), float(found.gradients.clipped), float(found.size)) == (0.0, 0.0, 0.0)


LANGEVIN = {
    "sgld": partial(private.dp_sgld, step_size=STEP),
    "sgnht": partial(private.dp_sgnht, step_size=STEP, diffusion=1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGEVIN)
def test_the_rehearsal_asks_nothing_of_the_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples counted records that were set to 0: the rehearsal moved by their number, which no one had charged."""
    moved: list[np.ndarray] = []
    rehearse = runs.make_chunk

    def make_chunk(*arguments: Any) -> Any:
        chunk = rehearse(*arguments)
        moved.append(np.asarray(chunk.states.position))
        return chunk

    monkeypatch.setattr(runs, "make_chunk", make_chunk)
    for size in (N, 3 * N):
        kernel = LANGEVIN[name](
            normal_mean(np.zeros(size), chunk_size=3 * N), noise.jax, sampling_rate=1.0, gradient_bound=BOUND,
            noise_multiplier=1.0, block=20,
        )  # fmt: skip
        private.sample(jax.random.key(1), kernel, jnp.full((2, 1), 9.0), ledger(1e6), num_iterations=40)
    np.testing.assert_array_equal(*moved)


@pytest.mark.parametrize("change", [{"sampling_rate": 1.5}, {"gradient_bound": 0.0}, {"noise_multiplier": -1.0}])
def test_bad_settings_are_refused(change: dict) -> None:
    good = {"step_size": STEP, "sampling_rate": SAMPLED, "gradient_bound": BOUND, "noise_multiplier": 0.1}
    with pytest.raises(ValueError, match=next(iter(change))):
        private.dp_sgld(TARGET, noise.jax, **(good | change))


def test_a_sample_of_jax_is_not_secure_whatever_the_noise() -> None:
    pytest.importorskip("cryptography")
    settings = {"step_size": STEP, "gradient_bound": BOUND, "noise_multiplier": 0.1}
    sampled, full = (private.dp_sgld(TARGET, noise.secure, sampling_rate=rate, **settings) for rate in (SAMPLED, 1.0))
    assert (sampled.queries[0].grade, full.queries[0].grade) == ("simulation-grade", "secure")
