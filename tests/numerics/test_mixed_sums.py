"""Integer noise beside Normal noise: against sums over the integers in high precision, in the tails, and samplers."""

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, SumOf
from dpjax.numerics.laplace_sums import UnequalLaplaces
from dpjax.numerics.mixed_sums import log_interval
from dpjax.numerics.noise_sums import EqualLaplaces
from tests.mechanisms.test_sum_of import GATE, NUM_DRAWS, weights_of

REACH = 250
PLACES = np.array([0.0, 0.25, 0.5, 1.0, 2.75, 7.125, 20.5, 60.25, 129.0])
MIXED = {
    "Laplace and rounding": [DiscreteLaplace(2.0), Gaussian(0.25)],
    "Laplace and a wide Gaussian": [DiscreteLaplace(2.0), Gaussian(4.0)],
    "servers and a Gaussian": [DiscreteLaplace(2.0), DiscreteLaplace(0.5), DiscreteGaussian(0.75), Gaussian(1.5)],
    "both Gaussian": [DiscreteGaussian(1.5), Gaussian(0.5), Gaussian(1.0)],
}


def real_law(sources: list[Gaussian], x: Any, *, tail: bool) -> Any:
    """The density, or P(noise >= x), of Gaussians, in 30 digits."""
    sigma = mpmath.sqrt(mpmath.fsum(mpmath.mpf(one.scale) ** 2 for one in sources))
    return mpmath.erfc(x / sigma / mpmath.sqrt(2)) / 2 if tail else mpmath.npdf(x, 0, sigma)


def summed(sources: list[Any], *, tail: bool) -> np.ndarray:
    """The logarithms of the density, or of P(noise >= x), at the places: a plain sum over whole noise."""
    whole = [one for one in sources if isinstance(one, (DiscreteLaplace, DiscreteGaussian))]
    real = [one for one in sources if one not in whole]
    law = reduce(np.convolve, map(weights_of, whole))
    middle = len(law) // 2
    with mpmath.workdps(60):
        totals = [
            mpmath.fsum(
                law[middle + k] * real_law(real, mpmath.mpf(x) - k, tail=tail) for k in range(-REACH, REACH + 1)
            )
            for x in PLACES
        ]
    return np.array([float(mpmath.log(total)) for total in totals])


def tolerance() -> dict[str, float]:
    """Rounding of either precision."""
    is_double = jnp.result_type(float) == jnp.float64
    return {"rtol": 1e-11, "atol": 1e-11} if is_double else {"rtol": 2e-6, "atol": 2e-5}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_noise_is_the_sum_over_the_integers(name: str) -> None:
    """To 129 from the middle, beyond where doubles underflow for the narrow ones."""
    mechanism, places = SumOf(MIXED[name]), jnp.asarray(PLACES, float)
    assert not mechanism.integer_noise
    found, above = jax.jit(lambda value: (mechanism.log_noise(value), mechanism.log_survival(value)))(places)
    np.testing.assert_allclose(found, summed(MIXED[name], tail=False), **tolerance())
    np.testing.assert_allclose(above, summed(MIXED[name], tail=True), **tolerance())
    np.testing.assert_array_equal(mechanism.log_noise(-places), mechanism.log_noise(places))
    total = np.logaddexp(np.asarray(mechanism.log_cdf(places), float), np.asarray(above, float))
    np.testing.assert_allclose(total, 0.0, atol=1e-5)


@pytest.mark.x64
def test_a_source_left_out_is_noticed() -> None:
    """The planted fault: whole noise that is taken to be real noise of its variance."""
    sources = MIXED["Laplace and rounding"]
    fault = SumOf([Laplace(2.0), Gaussian(0.25)])
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(fault.log_noise(PLACES), summed(sources, tail=False), **tolerance())


@pytest.mark.parametrize("number", [3, 5])
def test_unequal_laplaces_have_equal_ones_as_a_limit(number: int) -> None:
    """Partial fractions would have no digit left here."""
    places, scale = jnp.array([0.0, 1e-3, 0.5, 4.0, 60.0, 5e3]), jnp.asarray(1.5)
    equal, alike = EqualLaplaces(scale, number), UnequalLaplaces((scale,) * number)
    np.testing.assert_allclose(alike.log_density(places), equal.log_density(places), **tolerance())
    np.testing.assert_allclose(alike.log_tail(places), equal.log_tail(places), **tolerance())


