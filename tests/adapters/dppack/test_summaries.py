"""Summaries of the shape that DPpack makes, drawn as its code draws them, follow the density that readers assign.

No object of the package itself is on file: R is not at hand here. The draws below are written from its description.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.adapters import dppack

N, DRAWS, MIN_P, MAX_P = 30, 400, 1e-3, 1e-4


AGES = np.random.default_rng(1).uniform(0, 10, N).round(1)


BOUNDS, FIELD = (0.0, 8.0), {"field": "age", "n": N}


CLIPPED = np.clip(AGES, *BOUNDS)


def total_of(release: dpjax.Release) -> jax.Array:
    """The summed statistic of the ages."""
    return jnp.sum(jax.vmap(release.statistic)({"age": jnp.asarray(AGES)}), axis=0)


def ranks(release: dpjax.Release, points: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Where released values lie in the distribution on a grid of points, which holds nearly all of it."""
    total = total_of(release)
    density = jax.vmap(lambda point: release.mechanism.log_density(point[None], total))(jnp.asarray(points))
    mass = np.exp(np.asarray(density, float)) * (points[1] - points[0])
    np.testing.assert_allclose(mass.sum(), 1, atol=5e-3)
    return np.interp(released, points, np.cumsum(mass))


def noisy_means(rng: np.random.Generator) -> np.ndarray:
    return CLIPPED.mean() + rng.laplace(scale=8 / N / 0.5, size=DRAWS)


def gaussian_means(rng: np.random.Generator) -> np.ndarray:
    quantile = stats.norm.ppf(0.005)
    scale = 8 / N * (np.sqrt(quantile**2 + 2 * 0.5) - quantile) / (2 * 0.5)
    return CLIPPED.mean() + rng.normal(scale=scale, size=DRAWS)


def noisy_variances(rng: np.random.Generator) -> np.ndarray:
    """Drawn again while not positive."""
    released = np.full(DRAWS, -1.0)
    while np.any(released <= 0):
        again = CLIPPED.var(ddof=1) + rng.laplace(scale=64 / N / 0.5, size=DRAWS)
        released = np.where(released <= 0, again, released)
    return released


CASES = {
    "mean": (
        noisy_means,
        lambda value, factor: dppack.read_mean(value, BOUNDS, eps=0.5 * factor, **FIELD),
        np.linspace(-12, 20, 8001),
    ),
    "Gaussian": (
        gaussian_means,
        lambda value, factor: dppack.read_mean(
            value, BOUNDS, eps=0.5 * factor, mechanism="Gaussian", delta=0.01, type_dp="pDP", **FIELD
        ),
        np.linspace(-12, 20, 8001),
    ),
    "variance": (
        noisy_variances,
        lambda value, factor: dppack.read_var(value, BOUNDS, eps=0.5 * factor, **FIELD),
        np.linspace(0.002, 60, 8001),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_follow_the_density(name: str) -> None:
    draw, read, points = CASES[name]
    released = draw(np.random.default_rng(2))
    assert stats.kstest(ranks(read(released[0], 1.0), points, released), "uniform").pvalue > MIN_P
    assert stats.kstest(ranks(read(released[0], 3.0), points, released), "uniform").pvalue < MAX_P


def test_a_deviation_is_the_root_of_a_variance() -> None:
    sd, var = dppack.read_sd(1.5, BOUNDS, eps=1.0, **FIELD), dppack.read_var(2.25, BOUNDS, eps=1.0, **FIELD)
    assert (sd.value, sd.mechanism, sd.statistic) == (var.value, var.mechanism, var.statistic)


def test_the_scale_of_approximate_privacy() -> None:
    release = dppack.read_mean(4.0, BOUNDS, eps=0.5, mechanism="Gaussian", delta=1e-3, **FIELD)
    assert release.mechanism == dpjax.Gaussian(8 / N * np.sqrt(2 * np.log(1250)) / 0.5)
    assert isinstance(dppack.read_mean(4.0, BOUNDS, eps=0.5, mechanism="Gaussian", **FIELD).mechanism, dpjax.Laplace)


@pytest.mark.parametrize("allow_negative", [False, True])
def test_tables_are_rounded_and_not_negative(allow_negative: bool) -> None:
    """The probability of each count is that of Laplace noise within half of it, or below a half at 0."""
    release = dppack.read_table([[3, 0]], ("a", "b"), eps=1.0, n=4, allow_negative=allow_negative)
    law, true, points = stats.laplace(scale=2.0), 1.0, np.arange(-40.0, 60.0)
    terms = jax.vmap(lambda point: release.mechanism.log_density_terms(point, jnp.array(true)))(jnp.asarray(points))
    expected = law.cdf(points + 0.5 - true) - law.cdf(points - 0.5 - true)
    if not allow_negative:
        terms, points = terms[40:], points[40:]
        expected = np.append(law.cdf(0.5 - true), expected[41:])
    np.testing.assert_allclose(np.exp(np.asarray(terms, float)), expected, rtol=1e-4, atol=1e-7)
    again = dpjax.from_json(release.to_json())
    assert again.mechanism == release.mechanism


def test_bins_have_their_upper_edges() -> None:
    """As R's: (0, 2], (2, 4], (4, 8], and the first with 0."""
    published = json.loads('{"breaks": [0, 2, 4, 8], "counts": [4, 1, 0], "xname": "x"}')
    release = dppack.read_histogram(published, field="age", eps=1.0, n=5, which_sensitivity="unbounded")
    bins = [int(jnp.argmax(release.statistic({"age": jnp.array(age)}))) for age in (0.0, 2.0, 2.1, 4.0, 4.1, 8.0)]
    assert bins == [0, 0, 1, 1, 2, 2]
    assert release.mechanism.mechanism.mechanism == dpjax.Laplace(1.0)


def test_a_break_at_zero_is_the_upper_edge_of_a_bin() -> None:
    """The number next to 0 counts as 0 itself on many processors."""
    published = {"breaks": [-1, 0, 1, 2, 3, 50], "counts": [61, 30, 7, 2, 0]}
    release = dppack.read_histogram(published, field="y", eps=1.0, n=100)
    statistic = jax.jit(release.statistic)
    bins = [int(jnp.argmax(statistic({"y": jnp.array(y)}))) for y in (-0.5, 0, 0.0, 1e-30, 1)]
    assert bins == [0, 0, 0, 1, 1]


def test_a_quantile_is_that_of_an_interval() -> None:
    release = dppack.read_quantile(3.1, 0.25, BOUNDS, eps=0.7, num_bins=16, **FIELD)
    assert release.mechanism == dpjax.mechanisms.IntervalQuantile(0.25, 0.0, 8.0, 0.7, 1.0)
