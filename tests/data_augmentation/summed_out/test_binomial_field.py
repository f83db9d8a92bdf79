"""Binomial counts of which the persons reported randomized bits: in closed form, for any number of persons."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax.data_augmentation.summed_out.binomial_field import BinomialField
from dpjax.mechanisms import ReportSums
from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]

KEEP, FLIP = 0.7, 0.2
SIZE = np.round(np.geomspace(60, 1e6, 24)).astype(int)
CHANCE = special.expit(-1.5 + 0.4 * np.cos(np.arange(24)))
SUMS = np.round(SIZE * (FLIP + (KEEP - FLIP) * CHANCE)).astype(int)
IS_SINGLE = jnp.zeros(()).dtype == np.float32


def campaigns(size, x, y=None):
    level = numpyro.sample("level", dist.Normal(-1.0, 1.5))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("campaigns", len(size)):
        numpyro.sample("y", dist.Binomial(size, logits=level + slope * x), obs=y)


def model_of(size, x):
    return dpjax.from_numpyro(campaigns, ["y"], size=np.asarray(size), x=np.asarray(x, float))


def by_convolution(total, n, keep, flip):
    """P(total | count) for all counts of n persons, by sums over how many of those who count reported a 1."""
    kept = np.arange(n + 1)
    terms = [stats.binom.pmf(kept, c, keep) * stats.binom.pmf(total - kept, n - c, flip) for c in range(n + 1)]
    return np.sum(terms, axis=1)


def log_likelihood(level, slope, x):
    """Of the 24 campaigns, [grid] for levels and slopes [grid]."""
    chance = special.expit(np.multiply.outer(slope, x) + np.asarray(level)[..., None])
    return stats.binom.logpmf(SUMS, SIZE, FLIP + (KEEP - FLIP) * chance).sum(axis=-1)


@pytest.mark.parametrize("permanent", [None, (0.8, 0.1)])
def test_the_sum_over_all_counts_is_in_closed_form(permanent):
    """By two convolutions. Sums over windows had the same value, at a cost that grew with the numbers of persons."""
    n, total = np.array([7, 30, 12]), np.array([3, 11, 0])
    model = model_of(n, [0.0, 0.5, -1.0])
    likelihood = dpjax.marginal_likelihood(
        model, dpjax.LocalRelease(total, ReportSums(KEEP, FLIP, n, permanent=permanent), "y")
    )
    assert isinstance(likelihood.terms, BinomialField)
    assert not likelihood.is_approximate
    kept, flipped = (FLIP + (KEEP - FLIP) * one for one in permanent or (1.0, 0.0))
    expected = 0.0
    for own, number, x in zip(total, n, [0.0, 0.5, -1.0], strict=True):
        counts = stats.binom.pmf(np.arange(number + 1), number, special.expit(-0.7 + 0.4 * x))
        expected += np.log(by_convolution(own, number, kept, flipped) @ counts)
    found = likelihood({"level": jnp.asarray(-0.7), "slope": jnp.asarray(0.4)})
    np.testing.assert_allclose(found, expected, rtol=2e-6 if IS_SINGLE else 1e-11)


def test_numbers_of_persons_do_not_matter_for_cost_or_digits():
    """24 campaigns of 60 to a million persons: no window, a finite slope, and log ratios right in float32."""
    model = model_of(SIZE, np.linspace(-1, 1, 24))
    likelihood = dpjax.marginal_likelihood(model, dpjax.LocalRelease(SUMS, ReportSums(KEEP, FLIP, SIZE), "y"))
    assert likelihood.size == 24
    places = [(-1.5, 0.0), (-1.501, 0.002), (-1.49, 0.01)]
    function = jax.jit(jax.value_and_grad(lambda level, slope: likelihood({"level": level, "slope": slope})))
    found = [function(*map(jnp.asarray, place)) for place in places]
    values = np.array([float(value) for value, _ in found])
    expected = np.array([log_likelihood(*place, np.linspace(-1, 1, 24)) for place in places])
    np.testing.assert_allclose(values - values[0], expected - expected[0], atol=0.02 if IS_SINGLE else 1e-8)
    step = 1e-6
    slope = np.diff([log_likelihood(-1.49 + d, 0.01, np.linspace(-1, 1, 24)) for d in (-step, step)])[0] / (2 * step)
    np.testing.assert_allclose(found[2][1], slope, rtol=1e-3 if IS_SINGLE else 1e-6)


def test_counts_are_drawn_given_the_reports():
    """Their conditional distribution, by Bayes' rule on all counts; of a unit without a release the model's."""
    n, total = np.array([9, 5]), np.array([4.0, 0.0])
    model = model_of(n, [0.0, 0.0])
    channel = ReportSums(KEEP, FLIP, n)
    release = dpjax.Microdata({"y": (total, channel)}, missing={"y": np.array([False, True])})
    likelihood = dpjax.marginal_likelihood(model, release)
    assert isinstance(likelihood.terms, BinomialField)
    parameters = {"level": jnp.asarray(-0.3), "slope": jnp.asarray(0.0)}
    draw = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, parameters)["y"]))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(1), 20_000)))
    chance = special.expit(-0.3)
    laws = [stats.binom.pmf(np.arange(10), 9, chance) * by_convolution(4, 9, KEEP, FLIP)]
    laws += [stats.binom.pmf(np.arange(6), 5, chance)]
    for law, own in zip(laws, drawn.T, strict=True):
        expected = 20_000 * law / law.sum()
        observed, common = np.bincount(own, minlength=len(law)), expected > 5
        statistic = np.sum((observed[common] - expected[common]) ** 2 / expected[common])
        assert stats.chi2.sf(statistic, common.sum() - 1) > 1e-4


def test_a_common_number_of_persons_beyond_what_can_be_listed():
    """Campaigns of 5,000 persons each were refused, as counts of one size are listed up to 1,024."""

    def polls(y=None):
        share = numpyro.sample("share", dist.Uniform())
        with numpyro.plate("polls", 3):
            numpyro.sample("y", dist.Binomial(5_000, share), obs=y)

    model = dpjax.from_numpyro(polls, ["y"])
    release = dpjax.LocalRelease([1_500, 1_480, 1_555], ReportSums(KEEP, FLIP, 5_000), "y")
    found = dpjax.marginal_likelihood(model, release)({"share": jnp.asarray(0.2)})
    expected = stats.binom.logpmf([1_500, 1_480, 1_555], 5_000, 0.3).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-5 if IS_SINGLE else 1e-11)


def several_reports():
    return model_of([7, 9], [0.0, 1.0]), ReportSums(KEEP, FLIP, [7, 9], reports=2)


def unknown_trials():
    def unknown(y=None):
        more = numpyro.sample("more", dist.Uniform())
        with numpyro.plate("units", 2):
            numpyro.sample("y", dist.Binomial(jnp.where(more > 2.0, 9, 7), 0.3), obs=y)

    return dpjax.from_numpyro(unknown, ["y"]), ReportSums(KEEP, FLIP, 7)


@pytest.mark.parametrize("case", [several_reports, unknown_trials])
def test_what_is_not_binomial_is_summed_over(case):
    """Several reports of each person are no Binomial number, and trials that depend on parameters are not known."""
    model, channel = case()
    likelihood = dpjax.marginal_likelihood(model, dpjax.LocalRelease([3, 2], channel, "y"))
    assert not isinstance(likelihood.terms, BinomialField)


def test_a_wrong_binomial_field_is_named():
    """The checks of a model of one's own compare it with the density."""
    right = model_of([7, 9], [0.0, 1.0])
    dpjax.models.check(jax.random.key(0), right)

    class Wrong(type(right)):
        def binomial_field(self, parameters):
            number, chance = super().binomial_field(parameters)
            return number, chance / 2

    wrong = Wrong(right.layout, right.facts)
    with pytest.raises(ValueError, match=r"^Model\.binomial_field: "):
        dpjax.models.check(jax.random.key(0), wrong)


@pytest.mark.slow
def test_the_posterior_of_campaigns_is_that_of_a_grid():
    """By the call that people make: it did not end within ten minutes, as windows had 13,000 numbers."""
    x = np.cos(np.arange(24))
    release = dpjax.LocalRelease(SUMS, ReportSums(KEEP, FLIP, SIZE), "y")
    found = dpjax.sample(
        jax.random.key(2), model_of(SIZE, x), release, num_warmup=300, num_samples=1_000, progress=False
    )
    level, slope = np.meshgrid(np.linspace(-1.52, -1.48, 161), np.linspace(0.38, 0.42, 161))
    logs = log_likelihood(level, slope, x) + stats.norm.logpdf(level, -1, 1.5) + stats.norm.logpdf(slope)
    weight = special.softmax(logs)
    for name, grid in (("level", level), ("slope", slope)):
        mean = np.sum(weight * grid)
        deviation = np.sqrt(np.sum(weight * (grid - mean) ** 2))
        draws = np.asarray(found.draws[name], float)
        # At least one draw in four is effective.
        assert abs(draws.mean() - mean) < 4.5 * deviation / np.sqrt(draws.size / 4)
        assert abs(draws.std() / deviation - 1) < 0.08
