"""The probabilities that NumPyro's distributions give to intervals, against SciPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax import mechanisms

RULES = {
    "below a limit": (mechanisms.Censored(dpjax.Exact(), lower=0.5), [0.5, 0.6, 0.85, 0.5, 0.5]),
    "above one": (mechanisms.Censored(dpjax.Exact(), upper=0.75), [0.4, 0.6, 0.75, 0.25, 0.5]),
    "rounded": (mechanisms.Rounded(dpjax.Exact(), 0.25), [0.5, 0.5, 0.75, 0.25, 0.5]),
    "rounded, and below a limit": (
        mechanisms.Censored(mechanisms.Rounded(dpjax.Exact(), 0.25), lower=0.25),
        [0.5, 0.5, 0.75, 0.25, 0.5],
    ),
}
ENDS = {
    "below a limit": lambda v: (-np.inf, v) if v <= 0.5 else (v, v),
    "above one": lambda v: (v, np.inf) if v >= 0.75 else (v, v),
    "rounded": lambda v: (v - 0.125, v + 0.125),
    "rounded, and below a limit": lambda v: (-np.inf if v <= 0.25 else v - 0.125, v + 0.125),
}
LAWS = {
    "Normal": (lambda p: dist.Normal(p, 0.3), lambda p: stats.norm(p, 0.3)),
    "LogNormal": (lambda p: dist.LogNormal(-p, 0.5), lambda p: stats.lognorm(0.5, scale=np.exp(-p))),
    "Gamma": (lambda p: dist.Gamma(p, 2.0), lambda p: stats.gamma(p, scale=0.5)),
    "InverseGamma": (lambda p: dist.InverseGamma(p, 0.7), lambda p: stats.invgamma(p, scale=0.7)),
    "Weibull": (lambda p: dist.Weibull(0.6, p), lambda p: stats.weibull_min(p, scale=0.6)),
    "StudentT": (lambda p: dist.StudentT(4 * p, 0.4, 0.2), lambda p: stats.t(4 * p, 0.4, 0.2)),
    "Exponential": (lambda p: dist.Exponential(p), lambda p: stats.expon(scale=1 / p)),
    "Logistic": (lambda p: dist.Logistic(p, 0.2), lambda p: stats.logistic(p, 0.2)),
    "Laplace": (lambda p: dist.Laplace(p, 0.2), lambda p: stats.laplace(p, 0.2)),
    "Beta": (lambda p: dist.Beta(p, 2.5), lambda p: stats.beta(p, 2.5)),
    "HalfNormal": (lambda p: dist.HalfNormal(p), lambda p: stats.halfnorm(scale=p)),
    "Gumbel, by its cdf": (lambda p: dist.Gumbel(p, 0.3), lambda p: stats.gumbel_r(p, 0.3)),
    "Pareto, a function of Exponential": (lambda p: dist.Pareto(0.2, p), lambda p: stats.pareto(p, scale=0.2)),
    "TruncatedNormal": (
        lambda p: dist.TruncatedDistribution(dist.Normal(p, 0.3), low=0.1, high=1.2),
        lambda p: stats.truncnorm((0.1 - p) / 0.3, (1.2 - p) / 0.3, p, 0.3),
    ),
}


def model_of(law: Any) -> dpjax.Model:
    def program(n, y=None):
        p = numpyro.sample("p", dist.Uniform(0.2, 3.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", law(p), obs=y)

    return dpjax.from_numpyro(program, "y", n=5)


def exact_density(law: Any, rule: str, values: list[float]) -> float:
    """The log-density of what was published: by SciPy's distribution function on the side of the smaller tail."""
    terms = []
    for value in values:
        low, high = ENDS[rule](value)
        below, above = law.cdf(high) - law.cdf(low), law.sf(low) - law.sf(high)
        terms.append(law.logpdf(value) if low == high else np.log(above if law.sf(low) < 0.5 else below))
    return float(np.sum(terms))


@pytest.mark.parametrize("law", LAWS)
def test_the_likelihood_is_that_of_intervals_and_of_numbers(law):
    """Finds an interval of a wrong distribution, ends mistaken, and densities beyond the support: by every rule."""
    of_numpyro, of_scipy = LAWS[law]
    model, parameter = model_of(of_numpyro), jnp.asarray(0.8)
    for rule, (channel, values) in RULES.items():
        likelihood = dpjax.marginal_likelihood(model, dpjax.LocalRelease(values, channel, "y"))
        found, slope = jax.value_and_grad(lambda p, likelihood=likelihood: likelihood({"p": p}))(parameter)
        close = 1e-9 if parameter.dtype == jnp.float64 else 3e-5
        np.testing.assert_allclose(found, exact_density(of_scipy(0.8), rule, values), rtol=close, err_msg=rule)
        step = 1e-5
        sides = [exact_density(of_scipy(0.8 + shift), rule, values) for shift in (-step, step)]
        np.testing.assert_allclose(slope, (sides[1] - sides[0]) / (2 * step), rtol=1e-3, atol=1e-3, err_msg=rule)


def test_a_mixture_has_the_intervals_of_its_components():
    """Finds the log-weights of a mixture used as those of one component."""
    parts = lambda p: dist.MixtureSameFamily(  # noqa: E731
        dist.Categorical(probs=jnp.array([0.3, 0.7])), dist.Normal(jnp.stack([p, p + 1.0]), jnp.array([0.2, 0.5]))
    )
    channel, values = RULES["below a limit"]
    found = dpjax.marginal_likelihood(model_of(parts), dpjax.LocalRelease(values, channel, "y"))(
        {"p": jnp.asarray(0.4)}
    )
    first, second = stats.norm(0.4, 0.2), stats.norm(1.4, 0.5)
    terms = [
        np.log(0.3 * one(first, value) + 0.7 * one(second, value))
        for value in values
        for one in [(lambda law, x: law.cdf(x)) if value <= 0.5 else (lambda law, x: law.pdf(x))]
    ]
    np.testing.assert_allclose(found, np.sum(terms), rtol=1e-5)
