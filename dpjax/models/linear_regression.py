"""Linear regression with Normal covariates: the joint distribution of covariates and response."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records, Statistic
from dpjax.models.bijections import Bijection, MappedModel
from dpjax.models.coefficients import Coefficients, choose_coefficients
from dpjax.models.covariates import Covariates, choose_covariates
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import InverseGammaPrior, NormalInverseGammaPrior, NormalInverseWishartPrior, NormalPrior
from dpjax.numerics.linear_algebra import LOG_TWO_PI, cross_products, product, solve_lower
from dpjax.numerics.normals import standard_normals
from dpjax.numerics.scores import NORMAL_SCORES
from dpjax.numerics.sums import sum_each
from dpjax.statistics.base import normal_moments

__all__ = ["linear_regression"]


@accept_distributions
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
    The update is an exact draw given the records, except with an `InverseGammaPrior`. Then it draws the coefficients
    given the variance and the variance given the coefficients, which leaves their posterior invariant. The non-centred
    form writes (x, y) as mean + L u with u standard Normal [p + 1, n].

    Raises
    ------
    TypeError, ValueError
        If arguments are missing, contradict each other, or have wrong shapes or values.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax.models import NormalPrior
    >>> model = dpjax.models.linear_regression(
    ...     covariate_mean=[0.0], covariate_cov=[[1.0]], coef_prior=NormalPrior(0.0, 2.0), noise_variance=1.0
    ... )
    >>> model.has("update")
    True
    """
    covariates = choose_covariates(covariate_mean, covariate_cov, covariate_prior)
    return LinearRegression(covariates, choose_coefficients(coef_prior, noise_variance, covariates.dim + 1))


class LinearRegression(MappedModel):
    """The records of `linear_regression`: a joint Normal distribution of the columns (x, y) [p + 1, n]."""

    covariates: Covariates
    coefficients: Coefficients

    @property
    def dim(self) -> int:
        """The number p + 1 of columns."""
        return self.covariates.dim + 1

    def joint(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean [p + 1] and Cholesky factor [p + 1, p + 1] of the columns."""
        variance = self.coefficients.variance(parameters)
        return joint_moments(*self.covariates.moments(parameters), parameters["coef"], variance)

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        key_covariates, key_coef = jax.random.split(key)
        return self.coefficients.sample_prior(key_coef) | self.covariates.sample_prior(key_covariates)

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.coefficients.log_prior(parameters) + self.covariates.log_prior(parameters)

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return self.records_at(parameters, standard_normals(key, (self.dim, n)))

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        log_root = jnp.sum(jnp.log(jnp.diagonal(self.joint(parameters)[1])))
        squares = jnp.sum(self.whiten(parameters, records) ** 2, axis=0)
        return -squares / 2 - log_root - self.dim * LOG_TWO_PI / 2

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """A draw of the coefficients, the variance and the moments of the covariates, if they are unknown."""
        key_covariates, key_coef = jax.random.split(key)
        coef = self.coefficients.update(key_coef, parameters, design_of(records), records["y"])
        return coef | self.covariates.update(key_covariates, records["x"].T)

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        log_coef = self.coefficients.update_log_density(new, parameters, design_of(records), records["y"])
        return log_coef + self.covariates.update_log_density(new, records["x"].T)

    @property
    def noncentred(self) -> NonCentred:
        """The columns as mean + L u with u standard Normal."""
        forms = (("x", "standardised"), ("y", "standardised given x"))
        return NonCentred(self.noise_of, self.records_at, scores=NORMAL_SCORES, forms=forms)

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """The noise [p + 1, n] of records."""
        del key
        return self.whiten(parameters, records)

    def whiten(self, parameters: Parameters, records: Records) -> Array:
        """The standardised columns [p + 1, n]."""
        mean, factor = self.joint(parameters)
        return solve_lower(factor, to_columns(records) - mean[:, None])

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records of this noise [p + 1, n]."""
        mean, factor = self.joint(parameters)
        columns = mean[:, None] + product(factor, noise)
        return {"x": columns[:-1].T, "y": columns[-1]}

    def summarize(self, records: Records) -> Records:
        """The number of records, the mean [p + 1] of their columns and their scatter [p + 1, p + 1] about it."""
        columns = to_columns(records)
        mean = sum_each(columns) / columns.shape[1]
        deviations = columns - mean[:, None]
        scatter = cross_products(deviations, deviations)
        return {"count": jnp.asarray(columns.shape[1], float), "mean": mean, "scatter": scatter}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-density [] of all records."""
        mean, factor = self.joint(parameters)
        shift = solve_lower(factor, (summary["mean"] - mean)[:, None])
        whitened = solve_lower(factor, solve_lower(factor, summary["scatter"]).T)
        squares = jnp.trace(whitened) + summary["count"] * jnp.sum(shift**2)
        log_root = jnp.sum(jnp.log(jnp.diagonal(factor)))
        return -squares / 2 - summary["count"] * (log_root + self.dim * LOG_TWO_PI / 2)

    def statistic_moments(self, parameters: Parameters, statistic: Statistic) -> tuple[Array, Array | None] | None:
        """The mean and the covariance of a record's contribution to a sum, if they have a closed form."""
        places = {"x": slice(0, self.dim - 1), "y": slice(self.dim - 1, self.dim)}
        return normal_moments(statistic, places, *self.joint(parameters))

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The maps of an unknown variance and covariance."""
        return self.coefficients.bijections | self.covariates.bijections


def joint_moments(mean: Array, factor: Array, coef: Array, variance: Array) -> tuple[Array, Array]:
    """The mean [p + 1] and Cholesky factor [p + 1, p + 1] of (x, y), for x with this mean [p] and factor [p, p].

    Drawing both fields by one product with this factor is also fastest. XLA stores the result of a matrix product,
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
