"""Laws of records and of parameters, for the programs of the fidelity harness."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions import transforms


def transformed(mu: Any, tau: Any) -> Any:
    return dist.TransformedDistribution(dist.Normal(0.0, 1.0), transforms.AffineTransform(mu, tau))


def mixture(m: Any, s: Any) -> Any:
    return dist.MixtureSameFamily(dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(m + jnp.array([0.0, 2.0]), s))


RECORD_LAWS: dict[str, Callable[[Any, Any], Any]] = {
    "Normal": lambda m, s: dist.Normal(m, s),
    "Laplace": lambda m, s: dist.Laplace(m, s),
    "Cauchy": lambda m, s: dist.Cauchy(m, s),
    "Logistic": lambda m, s: dist.Logistic(m, s),
    "SoftLaplace": lambda m, s: dist.SoftLaplace(m, s),
    "Gumbel": lambda m, s: dist.Gumbel(m, s),
    "Levy": lambda m, s: dist.Levy(m, s),
    "StudentT": lambda m, s: dist.StudentT(2 + s, m, s),
    "Uniform": lambda m, s: dist.Uniform(m, m + s),
    "HalfNormal": lambda m, s: dist.HalfNormal(s),
    "HalfCauchy": lambda m, s: dist.HalfCauchy(s),
    "AsymmetricLaplace": lambda m, s: dist.AsymmetricLaplace(m, s, 1.2),
    "Exponential": lambda m, s: dist.Exponential(s),
    "Weibull": lambda m, s: dist.Weibull(s, 1.5),
    "Kumaraswamy": lambda m, s: dist.Kumaraswamy(1 + s, 2.0),
    "Gompertz": lambda m, s: dist.Gompertz(s, 1.0),
    "Dagum": lambda m, s: dist.Dagum(1.5, s, 2.0),
    "Pareto": lambda m, s: dist.Pareto(s, 2.5),
    "PowerLaw": lambda m, s: dist.LowerTruncatedPowerLaw(-2.0 - s, 1.0),
    "Gamma": lambda m, s: dist.Gamma(1 + s, s),
    "Chi2": lambda m, s: dist.Chi2(2 + s),
    "InverseGamma": lambda m, s: dist.InverseGamma(2 + s, s),
    "Beta": lambda m, s: dist.Beta(1 + s, 2.0),
    "BetaProportion": lambda m, s: dist.BetaProportion(0.4, 3 + s),
    "LogNormal": lambda m, s: dist.LogNormal(m, s),
    "LogUniform": lambda m, s: dist.LogUniform(s, 3 * s),
    "truncated Normal": lambda m, s: dist.TruncatedNormal(m, s, low=-1.0, high=2.0),
    "left-truncated Cauchy": lambda m, s: dist.TruncatedCauchy(m, s, low=0.0),
    "truncated Logistic": lambda m, s: dist.TruncatedDistribution(dist.Logistic(m, s), high=1.0),
    "folded Normal": lambda m, s: dist.FoldedDistribution(dist.Normal(m, s)),
    "VonMises": lambda m, s: dist.VonMises(m, s),
    "affine": lambda m, s: transformed(m, s),
    "exp of Laplace": lambda m, s: dist.TransformedDistribution(dist.Laplace(m, s), transforms.ExpTransform()),
    "expanded": lambda m, s: dist.Normal(m, s).expand([4]),
    "vector of Normals": lambda m, s: dist.Normal(m, s).expand([3]).to_event(1),
    "matrix of Gammas": lambda m, s: dist.Gamma(2.0, s).expand([2, 3]).to_event(2),
    "multivariate Normal": lambda m, s: dist.MultivariateNormal(jnp.array([m, 0.0]), scale_tril=s * jnp.eye(2)),
    "Dirichlet": lambda m, s: dist.Dirichlet(1 + s * jnp.ones(3)),
    "Bernoulli": lambda m, s: dist.Bernoulli(jax.nn.sigmoid(m)),
    "Bernoulli of logits": lambda m, s: dist.Bernoulli(logits=m),
    "Categorical of logits": lambda m, s: dist.Categorical(logits=m * jnp.arange(3.0)),
    "Categorical of softmax": lambda m, s: dist.Categorical(jax.nn.softmax(m * jnp.arange(3.0))),
    "vector of Bernoullis": lambda m, s: dist.Bernoulli(logits=m).expand([2]).to_event(1),
    "Binomial": lambda m, s: dist.Binomial(5, logits=m),
    "BetaBinomial": lambda m, s: dist.BetaBinomial(1 + s, 2.0, 6),
    "Poisson": lambda m, s: dist.Poisson(jnp.exp(m)),
    "Geometric": lambda m, s: dist.Geometric(logits=m),
    "NegativeBinomial": lambda m, s: dist.NegativeBinomial2(s, 2.0),
    "GammaPoisson": lambda m, s: dist.GammaPoisson(1 + s, s),
    "ZeroInflatedPoisson": lambda m, s: dist.ZeroInflatedPoisson(0.3, s),
    "DiscreteUniform": lambda m, s: dist.DiscreteUniform(1, 6),
    "mixture of Normals": mixture,
    "general mixture": lambda m, s: dist.MixtureGeneral(
        dist.Categorical(jnp.array([0.4, 0.6])), [dist.Normal(m, s), dist.Laplace(m, 1.0)]
    ),
    "mixture of Poissons": lambda m, s: dist.MixtureSameFamily(
        dist.Categorical(jnp.array([0.4, 0.6])), dist.Poisson(s * jnp.array([1.0, 4.0]))
    ),
}
PRIORS: dict[str, Callable[[], Any]] = {
    "Normal": lambda: dist.Normal(0.0, 2.0),
    "Cauchy": lambda: dist.Cauchy(0.0, 1.0),
    "StudentT": lambda: dist.StudentT(4.0, 0.0, 1.0),
    "Laplace": lambda: dist.Laplace(1.0, 2.0),
    "Gumbel": lambda: dist.Gumbel(0.0, 1.0),
    "HalfNormal": lambda: dist.HalfNormal(2.0),
    "HalfCauchy": lambda: dist.HalfCauchy(1.0),
    "Gamma": lambda: dist.Gamma(2.0, 3.0),
    "InverseGamma": lambda: dist.InverseGamma(3.0, 2.0),
    "Exponential": lambda: dist.Exponential(0.5),
    "LogNormal": lambda: dist.LogNormal(0.0, 0.5),
    "Weibull": lambda: dist.Weibull(1.0, 2.0),
    "Pareto": lambda: dist.Pareto(1.0, 3.0),
    "Beta": lambda: dist.Beta(2.0, 3.0),
    "Kumaraswamy": lambda: dist.Kumaraswamy(2.0, 3.0),
    "Uniform": lambda: dist.Uniform(-2.0, 5.0),
    "LogUniform": lambda: dist.LogUniform(0.1, 3.0),
    "truncated Normal": lambda: dist.TruncatedNormal(0.0, 1.0, low=-0.5, high=2.0),
    "left-truncated Normal": lambda: dist.TruncatedNormal(0.0, 1.0, low=0.5),
    "Dirichlet": lambda: dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
    "two Dirichlets": lambda: dist.Dirichlet(jnp.ones((2, 3))).to_event(1),
    "vector": lambda: dist.Normal(0.0, jnp.array([1.0, 2.0])).to_event(1),
    "batch without a plate": lambda: dist.Normal(jnp.zeros(3), 1.0),
    "expanded": lambda: dist.Gamma(2.0, 1.0).expand([2, 2]),
    "expanded vector": lambda: dist.Gamma(2.0, 1.0).expand([3]).to_event(1),
    "multivariate Normal": lambda: dist.MultivariateNormal(jnp.zeros(2), jnp.array([[1.0, 0.3], [0.3, 2.0]])),
    "LKJCholesky": lambda: dist.LKJCholesky(3, 2.0),
    "random walk": lambda: dist.GaussianRandomWalk(0.5, 4),
    "mixture": lambda: mixture(0.0, 1.0),
    "affine": lambda: transformed(1.0, 2.0),
    "VonMises": lambda: dist.VonMises(0.0, 2.0),
}
