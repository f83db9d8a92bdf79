"""Probabilities of intervals, and draws within them, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dpjax.numerics.incomplete import beta_tails, normal_tails
from dpjax.numerics.intervals import RealDistribution, draw_between, log_interval_probability, normal_between

INF = np.inf
ENDS = np.array([(-INF, -9.0), (8.0, INF), (-INF, INF), (5.0, 5.5), (-0.5, 0.5), (-30.0, -29.0), (2.0, 1.0)])


def standard(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.asarray(normal_between(jnp.asarray(low, float), jnp.asarray(high, float), jnp.zeros(()), jnp.ones(())))


def test_intervals_of_a_normal_number_are_right_in_both_tails():
    """Finds a difference taken on the side of the larger tails, and ends that are no numbers."""
    expected = [
        *(stats.norm.logcdf(-9.0), stats.norm.logsf(8.0), 0.0),
        *(np.log(stats.norm.sf(5.0) - stats.norm.sf(5.5)), np.log(stats.norm.cdf(0.5) - stats.norm.cdf(-0.5))),
        *(stats.norm.logcdf(-29.0) + np.log1p(-np.exp(stats.norm.logcdf(-30.0) - stats.norm.logcdf(-29.0))), -INF),
    ]
    found = standard(ENDS[:, 0], ENDS[:, 1])
    np.testing.assert_allclose(found, expected, rtol=1e-12 if found.dtype == np.float64 else 2e-6, atol=1e-15)


@pytest.mark.parametrize("width", [2.0**-16, 2.0**-10, 2.0**-5, 2.0**-3])
def test_narrow_intervals_keep_their_digits(width):
    """Finds the digits that two tails share: in single precision a difference of them would be off by 10 %."""
    low = np.array([-6.0, -1.0, 0.25, 3.0, 60.0])
    found = standard(low, low + width)
    # By the density at the lower end, which underflows in the last case.
    ratios = [integrate.quad(lambda x, one=one: np.exp(-x * (one + x / 2)), 0, width, epsrel=1e-13)[0] for one in low]
    expected = stats.norm.logpdf(low) + np.log(ratios)
    np.testing.assert_allclose(found, expected, rtol=3e-11 if found.dtype == np.float64 else 2e-5)


@pytest.mark.x64
def test_a_density_that_is_steep_is_not_taken_by_three_values():
    """Finds a rule for smooth densities at work where the interval is small, but the density is not even there."""
    shapes = jnp.asarray(0.1), jnp.asarray(5.0)
    law = RealDistribution(lambda x: beta_tails(x, *shapes), lambda x: jax.scipy.stats.beta.logpdf(x, *shapes))
    found = log_interval_probability(law, jnp.asarray(1e-8), jnp.asarray(1e-7))
    np.testing.assert_allclose(found, np.log(np.diff(stats.beta.cdf([1e-8, 1e-7], 0.1, 5.0))[0]), rtol=1e-10)


def test_slopes_are_finite_wherever_the_ends_are():
    """Finds NaN from a branch that is not wanted: it would stop every chain."""

    def total(mean: jax.Array) -> jax.Array:
        low, high = (jnp.asarray(ENDS[:-1, side], float) for side in (0, 1))
        return jnp.sum(normal_between(low, high, mean, jnp.ones(())))

    slope, bend = jax.jvp(jax.grad(total), (jnp.zeros(()),), (jnp.ones(()),))
    assert np.all(np.isfinite([slope, bend]))


def test_draws_within_intervals_have_the_truncated_distribution():
    """Finds draws beyond an end, or by the whole distribution: in the bulk, in a far tail, and about 0."""
    ends = jnp.repeat(jnp.asarray([(-INF, -3.0), (6.0, INF), (-0.5, 2.0)], float), 2000, axis=0)
    low, high = ends[:, 0], ends[:, 1]
    law = RealDistribution(normal_tails)
    drawn = draw_between(jax.random.key(3), lambda x: log_interval_probability(law, low, x), low, high)
    for row, (least, most) in zip(np.asarray(drawn, float).reshape(3, -1), np.asarray(ends[::2000]), strict=True):
        assert np.all((least <= row) & (row <= most))
        assert stats.kstest(row, stats.truncnorm(least, most).cdf).pvalue > 1e-4
