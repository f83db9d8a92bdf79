"""Channels and the global histogram: their laws, the privacy they promise, and the marginal of a Normal value."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from tests.conftest import FLOAT32

EPSILON = 2.0
ROUNDING = 1e-4 if FLOAT32 else 1e-9


def largest_loss(channel: object, points: np.ndarray, values: jax.Array) -> float:
    """The largest log-ratio of the channel's densities over pairs of records and released values."""
    density = jax.jit(jax.vmap(jax.vmap(channel.log_density, in_axes=(None, 0)), in_axes=(0, None)))
    found = np.asarray(density(values, jnp.asarray(points)))
    return float(np.max(found.max(axis=1) - found.min(axis=1)))


def test_the_laplace_channel_keeps_its_promise() -> None:
    channel = dpjax.Laplace(dpjax.laplace_scale(EPSILON, 3.0))
    loss = largest_loss(channel, np.linspace(-1, 2, 31), jnp.linspace(-5, 6, 111))
    assert 0.9 * EPSILON <= loss <= EPSILON + ROUNDING


@pytest.mark.x32
@pytest.mark.parametrize("resolution", [0, 2, 4])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_the_wavelet_channel_keeps_its_promise(resolution: int, calibration: str) -> None:
    channel = dpjax.HaarWavelet(dpjax.mechanisms.haar_scale(EPSILON, resolution, calibration), resolution)
    points = (np.arange(2 ** (resolution + 1)) + 0.5) / 2 ** (resolution + 1)
    # The loss is largest at released values that are the coefficients of some record.
    loss = largest_loss(channel, points, jax.vmap(channel.coefficients)(jnp.asarray(points)))
    assert loss <= EPSILON + ROUNDING
    if calibration == "tight":
        assert loss >= 0.9 * EPSILON
        half = dpjax.HaarWavelet(channel.scale / 1.2, resolution)
        assert largest_loss(half, points, jax.vmap(channel.coefficients)(jnp.asarray(points))) > EPSILON
    else:
        assert 5 < channel.scale / dpjax.mechanisms.haar_scale(EPSILON, resolution) < 21


def test_wavelet_coefficients_are_those_of_the_formula() -> None:
    channel = dpjax.HaarWavelet(1.0, 3)
    points = np.array([0.0, 0.03, 0.3, 0.49999, 0.5, 0.81, 0.999])

    def mother(x: float) -> float:
        return float(0 <= x < 0.5) - float(0.5 <= x < 1)

    for point in points:
        expected = [2 ** (j / 2) * mother(2**j * point - k) for j in range(4) for k in range(2**j)]
        np.testing.assert_allclose(channel.coefficients(jnp.asarray(point)), expected, rtol=1e-6)
    np.testing.assert_array_equal(channel.coefficients(jnp.asarray(7.0)), channel.coefficients(jnp.asarray(0.99)))


def test_wavelet_samples_follow_the_density() -> None:
    channel = dpjax.HaarWavelet(0.7, 2)
    keys = jax.random.split(jax.random.key(3), 4_000)
    released = np.asarray(jax.vmap(channel.sample, in_axes=(0, None))(keys, jnp.asarray(0.3)))
    noise = released - np.asarray(channel.coefficients(jnp.asarray(0.3)))
    assert released.shape == (4_000, channel.num_coefficients)
    assert min(stats.kstest(column, stats.laplace(scale=0.7).cdf).pvalue for column in noise.T) > 1e-4


@pytest.mark.parametrize(("num_bins", "n", "num_draws"), [(10, 50, 5), (4, 100, 20)])
def test_the_smoothed_histogram_keeps_its_promise(num_bins: int, n: int, num_draws: int) -> None:
    mechanism = dpjax.SmoothedHistogram(dpjax.mechanisms.smoothing_weight(EPSILON, num_draws, num_bins, n), num_draws)
    counts = np.zeros(num_bins)
    counts[1] = n
    neighbour = counts.copy()
    neighbour[:2] = (1, n - 1)
    worst = jnp.full(num_draws, 0.5 / num_bins)  # every draw falls where one record moved
    before, after = (mechanism.log_density(worst, jnp.asarray(table, float)) for table in (counts, neighbour))
    assert 0.9 * EPSILON <= float(after - before) <= EPSILON + ROUNDING


def test_the_smoothed_histogram_is_a_density_that_its_samples_follow() -> None:
    counts = jnp.array([3.0, 0.0, 5.0, 2.0])
    mechanism = dpjax.SmoothedHistogram(0.3, 1)
    grid = jnp.linspace(0.0005, 0.9995, 1_000)
    heights = np.exp(np.asarray(jax.vmap(lambda point: mechanism.log_density(point[None], counts))(grid), float))
    assert np.mean(heights) == pytest.approx(1.0, rel=1e-5)
    assert mechanism.log_density(jnp.array([1.2]), counts) == -jnp.inf
    drawn = dpjax.SmoothedHistogram(0.3, 5_000).sample(jax.random.key(1), counts)
    observed = np.histogram(drawn, 4, (0, 1))[0]
    expected = heights.reshape(4, -1).mean(axis=1) / 4
    assert stats.chisquare(observed, 5_000 * expected / expected.sum()).pvalue > 1e-4


@pytest.mark.parametrize("mechanism", [dpjax.Laplace, dpjax.Gaussian])
def test_the_marginal_of_a_normal_value_is_the_integral(mechanism: type) -> None:
    noise = stats.laplace if mechanism is dpjax.Laplace else stats.norm
    density = jax.jit(lambda value, mean, scale, width: mechanism(width).noise.log_marginal_normal(value, mean, scale))
    for value, mean, scale, width in ((0.3, 0.0, 1.0, 1.0), (-4.0, 1.0, 0.5, 2.0), (9.0, 0.0, 1.5, 0.4)):

        def integrand(y: float, value=value, mean=mean, scale=scale, width=width) -> float:
            return noise.pdf(value, y, width) * stats.norm.pdf(y, mean, scale)

        exact = integrate.quad(integrand, -30, 30, points=[value, mean], limit=400)[0]
        found = float(jnp.exp(density(*map(float, (value, mean, scale, width)))))
        assert found == pytest.approx(exact, rel=1e-4 if FLOAT32 else 1e-8)
    far = density(300.0, 0.0, 1.0, 0.5)  # far out only the noise reaches
    if mechanism is dpjax.Laplace:
        assert float(far) == pytest.approx(-600 + 2.0, rel=1e-6)  # e^(v / 2b²) e^(-d/b) / (2b), b = 1/2
    assert np.isfinite(float(density(1e6, 0.0, 1.0, 1e-3)))


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: dpjax.HaarWavelet(-1.0, 2), "scale"),
        (lambda: dpjax.HaarWavelet(1.0, 2.5), "resolution"),
        (lambda: dpjax.mechanisms.haar_scale(1.0, 2, "loose"), "calibration"),
        (lambda: dpjax.mechanisms.haar_scale(0.0, 2), "epsilon"),
        (lambda: dpjax.SmoothedHistogram(0.0, 5), "weight"),
        (lambda: dpjax.SmoothedHistogram(0.5, 0), "num_draws"),
        (lambda: dpjax.mechanisms.smoothing_weight(1.0, 5, 0, 10), "num_bins"),
    ],
)
def test_unusable_channels_are_refused(build, argument: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^{argument}: given"):
        build()
