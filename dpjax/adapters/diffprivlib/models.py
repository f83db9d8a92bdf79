"""Models that diffprivlib fitted by objective perturbation."""

from collections.abc import Mapping
from math import expm1, log1p, sqrt
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_array,
    check_count,
    check_moderate,
    check_positive_number,
    describe,
    fail,
    name_of,
    read_numbers,
)
from dpjax._util.warn import warn_at_the_call
from dpjax.adapters.arguments import read_n
from dpjax.mechanisms.vector_laplace import VectorLaplace
from dpjax.release import Release, joint
from dpjax.release.releases.fitted import objective_perturbation
from dpjax.statistics import Logistic

__all__ = ["read_model"]

CURVATURE = 0.25
"""The largest second derivative of the logistic loss."""

TOLERABLE = 0.1
"""How far the log-density may be off, for what the optimiser left of the gradient, before there is a warning."""

REFUSED = {
    "GaussianNB": "its noisy class counts were made to add up to n by an adjustment that is not undone",
    "LinearRegression": "it minimises a polynomial with noisy coefficients that it does not keep, and which its own "
    "coefficients do not determine",
}
"""Models that are refused, and why."""

ATTRIBUTES = ("classes_", "coef_", "intercept_", "n_iter_", "epsilon", "data_norm", "C", "fit_intercept", "tol")


@names_arguments
def read_model(fitted: Any, *, n: int, covariates: str = "x", response: str = "y") -> Release:
    """The release of a fitted ``models.LogisticRegression``: `dpjax.releases.objective_perturbation`.

    Parameters
    ----------
    fitted
        The fitted model; or a mapping of ``"model"`` to its class's name, and of its attributes.
    n
        The public number of records.
    covariates
        The record field [p].
    response
        The record field [] of the class, by its place in ``classes_``: 0 or 1 of two.

    Returns
    -------
    Release
        The coefficients, the intercept first if there is one. Of more than two classes the `dpjax.joint` one of as many
        fits, each of a class against the rest with its part of ε.

    Raises
    ------
    TypeError, ValueError
        If it is no fitted model, or one of another kind, the optimiser did not converge, or n is not known.

    Warns
    -----
    UserWarning
        If ``tol``, which bounds each part of the gradient divided by n where the optimiser stopped, lets the
        log-density be off by more than 0.1.

    Notes
    -----
    With r the norm of a record and ``C`` as there, it minimises Σ ℓ + |w|² / 2C + bᵀθ + κ |θ|² / 2, with b of density ∝
    exp(−|b| ε' / 2r) and ε' = ε − 2 log(1 + rC / 4), κ = 0. If that ε' is not positive, ε' = ε / 2 and κ = r / 4
    (e^(ε/4) − 1) − 1 / C. Slopes w have the first penalty, the intercept the second alone. r² is ``data_norm``² + 1 if
    there is an intercept. Read from diffprivlib 0.6.6 with scikit-learn 1.5.2. A ``data_norm`` that was left out was
    taken from the records, which the fitted model does not tell: then it cannot be used.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_model
    >>> published = {
    ...     **{"model": "LogisticRegression", "classes_": [0, 1], "coef_": [[0.875]], "intercept_": [0.125]},
    ...     **{"epsilon": 2.0, "data_norm": 1.0, "C": 1.0, "fit_intercept": True},
    ...     **{"tol": 1e-4, "n_iter_": [7], "max_iter": 100},
    ... }
    >>> release = read_model(published, n=500)
    >>> release.value.tolist(), round(release.mechanism.linear_term.scale, 2)
    ([0.125, 0.875], 2.03)
    """
    model, number = attributes_of(fitted), read_n(n)
    check_fit(model)
    several = len(model["classes_"]) > 2
    parts = len(model["coef_"])
    law = objective_law(model["epsilon"] / parts, model["data_norm"], model["C"], intercept=model["fit_intercept"])
    penalties = [law.extra] * model["fit_intercept"] + [1 / model["C"] + law.extra] * np.shape(model["coef_"])[1]
    warn_of_tolerance(number * model["tol"] * sqrt(len(penalties)) / law.scale)
    releases = []
    for place, slopes in enumerate(model["coef_"]):
        coefficients = [model["intercept_"][place]] * model["fit_intercept"] + list(slopes)
        positive = place if several else None
        loss = Logistic(covariates, response, model["fit_intercept"], float(model["data_norm"]), positive)
        noise = VectorLaplace(law.scale)
        releases.append(objective_perturbation(coefficients, loss, noise=noise, regularization=penalties, n=number))
    return joint(*releases) if several else releases[0]


