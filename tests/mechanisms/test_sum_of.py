"""Noise of several sources: against convolutions in high precision, in the tails, samplers, chains, and refusals."""

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Rounded, SumOf
from dpjax.mechanisms.smoothed import smoothed
from tests.mechanisms.published import NOISY_ROWS, ROWS, Part, check_chains

mpmath.mp.dps = 30
REACH, NUM_DRAWS, GATE = 250, 20_000, 1e-4
PLACES = np.array([0, 1, 2, 3, 7, 20, 60, 130])

WHOLE = {
    "two Laplaces": [DiscreteLaplace(2.0), DiscreteLaplace(2.0)],
    "nearly equal ones": [DiscreteLaplace(2.0), DiscreteLaplace(2.0001)],
    "three of other scales": [DiscreteLaplace(0.4), DiscreteLaplace(3.0), DiscreteLaplace(1.5)],
    "five servers": [DiscreteLaplace(1.2)] * 5,
    "two Gaussians": [DiscreteGaussian(0.7), DiscreteGaussian(1.1)],
    "smooth Gaussians": [DiscreteGaussian(2.0), DiscreteGaussian(3.5)],
    "three Gaussians": [DiscreteGaussian(0.5), DiscreteGaussian(0.5), DiscreteGaussian(4.0)],
    "Laplace and Gaussian": [DiscreteLaplace(1.3), DiscreteGaussian(2.5)],
    "a wide Gaussian": [DiscreteLaplace(0.5), DiscreteGaussian(6.0)],
    "all kinds": [DiscreteLaplace(1.3), DiscreteGaussian(0.6), DiscreteLaplace(2.0), DiscreteGaussian(2.5)],
}


def weights_of(source: Any) -> np.ndarray:
    """The probabilities of whole noise from -REACH to REACH, in 30 digits."""
    scale = mpmath.mpf(float(np.float32(source.scale)) if jnp.result_type(float) == jnp.float32 else source.scale)
    power = 1 if isinstance(source, DiscreteLaplace) else 2
    weight = [mpmath.exp(-((abs(k) / scale) ** power) / power) for k in range(-REACH, REACH + 1)]
    total = mpmath.fsum(weight)
    return np.array([one / total for one in weight], object)


