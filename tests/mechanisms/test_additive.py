"""Densities and tails of all additive noise against 50 digits, in either precision, however far out and however unlike.

A float is off by half a unit in its last place, ε / 2 of it. Where a log-density is -d, that moves it by about ε d, as
it falls by its own size in one relative unit of the distance, or by twice that. So tolerances are in units of
ε max(1, |log p|) nats, and say how many times that rounding is lost.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.mechanisms import Additive, Gaussian, Laplace, SumOf
from dpjax.numerics import quotients
from tests.mechanisms import exact_intervals
from tests.mechanisms.exact_densities import KINDS, read

USUAL = 16.0
TOLERANCE = {
    "Staircase": 128.0,  # where ε = 128, which is subtracted
    "forty equal Laplaces": 64.0,  # logarithms of coefficients of this size
    "three discrete Laplaces": 32.0,
    "discrete Laplace and Gaussian": 64.0,  # sums of many terms
    "discrete Laplace beside Gaussian": 64.0,
}
"""In units of ε max(1, |log p|) nats, for kinds of which it is not `USUAL`."""


def check_logs(found: np.ndarray, exact: np.ndarray, tolerance: float) -> None:
    """Raise unless all logarithms agree to so many units."""
    unit = float(jnp.finfo(jnp.result_type(float)).eps) * np.maximum(1.0, np.abs(exact))
    with np.errstate(invalid="ignore"):
        error = np.where(np.isneginf(exact) & np.isneginf(found), 0.0, np.abs(found - exact) / unit)
    assert np.all(error <= tolerance), (found[~(error <= tolerance)], exact[~(error <= tolerance)])


@pytest.mark.parametrize("name", KINDS)
def test_noise_is_right_in_fifty_digits(name: str) -> None:
    """Finds squares that cancel, sums that underflow, and whole places that floats do not hold."""
    rows, kind = read()[name], KINDS[name]
    mechanism = kind.build(*(jnp.asarray(numbers) for numbers in rows.T[:-3].astype(float)))
    distance, (density, upper) = jnp.asarray(rows[:, -3]), rows.T[-2:]
    assert type(mechanism).log_survival is Additive.log_survival  # the distribution function, reflected
    law = jax.jit(lambda built, x: (built.log_noise(x), jax.vmap(built.log_cdf)(jnp.stack([-x, x]))))
    found, (below, beside) = (np.asarray(each, float) for each in law(mechanism, distance))
    check_logs(found, density, TOLERANCE.get(name, USUAL))
    check_logs(below, upper, TOLERANCE.get(name, USUAL))
    # P(noise <= x) is 1 - P(noise >= x), and what whole noise has at x.
    rest = 1 - np.exp(upper) + kind.is_whole * np.exp(density)
    np.testing.assert_allclose(np.exp(beside), rest, rtol=0, atol=64 * jnp.finfo(distance.dtype).eps)


HALF = {"Laplace and Gaussian, rounded", "DiscreteLaplace, rounded"}
"""Kinds that may lose half of the digits: where a Gaussian bends within a step, and where whole noise is wide."""


@pytest.mark.parametrize("name", exact_intervals.KINDS)
def test_intervals_are_right_in_fifty_digits(name: str) -> None:
    """Finds what is 0 because both tails are alike, and how far a value is from a statistic far outside its bounds."""
    rows = exact_intervals.read()[name]
    *numbers, value, statistic = (jnp.asarray(column, float) for column in rows.T[:-2])
    mechanism = exact_intervals.KINDS[name].build(*numbers)
    found = np.asarray(jax.jit(lambda built, *both: built.log_density_terms(*both))(mechanism, value, statistic), float)
    epsilon, size = float(jnp.finfo(value.dtype).eps), np.maximum(1.0, rows[:, -1])
    error = np.abs(found - rows[:, -2]) / size
    allowed = 48 * epsilon + (epsilon**0.5 / 4 if name in HALF else 0.0)
    assert np.all(error <= allowed), (rows[~(error <= allowed)], found[~(error <= allowed)])


@pytest.mark.parametrize("shapes", exact_intervals.SHAPES)
def test_quotients_are_right_in_fifty_digits(shapes: str) -> None:
    """Finds products that are large and alike: where the value times the denominator is near the numerator."""
    rows = exact_intervals.read()[shapes]
    density = getattr(quotients, shapes.replace(" ", "_"))
    found = jax.jit(jax.vmap(density))(*(jnp.asarray(column, float) for column in rows.T[:-2]))
    epsilon = float(jnp.finfo(found.dtype).eps)
    error = np.abs(np.asarray(found, float) - rows[:, -2]) / np.maximum(1.0, rows[:, -1])
    # In double precision quadrature is exact to 1e-12.
    assert np.all(error <= max(16 * epsilon, 1e-12)), (found, rows[:, -2], error)


def test_a_quantile_drawn_far_from_its_interval_has_a_density() -> None:
    """Only differences of ranks count if the quantile lies below all bins: infinity times 0 was NaN."""
    mechanism = dpjax.mechanisms.IntervalQuantile(0.5, lower=0.0, upper=2.0, epsilon=1.0)
    counts = jnp.asarray([[40.0, 1.0, 2.0, 3.0, 0.0], [30_000.0, 1.0, 2.0, 3.0, 0.0]])
    found = jax.jit(jax.vmap(mechanism.log_density, in_axes=(None, 0)))(jnp.asarray([0.5]), counts)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[1], found[0], rtol=3e-3 if found.dtype == jnp.float32 else 1e-9)


def test_a_posterior_that_was_wrong_where_the_gaussian_is_narrow() -> None:
    """Five records N(μ, 1), μ ~ N(0, 90²), and Laplace noise of scale 120 beside a rounding error of 0.03.

    The sum is normal, and so is μ given it: a grid over the sum says mean 157.3 and standard deviation 36.6.
    """
    total, deviation = np.linspace(-3000.0, 3000.0, 6001), np.sqrt(25 * 90.0**2 + 5)
    noise = SumOf([Laplace(120.0), Gaussian(0.03)])
    log_noise = np.asarray(jax.jit(noise.log_noise)(jnp.asarray(900.0 - total, float)), float)
    log_weight = log_noise - (total / deviation) ** 2 / 2
    weight = np.exp(log_weight - log_weight.max())
    mean = 5 * 90.0**2 / deviation**2 * total
    first = np.sum(weight * mean) / weight.sum()
    second = np.sum(weight * (mean - first) ** 2) / weight.sum() + 90.0**2 * 5 / deviation**2
    np.testing.assert_allclose([first, second**0.5], [157.3, 36.6], atol=0.06)


def test_slopes_of_rounded_noise_are_finite_far_out() -> None:
    """A value of the density that was not wanted was the logarithm of 0, of which the slope is NaN."""
    mechanism = dpjax.mechanisms.Rounded(Gaussian(1.0), 10.0)
    slope = jax.jit(jax.grad(lambda statistic: mechanism.log_density_terms(jnp.asarray(20.0), statistic)))
    np.testing.assert_allclose(slope(jnp.asarray(-45.0)), 60.0, rtol=1e-2)
    assert np.isfinite(slope(jnp.asarray(-1e4)))


@pytest.mark.x32
def test_steps_of_little_epsilon_have_their_variance() -> None:
    """1 - exp(-ε) loses the digits of a small ε, and to the third power."""
    variance = dpjax.mechanisms.Staircase(epsilon=2.5e-7, sensitivity=1.0).noise.variance()
    np.testing.assert_allclose(variance, 2 / 2.5e-7**2, rtol=1e-3)
