"""Linear regression with Normal covariates: the joint distribution of covariates and response."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax._util.jit import jit_quickly
from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records
from dpjax.models.arguments import as_array, as_covariance, as_scalar, as_shape, as_vector
from dpjax.models.bijections import COVARIANCE, POSITIVE, Bijection, scales
from dpjax.models.clamped_moments import normal_moments
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import (
    InverseGammaPrior,
    NormalInverseGammaPrior,
    NormalInverseWishartPrior,
    NormalPrior,
    Positive,
    positive,
)
from dpjax.models.recipe import numbered
from dpjax.numerics.linear_algebra import (
    LOG_TWO_PI,
    cross_products,
    draw_normal,
    factorize,
    normal_log_density,
    product,
    solve_lower,
)
from dpjax.numerics.normals import standard_normals
from dpjax.numerics.scores import NORMAL_SCORES
from dpjax.numerics.sums import sum_each

__all__ = ["linear_regression"]


@accept_distributions
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
        The prior of ``covariate_mean`` [p] and ``covariate_cov`` [p, p], if these are unknown.
    coef_prior
        The prior of ``coef`` [p + 1], intercept first; None if `noise_variance` is a `NormalInverseGammaPrior`, which
        includes it.
    noise_variance
        The known variance; an `InverseGammaPrior` of ``variance`` [], independent of the coefficients; or a
        `NormalInverseGammaPrior` of both.

    Notes
    -----
    The update is an exact draw given the records, except with an `InverseGammaPrior`: then it draws the coefficients
    given the variance and the variance given the coefficients, which leaves their posterior invariant.
    The non-centred form writes (x, y) as mean + L u with u standard Normal [p + 1, n].

    Raises
    ------
    TypeError, ValueError
        If arguments are missing, contradict each other, or have wrong shapes or values.

    Examples
    --------
    >>> from dpjax.models import NormalPrior
    >>> model = linear_regression(
    ...     covariate_mean=[0.0], covariate_cov=[[1.0]], coef_prior=NormalPrior(0.0, 2.0), noise_variance=1.0
    ... )
    >>> model.update is not None
    True
    """
    covariates = choose_covariates(covariate_mean, covariate_cov, covariate_prior)
    coefficients = choose_coefficients(coef_prior, noise_variance, covariates.dim + 1)
    return assemble(covariates, coefficients)


class Covariates(NamedTuple):
    """The covariates of a regression, x ~ N(mean, L Lᵀ).

    Attributes
    ----------
    moments
        ``parameters -> (mean [p], L [p, p])``.
    sample_prior
        As in a model, for the parameters of the covariates alone.
    log_prior
        As in a model, for the parameters of the covariates alone.
    update
        ``(key, x [p, n]) -> parameters``, an exact draw given the covariates; ``{}`` if their moments are known.
    update_log_density
        ``(new, x [p, n]) -> []``, the log-density of that draw.
    """

    dim: int
    moments: Callable[[Parameters], tuple[Array, Array]]
    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    update: Callable[[Key, Array], Parameters]
    update_log_density: Callable[[Parameters, Array], Array]
    bijections: dict[str, Bijection]


def choose_covariates(mean: Any, cov: Any, prior: Any) -> Covariates:
    """The covariates, from the three arguments that may describe them."""
    given = [name for name, part in (("mean", mean), ("cov", cov), ("prior", prior)) if part is not None]
    if given not in (["mean", "cov"], ["prior"]):
        argument = "covariate_mean, covariate_cov, covariate_prior"
        names = ", ".join(f"covariate_{name}" for name in given) or "none of them"
        expected = "covariate_mean and covariate_cov, or covariate_prior alone"
        fail(argument, names, expected, "Give the known moments, or a prior of them.")
    return known_covariates(mean, cov) if prior is None else unknown_covariates(prior)


class Coefficients(NamedTuple):
    """The coefficients ``coef`` [k] and the noise variance of a regression.

    Attributes
    ----------
    variance
        ``parameters -> []``.
    sample_prior
        As in a model, for these parameters alone.
    log_prior
        As in a model, for these parameters alone.
    update
        ``(key, parameters, design [k, n], response [n]) -> parameters``, which leaves their posterior invariant.
    update_log_density
        ``(new, parameters, design, response) -> []``, the log-density of that draw.
    """

    variance: Callable[[Parameters], Array]
    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    update: Callable[[Key, Parameters, Array, Array], Parameters]
    update_log_density: Callable[[Parameters, Parameters, Array, Array], Array]
    bijections: dict[str, Bijection]


