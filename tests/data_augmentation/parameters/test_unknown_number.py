"""The step with an unknown number of records summed out: its weights, its law, and posteriors that are known."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax import models, statistics
from dpjax.base import ImputationInfo
from dpjax.data_augmentation.parameters.unknown_number import weigh_numbers
from dpjax.data_augmentation.records.unknown_number import data_set_form
from dpjax.diagnostics import mcse_mean, mcse_sd
from tests.data_augmentation.records.test_births import CASES as BIRTHS, number_p_value
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

SD = 1.5
TOTAL = statistics.total("y")


def release_of(value: float, scale: float, prior: object) -> dpjax.Release:
    return dpjax.Release([value], dpjax.Gaussian(scale), TOTAL, dpjax.UnknownCount(prior))


@pytest.mark.x64
def test_weights_are_prior_times_the_density_of_the_first_rows_together() -> None:
    prior = models.NegativeBinomialCount(6.0, 2.0)
    _, release = data_set_form(models.normal(models.NormalPrior(0.0, 1.0), 1.0), release_of(3.0, 2.0, prior))
    rows = np.random.default_rng(1).normal(size=release.statistic.capacity)
    found = weigh_numbers(release)({"y": jnp.asarray(rows)[None], "num_records": jnp.array([4])})
    sums = np.append(0.0, np.cumsum(rows))
    law = stats.nbinom(2.0, 2.0 / 8.0)
    expected = law.logpmf(np.arange(len(sums))) + stats.norm.logpdf(3.0, sums, 2.0)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def still(model: dpjax.Model, release: dpjax.Release) -> object:
    """An imputation that leaves the records as they are, so that the number moves by the step alone."""
    del model, release
    report = ImputationInfo(jnp.ones(()), jnp.zeros(1, int), jnp.zeros((), int))
    return lambda rng_key, latent, parameters: (latent, report)


def p_values_of_the_step(name: str) -> tuple[float, float, float]:
    """The p-values of the number of records, of the noise, and of the parameters, after perfect starts."""
    model, release, _, _, laws = BIRTHS[name]
    end = run(jax.random.key(3), *data_set_form(model, release), still, interweave=True)
    noise = noise_p_value(end.noise, stats.laplace(scale=1.0))
    return number_p_value(release.n.prior, end.reported["num_records"]), noise, parameter_p_value(end, laws)


@pytest.mark.keys
@pytest.mark.parametrize("name", ["interweaved", pytest.param("table, interweaved", marks=pytest.mark.slow)])
def test_the_joint_law_is_invariant(name: str) -> None:
    assert min(p_values_of_the_step(name)) > REJECT


@pytest.mark.x32
def test_a_number_drawn_without_its_prior_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the weights are those of the value alone."""

    def by_value_alone(release: dpjax.Release) -> object:
        design, right = release.statistic, weigh_numbers(release)
        log_prior = design.prior.log_probability(jnp.arange(design.capacity + 1))
        return lambda records: jnp.where(jnp.isfinite(log_prior), right(records) - log_prior, -jnp.inf)

    module = sys.modules["dpjax.data_augmentation.parameters.unknown_number"]
    monkeypatch.setattr(module, "weigh_numbers", by_value_alone)
    assert p_values_of_the_step("interweaved")[0] < REJECT


def known_posterior(value: float, scale: float, law: object, prior_mean: float, prior_sd: float) -> tuple:
    """Mean and sd of the number, and mean and sd of the records' mean, by a sum over all numbers."""
    numbers = np.arange(1, 2_000)
    variance = numbers * SD**2 + scale**2
    terms = law.logpmf(numbers) + stats.norm.logpdf(
        value, numbers * prior_mean, np.sqrt(variance + (numbers * prior_sd) ** 2)
    )
    weights = np.exp(terms - logsumexp(terms))
    precision = 1 / prior_sd**2 + numbers**2 / variance
    means = (prior_mean / prior_sd**2 + value * numbers / variance) / precision
    number, mean = weights @ numbers, weights @ means
    spread = np.sqrt(weights @ (1 / precision + (means - mean) ** 2))
    return number, np.sqrt(weights @ (numbers - number) ** 2), mean, spread


CASES = {
    "a ridge": (600.0, 15.0, models.UniformCount(100, 400), stats.randint(100, 401), 3.0, 1.0),
    "little noise": (600.0, 2.0, models.UniformCount(100, 400), stats.randint(100, 401), 3.0, 1.0),
    "in conflict": (500.0, 8.0, models.NegativeBinomialCount(60.0, 6.0), stats.nbinom(6, 6 / 66), 2.0, 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_posteriors_along_a_ridge_are_those_of_a_sum_over_all_numbers(name: str) -> None:
    """Only the product of number and mean is known: chains that move one given the other need hundreds of sweeps."""
    value, scale, prior, law, prior_mean, prior_sd = CASES[name]
    model = models.normal(models.NormalPrior(prior_mean, prior_sd), SD**2)
    options = {"num_warmup": 500, "num_samples": 1_500, "progress": False, "refresh": False}
    posterior = dpjax.sample(jax.random.key(1), model, release_of(value, scale, prior), **options)
    number, number_sd, mean, mean_sd = known_posterior(value, scale, law, prior_mean, prior_sd)
    for draws, centre, spread in (
        (posterior.draws["num_records"].astype(float), number, number_sd),
        (posterior.draws["mean"].astype(float), mean, mean_sd),
    ):
        error = mcse_mean(draws)
        assert error < 0.05 * spread
        assert abs(np.mean(draws) - centre) < 4 * error
        assert abs(np.std(draws) - spread) < 4 * mcse_sd(draws) + 0.01 * spread
