"""Logistic regressions that DPpack fitted by objective perturbation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import expm1, inf, log1p, sqrt
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_flag, check_moderate, check_number, check_positive_number, fail
from dpjax.adapters.arguments import read_n
from dpjax.base import Array, Records
from dpjax.mechanisms.vector_laplace import VectorLaplace
from dpjax.release import Release
from dpjax.release.releases.fitted import objective_perturbation
from dpjax.statistics import Logistic
from dpjax.statistics.base import as_floats, read_field

__all__ = ["read_model"]

CURVATURE = 0.25
"""The largest second derivative of the logistic loss, the ``c`` of the package."""

REFUSED = {
    "LinearRegressionDP": "it minimises within a ball, on whose surface coefficients can lie",
    "SupportVectorMachineDP": "its kernel is approximated by random features that its object holds as functions",
    "EmpiricalRiskMinimizationDP.CMS": "its loss is a function of R",
    "EmpiricalRiskMinimizationDP.KST": "its loss is a function of R, and it minimises within a set",
    "WeightedERMDP.CMS": "its noise is added after the fit, and its loss is a function of R",
}
"""Models that are refused, and why."""


@names_arguments
def read_model(
    fitted: Mapping[str, Any],
    lower_bounds: Sequence[float],
    upper_bounds: Sequence[float],
    *,
    n: int,
    add_bias: bool = False,
    covariates: str = "x",
    response: str = "y",
) -> Release:
    """The release of a fitted ``LogisticRegressionDP``, by objective perturbation with the penalty ``'l2'``.

    Parameters
    ----------
    fitted
        Its ``model``, the name of its class, and its fields ``coeff`` [p], ``eps``, ``gamma`` and
        ``perturbation.method``.
    lower_bounds : [p]
        The ``lower.bounds`` of the call, to which each column was clipped.
    upper_bounds : [p]
        The ``upper.bounds``.
    n
        The public number of records.
    add_bias
        The ``add.bias`` of the call, by which the first coefficient is an intercept.
    covariates
        The record field [p], or [] of a single covariate.
    response
        The record field [] of 0 and 1.

    Returns
    -------
    Release
        Of the coefficients of the scaled columns, to which noise and penalty refer: the published ones times the
        largest size of the column's bounds, times √d for d coefficients.

    Raises
    ------
    TypeError, ValueError
        If it is a model of another kind or with output perturbation, a field is missing, or bounds do not fit.

    Notes
    -----
    It minimises Σ ℓ + γ |θ|² / 2 + bᵀθ + κ |θ|² / 2, with b of density ∝ exp(−|b| ε' / 2) and ε' = ε − 2 log(1 +
    1 / 4γ), κ = 0; if that ε' is not positive, ε' = ε / 2 and κ = 1 / 4 (e^(ε/4) − 1) − γ. An intercept is scaled
    and penalised as any other column. R's optimiser stops if a step improves the mean by less than 10⁻⁸ of it, and
    its object does not tell how far from the minimum that was.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_model
    >>> published = {"model": "LogisticRegressionDP", "coeff": [0.5, -1.0], "eps": 1.0, "gamma": 1.0}
    >>> published["perturbation.method"] = "objective"
    >>> release = read_model(published, [-1, 0], [1, 4], n=500)
    >>> release.value.round(3).tolist(), round(release.mechanism.linear_term.scale, 2)
    ([0.707, -5.657], 3.61)
    """
    check_model(fitted)
    check_flag("add_bias", add_bias)
    number = read_n(n)
    low, high = as_floats("lower_bounds", lower_bounds), as_floats("upper_bounds", upper_bounds)
    coefficients = np.ravel(np.asarray(fitted["coeff"], float))
    size = len(coefficients) - bool(add_bias)
    if not (len(low) == len(high) == size) or any(left >= right for left, right in zip(low, high, strict=True)):
        given, expected = f"{low} and {high}", f"{size} increasing pairs, one for each column"
        fail("lower_bounds, upper_bounds", given, expected, "Pass the bounds of the call, without the intercept.")
    largest = [1.0] * bool(add_bias) + [max(abs(left), abs(right)) for left, right in zip(low, high, strict=True)]
    scales = tuple(sqrt(len(coefficients)) * one for one in largest)
    loss = ScaledLogistic(covariates, response, bool(add_bias), lower=low, upper=high, scales=scales)
    scale, penalty = objective_law(float(fitted["eps"]), float(fitted["gamma"]))
    noise = VectorLaplace(scale)
    return objective_perturbation(coefficients * scales, loss, noise=noise, regularization=penalty, n=number)


@dataclass(frozen=True)
class ScaledLogistic(Logistic):
    """The logistic loss of columns that were clipped to their bounds and divided by scales, one a coefficient."""

    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()

    def predict(self, coefficients: Array, record: Records) -> tuple[Array, Array]:
        """The linear predictor [] of one record and its response []."""
        column = jnp.atleast_1d(
            read_field(record, self.covariates, [(len(self.lower),), ()][: 1 + (len(self.lower) == 1)])
        )
        bounds = (jnp.asarray(bound, coefficients.dtype) for bound in (self.lower, self.upper))
        clipped = jnp.clip(column.astype(coefficients.dtype), *bounds)
        design = jnp.concatenate([jnp.ones(int(self.intercept), coefficients.dtype), clipped])
        predictor = jnp.sum(design * coefficients / jnp.asarray(self.scales, coefficients.dtype))
        return predictor, read_field(record, self.response, [()]).astype(coefficients.dtype)


def objective_law(eps: float, gamma: float) -> tuple[float, float]:
    """The scale of the linear term, and the penalty of every coefficient, given ε and γ."""
    left = eps - 2 * log1p(CURVATURE / gamma) if gamma else -inf
    if left > 0:
        return 2 / left, gamma
    return 4 / eps, CURVATURE / expm1(eps / 4)


def check_model(fitted: Any) -> None:
    """Raise unless it is a logistic regression by objective perturbation with sound fields."""
    name = fitted.get("model", "a mapping without model") if isinstance(fitted, Mapping) else type(fitted).__name__
    remedy = "Publish the noisy sums themselves, each a dpjax.Release."
    if isinstance(name, str) and name in REFUSED:
        fail("fitted", f"{name}: {REFUSED[name]}", "a LogisticRegressionDP", remedy)
    if name != "LogisticRegressionDP":
        remedy = 'Pass a mapping with "model": "LogisticRegressionDP" and the fields of the object.'
        fail("fitted", name, "a LogisticRegressionDP of DPpack", remedy, error=TypeError)
    missing = [key for key in ("coeff", "eps", "gamma", "perturbation.method") if fitted.get(key) is None]
    if missing:
        fail("fitted", f"no {', '.join(missing)}", "the fields of a fitted object", "Call fit before it is written.")
    method = np.ravel(fitted["perturbation.method"]).tolist()
    if method != ["objective"]:
        given = f"perturbation.method {', '.join(map(str, method))}"
        remedy = "Noise that is added after a fit has a density for which each imputed data set would be fitted."
        fail("fitted", given, "objective perturbation", remedy)
    check_positive_number("fitted.eps", fitted["eps"], "Pass the eps of the object, a finite number.")
    check_moderate("fitted.eps", fitted["eps"])
    check_array("fitted.coeff", fitted["coeff"], np.isfinite, "finite numbers", "Pass the coeff of the object.")
    check_number("fitted.gamma", fitted["gamma"])
    expected, remedy = "a finite number of at least 0", "Pass the gamma of the object."
    check_array("fitted.gamma", fitted["gamma"], lambda array: array >= 0, expected, remedy)