@pytest.mark.parametrize("scales", [(1.0, 2.0, 4.0), (0.015625, 1.0, 32.0), (1.0, 1.5, 2.0, 3.0, 5.0)])
def test_unequal_laplaces_are_partial_fractions(scales: tuple[float, ...]) -> None:
    """In 60 digits, in which nothing of them cancels."""
    places = np.array([0.0, 0.125, 1.0, 8.0, 100.0, 1e4])
    with mpmath.workdps(60):
        b = [mpmath.mpf(scale) for scale in scales]
        weights = [mpmath.fprod(one**2 / (one**2 - other**2) for other in b if other != one) for one in b]
        pairs = list(zip(weights, b, strict=True))
        upper = [mpmath.log(mpmath.fsum(w * mpmath.exp(-x / s) for w, s in pairs) / 2) for x in map(mpmath.mpf, places)]
        law = [
            mpmath.log(mpmath.fsum(w * mpmath.exp(-x / s) / s for w, s in pairs) / 2) for x in map(mpmath.mpf, places)
        ]
    mechanism = SumOf([Laplace(scale) for scale in scales])
    np.testing.assert_allclose(mechanism.log_noise(jnp.asarray(places)), np.array(law, float), **tolerance())
    np.testing.assert_allclose(mechanism.log_survival(jnp.asarray(places)), np.array(upper, float), **tolerance())


@pytest.mark.parametrize("width", [0.01, 0.9, 1.1, 20.0])
def test_intervals_of_a_normal(width: float) -> None:
    """Far out, across zero, and narrow."""
    places = np.array([-30.0, -10.25, -0.5, 0.0, 3.0, 30.0])
    with mpmath.workdps(500):
        exact = [
            float(
                mpmath.log(
                    (mpmath.erfc(-(mpmath.mpf(x) + own) / mpmath.sqrt(2)) - mpmath.erfc(-x / mpmath.sqrt(2))) / 2
                )
            )
            for own in [mpmath.mpf(float(jnp.asarray(width)))]
            for x in map(mpmath.mpf, places)
        ]
    np.testing.assert_allclose(log_interval(jnp.asarray(places), jnp.asarray(width)), exact, rtol=3e-6, atol=3e-5)


def test_draws() -> None:
    for name in ("servers and a Gaussian", "both Gaussian"):
        mechanism = SumOf(MIXED[name])
        drawn = np.asarray(mechanism.sample(jax.random.key(2), jnp.zeros(NUM_DRAWS)))
        law = lambda value, mechanism=mechanism: np.exp(np.asarray(mechanism.log_cdf(jnp.asarray(value))))  # noqa: E731
        assert stats.kstest(drawn, law).pvalue > GATE, name
        np.testing.assert_allclose(np.var(drawn), mechanism.noise.variance(), rtol=0.1)


def test_scales_of_each_coordinate_are_written_and_described() -> None:
    both = SumOf([DiscreteLaplace([1.0, 3.0]), Gaussian([0.5, 2.5])])
    each = [SumOf([DiscreteLaplace(b), Gaussian(s)]).log_noise(jnp.asarray(2.5)) for b, s in [(1.0, 0.5), (3.0, 2.5)]]
    np.testing.assert_allclose(both.log_noise(jnp.full(2, 2.5)), each, rtol=1e-5)
    release = dpjax.Release([3.5, 4.25], both, statistics.cells("cell", 2), 9)
    assert dpjax.from_json(release.to_json()).mechanism == both
    assert "ε = 2" in dpjax.describe(release)  # of discrete Laplace noise of scale 1, as counts are whole


def test_whole_noise_promises_nothing_of_sums_that_are_not_whole() -> None:
    release = dpjax.Release([3.5], SumOf([DiscreteLaplace(4.0), Gaussian(2.0)]), statistics.total("y", 0.0, 1.0), 9)
    assert "ρ = 0.125" in dpjax.describe(release)
    assert "ε = 0.25" not in dpjax.describe(release)
