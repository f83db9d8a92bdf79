"""Mechanisms as pytrees: grids of scales under vmap, one compilation, and rebuilding from any leaves."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.mechanisms import (
    Additive,
    Censored,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Independent,
    Laplace,
    PartitionSelection,
    PoissonBinomial,
    Privacy,
    RandomizedResponse,
)
from dpjax.mechanisms.base import Mechanism

PROMISE = Privacy("zcdp", "replace-one", rho=0.5, sensitivity=1.0, norm=2)
BUILDERS = {
    "laplace": lambda number: Laplace(number, privacy=PROMISE),
    "gaussian": lambda number: Gaussian(number, privacy=PROMISE),
    "discrete laplace": lambda number: DiscreteLaplace(number, privacy=PROMISE),
    "discrete gaussian": lambda number: DiscreteGaussian(number, privacy=PROMISE),
    "censored": lambda number: Censored(DiscreteGaussian(number), lower=0.0, upper=9.0),
    "independent": lambda number: Independent([Laplace(number), DiscreteGaussian(number)], [1, 2]),
    "partition selection": lambda number: PartitionSelection(Censored(DiscreteGaussian(number), lower=0.0)),
    "keep": lambda number: RandomizedResponse(keep=number, num_categories=4, privacy=PROMISE),
    "binomial": lambda number: PoissonBinomial(number / 2, 4, upper=3.0, privacy=PROMISE),
    "matrix": lambda number: RandomizedResponse(
        matrix=jnp.full((4, 4), (1 - number) / 3).at[jnp.diag_indices(4)].set(number)
    ),
}
GRIDS = (np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.6, 0.7]))
VALUE, STATISTIC = jnp.array([3, 0, 2]), jnp.array([1, 0, 3])


@pytest.fixture(params=BUILDERS)
def build(request):
    return BUILDERS[request.param]


@pytest.mark.x64
def test_every_mechanism_meets_the_protocol(build):
    mechanism = build(0.5)
    assert isinstance(mechanism, Mechanism)
    assert hash(mechanism.__class__)
    density = jax.jit(mechanism.log_density)(VALUE, STATISTIC)
    assert density.shape == ()
    np.testing.assert_allclose(jax.jit(mechanism.log_density_terms)(VALUE, STATISTIC).sum(), density, rtol=1e-6)
    sample, key = jax.jit(mechanism.sample), jax.random.key(0)
    assert sample(key, STATISTIC).shape == STATISTIC.shape
    np.testing.assert_array_equal(sample(key, STATISTIC), sample(key, STATISTIC))


@pytest.mark.x64
def test_a_grid_of_mechanisms_compiles_once(build):
    chex.clear_trace_counter()

    single = jax.jit(lambda mechanism: mechanism.log_density(VALUE, STATISTIC))

    @jax.jit
    @jax.vmap
    @chex.assert_max_traces(n=1)
    def density(mechanism):
        return mechanism.log_density(VALUE, STATISTIC)

    @jax.jit
    @jax.vmap
    @chex.assert_max_traces(n=1)
    def draw(mechanism, key):
        return mechanism.sample(key, STATISTIC)

    for grid in GRIDS:
        mechanisms = [build(jnp.asarray(number)) for number in grid]
        stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *mechanisms)
        expected = [single(one) for one in mechanisms]
        np.testing.assert_allclose(density(stacked), jnp.stack(expected), rtol=1e-5)
        assert draw(stacked, jax.random.split(jax.random.key(1), len(grid))).shape == (3, 3)


def test_mechanisms_are_built_and_returned_inside_transformations(build):
    built = jax.vmap(build)(jnp.asarray(GRIDS[0]))
    returned = jax.jit(lambda mechanism: mechanism)(built)
    chex.assert_trees_all_equal(built, returned)
    assert jax.tree.structure(returned) == jax.tree.structure(built)


@pytest.mark.parametrize("leaf", [object(), jax.ShapeDtypeStruct((), jnp.float32), 0, -1.0])
def test_mechanisms_are_rebuilt_from_placeholders_axes_and_gradients(build, leaf):
    structure = jax.tree.structure(build(0.5))
    rebuilt = jax.tree.unflatten(structure, [leaf] * structure.num_leaves)
    assert jax.tree.structure(rebuilt) == structure


def test_gradients_and_axes_may_stand_in_the_place_of_scales():
    mechanism = Laplace(jnp.array([0.5, 2.0]), privacy=PROMISE)
    gradient = jax.grad(lambda built: built.log_density(jnp.ones(2), jnp.zeros(2)))(mechanism)
    np.testing.assert_allclose(gradient.scale, [1 / 0.25 - 1 / 0.5, 1 / 4 - 1 / 2])  # |u| / b² - 1 / b
    axes = jax.tree.map(lambda _: 0, mechanism)
    rows = jax.vmap(lambda built: built.log_noise(1.0), in_axes=(axes,))(mechanism)
    np.testing.assert_allclose(rows, mechanism.log_noise(jnp.ones(2)))


def test_different_mechanisms_have_different_structures():
    """Compiled programs are found by structure: an equality here would run one mechanism's program for another."""
    structures = [jax.tree.structure(build(0.5)) for build in BUILDERS.values()]
    structures += [jax.tree.structure(Censored(one(0.5), lower=0.0, upper=9.0)) for one in (Laplace, Gaussian)]
    assert all((a == b) == (a is b) for a in structures for b in structures)


def test_the_promise_is_static_and_equal_promises_share_a_program():
    traces = []
    density = jax.jit(lambda mechanism: traces.append(1) or mechanism.log_noise(jnp.ones(2)))
    density(Laplace(1.0, privacy=Privacy("pure", "replace-one", epsilon=1.0)))
    density(Laplace(2.0, privacy=Privacy("pure", "replace-one", epsilon=1.0)))
    assert len(traces) == 1
    assert jax.tree.leaves(Laplace(2.0, privacy=PROMISE)) == [2.0]


def test_a_user_writes_an_additive_mechanism_in_three_methods():
    class Logistic(Additive):
        def log_noise(self, noise):
            return jax.nn.log_sigmoid(noise) + jax.nn.log_sigmoid(-noise)

        def log_cdf(self, noise):
            return jax.nn.log_sigmoid(noise)

        def sample_noise(self, key, shape, dtype):
            return jax.random.logistic(key, shape, dtype)

    censored = Censored(Logistic(), lower=0.0)
    draws = np.asarray(censored.sample(jax.random.key(2), jnp.full(20_000, 1.0)))
    atom = float(np.exp(censored.log_density(jnp.zeros(1), jnp.ones(1))))
    assert abs(np.mean(draws == 0) - atom) < 5 * np.sqrt(atom * (1 - atom) / 20_000)
