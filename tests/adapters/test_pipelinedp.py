"""Means of PipelineDP and Google's library: the centred sum, its noise, and posteriors by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import models
from dpjax.adapters import pipelinedp
from dpjax.mechanisms import LocalChannel

BOUNDS, EPSILON = (0.0, 1.0), 1.0
SOME = dpjax.UnknownCount(models.UniformCount(5, 40))


def publish(rng: np.random.Generator, values: np.ndarray) -> tuple[float, float]:
    """The library's own steps: half of the budget for the count, half for the sum about the middle."""
    middle = (BOUNDS[0] + BOUNDS[1]) / 2
    noisy_count = len(values) + rng.laplace(scale=1 / (EPSILON / 2))
    noisy_sum = np.sum(np.clip(values, *BOUNDS) - middle) + rng.laplace(scale=(BOUNDS[1] - middle) / (EPSILON / 2))
    return float(middle + noisy_sum / max(1.0, noisy_count)), float(noisy_count)


def test_the_centred_sum_is_what_was_added_up() -> None:
    """Its noise does not depend on that of the count; the noise of mean × count does, which is the planted fault."""
    rng, values = np.random.default_rng(1), np.repeat([0.2, 0.9], 10)
    pairs = np.array([publish(rng, values) for _ in range(4_000)])
    own = pipelinedp.centred_sum(pairs[:, 0], pairs[:, 1], BOUNDS) - np.sum(values - 0.5)
    assert stats.kstest(own, stats.laplace(scale=1.0).cdf).pvalue > 1e-3
    assert stats.kstest(pairs.prod(axis=1) - values.sum(), stats.laplace(scale=1.0).cdf).pvalue < 1e-6


def test_counts_below_one() -> None:
    np.testing.assert_allclose(pipelinedp.centred_sum([0.7, 0.7], [-3.0, 4.0], BOUNDS), [0.2, 0.8])


def test_noise() -> None:
    """l Δ∞ / ε, and the least deviation for √l Δ∞."""
    laplace = pipelinedp.noise_of(0.5, linf=2.0, max_partitions_contributed=3)
    assert laplace == dpjax.Laplace(12.0)
    gaussian = pipelinedp.noise_of(0.5, 1e-6, noise="gaussian", linf=2.0, max_partitions_contributed=9)
    assert gaussian.scale == dpjax.mechanisms.gaussian_scale(0.5, 1e-6, 6.0)
    release = pipelinedp.read_mean(
        3.0,
        20.0,
        field="y",
        bounds=(0.0, 10.0),
        epsilon=2.0,
        n=SOME,
        max_partitions_contributed=2,
        max_contributions_per_partition=3,
    )
    assert [part.scale for part, _ in release.mechanism.parts] == [30.0, 6.0]
    np.testing.assert_allclose(release.value, [-40.0, 20.0])
    record = {"y": jnp.array(12.0)}
    np.testing.assert_allclose(release.statistic(record), [5.0, 1.0])


def bernoulli_posterior(mean: float, count: float) -> tuple[float, float]:
    """Mean and deviation of the share of ones among an unknown number of zeros and ones, by summing over both."""
    n, share = np.arange(5, 41)[:, None, None], ((np.arange(400) + 0.5) / 400)[None, None]
    ones = np.arange(41)[None, :, None]
    centred = (mean - 0.5) * max(1.0, count)
    log_weight = stats.binom.logpmf(ones, n, share) + stats.laplace.logpdf(count, n, 2.0)
    log_weight = log_weight + stats.laplace.logpdf(centred, ones - n / 2, 1.0)
    weight = special.softmax(log_weight)
    first = np.sum(weight * share)
    return float(first), float(np.sqrt(np.sum(weight * (share - first) ** 2)))


@pytest.mark.x64
def test_the_posterior_of_zeros_and_ones() -> None:
    mean, count = 0.31, 11.4
    release = pipelinedp.read_mean(mean, count, field="cell", bounds=BOUNDS, epsilon=EPSILON, n=SOME)
    found = dpjax.sample(
        jax.random.key(1), models.categorical(np.ones(2)), release, num_warmup=300, num_samples=3_000, progress=False
    )
    share = np.asarray(found.draws["probabilities"])[..., 1]
    expected = bernoulli_posterior(mean, count)
    assert abs(share.mean() - expected[0]) < 5 * dpjax.diagnostics.mcse_mean(share)
    np.testing.assert_allclose(share.std(), expected[1], rtol=0.06)


def test_the_mean_alone_is_a_quotient() -> None:
    release = pipelinedp.read_mean(0.4, field="y", bounds=BOUNDS, epsilon=2.0, n=100)
    assert isinstance(release.mechanism, dpjax.mechanisms.Quotient)
    np.testing.assert_allclose(release.value, [-0.1], rtol=1e-6)
    np.testing.assert_allclose(release.statistic({"y": jnp.array(0.75)}), [0.25, 1.0])


def test_rows_that_were_rounded_are_divided_by_their_sums() -> None:
    """A published matrix of two decimals; what is farther from 1 is refused."""
    rounded = np.array([[0.33, 0.33, 0.33], [0.2, 0.2, 0.61]])
    with pytest.warns(UserWarning, match=r"^log_probabilities: rows of probabilities that sum to .* were divided"):
        channel = LocalChannel(jnp.log(rounded))
    np.testing.assert_allclose(np.exp(np.asarray(channel.log_probabilities)).sum(axis=1), 1, rtol=1e-6)
    release = dpjax.LocalRelease([0, 2], channel)
    assert dpjax.from_json(release.to_json()).channel == channel
    with pytest.raises(ValueError, match=r"^log_probabilities: given rows .*; expected rows that sum to 1\. "):
        LocalChannel(jnp.log(0.9 * rounded))


READ = {"field": "y", "bounds": BOUNDS, "epsilon": 1.0, "n": 100}
BAD = {
    "no mean": ({"mean": None}, "mean"),
    "bounds exchanged": ({"bounds": (1.0, 0.0)}, "bounds"),
    "no budget": ({"epsilon": 0.0}, "epsilon"),
    "delta of Laplace noise": ({"delta": 1e-6}, "delta"),
    "no delta": ({"noise": "gaussian"}, "delta"),
    "another noise": ({"noise": "geometric"}, "noise"),
    "half a partition": ({"max_partitions_contributed": 0.5}, "max_partitions_contributed"),
    "no contributions": ({"max_contributions_per_partition": 0}, "max_contributions_per_partition"),
    "a clamped mean": ({"mean": 1.0}, "mean"),
    "few records": ({"n": 10}, "n"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    arguments, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*"):
        pipelinedp.read_mean(**({"mean": 0.4} | READ | arguments))
