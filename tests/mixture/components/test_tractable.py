"""Beta records behind binomial counts: their marginal, their draws, and partitions of a few of them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from dpjax import mixture
from dpjax.mechanisms import PoissonBinomial
from tests.conftest import FLOAT32

BASE = mixture.GammaShapes(2.0, 0.5)


@jax.jit
def log_marginals(channel: PoissonBinomial, values: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """The log-marginals [m + 1] of all counts."""
    density = mixture.find_tractable(channel, BASE).log_marginal
    return jax.vmap(lambda value: density(value, {"a": a, "b": b}))(values)


def polynomials(channel: PoissonBinomial) -> np.ndarray:
    """The coefficients [m + 1, m + 1] of C(m, z) p^z (1 - p)^(m - z) in y^s (1 - y)^(m - s), none of them negative."""
    m, kind = channel.num_trials, np.float32 if FLOAT32 else np.float64
    theta, width = float(kind(channel.theta)), channel.upper - channel.lower
    low, high = (0.5 + theta * (2 * (end - channel.lower) / width - 1) for end in (0, 1))
    rows = []
    for z in range(m + 1):
        coefficients = np.array([special.comb(m, z)])
        for factor in [[low, high]] * z + [[1 - low, 1 - high]] * (m - z):
            coefficients = np.convolve(coefficients, factor)
        rows.append(coefficients)
    return np.array(rows)


def expected_marginals(channel: PoissonBinomial, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The log-marginals [..., m + 1] of all counts, by the moments of Beta distributions of shapes [...]."""
    ones, a, b = np.arange(channel.num_trials + 1), np.asarray(a)[..., None], np.asarray(b)[..., None]
    log_moments = special.betaln(a + ones, b + ones[::-1]) - special.betaln(a, b)
    return special.logsumexp(log_moments[..., None, :], axis=-1, b=polynomials(channel))


CHANNELS = {
    "one trial": PoissonBinomial(0.2, 1),
    "a few": PoissonBinomial(0.3, 7),
    "wider bounds": PoissonBinomial(0.45, 7, lower=-1.0, upper=2.5),
    "no noise": PoissonBinomial(0.5, 7),
    "no noise at one end": PoissonBinomial(0.5, 7, lower=0.0, upper=2.0),
    "many": PoissonBinomial(0.1, 60),
}
SHAPES = [(2.0, 3.0), (1e-3, 1e-3), (1e-6, 40.0), (500.0, 300.0)]


@pytest.mark.parametrize("name", CHANNELS)
def test_the_marginal_is_a_sum_of_beta_moments(name: str) -> None:
    channel = CHANNELS[name]
    counts, tolerance = jnp.arange(channel.num_trials + 1), 2e-5 if FLOAT32 else 1e-10
    for a, b in SHAPES:
        found = np.asarray(log_marginals(channel, counts, jnp.asarray(a), jnp.asarray(b)))
        np.testing.assert_allclose(found, expected_marginals(channel, a, b), rtol=tolerance, atol=tolerance)
        assert np.exp(found).sum() == pytest.approx(1, rel=tolerance)


@pytest.mark.parametrize(("a", "b"), [(0.05, 0.3), (2.0, 3.0), (4e3, 1e4)])
def test_the_marginal_is_the_integral(a: float, b: float) -> None:
    """By substitution, as the density has poles at the ends for shapes below 1."""
    channel = PoissonBinomial(0.35, 9)
    law = stats.beta(float(np.float32(a)), float(np.float32(b)))
    found = np.exp(log_marginals(channel, jnp.arange(10), jnp.asarray(a), jnp.asarray(b)))
    for z in (0, 4, 9):

        def integrand(share: float, z: int = z) -> float:
            return stats.binom.pmf(z, 9, 0.15 + 0.7 * law.ppf(share))

        exact = integrate.quad(integrand, 0, 1, limit=400, epsabs=1e-13, epsrel=1e-11)[0]
        assert found[z] == pytest.approx(exact, rel=2e-5 if FLOAT32 else 1e-7)


@pytest.mark.x64
def test_large_shapes_are_a_binomial() -> None:
    """Differences of log-gammas would lose nine digits there."""
    channel = PoissonBinomial(0.25, 40)
    found = log_marginals(channel, jnp.arange(41), jnp.asarray(3e14), jnp.asarray(1e14))
    np.testing.assert_allclose(found, stats.binom.logpmf(np.arange(41), 40, 0.25 + 0.5 * 0.75), rtol=1e-11)


def test_records_beyond_the_bounds_are_not_integrated_out() -> None:
    """Clipping would need incomplete Beta functions; and the table of very many trials is large."""
    for channel in (
        PoissonBinomial(0.3, 7, upper=0.9),
        PoissonBinomial(0.3, 7, lower=0.1),
        PoissonBinomial(0.3, 2_000),
    ):
        assert mixture.find_tractable(channel, BASE) is None


@partial(jax.jit, static_argnames="size")
def draw_records(channel: PoissonBinomial, value: jax.Array, a: jax.Array, b: jax.Array, size: int) -> jax.Array:
    theta = {"a": jnp.full(size, a), "b": jnp.full(size, b)}
    sample = mixture.find_tractable(channel, BASE).sample_latent
    return sample(jax.random.key(3), jnp.full(size, value), theta)


def record_distribution(theta: float, value: int, a: float, b: float) -> stats.rv_continuous:
    """The distribution function of a record given its count of nine trials, by quadrature on a fine grid."""
    shares = (np.arange(200_000) + 0.5) / 200_000
    points = stats.beta(a, b).ppf(shares)
    weights = np.cumsum(stats.binom.pmf(value, 9, 0.5 - theta + 2 * theta * points))
    return lambda y: np.interp(y, points, weights / weights[-1])


@pytest.mark.keys
@pytest.mark.parametrize(("value", "a", "b"), [(9, 2.0, 5.0), (2, 0.6, 0.4), (0, 30.0, 20.0)])
def test_records_are_drawn_from_their_posterior(value: int, a: float, b: float) -> None:
    shapes = jnp.asarray(a), jnp.asarray(b)
    drawn = np.asarray(draw_records(PoissonBinomial(0.35, 9), jnp.asarray(value), *shapes, 10_000), float)
    assert stats.kstest(drawn, record_distribution(0.35, value, a, b)).pvalue > 1e-4
    # A posterior of the record that takes no notice of the noise is told apart, and one of another count.
    assert stats.kstest(drawn, stats.beta(a + value, b + 9 - value).cdf).pvalue < 1e-4
    assert stats.kstest(drawn, record_distribution(0.35, abs(value - 2), a, b)).pvalue < 1e-4
