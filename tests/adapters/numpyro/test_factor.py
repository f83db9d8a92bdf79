"""A released sum in a NumPyro model: the posterior of NUTS against a grid, and bad input by its name."""

from math import sqrt

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax import diagnostics
from dpjax.adapters.numpyro import release_factor
from dpjax.mechanisms import SumOf

N, VALUE, SCALE, SPREAD = 30, 25.0, 6.0, 1.5
TOTAL = dpjax.statistics.total("y")
RELEASE = dpjax.Release([VALUE], dpjax.Laplace(SCALE), TOTAL, N)
LAPLACE, NORMAL = dpjax.DiscreteLaplace(SCALE), dpjax.DiscreteGaussian(SCALE)
WHOLE = dpjax.Release([VALUE], LAPLACE, dpjax.statistics.grouped("cell", [0, -1]), N)


def grid() -> tuple[float, float]:
    """Mean and deviation of mu ~ N(0, 1) given the noisy sum of N records N(mu, SPREAD²), by quadrature."""
    mu, noise = np.linspace(-4.0, 5.0, 901), np.linspace(-120.0, 120.0, 4001)
    of_noise = stats.laplace.pdf(noise, scale=SCALE)
    likelihood = stats.norm.pdf(VALUE - noise[None], N * mu[:, None], SPREAD * sqrt(N)) @ of_noise
    weights = likelihood * stats.norm.pdf(mu)
    weights /= weights.sum()
    mean = mu @ weights
    return mean, sqrt((mu - mean) ** 2 @ weights)


@pytest.mark.x32
def test_nuts_draws_the_posterior_of_a_normal_sum():
    """Here the sum is Normal. Catches noise of the wrong variance, and a scale mixture that is none."""

    def model():
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        release_factor("total", RELEASE, mu[None], jnp.array([[SPREAD**2]]))

    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        sampler = numpyro.infer.MCMC(
            numpyro.infer.NUTS(model), num_warmup=500, num_samples=6_000, num_chains=2, chain_method="vectorized",
            progress_bar=False,
        )  # fmt: skip
        sampler.run(jax.random.key(1))
    draws = np.asarray(sampler.get_samples(group_by_chain=True)["mu"], float)
    mean, sd = grid()
    assert abs(draws.mean() - mean) < 4 * diagnostics.mcse_mean(draws)
    np.testing.assert_allclose(draws.std(), sd, rtol=0.05)


@pytest.mark.x64
@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ((3, RELEASE, jnp.zeros(1), jnp.eye(1)), "name"),
        (("s", dpjax.LocalRelease([1.0], dpjax.Laplace(1.0), "y"), jnp.zeros(1), jnp.eye(1)), "release"),
        (("s", RELEASE.with_mechanism(dpjax.Staircase(1.0, 1.0)), jnp.zeros(1), jnp.eye(1)), "release"),
        (("s", WHOLE.with_mechanism(dpjax.mechanisms.ReportSums(0.7, 0.2, N)), jnp.zeros(1), jnp.eye(1)), "release"),
        (("s", WHOLE.with_mechanism(dpjax.mechanisms.RandomRounding(5)), jnp.zeros(1), jnp.eye(1)), "release"),
        (("s", WHOLE.with_mechanism(SumOf([LAPLACE, LAPLACE])), jnp.zeros(1), jnp.eye(1)), "release"),
        (("s", WHOLE.with_mechanism(SumOf([LAPLACE, LAPLACE, NORMAL])), jnp.zeros(1), jnp.eye(1)), "release"),
        (("s", RELEASE, jnp.zeros(2), jnp.eye(1)), "mean"),
        (("s", RELEASE, jnp.zeros(1), jnp.ones(1)), "covariance"),
        (("s", RELEASE, "a", jnp.eye(1)), "mean"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, argument):
    with pytest.raises((TypeError, ValueError), match=rf"^{argument}: given .*; expected .*\. .+\.$"):
        release_factor(*arguments)


@pytest.mark.parametrize("mechanism", [SumOf([LAPLACE]), SumOf([NORMAL]), SumOf([NORMAL, dpjax.DiscreteGaussian(2.0)])])
def test_sums_of_whole_noise_have_its_variance(mechanism):
    """They raised NotImplementedError."""

    def model():
        release_factor("s", WHOLE.with_mechanism(mechanism), jnp.zeros(1), jnp.zeros((1, 1)))

    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        sites = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace()
    whole = jnp.arange(-200.0, 201.0)
    variance = jnp.sum(whole**2 * jnp.exp(mechanism.log_noise(whole)))
    factor = sites["s_scale"]["value"] if "s_scale" in sites else jnp.ones(1)
    np.testing.assert_allclose(sites["s"]["fn"].covariance_matrix, (variance * factor)[None], rtol=1e-4)


def test_values_of_single_records_have_another_factor():
    release = dpjax.LocalRelease([1.0], dpjax.Laplace(1.0), "y")
    with pytest.raises(
        TypeError, match=r"release: given a LocalRelease; .* dpjax\.marginal_likelihood .* numpyro\.factor"
    ):
        release_factor("s", release, jnp.zeros(1), jnp.eye(1))
