"""Numbers that are reported as round ones: their distribution by enumeration, and probabilities that are estimated."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax.mechanisms import Heaped
from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]

IS_SINGLE = jnp.zeros(()).dtype == np.float32


def law(truth, probabilities, steps, size=200):
    """The probabilities of all reports of a number, by rounding it to each step."""
    found = np.zeros(size)
    found[truth] = 1 - sum(probabilities)
    for one, step in zip(probabilities, steps, strict=True):
        multiples = np.arange(0, size, step)
        nearest = multiples[np.abs(multiples - truth) == np.min(np.abs(multiples - truth))]
        found[nearest] += one / len(nearest)
    return found


@pytest.mark.parametrize("truth", [0, 3, 5, 12, 15, 25, 30, 41])
def test_every_report_has_its_probability(truth):
    """By hand, with ties; draws have the same distribution."""
    mechanism = Heaped((0.3, 0.2), (5, 10))
    reports = np.arange(200.0)
    found = np.exp(np.asarray(mechanism.log_density_terms(jnp.asarray(reports), jnp.full(200, float(truth)))))
    expected = law(truth, (0.3, 0.2), (5, 10))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    drawn = np.asarray(mechanism.sample(jax.random.key(truth), jnp.full(8_000, float(truth)))).astype(int)
    observed, common = np.bincount(drawn, minlength=200), expected > 0
    assert observed[~common].sum() == 0
    statistic = np.sum((observed[common] - 8_000 * expected[common]) ** 2 / (8_000 * expected[common]))
    assert stats.chi2.sf(statistic, max(common.sum() - 1, 1)) > 1e-4


def smoked(y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.1))
    with numpyro.plate("persons", 40):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


def test_text_and_words():
    """The JSON text keeps the probabilities; words name the steps."""
    release = dpjax.LocalRelease([10, 13, 20], Heaped((0.3, 0.2), (5, 10)), "y")
    assert dpjax.from_json(release.to_json()).channel == release.channel
    assert "multiple of 5 with probability 0.3, of 10 with probability 0.2" in dpjax.describe(release)


def test_probabilities_of_heaping_are_estimated():
    """By a grid of the likelihood: the probabilities of `CellKeys` cannot be parameters."""
    reports = np.array([10, 13, 20, 15, 17, 10, 20, 12, 30, 15] * 4)
    five, ten = dpjax.unknown("five", dist.Beta(1.0, 3.0)), dpjax.unknown("ten", dist.Beta(1.0, 3.0))
    release = dpjax.LocalRelease(reports, Heaped((five, ten), (5, 10)), "y")
    likelihood = dpjax.marginal_likelihood(dpjax.from_numpyro(smoked, ["y"]), release)
    numbers = np.arange(190)
    for rate, given in ((15.0, (0.2, 0.3)), (17.0, (0.05, 0.6))):
        table = np.array([law(number, given, (5, 10)) for number in numbers])
        expected = np.log((stats.poisson.pmf(numbers, rate) @ table)[reports]).sum()
        parameters = {"rate": jnp.asarray(rate), "five": jnp.asarray(given[0]), "ten": jnp.asarray(given[1])}
        np.testing.assert_allclose(likelihood(parameters), expected, rtol=2e-5 if IS_SINGLE else 1e-11)
        slopes = jax.grad(likelihood)(parameters)
        assert all(np.isfinite(slope) for slope in slopes.values())
        assert float(likelihood.left_out(parameters)) < 1e-6


@pytest.mark.slow
def test_the_posterior_of_heaping_is_that_of_a_grid():
    """Forty reports in tens: a rate and a probability, which were held for known before."""
    rng = np.random.default_rng(5)
    truth = rng.poisson(14.0, 40)
    reports = np.where(rng.uniform(size=40) < 0.5, np.round(truth / 10 + 1e-9) * 10, truth).astype(int)
    channel = Heaped(dpjax.unknown("heaping", dist.Uniform()), 10)
    model = dpjax.from_numpyro(smoked, ["y"])
    release = dpjax.LocalRelease(reports, channel, "y")
    found = dpjax.sample(jax.random.key(1), model, release, num_warmup=300, num_samples=1_000, progress=False)
    numbers, shares = np.arange(190), np.linspace(0.0025, 0.9975, 200)
    as_is, rounded = (np.array([law(number, (one,), (10,)) for number in numbers]) for one in (0.0, 1.0))
    rates = np.linspace(8, 21, 200)
    logs = np.zeros((200, 200))
    for place, rate in enumerate(rates):
        each = [stats.poisson.pmf(numbers, rate) @ table for table in (as_is, rounded)]
        mixed = np.multiply.outer(1 - shares, each[0][reports]) + np.multiply.outer(shares, each[1][reports])
        logs[place] = np.log(mixed).sum(axis=1) + stats.gamma.logpdf(rate, 2.0, scale=10.0)
    weight = special.softmax(logs)
    for name, values in (("rate", rates[:, None]), ("heaping", shares[None])):
        draws = np.asarray(found.draws[name], float)
        center = np.sum(weight * values)
        deviation = np.sqrt(np.sum(weight * (values - center) ** 2))
        assert abs(draws.mean() - center) < 4.5 * deviation / np.sqrt(draws.size / 4)
        assert abs(draws.std() / deviation - 1) < 0.07


BAD = {
    "more than 1": (lambda: Heaped((0.7, 0.6), (5, 10)), "probabilities"),
    "negative": (lambda: Heaped(-0.1, 10), "probabilities"),
    "one too few": (lambda: Heaped(0.3, (5, 10)), "probabilities"),
    "a step of 1": (lambda: Heaped(0.3, 1), "steps"),
    "half a step": (lambda: Heaped(0.3, 2.5), "steps"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    call, argument = BAD[name]
    with pytest.raises((TypeError, ValueError), match=f"^{argument}: given"):
        call()