def convolved(sources: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of P(noise = k) and P(noise >= k) at the places."""
    law = reduce(np.convolve, map(weights_of, sources))
    middle = len(law) // 2
    upper = np.cumsum(law[::-1])[::-1]
    return tuple(np.array([float(mpmath.log(one[middle + k])) for k in PLACES]) for one in (law, upper))  # type: ignore[return-value]


@pytest.mark.parametrize("name", WHOLE)
def test_integer_noise_is_the_convolution(name: str) -> None:
    """To 130 from the middle, beyond where doubles underflow for the narrow ones."""
    mechanism = SumOf(WHOLE[name])
    log_probability, log_upper = convolved(WHOLE[name])
    tolerance = (
        {"rtol": 1e-11, "atol": 1e-11} if jnp.result_type(float) == jnp.float64 else {"rtol": 2e-6, "atol": 2e-5}
    )
    places = jnp.asarray(PLACES, float)
    np.testing.assert_allclose(mechanism.log_noise(-places), log_probability, **tolerance)
    np.testing.assert_allclose(mechanism.log_survival(places), log_upper, **tolerance)
    whole = np.exp(np.asarray(jax.jit(mechanism.log_noise)(jnp.arange(-600.0, 601.0)), float))
    assert abs(whole.sum() - 1) < 2e-6
    assert np.isneginf(mechanism.log_noise(jnp.array(0.5)))


@pytest.mark.x64
def test_far_tails() -> None:
    """A thousand scales out: the ratio of neighbours is the larger geometric ratio, and a polynomial's where equal."""
    far = jnp.array([4_000.0, 4_001.0])
    step = np.diff(SumOf([DiscreteLaplace(4.0), DiscreteLaplace(2.0)]).log_noise(far))
    np.testing.assert_allclose(step, -0.25, rtol=1e-12)
    equal = np.asarray(SumOf([DiscreteLaplace(4.0)] * 2).log_noise(far))
    ratio = np.exp(-0.25)
    exact = np.log((1 - ratio) ** 4 / (1 - ratio**2) ** 2) + np.log1p(ratio**2 + np.asarray(far) * (1 - ratio**2))
    np.testing.assert_allclose(equal, exact - np.asarray(far) / 4 - np.log(1 - ratio**2), rtol=1e-12)
    mixed = np.diff(SumOf([DiscreteLaplace(4.0), DiscreteGaussian(9.0)]).log_noise(far))
    np.testing.assert_allclose(mixed, -0.25, rtol=1e-9)


REAL = {
    "Gaussians": ([Gaussian(1.0), Gaussian(2.0)], stats.norm(scale=5**0.5)),
    "two Laplaces": ([Laplace(1.0), Laplace(2.5)], None),
    "two equal Laplaces": ([Laplace(1.5), Laplace(1.5)], None),
    "four Laplaces": ([Laplace(0.8)] * 4, None),
    "three Laplaces": ([Laplace(0.5), Laplace(2.0), Laplace(2.0)], None),
    "Laplace and Gaussian": ([Laplace(1.0), Gaussian(0.7)], None),
    "Laplace and Gaussians": ([Laplace(0.3), Gaussian(3.0), Gaussian(4.0)], None),
}


def density_by_quadrature(sources: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Places, and the density there, by the inversion of the characteristic function on a fine grid."""
    frequency = np.linspace(0.0, 200.0, 200_001)
    value = np.ones_like(frequency)
    for source in sources:
        square = np.square(source.scale * frequency)
        value = value * (1 / (1 + square) if isinstance(source, Laplace) else np.exp(-square / 2))
    places = np.array([0.0, 0.3, 1.0, 2.5, 4.0])
    return places, np.array([integrate.simpson(value * np.cos(frequency * x), x=frequency) / np.pi for x in places])


@pytest.mark.x64
@pytest.mark.parametrize("name", REAL)
def test_real_noise(name: str) -> None:
    mechanism = SumOf(REAL[name][0])
    places, density = density_by_quadrature(REAL[name][0])
    np.testing.assert_allclose(np.exp(mechanism.log_noise(jnp.asarray(-places))), density, rtol=1e-4)
    grid = np.linspace(0.0, 60.0, 60_001)
    found = np.exp(np.asarray(mechanism.log_noise(jnp.asarray(grid))))
    assert abs(2 * integrate.simpson(found, x=grid) - 1) < 1e-9
    below = np.r_[0.5, 0.5 + integrate.cumulative_simpson(found, x=grid)]
    np.testing.assert_allclose(np.exp(mechanism.log_cdf(jnp.asarray(grid)))[::50], below[::50], rtol=1e-8)
    upper = np.asarray(mechanism.log_survival(jnp.asarray(grid)))[[5_000, 30_000]]
    np.testing.assert_allclose(np.exp(upper), 1 - below[[5_000, 30_000]], atol=1e-9)


@pytest.mark.parametrize("name", REAL)
def test_real_tails_stay_finite(name: str) -> None:
    """The derivative of the log-survival is minus the hazard, also where probabilities underflow in float32."""
    mechanism, far = SumOf(REAL[name][0]), jnp.array([40.0, 60.0, 90.0])
    tail = jax.jit(jax.vmap(jax.value_and_grad(mechanism.log_survival)))(far)
    assert np.all(np.isfinite(tail[0]))
    np.testing.assert_allclose(-tail[1], np.exp(mechanism.log_noise(far) - tail[0]), rtol=2e-3)


@pytest.mark.parametrize("name", ["three of other scales", "Laplace and Gaussian", "two Gaussians"])
def test_draws(name: str) -> None:
    mechanism = SumOf(WHOLE[name])
    drawn = np.asarray(jax.jit(lambda key: mechanism.sample(key, jnp.zeros(NUM_DRAWS)))(jax.random.key(1)))
    value = np.arange(-4, 5)
    expected = NUM_DRAWS * np.exp(np.asarray(mechanism.log_noise(jnp.asarray(value, float)), float))
    observed = np.array([np.sum(drawn == one) for one in value])
    rest = NUM_DRAWS - np.array([observed.sum(), expected.sum()])
    statistic = np.sum(
        (np.append(observed, rest[0]) - np.append(expected, rest[1])) ** 2 / np.append(expected, rest[1])
    )
    assert stats.chi2.sf(statistic, len(value)) > GATE
    np.testing.assert_allclose(np.var(drawn), mechanism.noise.variance(), rtol=0.1)


def test_real_draws() -> None:
    for name, (sources, _) in REAL.items():
        mechanism = SumOf(sources)
        drawn = np.asarray(mechanism.sample(jax.random.key(2), jnp.zeros(NUM_DRAWS)))
        law = lambda value, mechanism=mechanism: np.exp(np.asarray(mechanism.log_cdf(jnp.asarray(value))))  # noqa: E731
        assert stats.kstest(drawn, law).pvalue > GATE, name


def whole_law(sources: list[Any]) -> Any:
    law = np.array(reduce(np.convolve, map(weights_of, sources)), float)
    return lambda value, sums: np.log(law[(value - sums).astype(int) + len(law) // 2])


TWO = [DiscreteLaplace(1.0), DiscreteGaussian(1.2)]
NOISY = Part(SumOf(TWO), whole_law(TWO), np.array([7, 9, 0, 5]))
ROW_SOURCES = [DiscreteLaplace(1.0), DiscreteLaplace(2.0)]
NOISY_SUMS = Part(SumOf(ROW_SOURCES), whole_law(ROW_SOURCES), NOISY_ROWS, ROWS)


@pytest.mark.x32
def test_chains_of_counts_agree_with_enumeration() -> None:
    check_chains([NOISY, NOISY_SUMS], imputation=dpjax.counts())


@pytest.mark.x64
def test_one_source_alone_is_noticed() -> None:
    """The planted fault: the noise of the first server only."""
    with pytest.raises(AssertionError):
        check_chains([NOISY._replace(mechanism=DiscreteLaplace(1.0)), NOISY_SUMS], imputation=dpjax.counts())


@pytest.mark.x64
def test_it_goes_into_other_mechanisms() -> None:
    """Gaussian noise of two servers, rounded in the end; and integer noise clamped at zero."""
    rounded = Rounded(SumOf([Gaussian(3.0), Gaussian(4.0)]), step=2.0)
    np.testing.assert_allclose(
        rounded.log_density(jnp.array([6.0]), jnp.array([1.0])), np.log(np.diff(stats.norm(1, 5).cdf([5.0, 7.0])))
    )
    clamped = dpjax.Censored(SumOf([DiscreteLaplace(2.0)] * 3), lower=0.0)
    values = jnp.arange(0.0, 200.0)
    assert abs(np.sum(np.exp(clamped.log_density_terms(values, jnp.full(200, 4.0)))) - 1) < 1e-12


def test_scales_of_each_coordinate() -> None:
    both = SumOf([DiscreteLaplace([1.0, 3.0]), DiscreteGaussian([0.6, 2.5])])
    value, sums = jnp.array([4.0, 9.0]), jnp.array([5.0, 2.0])
    each = [SumOf([DiscreteLaplace(b), DiscreteGaussian(s)]) for b, s in [(1.0, 0.6), (3.0, 2.5)]]
    expected = [one.log_density_terms(value[k], sums[k]) for k, one in enumerate(each)]
    release = dpjax.Release(value, both, statistics.cells("cell", 2), 7)
    np.testing.assert_allclose(both.log_density_terms(value, sums), expected, rtol=1e-5)
    np.testing.assert_allclose(release.log_densities_at((value - sums)[:, None]), [sum(expected)], rtol=1e-5)


def test_it_is_written_and_described() -> None:
    mechanism = SumOf([DiscreteLaplace(2.0), SumOf([DiscreteGaussian(3.0), DiscreteLaplace(4.0)])])
    release = dpjax.Release([3, 4], mechanism, statistics.cells("cell", 2), 9)
    assert dpjax.from_json(release.to_json()).mechanism == mechanism
    words = dpjax.describe(release)
    assert (
        "Noise: the sum of discrete Laplace of scale 2 and discrete Laplace of scale 4 and discrete Gaussian" in words
    )
    assert "ε = 0.5" in words  # of scale 4 alone; its ρ is 0.125, and that of the Gaussian 0.1111
    assert "ρ = 0.1111" in words


@pytest.mark.x64
def test_what_is_described_holds() -> None:
    """The largest log ratio of neighbours is at most the least ε of the sources, whatever they are."""
    for name in ("three of other scales", "Laplace and Gaussian", "all kinds"):
        least = min(1 / source.scale for source in WHOLE[name] if isinstance(source, DiscreteLaplace))
        log_law = np.asarray(SumOf(WHOLE[name]).log_noise(jnp.arange(-60.0, 61.0)))
        assert np.max(np.abs(np.diff(log_law))) <= least + 1e-9, name


SMOOTHED = {
    "two Laplaces": [DiscreteLaplace(2.0), DiscreteLaplace(3.0)],
    "three Laplaces": [DiscreteLaplace(2.0)] * 3,
    "two Gaussians": [DiscreteGaussian(0.8), DiscreteGaussian(3.0)],
    "both": [DiscreteLaplace(2.0), DiscreteGaussian(3.0)],
}


@pytest.mark.parametrize("name", SMOOTHED)
def test_real_noise_in_place_of_whole_noise_has_its_variance(name: str) -> None:
    """`sample_clt` and `release_factor` refused such sums, the second by a raw NotImplementedError."""
    mechanism = SumOf(SMOOTHED[name])
    real, whole = smoothed(mechanism), np.arange(-150.0, 151.0)
    variance = np.exp(np.asarray(mechanism.log_noise(jnp.asarray(whole)), float)) @ whole**2
    np.testing.assert_allclose(real.noise.variance(), variance, rtol=1e-4)
    fine = np.linspace(-150.0, 150.0, 6_001)
    density = np.exp(np.asarray(real.log_noise(jnp.asarray(fine)), float))
    np.testing.assert_allclose([np.sum(density) / 20, density @ fine**2 / 20], [1.0, variance], rtol=1e-3)


BAD = {
    "none": (lambda: SumOf([]), "mechanisms"),
    "one mechanism": (lambda: SumOf(Laplace(1.0)), "mechanisms"),
    "a number": (lambda: SumOf([Laplace(1.0), 2.0]), r"mechanisms\[1\]"),
    "what is clamped": (lambda: SumOf([dpjax.Censored(Laplace(1.0), lower=0.0), Laplace(1.0)]), r"mechanisms\[0\]"),
    "whole and real Laplaces": (lambda: SumOf([Laplace(1.0), DiscreteLaplace(1.0)]), "mechanisms"),
    "all three": (lambda: SumOf([Laplace(1.0), Gaussian(2.0), DiscreteLaplace(1.0)]), "mechanisms"),
    "a wide sum of both": (lambda: SumOf([Gaussian(9000.0), DiscreteLaplace(1.0)]), "mechanisms"),
    "a traced Gaussian beside whole noise": (
        lambda: jax.jit(lambda s: SumOf([DiscreteLaplace(1.0), Gaussian(s)]).scale)(1.0),
        "mechanisms",
    ),
    "two Laplaces and a Gaussian": (lambda: SumOf([Laplace(1.0), Laplace(1.0), Gaussian(1.0)]), "mechanisms"),
    "a sum of too many terms": (lambda: SumOf([DiscreteLaplace(9.0), DiscreteGaussian(9000.0)]), "mechanisms"),
    "scales of two shapes": (lambda: SumOf([Laplace([1.0, 2.0]), Laplace([1.0] * 3)]), "mechanisms"),
    "a traced Gaussian": (lambda: jax.jit(lambda s: SumOf([DiscreteGaussian(s)] * 2).scale)(1.0), "mechanisms"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
