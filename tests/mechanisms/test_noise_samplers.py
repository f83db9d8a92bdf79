"""The samplers of the additive mechanisms against their laws, with a wrong sampler beside each test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

NUM_DRAWS = 20_000
GATE = 1e-4  # p-value below which a sampler is refused; keys are fixed
LAWS = {Laplace: stats.laplace, Gaussian: stats.norm}


SUPPORT = np.arange(-4096, 4097)


@jax.jit
def sample_zeros(mechanism, key):
    return mechanism.sample(key, jnp.zeros(NUM_DRAWS))


@jax.jit
def probabilities(mechanism):
    return jnp.exp(mechanism.log_noise(jnp.asarray(SUPPORT, float)))


def draw(mechanism, seed):
    """Independent draws of the noise, for a statistic of zeros."""
    return np.asarray(sample_zeros(mechanism, jax.random.key(seed)))


def p_value(mechanism, noise):
    """Pearson's chi-square of integer noise against the mechanism's own probabilities, bins of 20 expected or more."""
    expected = NUM_DRAWS * np.asarray(probabilities(mechanism), float)
    observed = np.bincount(noise.astype(int) - SUPPORT[0], minlength=len(SUPPORT))
    wide = expected >= 20
    rest = NUM_DRAWS - expected[wide].sum()
    counts = np.append(observed[wide], observed[~wide].sum())
    means = np.append(expected[wide], rest)
    kept = means > 1
    statistic = np.sum((counts[kept] - means[kept]) ** 2 / means[kept])
    return stats.chi2.sf(statistic, max(kept.sum() - 1, 1))


@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
@pytest.mark.parametrize("scale", [0.02, 1.7, 1e5])
def test_continuous_samplers(mechanism, scale):
    noise = draw(mechanism(scale), 1)
    assert stats.kstest(noise, LAWS[mechanism](scale=scale).cdf).pvalue > GATE
    assert stats.kstest(noise * 1.1, LAWS[mechanism](scale=scale).cdf).pvalue < GATE


@pytest.mark.parametrize("mechanism", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("scale", [0.3, 0.8, 1.7, 12.0])
def test_discrete_samplers(mechanism, scale):
    noise = draw(mechanism(scale), 2)
    assert np.array_equal(noise, np.round(noise))
    assert (noise < 0).any()
    assert p_value(mechanism(scale), noise) > GATE


@pytest.mark.parametrize("scale", [0.3, 1.7, 12.0])
def test_the_variance_passed_as_scale_is_noticed(scale):
    for mechanism in (DiscreteLaplace, DiscreteGaussian):
        assert p_value(mechanism(scale), draw(mechanism(scale**2), 3)) < GATE


@pytest.mark.parametrize(("continuous", "discrete"), [(Laplace, DiscreteLaplace), (Gaussian, DiscreteGaussian)])
def test_rounded_continuous_noise_is_not_discrete_noise(continuous, discrete):
    assert p_value(discrete(0.8), np.round(draw(continuous(0.8), 4))) < GATE


def test_tiny_scales_give_no_noise_at_all():
    """At scale 0.01 the probability of any noise is below 1e-43."""
    for mechanism in (DiscreteLaplace, DiscreteGaussian):
        assert not draw(mechanism(0.01), 5).any()


def test_large_scales_approach_the_continuous_laws():
    """At scale 1e5 the lattice moves the distribution function by less than 1e-5, the Kolmogorov gate is near 0.01."""
    for discrete, law in ((DiscreteLaplace, stats.laplace), (DiscreteGaussian, stats.norm)):
        noise = draw(discrete(1e5), 6)
        assert stats.kstest(noise, law(scale=1e5).cdf).pvalue > GATE
        assert stats.kstest(noise, law(scale=1.1e5).cdf).pvalue < GATE


def test_vmapped_samplers_give_each_scale_its_own_law():
    scales = jnp.array([0.4, 2.0, 9.0])
    keys = jax.random.split(jax.random.key(7), 3)
    for mechanism in (DiscreteLaplace, DiscreteGaussian):

        @jax.jit
        @jax.vmap
        def draws(key, scale, mechanism=mechanism):
            return mechanism(scale).sample(key, jnp.zeros(NUM_DRAWS))

        noise = np.asarray(draws(keys, scales))
        for scale, row, other in zip(scales, noise, np.roll(noise, 1, axis=0), strict=True):
            assert p_value(mechanism(float(scale)), row) > GATE
            assert p_value(mechanism(float(scale)), other) < GATE


@pytest.mark.parametrize("mechanism", [Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian])
def test_samples_are_centred_at_the_statistic_and_scaled_by_coordinate(mechanism):
    """Means within 5 standard errors; a coordinate's spread follows its own scale."""
    scale, statistic = np.array([0.8, 20.0]), np.array([-3.0, 50.0])
    keys = jax.random.split(jax.random.key(8), 10_000)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: mechanism(scale).sample(key, jnp.asarray(statistic, int))))(keys))
    deviations = draws.std(axis=0)
    assert np.all(np.abs(draws.mean(axis=0) - statistic) < 5 * deviations / 100)
    assert deviations[1] > 10 * deviations[0]


def test_a_scale_that_is_not_a_number_does_not_hang():
    sample = jax.jit(lambda scale: DiscreteGaussian(scale).sample(jax.random.key(9), jnp.zeros(3)))
    assert np.all(np.isnan(sample(jnp.nan)))