def choose_coefficients(prior: Any, noise: Any, dim: int) -> Coefficients:
    """The coefficients and the variance, from the two arguments that may describe their prior."""
    if not isinstance(noise, NormalInverseGammaPrior):
        return independent_coefficients(prior, positive("variance", noise, InverseGammaPrior, "noise_variance"), dim)
    if prior is not None:
        expected = "nothing beside a NormalInverseGammaPrior"
        fail("coef_prior", type(prior).__name__, expected, "That prior includes coef; leave coef_prior out.")
    return conjugate_coefficients(noise, dim)


def assemble(covariates: Covariates, coefficients: Coefficients) -> Model:
    """The regression as a joint Normal distribution of the columns (x, y), [p + 1, n]."""
    dim = covariates.dim + 1

    def joint(parameters: Parameters) -> tuple[Array, Array]:
        return joint_moments(*covariates.moments(parameters), parameters["coef"], coefficients.variance(parameters))

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
        sample_records=lambda key, parameters, n: records_at(parameters, standard_normals(key, (dim, n))),
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


def joint_moments(mean: Array, factor: Array, coef: Array, variance: Array) -> tuple[Array, Array]:
    """The mean [p + 1] and Cholesky factor [p + 1, p + 1] of (x, y), for x with this mean [p] and factor [p, p].

    Drawing both fields by one product with this factor is also fastest: XLA stores the result of a matrix product,
    whereas it would fuse elementwise operations and draw the normals again.
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
    mean = sum_each(columns) / columns.shape[1]
    deviations = columns - mean[:, None]
    scatter = cross_products(deviations, deviations)
    return {"count": jnp.asarray(columns.shape[1], float), "mean": mean, "scatter": scatter}


def independent_coefficients(prior: Any, noise: Positive, dim: int) -> Coefficients:
    """Coefficients with a Normal prior that does not depend on the noise variance, known or unknown.

    The update draws the coefficients given the variance, and then an unknown variance given the coefficients.
    """
    mean, precision = check_normal(prior, dim)

    def sample_prior(key: Key) -> Parameters:
        key_coef, key_noise = jax.random.split(key)
        return {"coef": prior.sample(key_coef, (dim,)), **noise.sample_prior(key_noise)}

    def posterior(parameters: Parameters, design: Array, response: Array) -> tuple[Array, Array]:
        products = cross_products(design, jnp.concatenate([design, response[None]])) / noise.value(parameters)
        return jnp.diag(precision) + products[:, :-1], precision * mean + products[:, -1]

    def update(key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        key_coef, key_noise = jax.random.split(key)
        coef = draw_normal(key_coef, *posterior(parameters, design, response))
        return {"coef": coef, **noise.update(key_noise, response - product(coef, design))}

    def update_log_density(new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        log_coef = normal_log_density(new["coef"], *posterior(parameters, design, response))
        return log_coef + noise.update_log_density(new, response - product(new["coef"], design))

    def log_prior(parameters: Parameters) -> Array:
        return prior.log_density(parameters["coef"]) + noise.log_prior(parameters)

    return Coefficients(noise.value, sample_prior, log_prior, update, update_log_density, noise.bijections)


def conjugate_coefficients(prior: NormalInverseGammaPrior, dim: int) -> Coefficients:
    """Coefficients whose prior scales with the noise variance; the update is an exact joint draw."""
    check_conjugate(prior, dim)

    def as_parameters(coef: Array, variance: Array) -> Parameters:
        return {"coef": coef, "variance": variance}

    def update(key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        del parameters
        return as_parameters(*prior.posterior(design, response).sample(key, dim))

    def update_log_density(new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        del parameters
        return prior.posterior(design, response).log_density(new["coef"], new["variance"])

    return Coefficients(
        variance=lambda parameters: parameters["variance"],
        sample_prior=lambda key: as_parameters(*prior.sample(key, dim)),
        log_prior=lambda parameters: prior.log_density(parameters["coef"], parameters["variance"]),
        update=update,
        update_log_density=update_log_density,
        bijections={"variance": POSITIVE},
    )


def check_normal(prior: Any, dim: int) -> tuple[Array, Array]:
    """The mean [dim] and the precision [dim] of the coefficients."""
    if not isinstance(prior, NormalPrior):
        remedy = "Pass NormalPrior(mean, scale), or a NormalInverseGammaPrior as noise_variance."
        fail("coef_prior", type(prior).__name__, "a NormalPrior", remedy, error=TypeError)
    mean, scale = (as_coefficients(f"coef_prior.{name}", getattr(prior, name), dim) for name in ("mean", "scale"))
    return mean, scale**-2


def check_conjugate(prior: NormalInverseGammaPrior, dim: int) -> None:
    """Raise unless the prior is that of `dim` coefficients and a variance."""
    as_coefficients("noise_variance.mean", prior.mean, dim)
    for name in ("shape", "scale"):
        as_scalar(f"noise_variance.{name}", getattr(prior, name), "Pass one number.")
    precision = as_array("noise_variance.precision", prior.precision, "numbers", "Pass numbers.")
    if precision.ndim:
        remedy = "The intercept is the first coefficient; one number is a multiple of the identity."
        as_shape("noise_variance.precision", prior.precision, (dim, dim), remedy)


def as_coefficients(argument: str, value: Any, dim: int) -> Array:
    """One number for each coefficient [dim], from one number or from [dim]."""
    remedy = "The intercept is the first coefficient; one number is used for all."
    array = as_array(argument, value, f"one number or {dim}", remedy)
    return jnp.broadcast_to(array if array.ndim == 0 else as_shape(argument, value, (dim,), remedy), (dim,))


def known_covariates(covariate_mean: Any, covariate_cov: Any) -> Covariates:
    """Covariates with known moments."""
    mean = as_vector("covariate_mean", covariate_mean, "Pass one mean for each covariate, [p].")
    factor = jit_quickly(factorize)(as_covariance("covariate_cov", covariate_cov, mean.size))
    return Covariates(
        dim=mean.size,
        moments=lambda parameters: (mean, factor),
        sample_prior=lambda key: {},
        log_prior=lambda parameters: jnp.zeros((), float),
        update=lambda key, x: {},
        update_log_density=lambda new, x: jnp.zeros((), float),
        bijections={},
    )


def unknown_covariates(prior: NormalInverseWishartPrior) -> Covariates:
    """Covariates whose ``covariate_mean`` [p] and ``covariate_cov`` [p, p] are parameters."""
    dim = check_prior(prior)

    def as_parameters(mean: Array, covariance: Array) -> Parameters:
        return {"covariate_mean": mean, "covariate_cov": covariance}

    return Covariates(
        dim=dim,
        moments=lambda parameters: (parameters["covariate_mean"], factorize(parameters["covariate_cov"])),
        sample_prior=lambda key: as_parameters(*prior.sample(key)),
        log_prior=lambda parameters: prior.log_density(parameters["covariate_mean"], parameters["covariate_cov"]),
        update=lambda key, x: as_parameters(*prior.posterior(x).sample(key)),
        update_log_density=lambda new, x: prior.posterior(x).log_density(new["covariate_mean"], new["covariate_cov"]),
        bijections={"covariate_cov": COVARIANCE},
    )


def check_prior(prior: NormalInverseWishartPrior) -> int:
    """The number of covariates, or an error if the prior is not valid."""
    if not isinstance(prior, NormalInverseWishartPrior):
        expected, remedy = "a NormalInverseWishartPrior", "Or pass covariate_mean and covariate_cov."
        fail("covariate_prior", type(prior).__name__, expected, remedy, error=TypeError)
    mean = as_vector("covariate_prior.mean", prior.mean, "Pass one mean for each covariate, [p].")
    as_covariance("covariate_prior.scale", prior.scale, mean.size)
    for name in ("precision", "degrees"):
        as_scalar(f"covariate_prior.{name}", getattr(prior, name), "Pass one number.")
    return mean.size
