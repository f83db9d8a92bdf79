"""Hidden counts behind every mechanism, against sums over all numbers up to 20,000, wherever the likely ones are."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax import mechanisms
from dpjax.mechanisms import Additive, Censored, Coarsened, KeptZeros, Modulo, Rounded, Truncated

pytestmark = pytest.mark.x64

NUMBERS = np.arange(20_001)


def spread(concentration=1.0, n=1, y=None):
    mean = numpyro.sample("mean", dist.LogNormal(9.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.NegativeBinomial2(mean, concentration), obs=y)


MODEL = dpjax.from_numpyro(spread, ["y"])


def log_model(mean: float) -> np.ndarray:
    """The log-probability of each number, whose sum over those above 20,000 must not matter."""
    return stats.nbinom.logpmf(NUMBERS, 1.0, 1 / (1 + mean))


def summed(channel: Any, values: Any, means: Any) -> np.ndarray:
    """The log-density [mean] of what was released, by the sum over all numbers."""
    channel = dpjax.mechanisms.base.as_mechanism(channel)
    log_density = jax.jit(jax.vmap(jax.vmap(channel.log_density, in_axes=(None, 0)), in_axes=(0, None)))
    released = np.asarray(log_density(jnp.asarray(values, float), jnp.asarray(NUMBERS, float)))
    return np.array([special.logsumexp(released + log_model(mean), axis=1).sum() for mean in means])


def found(channel: Any, values: Any, means: Any) -> tuple[np.ndarray, np.ndarray]:
    """The likelihood with windows fitted to some means, and the bound of what it leaves out, at each of them [mean]."""
    near = {"mean": jnp.asarray(means)}
    likelihood = dpjax.marginal_likelihood(MODEL, dpjax.LocalRelease(values, channel, "y"), near)
    return look(likelihood, near)


@jax.jit
def look(likelihood: Any, near: Any) -> Any:
    return jax.lax.map(lambda at: (likelihood(at), likelihood.left_out(at)), near)


def table(size: int, code: float, *, period: int | None = None) -> Coarsened:
    """Counts as they are, but a code for 500 to 503."""
    return Coarsened.from_function(lambda count: code if 500 <= count <= 503 else count, size - 1, period=period)


KEYS = np.eye(30, 31)
KEYS[5, [4, 5, 6]] = 0.25, 0.5, 0.25
KEYS[29, [28, 29, 30]] = 0.2, 0.6, 0.2

LAPLACE, WHOLE = dpjax.Laplace(3.0), dpjax.DiscreteLaplace(3.0)
CASES = {
    "laplace": (LAPLACE, [12.3, 900.0, 0.4]),
    "gaussian": (dpjax.Gaussian(4.0), [12.3, 900.0, -3.0]),
    "own scales": (dpjax.Gaussian(jnp.array([0.5, 40.0, 2.0])), [12.3, 900.0, 3.0]),
    "discrete laplace": (WHOLE, [12, 900, -20]),
    "discrete gaussian": (dpjax.DiscreteGaussian(6.0), [12, 900, -5]),
    "staircase": (mechanisms.Staircase(0.5, 1.0), [12.0, 900.0, -5.0]),
    "tulap": (mechanisms.Tulap(2.0), [12.3, 900.2, -5.0]),
    "sum of whole": (mechanisms.SumOf([WHOLE, dpjax.DiscreteGaussian(2.0)]), [12, 900, -5]),
    "sum of real": (mechanisms.SumOf([LAPLACE, dpjax.Gaussian(2.0)]), [12.3, 900.0, -5.0]),
    "peaks at whole numbers": (mechanisms.SumOf([WHOLE, dpjax.Gaussian(0.1)]), [12.4, 900.0, -5.5]),
    "rounded": (Rounded(LAPLACE, 10.0), [10.0, 900.0, 0.0]),
    "rounded whole": (Rounded(WHOLE, 4.0), [12.0, 900.0, -4.0]),
    "rounded peaks": (Rounded(mechanisms.SumOf([WHOLE, dpjax.Gaussian(0.1)]), 5.0), [10.0, 900.0, -5.0]),
    "censored": (Censored(LAPLACE, 0.0, 100.0), [0.0, 60.0, 100.0]),
    "censored rounded": (Censored(Rounded(LAPLACE, 5.0), 10.0, 80.0), [10.0, 70.0, 80.0]),
    "truncated below": (Truncated(LAPLACE, 0.0), [0.0, 900.0, 3.0]),
    "truncated": (Truncated(dpjax.Gaussian(30.0), 0.0, 200.0), [3.0, 150.0, 190.0]),
    "truncated whole": (Truncated(WHOLE, 0, 100), [3, 60, 100]),
    "kept zeros": (KeptZeros(Rounded(LAPLACE, 5.0)), [0.0, 900.0, 15.0]),
    "kept zeros, real": (KeptZeros(LAPLACE), [0.0, 900.0, 15.0]),
    "selected": (mechanisms.PartitionSelection(Censored(LAPLACE, 20.0)), [20.0, 900.0, 25.0]),
    "modulo": (Modulo(dpjax.DiscreteLaplace(0.5), 4096), [1, 41, 161]),
    "modulo of wide noise": (Modulo(dpjax.DiscreteGaussian(9.0), 31), [1, 15, 30]),
    "modulo of real noise": (Modulo(dpjax.Gaussian(2.0), 1000.5), [1.0, 990.0, 16.1]),
    "random rounding": (mechanisms.RandomRounding(5), [10, 900, 0]),
    "heaped": (mechanisms.Heaped((0.3, 0.1), (5, 10)), [10, 901, 0]),
    "suppression": (mechanisms.PrimarySuppression(6, 1), [-1, 900, 0]),
    "cell keys": (mechanisms.CellKeys(KEYS), [4, 900, 0]),
    "midpoints": (Coarsened.midpoints(6), [3.0, 903.0, 0.0]),
    "a long bin": (Coarsened.bins([0, 1000, 1003, 2000]), [1, 0, 2]),
    "short bins": (Coarsened.bins([0, 300, 301, 302, 303]), [1, 2, 3]),
    "bins without an end": (Coarsened.bins([0, 500, 502, 1500]), [1, 3, 0]),
    "far bins": (Coarsened.bins([0, *range(1000, 1100, 20)]), [1, 2, 3]),
    "a code for a far range": (table(520, -9.0, period=1), [-9, -9, 490]),
    "a large code": (table(520, 9999.0), [9999, 9999, 490]),
    "report sums": (mechanisms.ReportSums(0.7, 0.2, n=300), [70, 200, 61]),
    "permanent bits": (mechanisms.ReportSums(0.7, 0.2, n=200, reports=2, permanent=(0.8, 0.1)), [180, 150, 120]),
}
MEANS = [40.0, 900.0]

# At mean 40 the model gives these less than 10⁻⁸, and numbers without end are as dense as what it was. The probability
# of those beyond a window is one less a sum. Nothing that small can be said of it in double precision.
RARE_AT_FIRST = ("modulo of real noise", "bins without an end")


@pytest.mark.parametrize("name", CASES)
def test_sums_are_those_over_all_numbers(name: str) -> None:
    """Catches numbers that are left out, near or far, whatever the mechanism; and bounds that do not know of them."""
    channel, values = CASES[name]
    own = name == "own scales"
    parts = zip(map(dpjax.Gaussian, channel.scale), values, strict=True) if own else [(channel, values)]
    right = sum(summed(part, np.atleast_1d(value), MEANS) for part, value in parts)
    sums, left_out = found(channel, values, MEANS)
    np.testing.assert_allclose(sums, right, rtol=1e-8)
    assert np.max(left_out[1:] if name in RARE_AT_FIRST else left_out) < 1e-6


@pytest.mark.parametrize(
    ("channel", "value"),
    [
        (Coarsened.bins([0, 1000, 1003, 2000]), 1),
        (Coarsened.bins([0, 300, 301, 302, 303]), 1),
        (Coarsened.bins([0, 500, 502, 1500]), 1),
        (Coarsened.bins([0, *range(1000, 1100, 20)]), 1),
        (table(520, -9.0), -9),
    ],
    ids=["a bin", "a bin of one", "a bin before a long one", "bins of twenty", "a code"],
)
def test_a_far_bin_is_found_without_any_parameters(channel: Coarsened, value: float) -> None:
    """Catches windows around the published number, which is a code: the counts that it stands for are elsewhere."""
    likelihood = dpjax.marginal_likelihood(MODEL, dpjax.LocalRelease([value], channel, "y"))
    counts = np.flatnonzero(np.asarray(channel._published(jnp.asarray(NUMBERS, float))) == value)
    counts = counts[counts < len(channel.published)] if channel.period is None else counts
    expected = special.logsumexp(log_model(900.0)[counts])
    sums, left_out = look(likelihood, {"mean": jnp.array([900.0])})
    np.testing.assert_allclose(sums, [expected], rtol=1e-8)
    assert left_out == 0


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class WithSatellites(Additive):
    """Discrete Laplace noise, to which 5,000 is added or subtracted with a small probability: three narrow pieces."""

    integer_noise: ClassVar[bool] = True

    share: float

    def log_noise(self, noise: Any) -> Any:
        near = WHOLE.log_noise(noise) + jnp.log1p(-jnp.asarray(self.share))
        far = jnp.logaddexp(WHOLE.log_noise(noise - 5_000), WHOLE.log_noise(noise + 5_000))
        return jnp.logaddexp(near, far + jnp.log(jnp.asarray(self.share) / 2))

    def log_cdf(self, noise: Any) -> Any:
        near = WHOLE.log_cdf(noise) + jnp.log1p(-jnp.asarray(self.share))
        far = jnp.logaddexp(WHOLE.log_cdf(noise - 5_000), WHOLE.log_cdf(noise + 5_000))
        return jnp.logaddexp(near, far + jnp.log(jnp.asarray(self.share) / 2))

    def sample_noise(self, key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return WHOLE.sample_noise(key, shape, dtype)  # only its shape is looked at


class Said(WithSatellites):
    """The same mechanism, which says a falsehood: that its density falls on both sides of 0."""

    @property
    def noise(self) -> Any:
        return super().noise._replace(is_unimodal=True)


Said = dpjax.mechanisms.frozen_pytree(Said)
OF_A_USER = (WithSatellites(0.01), [12, 900, 5_040])


def test_narrow_pieces_of_a_users_noise_are_noticed() -> None:
    """Catches pieces of which nobody has said anything: the tails of whole noise bound them."""
    right = summed(*OF_A_USER, MEANS)
    sums, left_out = found(*OF_A_USER, MEANS)
    np.testing.assert_allclose(sums, right, rtol=1e-8)
    assert np.max(left_out) < 1e-6
    wrong, _ = found(Said(0.01), OF_A_USER[1], MEANS)
    assert np.max(np.abs(wrong - right)) > 0.1


class Silent(dpjax.Laplace):
    """Laplace noise of which nobody has said that it falls on both sides of 0."""


def test_real_noise_that_says_nothing_is_refused_by_name_and_imputed() -> None:
    """Catches windows around a value whose density may be anywhere."""
    release = dpjax.LocalRelease([3.0], dpjax.mechanisms.frozen_pytree(Silent)(2.0), "y")
    with pytest.raises(
        ValueError, match=r"release: given a field of whole numbers through Silent; expected channels of"
    ):
        dpjax.marginal_likelihood(MODEL, release)


def test_two_channels_of_one_count_far_from_each_other_meet_between() -> None:
    """Catches pieces that are looked for around each value by itself: the likely counts are near neither."""
    channel = dpjax.Gaussian(5.0)
    parts = [([100.0], channel, [True]), ([900.0], channel, [True])]
    near = {"mean": jnp.array([300.0])}
    likelihood = dpjax.marginal_likelihood(MODEL, dpjax.Microdata({"y": parts}), near)
    noise = stats.norm.logpdf(100, NUMBERS, 5.0) + stats.norm.logpdf(900, NUMBERS, 5.0)
    sums, left_out = look(likelihood, near)
    np.testing.assert_allclose(sums, [special.logsumexp(noise + log_model(300.0))], rtol=1e-8)
    assert left_out < 1e-6


def counted(n=1, y=None):
    rate = numpyro.sample("rate", dist.LogNormal(6.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


@pytest.mark.slow
def test_the_posterior_behind_a_code_for_a_far_range() -> None:
    """Catches counts near a code that are taken for those it stands for: 9,999 is the code for 500 to 503."""
    release = dpjax.LocalRelease([9_999, 9_999, 490], table(520, 9_999.0), "y")
    model = dpjax.from_numpyro(counted, ["y"])
    posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=200, num_samples=500, progress=False)
    rates = np.linspace(400, 600, 2_001)
    coded = special.logsumexp(stats.poisson.logpmf(np.arange(500, 504)[:, None], rates), axis=0)
    density = 2 * coded + stats.poisson.logpmf(490, rates) + stats.lognorm.logpdf(rates, 1.0, scale=np.exp(6.0))
    mean = special.softmax(density) @ rates
    draws = posterior.draws["rate"]
    assert abs(draws.mean() - mean) < 5 * dpjax.diagnostics.mcse_mean(draws)
    assert np.max(posterior.info["left_out"]) == 0


def test_the_posterior_of_counts_that_are_many_periods_large() -> None:
    """Catches counts some periods above their residues, of which windows near these know nothing: by a grid of both."""
    values, modulus = np.array([1, 41, 161]), 8192
    level, noise = np.linspace(2, 12, 101), np.arange(-40, 41)
    right = np.zeros_like(level)
    for value in values:
        counts, weights = np.broadcast_arrays(
            value + modulus * np.arange(80)[:, None] - noise, stats.dlaplace.logpmf(noise, 2.0)
        )
        possible = counts >= 0
        terms = counts[possible][:, None] * (level - np.log1p(np.exp(level))) + weights[possible][:, None]
        right += special.logsumexp(terms, axis=0) - np.log1p(np.exp(level))
    release = dpjax.LocalRelease(values, Modulo(dpjax.DiscreteLaplace(0.5), modulus), "y")
    likelihood = dpjax.marginal_likelihood(MODEL, release, {"mean": jnp.exp(jnp.array([4.0, 6.5, 9.5]))})
    sums = jax.lax.map(lambda mean: likelihood({"mean": mean}), jnp.exp(jnp.asarray(level)))
    for found in (right, sums):
        weight = special.softmax(np.asarray(found) + stats.norm.logpdf(level, 9.0, 1.0))
        mean = weight @ level
        np.testing.assert_allclose([mean, np.sqrt(weight @ (level - mean) ** 2)], [6.568, 0.983], atol=2e-3)