class ObjectiveLaw(NamedTuple):
    """The scale of the linear term b, and the penalty that the calibration adds for every coefficient."""

    scale: float
    extra: float


def objective_law(epsilon: float, data_norm: float, strength: float, *, intercept: bool) -> ObjectiveLaw:
    """How one logistic regression was perturbed, given its ε, the norm of covariates and the inverse penalty C."""
    norm = sqrt(data_norm**2 + intercept)
    left = epsilon - 2 * log1p(CURVATURE * norm * strength)
    if left > 0:
        return ObjectiveLaw(2 * norm / left, 0.0)
    return ObjectiveLaw(4 * norm / epsilon, CURVATURE * norm / expm1(epsilon / 4) - 1 / strength)


def attributes_of(fitted: Any) -> dict[str, Any]:
    """The attributes of a fitted logistic regression, or an error if it is none."""
    given = dict(fitted) if isinstance(fitted, Mapping) else {**getattr(fitted, "__dict__", {})}
    name = given.get("model", "a mapping without model") if isinstance(fitted, Mapping) else name_of(fitted)
    if isinstance(name, str) and name in REFUSED:
        refuse_model(name)
    if name != "LogisticRegression":
        fail("fitted", name, "a LogisticRegression of diffprivlib", "Other models cannot be read.", error=TypeError)
    missing = [key for key in (*ATTRIBUTES, "max_iter") if given.get(key) is None]
    if missing:
        fail("fitted", f"no {', '.join(missing)}", "a fitted model with its parameters", "Call fit before.")
    if not isinstance(given["fit_intercept"], (bool, np.bool_)):
        fail("fitted.fit_intercept", describe(given["fit_intercept"]), "True or False", "Pass it as it was published.")
    given["fit_intercept"] = bool(given["fit_intercept"])
    return given


def refuse_model(name: str) -> NoReturn:
    """Raise for a model whose density given the records is not known."""
    remedy = "Publish the noisy sums themselves, each a dpjax.Release."
    fail("fitted", f"{name}: {REFUSED[name]}", "a LogisticRegression", remedy)


def check_fit(model: Mapping[str, Any]) -> None:
    """Raise unless a logistic regression has sound parameters and its optimiser stopped at a minimum."""
    whole = "Pass the fitted model as it was published."
    for key in ("epsilon", "data_norm", "C", "tol"):
        check_positive_number(f"fitted.{key}", model[key], whole)
        check_moderate(f"fitted.{key}", model[key])
    classes = model["classes_"]
    if not isinstance(classes, (list, tuple, np.ndarray)) or np.ndim(classes) != 1 or len(classes) < 2:
        fail("fitted.classes_", describe(classes), "a list of two classes or more", whole)
    fits = 1 if len(classes) == 2 else len(classes)
    for key in ("coef_", "intercept_"):
        check_array(f"fitted.{key}", model[key], np.isfinite, "finite numbers", whole)
    shape, offsets = np.shape(model["coef_"]), np.shape(model["intercept_"])
    if len(shape) != 2 or shape[0] != fits or offsets != (fits,) or not shape[1]:
        given = f"shapes {list(shape)} and {list(offsets)}"
        fail("fitted.coef_, intercept_", given, f"[{fits}, p] and [{fits}]", "One row for each fit.")
    most = check_count("fitted.max_iter", model["max_iter"], whole)
    iterations = np.atleast_1d(read_numbers("fitted.n_iter_", model["n_iter_"], "numbers of iterations", whole))
    if not (iterations.size and np.all(iterations < most)):
        remedy = "Have it fitted with a larger max_iter: the coefficients of an unfinished fit have no known density."
        fail("fitted.n_iter_", iterations.tolist(), f"fewer than max_iter = {most}", remedy)


def warn_of_tolerance(error: float) -> None:
    """Warn if the optimiser's tolerance is not small against the scale of the noise."""
    if error > TOLERABLE:
        text = f"The optimiser may have stopped where the log-density is off by {error:.2g}, as tol allows."
        warn_at_the_call(f"{text} Have it fitted with a smaller tol.")
