"""Linear regression with Normal covariates: the joint law of covariates and response."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records
from dpjax.models.bijections import scales
from dpjax.models.coefficients import Coefficients, conjugate_coefficients, independent_coefficients
from dpjax.models.covariates import Covariates, given_covariates, learned_covariates
from dpjax.models.joint_priors import NormalInverseGammaPrior, NormalInverseWishartPrior
from dpjax.models.normal_moments import normal_moments
from dpjax.models.positive import positive
from dpjax.models.priors import InverseGammaPrior, NormalPrior
from dpjax.numbered import numbered
from dpjax.numerics.linear_algebra import LOG_TWO_PI, product, solve_lower
from dpjax.numerics.scores import NORMAL_SCORES
from dpjax.validation import fail

__all__ = ["linear_regression"]


@numbered
def linear_regression(
    *,
    covariate_mean: ArrayLike | None = None,
    covariate_cov: ArrayLike | None = None,
    covariate_prior: NormalInverseWishartPrior | None = None,
    coef_prior: NormalPrior | None = None,
    noise_variance: ArrayLike | InverseGammaPrior | NormalInverseGammaPrior,
) -> Model:
    """Records ``{"x": [p], "y": []}`` with x ~ N(m, S) and y | x ~ N(coef[0] + x · coef[1:], variance).

    Parameters
    ----------
    covariate_mean
        The known m [p]; with `covariate_cov`, or neither.
    covariate_cov
        The known S [p, p].
    covariate_prior
        The prior of ``covariate_mean`` [p] and ``covariate_cov`` [p, p] where they are to be learned.
    coef_prior
        The prior of ``coef`` [p + 1], intercept first; left out where `noise_variance` is a
        `NormalInverseGammaPrior`, which holds it.
    noise_variance
        The known variance; an `InverseGammaPrior` of ``variance`` [], independent of the coefficients; or a
        `NormalInverseGammaPrior` of both.

    Notes
    -----
    The update is an exact draw given the records, except under an `InverseGammaPrior`: then it draws the
    coefficients given the variance and the variance given the coefficients, which leaves their law invariant.
    The non-centred form writes (x, y) as mean + L u with u standard Normal [p + 1, n].

    Raises
    ------
    TypeError, ValueError
        If arguments are missing, contradict each other, or have wrong shapes or values.
    """
    covariates = choose_covariates(covariate_mean, covariate_cov, covariate_prior)
    coefficients = choose_coefficients(coef_prior, noise_variance, covariates.dim + 1)
    return assemble(covariates, coefficients)


def choose_covariates(mean: Any, cov: Any, prior: Any) -> Covariates:
    """The law of the covariates, from the three arguments that may describe it."""
    given = [name for name, part in (("mean", mean), ("cov", cov), ("prior", prior)) if part is not None]
    if given not in (["mean", "cov"], ["prior"]):
        argument = "covariate_mean, covariate_cov, covariate_prior"
        names = ", ".join(f"covariate_{name}" for name in given) or "none of them"
        expected = "covariate_mean and covariate_cov, or covariate_prior alone"
        fail(argument, names, expected, "Give the known law, or a prior of it.")
    return given_covariates(mean, cov) if prior is None else learned_covariates(prior)


def choose_coefficients(prior: Any, noise: Any, dim: int) -> Coefficients:
    """The prior of coefficients and variance, from the two arguments that may describe it."""
    if not isinstance(noise, NormalInverseGammaPrior):
        return independent_coefficients(prior, positive("variance", noise, InverseGammaPrior, "noise_variance"), dim)
    if prior is not None:
        expected = "nothing beside a NormalInverseGammaPrior"
        fail("coef_prior", type(prior).__name__, expected, "That prior holds the coefficients; leave coef_prior out.")
    return conjugate_coefficients(noise, dim)


def assemble(covariates: Covariates, coefficients: Coefficients) -> Model:
    """The regression as one Normal law of the columns (x, y), [p + 1, n]."""
    dim = covariates.dim + 1

    def joint(parameters: Parameters) -> tuple[Array, Array]:
        return joint_law(*covariates.law(parameters), parameters["coef"], coefficients.variance(parameters))

    def sample_prior(key: Key) -> Parameters:
        key_covariates, key_coef = jax.random.split(key)
        return coefficients.sample_prior(key_coef) | covariates.sample_prior(key_covariates)

    def records_at(parameters: Parameters, noise: Array) -> Records:
        mean, factor = joint(parameters)
        columns = mean[:, None] + product(factor, noise)
        return {"x": columns[:-1].T, "y": columns[-1]}

    def whiten(parameters: Parameters, records: Records) -> Array:
        mean, factor = joint(parameters)
        return solve_lower(factor, to_columns(records) - mean[:, None])

    def log_density(parameters: Parameters, records: Records) -> Array:
        log_root = jnp.sum(jnp.log(jnp.diagonal(joint(parameters)[1])))
        return -jnp.sum(whiten(parameters, records) ** 2, axis=0) / 2 - log_root - dim * LOG_TWO_PI / 2

    def log_likelihood(parameters: Parameters, summary: Records) -> Array:
        mean, factor = joint(parameters)
        shift = solve_lower(factor, (summary["mean"] - mean)[:, None])
        whitened = solve_lower(factor, solve_lower(factor, summary["scatter"]).T)
        squares = jnp.trace(whitened) + summary["count"] * jnp.sum(shift**2)
        return -squares / 2 - summary["count"] * (jnp.sum(jnp.log(jnp.diagonal(factor))) + dim * LOG_TWO_PI / 2)

    def update(key: Key, parameters: Parameters, records: Records) -> Parameters:
        key_covariates, key_coef = jax.random.split(key)
        coef = coefficients.update(key_coef, parameters, design_of(records), records["y"])
        return coef | covariates.update(key_covariates, records["x"].T)

    def update_log_density(new: Parameters, parameters: Parameters, records: Records) -> Array:
        log_coef = coefficients.update_log_density(new, parameters, design_of(records), records["y"])
        return log_coef + covariates.update_log_density(new, records["x"].T)

    return Model(
        sample_prior=sample_prior,
        log_prior=lambda parameters: coefficients.log_prior(parameters) + covariates.log_prior(parameters),
        sample_records=lambda key, parameters, n: records_at(parameters, jax.random.normal(key, (dim, n), float)),
        log_density=log_density,
        update=update,
        noncentred=NonCentred(
            lambda key, parameters, records: whiten(parameters, records),
            records_at,
            scores=NORMAL_SCORES,
            forms=(("x", "standardised"), ("y", "standardised given x")),
        ),
        **scales(coefficients.bijections | covariates.bijections),
        summarize=summarize,
        log_likelihood=log_likelihood,
        update_log_density=update_log_density,
        statistic_moments=lambda parameters, statistic: normal_moments(
            {"x": slice(0, dim - 1), "y": slice(dim - 1, dim)}, *joint(parameters), statistic
        ),
    )


def joint_law(mean: Array, factor: Array, coef: Array, variance: Array) -> tuple[Array, Array]:
    """The mean [p + 1] and lower factor [p + 1, p + 1] of (x, y), for x of this mean [p] and factor [p, p].

    Drawing both fields by one product with this factor is also the fastest way: what follows a matrix
    product reads its result, where what follows elementwise work would draw the normals again.
    """
    slope = coef[1:]
    response_mean = coef[0] + product(slope, mean)
    response_row = jnp.concatenate([product(slope, factor), jnp.sqrt(variance)[None]])
    rows = jnp.concatenate([factor, jnp.zeros_like(mean)[:, None]], axis=1)
    return jnp.concatenate([mean, response_mean[None]]), jnp.concatenate([rows, response_row[None]])


def design_of(records: Records) -> Array:
    """The rows [p + 1, n] of the intercept and the covariates."""
    return jnp.concatenate([jnp.ones_like(records["y"])[None], records["x"].T])


def to_columns(records: Records) -> Array:
    """Covariates and response as columns [p + 1, n]."""
    return jnp.concatenate([records["x"].T, records["y"][None]])


def summarize(records: Records) -> Records:
    """The number of records, the mean [p + 1] of their columns and their scatter [p + 1, p + 1] about it."""
    columns = to_columns(records)
    mean = jnp.mean(columns, axis=1)
    spread = columns - mean[:, None]
    return {"count": jnp.asarray(columns.shape[1], float), "mean": mean, "scatter": product(spread, spread.T)}
