"""Variances with noise on them: the density, posteriors against enumeration, sensitivities."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import NoisyVariance, frozen_pytree
from dpjax.mechanisms.composite import Padded
from tests.tools import perfect_start
from tests.tools.category_oracle import MODEL, PRIOR, Moments, check, moments

N, SCALE, VALUE = 6, 0.6, 0.4
LEVELS = np.arange(3.0)
RUN = {"num_warmup": 300, "num_samples": 3_000, "progress": False}
NOISE = dpjax.Truncated(dpjax.Laplace(SCALE), lower=0.0)


def release_of(noise=NOISE, value=VALUE, degrees=N - 1, n=N):
    return dpjax.releases.variance(value, noise, field="cell", lower=0.0, upper=2.0, n=n, degrees=degrees)


def exact(share=lambda spread: stats.laplace.logsf(-spread / SCALE)) -> Moments:
    """By enumeration of tables; `share` is the log-probability that noise is kept."""

    def log_likelihood(table: np.ndarray) -> float:
        spread = float(np.var(np.repeat(LEVELS, table), ddof=1))
        return stats.laplace.logpdf(VALUE, spread, SCALE) - share(spread)

    return moments(log_likelihood, [N])


@pytest.mark.x32
@pytest.mark.parametrize(
    "imputation", [dpjax.imwg(), pytest.param(dpjax.counts(), marks=pytest.mark.slow)], ids=["records", "counts"]
)
def test_posterior(imputation) -> None:
    posterior = dpjax.sample(jax.random.key(1), MODEL, release_of(), imputation=imputation, **RUN)
    check(posterior.draws["probabilities"], exact())


def test_without_its_normaliser_it_is_another_posterior() -> None:
    """A mutation."""
    assert np.max(np.abs(exact(lambda spread: 0.0).mean - exact().mean)) > 0.01


@pytest.mark.parametrize("degrees", [N, N - 1])
def test_density_from_any_point(degrees: int) -> None:
    values = np.array([0.3, 1.9, 1.2, 0.0, 2.0, 0.7])
    mechanism = NoisyVariance(dpjax.Gaussian(SCALE), N, degrees)
    expected = stats.norm.logpdf(VALUE, values.var(ddof=N - degrees), SCALE)
    for point in (0.0, 1.0, -3.0):
        sums = jnp.array([np.sum(values - point), np.sum((values - point) ** 2)])
        found = mechanism.log_density(jnp.array([VALUE]), sums)
        np.testing.assert_allclose(found, expected, rtol=1e-4 if sums.dtype == jnp.float32 else 1e-10)


@frozen_pytree
@dataclass(frozen=True)
class AboutThePoint(NoisyVariance):
    """Draws as it should; the density takes deviations from the point for those from the mean."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return self.on_variance.log_density(value, statistic[1:] / self.degrees)


def kept_p_value(template: dpjax.Release) -> float:
    """That parameters keep their prior over four sweeps from records and a variance drawn together."""
    found = perfect_start.run(jax.random.key(6), MODEL, template, dpjax.imwg(), interweave=True)
    laws = {"probabilities": lambda draws: (draws[:, 0], stats.beta(PRIOR[0], PRIOR[1:].sum()))}
    return perfect_start.corrected([perfect_start.parameter_p_value(found, laws)])


@pytest.mark.x32
def test_perfect_start() -> None:
    template = release_of(dpjax.Laplace(0.1))
    assert kept_p_value(template) > perfect_start.REJECT
    wrong = AboutThePoint(dpjax.Laplace(0.1), N, N - 1)
    assert kept_p_value(dpjax.Release(template.value, wrong, template.statistic, N)) < perfect_start.REJECT


@pytest.mark.parametrize("width", [0.4, 1.2, 2.0, 7.0])
def test_how_far_one_record_moves_the_powers(width: float) -> None:
    statistic = statistics.powers("y", 1.0, 1.0 + width)
    places = np.linspace(1.0, 1.0 + width, 401)
    found = np.asarray(jax.vmap(lambda y: statistic({"y": y}))(jnp.asarray(places)), np.float64)
    for norm in (1, 2):
        far = np.linalg.norm(found[:, None] - found[None], ord=norm, axis=2).max()
        assert far <= statistic.diameter(norm) * (1 + 1e-5)
        np.testing.assert_allclose(far, statistic.diameter(norm), rtol=1e-3)
        np.testing.assert_allclose(np.linalg.norm(found, ord=norm, axis=1).max(), statistic.radius(norm), rtol=1e-5)


def test_words_and_text() -> None:
    release = release_of()
    again = dpjax.from_json(release.to_json())
    assert (again.statistic, again.mechanism.n, again.mechanism.degrees) == (release.statistic, N, N - 1)
    words = dpjax.describe(release)
    assert "The sums of the first two powers of `cell` less 1, clamped to 0 to 2" in words
    assert "on their variance, of divisor 5, Laplace of scale 0.6, drawn anew" in words
    assert release.sample(jax.random.key(0), {"cell": jnp.array([0, 1, 2, 2, 1, 0])}).value.shape == (1,)


def padded_release(n: int) -> dpjax.Release:
    """As a part of a joint release, of n records."""
    return dpjax.Release([0.4, 0.0], Padded(NoisyVariance(NOISE, N, N)), statistics.powers("cell", 0, 2), n)
