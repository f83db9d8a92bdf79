"""Clamped outputs: total mass one, atoms at the bounds, and a sampler that agrees with the density."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dpjax.mechanisms import Censored, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

ADDITIVE = (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian)
DISCRETE = (DiscreteLaplace, DiscreteGaussian)
NUM_DRAWS = 20_000
GATE = 1e-4


@jax.jit
def log_density_terms(mechanism, value, statistic):
    return mechanism.log_density_terms(value, statistic)


@jax.jit
def sample(mechanism, key, statistic):
    return mechanism.sample(key, statistic)


def density(mechanism, value, statistic):
    """The density at each value of one coordinate."""
    value = jnp.asarray(value, float)
    return np.exp(np.asarray(log_density_terms(mechanism, value, jnp.full(value.shape, float(statistic))), float))


def interior(low, high, discrete, statistic):
    """Values strictly between the bounds, with a node at the kink of the noise."""
    if discrete:
        return np.arange(low + 1.0, high)
    inside = np.sort(np.append(np.linspace(low, high, 40_001)[1:-1], statistic))
    return inside[(inside > low) & (inside < high)]


@pytest.mark.x64
@pytest.mark.parametrize("statistic", [-9, -1, 0, 3, 17])
@pytest.mark.parametrize("mechanism", ADDITIVE)
def test_total_mass_is_one(mechanism, statistic):
    low, high = 0, 8
    censored = Censored(mechanism(2.5), lower=low, upper=high)
    atoms = density(censored, [low, high], statistic).sum()
    if mechanism in DISCRETE:
        between = density(censored, interior(low, high, True, statistic), statistic).sum()
        tolerance = 1e-10
    else:
        nodes = np.unique(np.clip([1e-12, statistic, high - 1e-12], 1e-12, high - 1e-12))
        between = sum(
            integrate.simpson(density(censored, part, statistic), x=part)
            for part in (np.linspace(a, b, 4001) for a, b in itertools.pairwise(nodes))
        )
        tolerance = 1e-9
    np.testing.assert_allclose(atoms + between, 1, rtol=tolerance)


@pytest.mark.parametrize("mechanism", ADDITIVE)
def test_between_the_bounds_the_law_is_unchanged_and_beyond_them_it_is_an_atom(mechanism):
    inner = mechanism(1.5)
    censored = Censored(inner, lower=[0.0, -1.0, 0.0], upper=[5.0, 4.0, 2.0])
    value, statistic = jnp.array([2.0, -1.0, 2.0]), jnp.array([1.0, 2.0, -7.0])
    expected = [inner.log_noise(1.0), jax.jit(inner.log_cdf)(-3.0), jax.jit(inner.log_survival)(9.0)]
    np.testing.assert_allclose(log_density_terms(censored, value, statistic), jnp.stack(expected), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(censored.log_density)(value, statistic), sum(expected), rtol=1e-6)


@pytest.mark.parametrize("mechanism", ADDITIVE)
def test_bounds_that_never_bind_change_nothing(mechanism):
    inner = mechanism(1.5)
    value, statistic = jnp.array([2.0, -30.0]), jnp.array([1.0, 4.0])
    for censored in (Censored(inner, lower=-1e4), Censored(inner, upper=1e4)):
        terms = log_density_terms(censored, value, statistic)
        np.testing.assert_allclose(terms, log_density_terms(inner, value, statistic), rtol=1e-6)
        key = jax.random.key(1)
        np.testing.assert_array_equal(sample(censored, key, statistic), sample(inner, key, statistic))


def p_value(censored, draws, statistic, discrete):
    """Chi-square of draws against masses by the censored density: the two atoms and ten cells between 0 and 10."""
    edges = np.arange(11.0)
    inside = draws[(draws > 0) & (draws < 10)]
    if discrete:
        masses = density(censored, edges[1:-1], statistic)
        counts = [np.count_nonzero(inside == k) for k in edges[1:-1]]
    else:
        grids = [np.linspace(a, a + 1, 401)[1:-1] for a in edges[:-1]]
        masses = [np.mean(density(censored, grid, statistic)) for grid in grids]
        counts = np.histogram(inside, edges)[0]
    atoms = density(censored, [0.0, 10.0], statistic)
    expected = NUM_DRAWS * np.concatenate([atoms, masses])
    observed = np.concatenate([[np.count_nonzero(draws <= 0), np.count_nonzero(draws >= 10)], counts])
    return stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1)


@pytest.mark.parametrize("mechanism", ADDITIVE)
def test_sampler_agrees_with_density(mechanism):
    censored = Censored(mechanism(4.0), lower=0, upper=10)
    draws = np.asarray(sample(censored, jax.random.key(2), jnp.full(NUM_DRAWS, 3.0)))
    assert draws.min() == 0
    assert draws.max() == 10
    assert p_value(censored, draws, 3, mechanism in DISCRETE) > GATE
    shifted = np.asarray(
        sample(censored, jax.random.key(2), jnp.full(NUM_DRAWS, 3.5 if mechanism not in DISCRETE else 4.0))
    )
    assert p_value(censored, shifted, 3, mechanism in DISCRETE) < GATE


@pytest.mark.x64
@pytest.mark.parametrize("mechanism", ADDITIVE)
def test_atoms_stay_finite_far_in_the_tail(mechanism):
    censored = Censored(mechanism(1.0), lower=0.0)
    value, statistic = jnp.zeros(3), jnp.array([40.0, 400.0, 4000.0])
    terms = np.asarray(log_density_terms(censored, value, statistic))
    assert np.all(np.isfinite(terms))
    assert np.all(np.diff(terms) < 0)
    slope = jax.jit(jax.grad(lambda s: Censored(mechanism(s), lower=0.0).log_density(value, statistic)))(1.0)
    assert np.isfinite(slope)
    assert slope > 0


def test_the_uncensored_density_at_the_bound_is_not_the_atom():
    censored = Censored(Laplace(4.0), lower=0, upper=10)
    draws = np.asarray(censored.sample(jax.random.key(2), jnp.full(NUM_DRAWS, 3.0)))
    assert p_value(Laplace(4.0), draws, 3, False) < GATE
