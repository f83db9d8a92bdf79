"""Coupled random walks leave each chain's distribution as it is, meet, and serve models without an exact update."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax import coupling, models
from dpjax.coupling import random_walk
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.random_walk import VectorPair, build_coupled_walk, walk_step

N, NUM_PAIRS, REJECT = 5, 20_000, 1e-4
MODEL = models.normal(models.NormalPrior(0.0, 1.0), variance=2.0)._replace(update=None, update_log_density=None)
RECORDS = {"y": jnp.array([0.3, -1.0, 2.0, 0.5, 1.0])}
OTHERS = {"y": jnp.array([0.3, -1.0, 3.5, 2.5, 1.0])}
SAME = jnp.array([True, True, False, False, True])


def posterior(records: dict[str, jax.Array]) -> tuple[float, float]:
    """Mean and standard deviation of the mean given the records."""
    precision = 1 + N / 2
    return float(jnp.sum(records["y"]) / 2 / precision), precision**-0.5


def walk(step: object = walk_step) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both means after a walk from exact draws, and which pairs are the same."""
    start_key, walk_key = jax.random.split(jax.random.key(3))
    normals = jax.random.normal(start_key, (2, NUM_PAIRS))
    starts = [mean + sd * row for row, (mean, sd) in zip(normals, map(posterior, (RECORDS, OTHERS)), strict=True)]
    update = build_coupled_walk(MODEL, N)

    @jax.jit
    def run(keys: jax.Array, first: jax.Array, second: jax.Array) -> tuple:
        pair = RecordPair(RECORDS, OTHERS, SAME)
        return jax.vmap(lambda key, one, other: update(key, {"mean": one}, {"mean": other}, False, pair))(
            keys, first, second
        )

    first, second, same = run(jax.random.split(walk_key, NUM_PAIRS), *starts)
    return np.asarray(first["mean"]), np.asarray(second["mean"]), np.asarray(same)


def p_values(first: np.ndarray, second: np.ndarray) -> list[float]:
    """Kolmogorov-Smirnov against the exact posterior of each chain."""
    pairs = ((first, RECORDS), (second, OTHERS))
    return [stats.kstest(means, stats.norm(*posterior(records)).cdf).pvalue for means, records in pairs]


@pytest.mark.keys
def test_each_chain_keeps_its_distribution_and_chains_meet_while_records_differ() -> None:
    first, second, same = walk()
    assert min(p_values(first, second)) > REJECT
    assert 0.1 < same.mean() < 1
    np.testing.assert_array_equal(first[same], second[same])


@pytest.mark.x32
@pytest.mark.parametrize("fault", ["one decision for both", "the density of the first chain"])
def test_a_chain_decided_by_the_other_is_rejected(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def wrong(densities: list, step_size: jax.Array, met: jax.Array, state: VectorPair, *drawn: jax.Array) -> object:
        if fault == "one decision for both":
            return walk_step(densities, step_size, jnp.array(True), state._replace(same=jnp.array(True)), *drawn)
        return walk_step([densities[0], densities[0]], step_size, met, state, *drawn)

    monkeypatch.setattr(random_walk, "walk_step", wrong)
    first, second, _ = walk()
    assert min(p_values(first, second)) < REJECT


def test_equal_chains_stay_equal_whatever_the_second_density_is() -> None:
    """The density of the second chain is never asked where both are the same."""
    densities = [lambda z: -jnp.sum(z**2) / 2, lambda z: jnp.nan * jnp.sum(z)]
    place, level = jnp.array([0.4, -1.0]), densities[0](jnp.array([0.4, -1.0]))
    state = VectorPair(place, place, level, level, jnp.array(True))
    key = jax.random.key(0)
    for number in range(20):
        normal = jax.random.normal(jax.random.fold_in(key, number), (2,))
        moved = walk_step(densities, jnp.array(1.0), jnp.array(True), state, normal, jnp.array(0.5), jnp.array(0.4))
        assert bool(moved.same)
        chex.assert_trees_all_equal(moved.first, moved.second)
        state = moved._replace(other_log_density=moved.log_density)


def test_equal_numbers_are_no_meeting() -> None:
    """A flag is true only where one proposal moved both chains, or where it was and neither chain moved."""

    def density(z: jax.Array) -> jax.Array:
        return -1e3 * jnp.sum(z**2)

    place, normal, uniforms = jnp.array([0.1, 0.2]), jnp.array([3.0, -1.0]), (jnp.array(0.5), jnp.array(0.4))
    for same in (False, True):
        state = VectorPair(place, place, density(place), density(place), jnp.array(same))
        moved = walk_step([density, density], jnp.array(1.0), jnp.array(True), state, normal, *uniforms)
        chex.assert_trees_all_equal(moved.first, moved.second)
        assert bool(moved.same) == same


def test_one_chain_makes_metropolis_steps() -> None:
    """Against the ratio by hand, to the last digits."""

    def density(z: jax.Array) -> jax.Array:
        return -jnp.sum(z**4)

    place, normal = jnp.array([0.3, 0.1]), jnp.array([0.5, -1.5])
    state = VectorPair(place, place + 9, density(place), density(place + 9), jnp.array(False))
    step = partial(walk_step, [density, density], jnp.array(0.7), jnp.array(True), state, normal, jnp.array(0.9))
    ratio = float(jnp.exp(density(place + 0.7 * normal) - density(place)))
    np.testing.assert_allclose(step(jnp.array(ratio * 0.99)).first, place + 0.7 * normal, rtol=1e-6)
    np.testing.assert_allclose(step(jnp.array(ratio * 1.01)).first, place, rtol=1e-6)


def coin(n: int) -> None:
    logit = numpyro.sample("logit", dist.Normal(0.0, 1.5))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Bernoulli(jax.nn.sigmoid(logit)))


def logit_of(position: dpjax.data_augmentation.Position) -> jax.Array:
    return position.parameters["logit"]


def heads(record: dict[str, jax.Array]) -> jax.Array:
    return record["y"][None].astype(float)


def exact_mean(value: float, scale: float, n: int) -> float:
    """The posterior mean of the logit by a sum over counts and a grid of logits."""
    grid = np.linspace(-9, 9, 4_001)
    counts = np.arange(n + 1)
    noise = np.exp(-np.abs(value - counts) / scale)
    likelihood = stats.binom.pmf(counts[None], n, 1 / (1 + np.exp(-grid[:, None]))) @ noise
    weights = likelihood * stats.norm.pdf(grid, 0.0, 1.5)
    return float(weights @ grid / weights.sum())


@pytest.mark.x32
def test_a_numpyro_model_has_meeting_times_and_unbiased_estimates() -> None:
    release = dpjax.Release([9.0], dpjax.Laplace(2.0), heads, n=8)
    with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
        kernel = coupling.coupled_gibbs(dpjax.from_numpyro(coin, records=("y",)), release)
        found = coupling.unbiased_estimates(
            jax.random.key(5), kernel, logit_of, k=20, m=60, num_pairs=200, max_steps=2_000
        )
    assert found.meetings.met.all()
    estimate = found.estimate()
    assert abs(estimate.mean - exact_mean(9.0, 2.0, 8)) < 4 * estimate.standard_error


@pytest.mark.parametrize("choice", ["maximal", "common"])
def test_what_needs_an_exact_update_is_refused_by_name(choice: str) -> None:
    release = dpjax.Release([1.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", -3.0, 3.0), n=N)
    with pytest.raises(
        ValueError, match=f"model: given no update; expected parameters that can meet.*{choice}.*random"
    ):
        coupling.coupled_gibbs(MODEL, release, parameters=choice)
