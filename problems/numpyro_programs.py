"""NumPyro models of one plate: the hand-written models again, and others that dpjax does not ship."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist

Model = Any


def normal(n: int, y: Any = None) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    variance = numpyro.sample("variance", dist.InverseGamma(4.0, 3.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, jnp.sqrt(variance)), obs=y)


def regression(n: int, covariate_mean: Any, covariate_cov: Any, scale: Any, variance: Any) -> None:
    size = len(covariate_mean) + 1
    coef = numpyro.sample("coef", dist.Normal(0.0, scale).expand([size]).to_event(1))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(covariate_mean), jnp.asarray(covariate_cov)))
        numpyro.sample("y", dist.Normal(coef[0] + x @ coef[1:], jnp.sqrt(variance)))


def categorical(concentration: Any) -> None:
    probabilities = numpyro.sample("probabilities", dist.Dirichlet(jnp.asarray(concentration)))
    with numpyro.plate("records", 4):
        numpyro.sample("cell", dist.Categorical(probabilities))


def naive_bayes(class_concentration: Any, feature_concentration: Any) -> None:
    classes = numpyro.sample("class_probabilities", dist.Dirichlet(jnp.asarray(class_concentration)))
    features = numpyro.sample("feature_probabilities", dist.Dirichlet(jnp.asarray(feature_concentration)).to_event(2))
    with numpyro.plate("records", 3):
        label = numpyro.sample("class", dist.Categorical(classes))
        numpyro.sample("features", dist.Categorical(jnp.moveaxis(features[:, label], 0, 1)).to_event(1))


def logistic(n: int) -> None:
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.5).expand([2]).to_event(1))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * x))


def poisson(n: int) -> None:
    coef = numpyro.sample("coef", dist.Normal(0.0, 0.7).expand([2]).to_event(1))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Uniform(-1.0, 1.0))
        numpyro.sample("y", dist.Poisson(jnp.exp(coef[0] + coef[1] * x)))


def two_groups(n: int) -> None:
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("groups", 2):
        mean = numpyro.sample("mean", dist.Normal(centre, spread))
    numpyro.deterministic("difference", mean[1] - mean[0])
    with numpyro.plate("records", n):
        group = numpyro.sample("group", dist.Bernoulli(share))
        numpyro.sample("y", dist.Normal(mean[group], 1.0))


def beta_regression(n: int) -> None:
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    size = numpyro.sample("size", dist.Gamma(4.0, 0.5))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        mean = jax.nn.sigmoid(coef[0] + coef[1] * x)
        numpyro.sample("y", dist.Beta(mean * size, (1 - mean) * size))


def logistic_on_known(covariate: Any, y: Any = None) -> None:
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.5).expand([2]).to_event(1))
    with numpyro.plate("records", len(covariate)):
        numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * covariate), obs=y)


def dirichlet(dim: int) -> None:
    shape = numpyro.sample("shape", dist.Gamma(3.0, 1.0).expand([dim]).to_event(1))
    with numpyro.plate("records", 3):
        numpyro.sample("share", dist.Dirichlet(shape))


def exponential() -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    with numpyro.plate("records", 3):
        numpyro.sample("y", dist.Exponential(rate))


def beta() -> None:
    a = numpyro.sample("a", dist.Gamma(3.0, 1.0))
    b = numpyro.sample("b", dist.Gamma(3.0, 1.0))
    with numpyro.plate("records", 3):
        numpyro.sample("y", dist.Beta(a, b))
