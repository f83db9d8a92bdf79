"""Staircase and Tulap noise: mass, distribution functions, variances and draws against their definitions in SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import Staircase, Tulap

EPSILON, WIDTH, SHARE, SCALE = 1.3, 2.0, 0.3, 1.4
NUM_DRAWS, GATE = 20_000, 1e-4


def staircase_density(noise):
    """Geng and Viswanath's definition, part by part."""
    height = (1 - np.exp(-EPSILON)) / (2 * WIDTH * (SHARE + np.exp(-EPSILON) * (1 - SHARE)))
    steps = np.floor(np.abs(noise) / WIDTH)
    late = np.abs(noise) / WIDTH - steps >= SHARE
    return height * np.exp(-EPSILON * (steps + late))


def tulap_density(noise):
    """The chance of the nearest whole number."""
    return stats.dlaplace(1 / SCALE).pmf(np.rint(noise))


CASES = {
    "staircase": (Staircase(EPSILON, WIDTH, SHARE), staircase_density, WIDTH * np.array([0, SHARE])),
    "Tulap": (Tulap(SCALE), tulap_density, np.array([-0.5])),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def cells_of(ends, period):
    """Where the density is constant: the middles and lengths of all pieces within reach."""
    edges = np.sort(np.concatenate([end + period * np.arange(-60, 61) for end in ends]))
    edges = np.unique(np.concatenate([edges, -edges]))
    return (edges[:-1] + edges[1:]) / 2, np.diff(edges)


def test_density_and_mass(case):
    mechanism, density, ends = case
    middles, lengths = cells_of(ends, WIDTH if len(ends) > 1 else 1.0)
    found = np.exp(np.asarray(mechanism.log_noise(jnp.asarray(middles, float)), np.float64))
    np.testing.assert_allclose(found, density(middles), rtol=5e-5)
    np.testing.assert_allclose(found @ lengths, 1.0, rtol=1e-5)
    np.testing.assert_allclose(found @ (lengths * middles**2 + lengths**3 / 12), mechanism.noise.variance(), rtol=1e-4)


def test_distribution_function(case):
    mechanism, density, ends = case
    middles, lengths = cells_of(ends, WIDTH if len(ends) > 1 else 1.0)
    below = np.cumsum(density(middles) * lengths) - density(middles) * lengths / 2
    below /= np.sum(density(middles) * lengths)
    inside = np.abs(middles) < 20
    found = np.exp(np.asarray(mechanism.log_cdf(jnp.asarray(middles, float)), np.float64))
    np.testing.assert_allclose(found[inside], below[inside], rtol=2e-4)
    above = np.exp(np.asarray(mechanism.log_survival(jnp.asarray(middles, float)), np.float64))
    np.testing.assert_allclose(found + above, 1.0, rtol=1e-5)


def test_draws(case):
    mechanism = case[0]
    drawn = np.asarray(jax.jit(mechanism.sample)(jax.random.key(1), jnp.full(NUM_DRAWS, 5.0))) - 5

    def cdf(value):
        return np.exp(np.asarray(mechanism.log_cdf(jnp.asarray(value, float)), np.float64))

    assert stats.kstest(drawn, cdf).pvalue > GATE
    assert stats.kstest(drawn * 1.05, cdf).pvalue < GATE or stats.kstest(drawn + 0.1, cdf).pvalue < GATE


def test_neighbours_differ_by_the_promise(case):
    """The log ratio of the densities of two sums that are one record apart is at most ε, and reaches it."""
    mechanism = case[0]
    noise = jnp.linspace(-9.0, 9.0, 2_001)
    apart = WIDTH if isinstance(mechanism, Staircase) else 1.0
    ratio = np.max(np.abs(mechanism.log_noise(noise) - mechanism.log_noise(noise + apart)))
    np.testing.assert_allclose(ratio, EPSILON if apart == WIDTH else 1 / SCALE, rtol=1e-4)


def test_what_is_promised():
    counts = statistics.histogram("y", [0.0, 1.0, 2.0])
    for mechanism, epsilon in [(Staircase(0.7), 1.4), (Staircase(0.7, 0.5), 2.8), (Tulap(2.0), 1.0)]:
        words = dpjax.describe(dpjax.Release([3.0, 4.0], mechanism, counts, 7))
        assert f"If one record is replaced: ε = {epsilon:.4g}" in words
        assert "no promise is known" in dpjax.describe(dpjax.Release([3.0], mechanism, statistics.total("y", 0, 1), 7))


def test_the_share_of_least_noise():
    best = Staircase(EPSILON, WIDTH)
    np.testing.assert_allclose(best.share, 1 / (1 + np.exp(EPSILON / 2)), rtol=1e-6)


def test_parameters_of_each_coordinate():
    mechanism = Staircase([0.5, 2.0], [1.0, 3.0], [0.2, 0.8])
    noise = jnp.array([1.7, -4.0])
    expected = [
        Staircase(*row).log_noise(one) for row, one in zip([(0.5, 1.0, 0.2), (2.0, 3.0, 0.8)], noise, strict=True)
    ]
    np.testing.assert_allclose(mechanism.log_noise(noise), np.array(expected), rtol=1e-6)
    release = dpjax.Release(noise, mechanism, statistics.total("y", dimension=2), 3)
    np.testing.assert_allclose(release.log_densities_at(noise[:, None]), [np.sum(expected)], rtol=1e-6)


BAD = {
    "no epsilon": (lambda: Staircase(None), "epsilon"),
    "an epsilon of 0": (lambda: Staircase(0.0), "epsilon"),
    "a negative sensitivity": (lambda: Staircase(1.0, -1.0), "sensitivity"),
    "a share above 1": (lambda: Staircase(1.0, 1.0, 1.5), "share"),
    "a text as share": (lambda: Staircase(1.0, 1.0, "half"), "share"),
    "a scale of 0": (lambda: Tulap(0.0), "scale"),
    "a missing scale": (lambda: Tulap(np.nan), "scale"),
    "scales of another shape": (lambda: dpjax.Release([1.0], Tulap([1.0, 2.0]), statistics.total("y"), 3), "mechanism"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}.*: given .*; expected .*\. "):
        call()
