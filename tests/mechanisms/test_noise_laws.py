"""The laws of the additive mechanisms against sums, integrals and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats

from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpjax.numerics.theta import log_upper_theta

CONTINUOUS = (Laplace, Gaussian)


DISCRETE = (DiscreteLaplace, DiscreteGaussian)


SCALES = (1e-2, 0.1, 0.3, 0.39, 0.41, 0.7, 1.0, 3.7, 100.0, 1e4)


def continuous_law(mechanism, scale):
    """Log-density and log-distribution function from other primitives; SciPy's Laplace law underflows."""
    if mechanism is Gaussian:
        return stats.norm(scale=scale).logpdf, stats.norm(scale=scale).logcdf

    def log_density(noise):
        return -np.abs(noise) / scale - np.log(2 * scale)

    def log_cdf(noise):
        return np.where(noise < 0, noise / scale - np.log(2), np.log1p(-np.exp(-np.maximum(noise, 0) / scale) / 2))

    return log_density, log_cdf


def discrete_law(mechanism, scale, noise):
    """Log-probabilities in long double from the definition, summed to 45 scales either side."""
    exponent = {DiscreteLaplace: 1, DiscreteGaussian: 2}[mechanism]

    def log_weight(integers):
        return -(np.abs(np.asarray(integers, np.longdouble)) ** exponent) / (
            exponent * np.longdouble(scale) ** exponent
        )

    support = np.arange(-int(45 * scale) - 2, int(45 * scale) + 3)
    return (log_weight(noise) - np.log(np.sum(np.exp(log_weight(support))))).astype(float)


@pytest.mark.x64
@pytest.mark.parametrize("scale", [1e-2, 1.3, 1e6])
@pytest.mark.parametrize("mechanism", CONTINUOUS)
def test_continuous_noise_integrates_to_one(mechanism, scale):
    half = np.linspace(0, 45 * scale, 400_001)
    density = np.exp(mechanism(scale).log_noise(jnp.asarray(half)))
    np.testing.assert_allclose(2 * integrate.simpson(density, x=half), 1, rtol=1e-10)


