"""An empirical audit: what releases of neighbouring data sets disprove is never more than what is charged."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private import noise
from dpjax.private.accounting.composition import composed_epsilon
from dpjax.private.fixed_point import Limbs, steps_of
from dpjax.private.kernels.sgld import largest_langevin_noise
from dpjax.private.sums.clipped import ClippedSum, clipped_gradients, clipped_ratios
from tests.private.audits import DELTA, DRAWS, disproved
from tests.private.neighbours import linear, numbers, sum_of_floats

pytestmark = pytest.mark.slow

MULTIPLIER = 3.0
SOURCES = [noise.jax, noise.secure]


def charged(query: private.Query, neighbours: str) -> float:
    """What the ledger takes for one query."""
    return composed_epsilon([query], DELTA, neighbours)


def released(total: ClippedSum, source: noise.Noise, seed: int) -> np.ndarray:
    """Releases [draws, ...] of one sum, as the kernels make them."""
    draw = jax.jit(jax.vmap(lambda key: total.released(partial(source.release, key), MULTIPLIER)))
    return np.asarray(draw(jax.random.split(jax.random.key(seed), DRAWS)), np.float64)


def query_of(source: noise.Noise, dimension: int = 1) -> private.Query:
    return source.query("sum", MULTIPLIER, dimension=dimension)


def pair_of_a_million(kind: str) -> list[ClippedSum]:
    """Sums in float32 over the neighbours that a sum of floats drives apart."""
    zero, one = jnp.zeros((1,), jnp.float32), jnp.ones((1,), jnp.float32)
    if kind == "gradient":
        program: Callable = jax.jit(lambda target: clipped_gradients(target, zero, 1.0))
    else:
        program = jax.jit(lambda target: clipped_ratios(target, zero, one, jnp.asarray(1.0, jnp.float32)))
    return [program(linear(numbers(first))) for first in (1.0, -1.0)]


@pytest.mark.parametrize("source", SOURCES, ids=["jax", "secure"])
@pytest.mark.parametrize("kind", ["gradient", "ratio"])
def test_a_sum_of_a_million_in_float32(kind: str, source: noise.Noise) -> None:
    one, other = (np.ravel(released(total, source, seed)) for seed, total in enumerate(pair_of_a_million(kind)))
    price = charged(query_of(source), "replace-one")
    assert 0.8 * price < disproved(one, other) <= price


def test_a_sum_of_floats_is_found_out() -> None:
    """A mutation: the sum is taken in float32, and its noise and price are the same."""
    program = jax.jit(lambda records: sum_of_floats(records)[None] * steps_of(jnp.float32))
    unit, nothing = jnp.asarray(1 / steps_of(jnp.float32), jnp.float32), jnp.zeros(1, jnp.float32)
    sums = [ClippedSum(Limbs(program(jnp.asarray(numbers(x))), nothing), unit, unit) for x in (1.0, -1.0)]
    one, other = (np.ravel(released(total, noise.secure, seed)) for seed, total in enumerate(sums))
    assert disproved(one, other) > charged(query_of(noise.secure), "replace-one")


def test_the_wrong_relation_is_found_out() -> None:
    """A mutation: records that are replaced are charged as if they were added."""
    one, other = (np.ravel(released(total, noise.jax, seed)) for seed, total in enumerate(pair_of_a_million("ratio")))
    assert disproved(one, other) > charged(query_of(noise.jax), "add-or-remove")


ROWS = np.random.default_rng(6).normal(size=(1_000, 3))
PLACE = jnp.array([0.3, -0.2, 0.5])


def neighbours_of(row: list[float] | None) -> np.ndarray:
    """The records with another first one, or without it."""
    return ROWS[1:] if row is None else np.concatenate([[row], ROWS[1:]])


WORST = [
    ([1e3, 1e3, 0.0], [-1e3, -1e3, 0.0], "replace-one", 0.8),
    ([1e30, 0.0, 0.0], [-1e3, 0.0, 0.0], "replace-one", 0.0),  # which overflows in float32 and counts for nothing
    ([1e3, 0.0, 1e3], None, "add-or-remove", 0.7),  # and all other records move up by one place
]


@pytest.mark.parametrize(("row", "instead", "neighbours", "power"), WORST)
def test_a_gradient_of_few_records(row: list, instead: list | None, neighbours: str, power: float) -> None:
    def likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum((record - theta) ** 2) - jnp.sum(record * theta**3)

    def total(rows: np.ndarray) -> ClippedSum:
        target = private.target(likelihood, lambda theta: -jnp.sum(theta**2), rows, jnp.zeros(3))
        return jax.jit(lambda target: clipped_gradients(target, PLACE, 0.8))(target)

    sums = [total(neighbours_of(one)) for one in (row, instead)]
    gap = np.asarray(sums[0].value - sums[1].value)
    direction = gap / np.linalg.norm(gap)
    one, other = (released(one, noise.secure, seed) @ direction for seed, one in enumerate(sums))
    price = charged(query_of(noise.secure, 3), neighbours)
    assert power * price <= disproved(one, other) <= price


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
def test_a_step_of_a_poisson_sample(neighbours: str) -> None:
    """From one position to the next: all that a step of DP-SGLD publishes."""
    pytest.importorskip("dp_accounting")
    step, rate = 0.01, 0.3
    rows = [np.r_[np.zeros(39), 50.0], np.zeros(39) if neighbours == "add-or-remove" else np.r_[np.zeros(39), -50.0]]
    draws, queries = [], []
    for seed, records in enumerate(rows):
        target = private.target(lambda theta, x: -0.5 * (x - theta) ** 2, lambda theta: 0.0 * theta, records, 0.0)
        most = largest_langevin_noise(step, rate, bound := 2 * rate / (MULTIPLIER / 3 * step**0.5))
        kernel = private.dp_sgld(
            target, noise.jax, step_size=step, sampling_rate=rate, gradient_bound=bound, noise_multiplier=most
        )
        move = jax.jit(jax.vmap(lambda key, kernel=kernel: kernel.step(key, kernel.init(jnp.zeros(())))[0].position))
        draws.append(np.asarray(move(jax.random.split(jax.random.key(seed), DRAWS // 4)), np.float64))
        queries.append(kernel.queries)
    assert queries[0] == queries[1]
    price = charged(queries[0][0], neighbours)
    assert 0.5 * price < disproved(*draws) <= price
