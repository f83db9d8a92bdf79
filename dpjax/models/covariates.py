"""The covariates of a regression: Normal, of known moments or with a conjugate prior."""

from typing import Any

import jax.numpy as jnp

from dpjax._util.jit import jit_unoptimized
from dpjax._util.pytree import PyTree
from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Key, Parameters
from dpjax.models.arguments import as_covariance, as_vector
from dpjax.models.bijections import COVARIANCE, Bijection
from dpjax.models.priors import NormalInverseWishartPrior
from dpjax.numerics.linear_algebra import factorize

__all__ = ["Covariates", "choose_covariates"]


class Covariates(PyTree, abstract=True):
    """The covariates of a regression, x ~ N(mean, L Lᵀ)."""

    @property
    def dim(self) -> int:
        """Their number p."""
        raise NotImplementedError

    def moments(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean [p] and L [p, p]."""
        raise NotImplementedError

    def sample_prior(self, key: Key) -> Parameters:
        """As in a model, for the parameters of the covariates alone; ``{}`` if their moments are known."""
        return {}

    def log_prior(self, parameters: Parameters) -> Array:
        """As in a model, for the parameters of the covariates alone."""
        return jnp.zeros((), float)

    def update(self, key: Key, x: Array) -> Parameters:
        """An exact draw given the covariates [p, n]."""
        return {}

    def update_log_density(self, new: Parameters, x: Array) -> Array:
        """The log-density [] of that draw."""
        return jnp.zeros((), float)

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The maps of the parameters to real numbers."""
        return {}


class KnownCovariates(Covariates):
    """Covariates of known mean [p] and Cholesky factor [p, p] of the covariance."""

    mean: Array
    factor: Array

    @property
    def dim(self) -> int:
        """Their number p."""
        return self.mean.shape[-1]

    def moments(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean [p] and L [p, p]."""
        return self.mean, self.factor


class UnknownCovariates(Covariates):
    """Covariates whose ``covariate_mean`` [p] and ``covariate_cov`` [p, p] are parameters."""

    prior: NormalInverseWishartPrior

    @property
    def dim(self) -> int:
        """Their number p."""
        return jnp.shape(self.prior.mean)[-1]

    def moments(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean [p] and L [p, p]."""
        return parameters["covariate_mean"], factorize(parameters["covariate_cov"])

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return as_parameters(*self.prior.sample(key))

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.prior.log_density(parameters["covariate_mean"], parameters["covariate_cov"])

    def update(self, key: Key, x: Array) -> Parameters:
        """An exact draw given the covariates [p, n]."""
        return as_parameters(*self.prior.posterior(x).sample(key))

    def update_log_density(self, new: Parameters, x: Array) -> Array:
        """The log-density [] of that draw."""
        return self.prior.posterior(x).log_density(new["covariate_mean"], new["covariate_cov"])

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The map of the covariance."""
        return {"covariate_cov": COVARIANCE}


def as_parameters(mean: Array, covariance: Array) -> Parameters:
    """The moments by their names."""
    return {"covariate_mean": mean, "covariate_cov": covariance}


def choose_covariates(mean: Any, cov: Any, prior: Any) -> Covariates:
    """The covariates, from the three arguments that may describe them."""
    given = [name for name, part in (("mean", mean), ("cov", cov), ("prior", prior)) if part is not None]
    if given not in (["mean", "cov"], ["prior"]):
        argument = "covariate_mean, covariate_cov, covariate_prior"
        names = ", ".join(f"covariate_{name}" for name in given) or "none of them"
        expected = "covariate_mean and covariate_cov, or covariate_prior alone"
        fail(argument, names, expected, "Give the known moments, or a prior of them.")
    return known_covariates(mean, cov) if prior is None else unknown_covariates(prior)


def known_covariates(covariate_mean: Any, covariate_cov: Any) -> Covariates:
    """Covariates with known moments."""
    mean = as_vector("covariate_mean", covariate_mean, "Pass one mean for each covariate, [p].")
    return KnownCovariates(mean, jit_unoptimized(factorize)(as_covariance("covariate_cov", covariate_cov, mean.size)))


def unknown_covariates(prior: NormalInverseWishartPrior) -> Covariates:
    """Covariates with a prior of their moments, or an error if it is not valid."""
    if not isinstance(prior, NormalInverseWishartPrior):
        expected, remedy = "a NormalInverseWishartPrior", "Or pass covariate_mean and covariate_cov."
        fail("covariate_prior", name_of(prior), expected, remedy, error=TypeError)
    return UnknownCovariates(prior)