@pytest.mark.x64
@pytest.mark.parametrize("mechanism", CONTINUOUS)
def test_continuous_noise_matches_its_law_into_the_far_tails(mechanism):
    noise = np.concatenate([np.linspace(-9, 9, 37), [-1e4, -300, -38, -25, -20.1, -19.9, 25.0, 300]]) * 2.5
    built, (log_density, log_cdf) = mechanism(2.5), continuous_law(mechanism, 2.5)
    np.testing.assert_allclose(built.log_noise(jnp.asarray(noise)), log_density(noise), rtol=1e-10)
    np.testing.assert_allclose(built.log_cdf(jnp.asarray(noise)), log_cdf(noise), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(built.log_survival(jnp.asarray(noise)), log_cdf(-noise), rtol=1e-10, atol=1e-15)


@pytest.mark.x64
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mechanism", DISCRETE)
def test_discrete_noise_matches_its_definition(mechanism, scale):
    noise = np.arange(-50.0, 51.0) * max(1, round(scale / 5))
    ours = mechanism(scale).log_noise(jnp.asarray(noise))
    np.testing.assert_allclose(ours, discrete_law(mechanism, scale, noise), rtol=1e-12, atol=1e-12)


@pytest.mark.x64
def test_discrete_noise_at_a_scale_of_a_million():
    scale, noise = 1e6, np.array([0.0, 1.0, -3e6, 7e6])
    gaussian = stats.norm.logpdf(noise, scale=scale)
    laplace = np.log(np.tanh(0.5 / scale)) - np.abs(noise) / scale
    np.testing.assert_allclose(DiscreteGaussian(scale).log_noise(jnp.asarray(noise)), gaussian, rtol=1e-12)
    np.testing.assert_allclose(DiscreteLaplace(scale).log_noise(jnp.asarray(noise)), laplace, rtol=1e-12)


@pytest.mark.x32
@pytest.mark.parametrize("scale", [*SCALES, 1e6])
@pytest.mark.parametrize("mechanism", CONTINUOUS + DISCRETE)
def test_float32_laws_are_right_to_rounding(mechanism, scale):
    noise = np.arange(-8.0, 9.0) * max(1, round(scale / 2))
    built = mechanism(jnp.float32(scale))
    if mechanism in DISCRETE and scale < 1e6:
        density = discrete_law(mechanism, scale, noise)
    else:  # at a scale of a million the lattice is fine enough to be a continuum
        density = continuous_law(
            {DiscreteLaplace: Laplace, DiscreteGaussian: Gaussian}.get(mechanism, mechanism), scale
        )[0](noise)
    ours = built.log_noise(jnp.asarray(noise, jnp.float32))
    tails = built.log_cdf(jnp.asarray(noise, jnp.float32))
    assert ours.dtype == tails.dtype == jnp.float32
    assert np.all(np.isfinite(ours))
    assert np.all(np.diff(tails) >= 0)
    np.testing.assert_allclose(ours, density, rtol=2e-6, atol=2e-6)


@pytest.mark.x64
@pytest.mark.parametrize("scale", SCALES[:-1])
@pytest.mark.parametrize("mechanism", DISCRETE)
def test_discrete_tails_match_sums(mechanism, scale):
    thresholds = np.unique(np.round(np.array([-40, -19, -6, -2, -1, -0.4, 0, 0.4, 2, 6]) * max(scale, 1)))
    terms = np.exp(discrete_law(mechanism, scale, np.arange(0, int(90 * scale) + 60)))
    tails = np.cumsum(terms[::-1])[::-1]
    lower_side = thresholds[thresholds < 0]
    expected = np.log(np.maximum(tails[(-lower_side).astype(int)], 1e-300))
    ours = np.asarray(mechanism(scale).log_cdf(jnp.asarray(thresholds)))
    representable = expected > -600
    np.testing.assert_allclose(ours[thresholds < 0][representable], expected[representable], rtol=1e-10, atol=1e-12)
    at_least = np.asarray(mechanism(scale).log_survival(jnp.asarray(thresholds + 1)))
    np.testing.assert_allclose(np.exp(ours) + np.exp(at_least), 1, rtol=1e-12)


@pytest.mark.x64
@pytest.mark.parametrize("scale", [0.5, 8.0, 1e6])
def test_discrete_gaussian_tail_is_stable_where_probabilities_underflow(scale):
    """The ratio of successive tails is known: T(m) = p(m) + T(m + 1)."""
    least = jnp.asarray(np.round(np.array([1, 30, 60, 1000]) * max(scale, 1.0)))
    tail = jax.jit(log_upper_theta)
    step = tail(least, scale), tail(least + 1, scale)
    first = -np.square(np.asarray(least) / scale) / 2
    np.testing.assert_allclose(
        np.exp(first - step[0]) + np.exp(step[1] - step[0]), 1, atol=1e-8 if scale > 1e3 else 1e-9
    )


@pytest.mark.x64
@settings(max_examples=30, deadline=None)
@given(scale=st.floats(1e-2, 50.0))
def test_discrete_noise_is_normalised_and_symmetric_at_any_scale(scale):
    integers = jnp.arange(-2500.0, 2501.0)
    for mechanism in DISCRETE:
        log_probability = mechanism(jnp.asarray(scale)).log_noise(integers)
        np.testing.assert_allclose(np.sum(np.exp(log_probability)), 1, rtol=1e-10)
        np.testing.assert_array_equal(log_probability, log_probability[::-1])


@pytest.mark.parametrize("mechanism", CONTINUOUS + DISCRETE)
def test_variances_are_those_of_the_densities(mechanism):
    """Widths and forecasts are made of them: they stay plausible where one is that of another family."""
    noise = np.arange(-200.0, 201.0) if mechanism in DISCRETE else np.linspace(-80.0, 80.0, 80_001)
    weight = np.exp(np.asarray(mechanism(1.7).log_noise(jnp.asarray(noise)), float))
    variance = np.sum(weight * noise**2) / np.sum(weight)
    np.testing.assert_allclose(mechanism(1.7).noise.variance(), variance, rtol=1e-4)


@pytest.mark.parametrize("mechanism", DISCRETE)
def test_integer_noise_only(mechanism):
    terms = mechanism(2.0).log_density_terms(jnp.array([0.5, -3.0, 2.0]), jnp.array([0.0, 1.0, 1.5]))
    assert np.array_equal(np.isfinite(terms), [False, True, False])


@pytest.mark.parametrize("mechanism", CONTINUOUS + DISCRETE)
def test_scales_broadcast_by_column_and_integers_are_accepted(mechanism):
    scale, noise = np.array([0.5, 1.0, 4.0]), np.arange(-3.0, 9.0).reshape(3, 4)
    columns = mechanism(jnp.asarray(scale)[:, None])
    for name in ("log_noise", "log_cdf", "log_survival"):
        law = jax.jit(lambda built, noise, name=name: getattr(built, name)(noise))
        table = law(columns, jnp.asarray(noise))
        rows = [law(mechanism(float(b)), jnp.asarray(row)) for b, row in zip(scale, noise, strict=True)]
        np.testing.assert_allclose(table, np.stack(rows), rtol=1e-5)
    counts = mechanism([0.5, 1.0, 4.0]).log_density(jnp.array([3, -1, 2]), jnp.array([2, 0, 5]))
    floats = mechanism(scale).log_density(jnp.array([3.0, -1.0, 2.0]), jnp.array([2.0, 0.0, 5.0]))
    assert counts.shape == ()
    assert counts == floats
