"""The law of a regression's covariates: given, or learned under a Normal-inverse-Wishart prior."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from dpjax.base import Array, Key, Parameters
from dpjax.compilation import jit_quickly
from dpjax.models.arguments import as_covariance, as_scalar, as_vector
from dpjax.models.bijections import COVARIANCE, Bijection
from dpjax.models.joint_priors import NormalInverseWishartPrior
from dpjax.numerics.linear_algebra import factorize
from dpjax.validation import fail

__all__ = ["Covariates", "given_covariates", "learned_covariates"]


class Covariates(NamedTuple):
    """What a regression asks of its covariates, x ~ N(mean, L Lᵀ).

    Attributes
    ----------
    law
        ``parameters -> (mean [p], L [p, p])``.
    sample_prior
        As in a model, for the parameters of this law alone.
    log_prior
        As in a model, for the parameters of this law alone.
    update
        ``(key, x [p, n]) -> parameters``, an exact draw given the covariates: ``{}`` where nothing is learned.
    update_log_density
        ``(new, x [p, n]) -> []``, the log-density of that draw.
    """

    dim: int
    law: Callable[[Parameters], tuple[Array, Array]]
    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    update: Callable[[Key, Array], Parameters]
    update_log_density: Callable[[Parameters, Array], Array]
    bijections: dict[str, Bijection]


def given_covariates(covariate_mean: Any, covariate_cov: Any) -> Covariates:
    """Covariates of a known law."""
    mean = as_vector("covariate_mean", covariate_mean, "Pass one mean for each covariate, [p].")
    factor = jit_quickly(factorize)(as_covariance("covariate_cov", covariate_cov, mean.size))
    return Covariates(
        dim=mean.size,
        law=lambda parameters: (mean, factor),
        sample_prior=lambda key: {},
        log_prior=lambda parameters: jnp.zeros((), float),
        update=lambda key, x: {},
        update_log_density=lambda new, x: jnp.zeros((), float),
        bijections={},
    )


def learned_covariates(prior: NormalInverseWishartPrior) -> Covariates:
    """Covariates whose ``covariate_mean`` [p] and ``covariate_cov`` [p, p] are parameters."""
    dim = check_prior(prior)

    def named(mean: Array, covariance: Array) -> Parameters:
        return {"covariate_mean": mean, "covariate_cov": covariance}

    return Covariates(
        dim=dim,
        law=lambda parameters: (parameters["covariate_mean"], factorize(parameters["covariate_cov"])),
        sample_prior=lambda key: named(*prior.sample(key)),
        log_prior=lambda parameters: prior.log_density(parameters["covariate_mean"], parameters["covariate_cov"]),
        update=lambda key, x: named(*prior.posterior(x).sample(key)),
        update_log_density=lambda new, x: prior.posterior(x).log_density(new["covariate_mean"], new["covariate_cov"]),
        bijections={"covariate_cov": COVARIANCE},
    )


def check_prior(prior: NormalInverseWishartPrior) -> int:
    """The number of covariates, or an error if the prior is not one law of them."""
    if not isinstance(prior, NormalInverseWishartPrior):
        expected, remedy = "a NormalInverseWishartPrior", "Or pass covariate_mean and covariate_cov."
        fail("covariate_prior", type(prior).__name__, expected, remedy, error=TypeError)
    mean = as_vector("covariate_prior.mean", prior.mean, "Pass one mean for each covariate, [p].")
    as_covariance("covariate_prior.scale", prior.scale, mean.size)
    for name in ("precision", "degrees"):
        as_scalar(f"covariate_prior.{name}", getattr(prior, name), "Pass one number.")
    return mean.size
