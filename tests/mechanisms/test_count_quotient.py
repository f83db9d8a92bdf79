"""Quotients of real sums by a whole count: densities against sums over all counts, draws, posteriors, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import Censored, CountQuotient
from tests.conftest import FLOAT32
from tests.tools.category_oracle import MODEL, check, moments, tables

N = 7
NUMERATOR, DENOMINATOR = statistics.grouped("cell", [-1, -1, 0]), statistics.grouped("cell", [-1, 0, 0])
ABOVE = {
    "Gaussian": (dpjax.Gaussian, lambda noise, scale: stats.norm.logpdf(noise, scale=scale)),
    "Laplace": (dpjax.Laplace, lambda noise, scale: -np.abs(noise) / scale - np.log(2 * scale)),
}
BELOW = {"Gaussian": dpjax.DiscreteGaussian, "Laplace": dpjax.DiscreteLaplace}
KINDS = [(top, bottom) for top in ABOVE for bottom in BELOW]
COUNTS = np.arange(-40_000, 40_001)


def log_count(kind, scale, count, clamped):
    """The log-probabilities of the noisy counts `COUNTS` of this count, clamped below at a number or not."""
    noise = COUNTS - count
    terms = -np.abs(noise) / scale if kind == "Laplace" else -(noise**2) / (2 * scale**2)
    terms = terms - special.logsumexp(terms)
    if clamped is not None:
        atom = special.logsumexp(terms[clamped >= COUNTS])
        terms = np.where(clamped == COUNTS, atom, np.where(clamped < COUNTS, terms, -np.inf))
    return terms


def log_density(kind, quotients, sums, count, scales, count_scale, clamped=None):
    """The sum over all noisy counts but 0."""
    found = log_count(kind[1], count_scale, count, clamped)
    law = ABOVE[kind[0]][1]
    with np.errstate(divide="ignore"):
        for quotient, total, scale in zip(quotients, sums, scales, strict=True):
            found = found + np.log(np.abs(COUNTS)) + law(quotient * COUNTS - total, scale)
    return float(special.logsumexp(found))


PLACES = [
    ([2.1], [80.0], 40, [4.0]),
    ([0.0], [2.0], 5, [1.0]),
    ([-3.0], [2.0], 1, [1.0]),
    ([1.0], [40.0], 0, [1.0]),
    ([1.03], [700.0], 300, [2.06]),
    ([50.0], [3.0], 500, [5.0]),
    ([0.5], [-4.0], -9, [0.4]),
    ([0.001], [30.0], 30_000, [200.0]),
    ([2.1, 5.0], [80.0, 210.0], 40, [4.0, 9.0]),
    ([1.0, 1.2], [3.0, -2.0], 2, [1.0, 2.0]),
]
"""Also in the tails: flat between two kinks, on the side of negative counts, at a quotient of 0."""


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_density(kind):
    """Catches terms between far kinks that are left out, and a clamped count whose probability is not all below."""
    at = jax.jit(lambda mechanism, value, sums: mechanism.log_density(value, sums))
    found, expected = [], []
    for quotients, sums, count, scales in PLACES:
        for clamped in (None, 0, 1):
            below = BELOW[kind[1]](2.0)
            below = below if clamped is None else Censored(below, lower=float(clamped))
            mechanism = CountQuotient(tuple(ABOVE[kind[0]][0](scale) for scale in scales), below)
            found.append(float(at(mechanism, jnp.array(quotients), jnp.array([*sums, count], float))))
            expected.append(log_density(kind, quotients, sums, count, scales, 2.0, clamped))
    np.testing.assert_allclose(found, expected, rtol=3e-5 if FLOAT32 else 1e-10, atol=1e-4 if FLOAT32 else 1e-10)


@pytest.mark.keys
def test_draws_have_that_density():
    """Catches a density that is not normalised, and draws whose counts are not clamped."""
    mechanism = CountQuotient((dpjax.Laplace(1.0),), Censored(dpjax.DiscreteLaplace(1.5), lower=1.0))
    sums = jnp.array([3.0, 2.0])
    drawn = np.asarray(jax.vmap(mechanism.sample, (0, None))(jax.random.split(jax.random.key(2), 20_000), sums))
    grid = np.linspace(-4.0, 8.0, 24 * 64 + 1)
    density = np.exp(np.asarray(jax.vmap(mechanism.log_density, (0, None))(jnp.asarray(grid)[:, None], sums), float))
    cdf = integrate.cumulative_simpson(density, x=grid, initial=0)[::64]
    expected = np.append(np.diff(cdf), 1 - cdf[-1]) * len(drawn)
    observed = np.histogram(drawn, grid[::64])[0]
    observed = np.append(observed, len(drawn) - observed.sum())
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def test_posterior_is_that_of_an_enumeration_of_all_tables():
    """Catches an average of a query that is read with real noise on its count; also its text and its words."""
    noises = {"numerator_noise": dpjax.Laplace(0.9), "denominator_noise": dpjax.DiscreteLaplace(0.8)}
    release = dpjax.releases.quotient([0.63], NUMERATOR, DENOMINATOR, **noises, n=N)
    run = {"num_warmup": 300, "num_samples": 2_000, "progress": False}
    posterior = dpjax.sample(jax.random.key(1), MODEL, release, imputation=dpjax.imwg(), **run)

    def exact(table):
        counts = float(table[2]), float(table[1] + table[2])
        return log_density(("Laplace", "Laplace"), [0.63], counts[:1], counts[1], [0.9], 0.8)

    check(posterior.draws["probabilities"], moments(exact, [N]))
    again = dpjax.from_json(release.to_json())
    assert again.mechanism == release.mechanism
    words = dpjax.describe(release)
    assert "Laplace of scale 0.9, on its count discrete Laplace of scale 0.8; neither the noisy sums" in words


def test_means_and_variances_by_a_count_that_was_kept_secret():
    """Catches a mean and a variance that are read as if each had been divided by a count of its own."""
    every = tables([N], 3)
    records = jnp.asarray([np.repeat(np.arange(3), table) for table in every])
    levels = np.array([0.2, 0.9, 0.4])

    def power(exponent):
        def statistic(record):
            return jnp.asarray(levels, float)[record["cell"]][None] ** exponent

        statistic.dimension = 1
        return statistic

    statistic = {"sums": power(1), "squares": power(2), "counts": statistics.count()}
    noise = {"sum_noise": dpjax.Gaussian(0.4), "square_noise": dpjax.Gaussian(0.3)}
    clamped = Censored(dpjax.DiscreteGaussian(0.8), lower=1.0)
    release = dpjax.releases.moments([0.55], [0.08], None, **statistic, **noise, count_noise=clamped, n=N)
    found = np.asarray(jax.jit(jax.vmap(lambda cells: release.log_likelihood({"cell": cells})))(records))
    quotients = [0.55, 0.08 + 0.55**2]
    expected = [
        log_density(("Gaussian", "Gaussian"), quotients, [row @ levels, row @ levels**2], N, [0.4, 0.3], 0.8, 1)
        for row in every
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4 if FLOAT32 else 1e-10)
    every = dpjax.statistics.stacked(*statistic.values())
    assert dpjax.from_json(release.to_json(), statistic=every).mechanism == release.mechanism


def test_what_is_refused():
    """Catches noise without a density here, and a count that was clamped elsewhere."""
    with pytest.raises(TypeError, match="numerator: given DiscreteLaplace"):
        CountQuotient((dpjax.DiscreteLaplace(1.0),), dpjax.DiscreteLaplace(1.0))
    with pytest.raises(TypeError, match="denominator: given Laplace"):
        CountQuotient((dpjax.Laplace(1.0),), dpjax.Laplace(1.0))
    with pytest.raises(ValueError, match=r"denominator: given .*; expected clamped below at 0 or 1, and not above"):
        CountQuotient((dpjax.Laplace(1.0),), Censored(dpjax.DiscreteLaplace(1.0), lower=2.0))
    with pytest.raises(ValueError, match="denominator: given noise that reaches 20501; expected at most 16384"):
        CountQuotient((dpjax.Laplace(1.0),), dpjax.DiscreteLaplace(500.0))
    with pytest.raises(TypeError, match=r"numerators: given .*; expected a tuple of mechanisms"):
        CountQuotient((), dpjax.DiscreteLaplace(1.0))
    mechanism = CountQuotient((dpjax.Laplace(1.0),), dpjax.DiscreteLaplace(1.0))
    with pytest.raises(ValueError, match="statistic: given 3 coordinates; expected 2: 1 numerator, then the counts"):
        dpjax.Release([0.5], mechanism, statistics.cells("cell", 3), N)
