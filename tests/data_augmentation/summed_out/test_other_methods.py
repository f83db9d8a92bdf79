"""Methods other than `sample` with the records summed out: against quadrature, which shares no code with them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax import models

NUMBERS, RATES = np.arange(300), np.linspace(0.05, 40.0, 4_000)
FAR = np.array([100, 3, -4])
"""The first is far from anything that the prior expects, and the last below every count."""

KEPT = dpjax.RandomizedResponse(keep=0.8, num_categories=2)


def visits(n, y=None):
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    with numpyro.plate("weeks", n):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


VISITS, FAR_COUNTS = dpjax.from_numpyro(visits, ["y"]), dpjax.LocalRelease(FAR, dpjax.DiscreteLaplace(2.0), "y")


def visits_by_quadrature() -> tuple[float, float, float]:
    """The log-density of what was released, and the mean and the deviation of the rate."""
    of_noise = stats.dlaplace.logpmf(FAR[:, None] - NUMBERS, 0.5)
    joint = stats.poisson.logpmf(NUMBERS, RATES[:, None])[:, None] + of_noise  # [rate, week, count]
    log_joint = stats.gamma.logpdf(RATES, 5.0) + special.logsumexp(joint, axis=2).sum(axis=1)
    weight = special.softmax(log_joint)
    mean = weight @ RATES
    evidence = special.logsumexp(log_joint) + np.log(RATES[1] - RATES[0])
    return float(evidence), float(mean), float(np.sqrt(weight @ RATES**2 - mean**2))


def check(found: Any, name: str, truth: tuple[float, float, float], most: float = 5.0) -> None:
    evidence, mean, deviation = truth
    row = found.summary()[name]
    assert abs(found.log_marginal_likelihood - evidence) < most * found.log_marginal_likelihood_error
    assert abs(row["mean"] - mean) < most * row["se_mean"]
    assert abs(row["sd"] - deviation) < most * row["se_sd"]
    # What is told is not told by errors without end.
    assert found.log_marginal_likelihood_error < 0.2
    assert row["se_mean"] < 0.2 * deviation


SMALL = {"num_particles": 100, "num_islands": 16, "num_sweeps": 2}


def test_tempering_where_prior_and_data_are_in_conflict() -> None:
    """The first windows, as far as the noise reaches, leave out where the far count is: the run is made again."""
    narrow = dpjax.marginal_likelihood(VISITS, FAR_COUNTS)
    assert float(narrow.left_out({"rate": jnp.asarray(10.0)})) > 1e-3
    check(dpjax.sample_smc(jax.random.key(1), VISITS, FAR_COUNTS, **SMALL), "rate", visits_by_quadrature())


def rates(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("areas", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate * jnp.exp(slope)), obs=y)


EXPOSURE, RELEASED = np.array([2.0, 0.5, 8.0]), np.array([7, -2, 31])
AREAS = dpjax.LocalRelease(RELEASED, dpjax.DiscreteLaplace(2.0), "y")


def rates_by_quadrature() -> tuple[float, float, float]:
    """Of two parameters: the log-density of what was released, and the mean and the deviation of the slope."""
    slope, log_rate = np.linspace(-4.5, 4.5, 201), np.linspace(-7.0, 4.0, 301)
    product = np.linspace(-11.5, 8.5, 1_001)
    of_noise = stats.dlaplace.logpmf(RELEASED[:, None] - NUMBERS, 0.5)
    of_counts = stats.poisson.logpmf(NUMBERS, (EXPOSURE[None] * np.exp(product[:, None]))[..., None])
    of_product = special.logsumexp(of_counts + of_noise, axis=2).sum(axis=1)
    likelihood = np.interp(slope[:, None] + log_rate, product, of_product)
    log_joint = stats.norm.logpdf(slope)[:, None] + stats.gamma.logpdf(np.exp(log_rate), 2.0) + log_rate + likelihood
    weight = special.softmax(log_joint).sum(axis=1)
    area = (slope[1] - slope[0]) * (log_rate[1] - log_rate[0])
    mean = weight @ slope
    return float(special.logsumexp(log_joint) + np.log(area)), float(mean), float(np.sqrt(weight @ slope**2 - mean**2))


@pytest.mark.x64
@pytest.mark.parametrize("kernel", [None, "hmc"])
def test_tempering_of_two_parameters_by_slices_and_by_a_kernel_with_a_step_size(kernel) -> None:
    model = dpjax.from_numpyro(rates, ["y"], exposure=EXPOSURE)
    found = dpjax.sample_smc(jax.random.key(2), model, AREAS, **SMALL, parameter_kernel=kernel)
    check(found, "slope", rates_by_quadrature())
    assert found.draws["slope"].shape == (16, 100)


def test_importance_weights_are_the_likelihood() -> None:
    """The far count of the other test is left out: draws from the prior alone do not reach it."""
    near = dpjax.LocalRelease(FAR[1:], dpjax.DiscreteLaplace(2.0), "y")
    found = dpjax.importance_sample(jax.random.key(3), VISITS, near, 4_000)
    of_noise = stats.dlaplace.logpmf(FAR[1:, None] - NUMBERS, 0.5)
    joint = stats.poisson.logpmf(NUMBERS, found.draws["rate"][:, None, None]) + of_noise
    expected = special.log_softmax(special.logsumexp(joint, axis=2).sum(axis=1))
    np.testing.assert_allclose(found.log_weights, expected, atol=1e-3)


def outcome(n):
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", n):
        label = numpyro.sample("label", dist.Categorical(jnp.broadcast_to(jnp.stack([1 - share, share]), (n or 1, 2))))
        numpyro.sample("y", dist.Normal(slope * label.astype(float), 1.0))


@pytest.mark.x32
def test_exact_fields_beside_hidden_ones_are_weighed() -> None:
    """Exact fields were refused: whole records drawn from the model never have them."""
    label, y = np.array([0, 1, 1, 0]), np.array([0.3, 1.2, -0.4, 2.0])
    people = dpjax.Microdata({"label": (label, KEPT), "y": (y, dpjax.Exact())})
    found = dpjax.importance_sample(jax.random.key(4), dpjax.from_numpyro(outcome, ["label", "y"]), people, 1_000)
    share, slope = found.draws["share"][:, None], found.draws["slope"][:, None]
    of_one = share * np.where(label == 1, 0.8, 0.2) * stats.norm.pdf(y, slope)
    of_none = (1 - share) * np.where(label == 0, 0.8, 0.2) * stats.norm.pdf(y)
    np.testing.assert_allclose(found.log_weights, special.log_softmax(np.log(of_one + of_none).sum(axis=1)), atol=1e-3)


@pytest.mark.x64
def test_tempering_takes_exact_fields() -> None:
    """All is known, and the labels are as many as can be: a Beta posterior, of a model without an exact update."""
    label = np.array([0, 1, 1, 0, 1, 1])
    people = dpjax.Microdata({"label": (label, dpjax.Exact()), "y": (np.zeros(6), dpjax.Exact())})
    found = dpjax.sample_smc(jax.random.key(5), dpjax.from_numpyro(outcome, ["label", "y"]), people, **SMALL)
    posterior = stats.beta(2 + 4, 2 + 2)
    evidence = special.betaln(6, 4) - special.betaln(2, 2)
    evidence += 2 * stats.norm.logpdf(0.0) + stats.multivariate_normal.logpdf(np.zeros(4), None, np.eye(4) + 1)
    check(found, "share", (evidence, posterior.mean(), posterior.std()))


def test_models_with_an_exact_update_are_weighed_by_the_likelihood_too() -> None:
    found = dpjax.importance_sample(
        jax.random.key(6), models.categorical(np.ones(2)), dpjax.LocalRelease([0, 0], KEPT), 500
    )
    expected = special.log_softmax(2 * np.log(0.2 + 0.6 * found.draws["probabilities"][:, 0]))
    np.testing.assert_allclose(found.log_weights, expected, atol=1e-4)
