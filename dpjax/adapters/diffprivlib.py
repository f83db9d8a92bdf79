"""Releases from results of diffprivlib, by the law of its code; that library itself is not imported."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import expm1, inf, log1p, sqrt
from typing import Any, NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, check_count, check_number, check_positive_number, fail, name_of
from dpjax.base import Array, Statistic
from dpjax.mechanisms.additive import Laplace
from dpjax.mechanisms.censored import Censored
from dpjax.mechanisms.discrete import DiscreteLaplace
from dpjax.mechanisms.vector_laplace import VectorLaplace
from dpjax.release import Release, joint
from dpjax.release.releases.fitted import objective_perturbation
from dpjax.release.releases.quantiles import interval_quantile
from dpjax.statistics import Logistic, histogram, linear, mean, total
from dpjax.statistics.base import as_floats

__all__ = ["read_count", "read_histogram", "read_mean", "read_model", "read_quantile", "read_sum"]

EPSILON = "Pass the epsilon of the call, not what is left of a budget."
BOUNDS = "Pass bounds as they were given; bounds taken from the records cannot be used."

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


def read_mean(value: float, bounds: tuple[float, float], *, field: str, epsilon: float, n: int) -> Release:
    """The release of ``tools.mean``: Laplace noise on the mean of clipped values, clamped to their bounds.

    Parameters
    ----------
    value
        The published mean.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call; with an ``axis``, divided by the number of means.
    n
        The public number of records.

    Returns
    -------
    Release
        Of a `dpjax.statistics.mean`, by `dpjax.Censored` Laplace noise: a value at a bound is one at or beyond it.

    Raises
    ------
    TypeError, ValueError
        If the value is not within the bounds, they are not two increasing numbers, ε is not positive, or n is no
        number.

    Examples
    --------
    >>> read_mean(41.3, (0, 100), field="age", epsilon=1.0, n=200).mechanism.mechanism.scale
    0.5
    """
    lower, upper = read_range(bounds)
    number, budget = read_n(n), read_epsilon(epsilon)
    noise = clamped(Laplace((upper - lower) / number / budget), lower, upper)
    return Release(read_value(value), noise, mean(field, number, lower, upper), number)


def read_sum(
    value: float, bounds: tuple[float, float], *, field: str, epsilon: float, n: int, integer: bool = False
) -> Release:
    """The release of ``tools.sum``: noise on the sum of clipped values, clamped to n times their bounds.

    Parameters
    ----------
    value
        The published sum.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call; with an ``axis``, divided by the number of sums.
    n
        The public number of records.
    integer
        Whether the call had ``dtype=int``, by which the noise is geometric; without, it is Laplace noise for integers
        too.

    Returns
    -------
    Release
        Of a `dpjax.statistics.total`, by `dpjax.Censored` noise.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if bounds of an integer sum are not whole numbers.

    Examples
    --------
    >>> read_sum(310, (0, 10), field="visits", epsilon=2.0, n=60, integer=True).mechanism.mechanism
    DiscreteLaplace(scale=5.0, privacy=None)
    """
    lower, upper = read_range(bounds)
    number, budget = read_n(n), read_epsilon(epsilon)
    if integer and not (lower.is_integer() and upper.is_integer()):
        fail("bounds", bounds, "whole numbers for an integer sum", "Leave integer out if the call had no dtype=int.")
    noise = (DiscreteLaplace if integer else Laplace)((upper - lower) / budget)
    limited = clamped(noise, number * lower, number * upper)
    return Release(read_value(value), limited, total(field, lower, upper), number)


def read_count(value: int, statistic: Statistic, *, epsilon: float, n: int) -> Release:
    """The release of ``tools.count_nonzero``: geometric noise on the count, clamped to 0, ..., n.

    Parameters
    ----------
    value
        The published count.
    statistic
        The function of one record that is [1.0] where it counts and [0.0] where it does not; of a field of zeros and
        ones, ``dpjax.statistics.total(field, 0, 1)``.
    epsilon
        The ``epsilon`` of the call.
    n
        The public number of records.

    Returns
    -------
    Release
        Of the statistic, by `dpjax.Censored` noise.

    Raises
    ------
    TypeError, ValueError
        If the value is not from 0 to n, ε is not positive, or n is not known.

    Examples
    --------
    >>> import dpjax
    >>> smokers = read_count(31, dpjax.statistics.total("smokes", 0, 1), epsilon=0.5, n=200)
    >>> smokers.mechanism.mechanism
    DiscreteLaplace(scale=2.0, privacy=None)
    """
    number, budget = read_n(n), read_epsilon(epsilon)
    return Release(read_value(value), clamped(DiscreteLaplace(1 / budget), 0, number), statistic, number)


def read_histogram(counts: Sequence[int], edges: Sequence[float], *, field: str, epsilon: float, n: Any) -> Release:
    """The release of ``tools.histogram`` without ``density``: geometric noise on each count, negative ones set to 0.

    Parameters
    ----------
    counts : [k]
        The published counts.
    edges : [k + 1]
        The published edges, which must not come from the records: the call had ``range``, or edges for ``bins``.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call, which each count has to itself.
    n
        The public number of records, or `dpjax.UnknownCount`: the library publishes none.

    Returns
    -------
    Release
        Of counts in the bins, the last of which has both of its edges; records beyond them are in none.

    Raises
    ------
    TypeError, ValueError
        If there is not one count a bin, counts are not whole numbers from 0 on, as those of ``density=True`` are not,
        or edges are not increasing.

    Examples
    --------
    >>> release = read_histogram([12, 31, 7], [0.0, 10.0, 20.0, 30.0], field="age", epsilon=1.0, n=50)
    >>> release.statistic.dimension
    3
    """
    ends = as_floats("edges", list(edges))
    if len(ends) < 2 or any(left >= right for left, right in pairwise(ends)):
        fail("edges", ends, "at least two increasing numbers", "Pass the edges that the call returned.")
    remedy = "Pass the counts of a call without density; a density has lost its scale."
    check_array("counts", counts, lambda array: (array >= 0) & (array == np.round(array)), "whole numbers >= 0", remedy)
    if np.shape(counts) != (len(ends) - 1,):
        fail("counts", f"shape {list(np.shape(counts))}", f"shape [{len(ends) - 1}], one a bin", remedy)
    noise = clamped(DiscreteLaplace(1 / read_epsilon(epsilon)), 0, None)
    return Release(jnp.asarray(counts, jnp.result_type(float)), noise, bins_within(field, ends), n)


def read_quantile(
    value: float,
    probability: float,
    bounds: tuple[float, float],
    *,
    field: str,
    epsilon: float,
    n: int,
    num_bins: int,
) -> Release:
    """The release of ``tools.quantile``, ``percentile`` or ``median``: `dpjax.releases.interval_quantile`.

    Parameters
    ----------
    value
        The published quantile.
    probability
        The ``quant`` of the call: 0.5 for a median, a percentile divided by 100.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call, divided by the number of quantiles that it asked for.
    n
        The public number of records.
    num_bins
        The number of bins on which records are counted, as in `dpjax.releases.interval_quantile`.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if the probability is not strictly between 0 and 1.

    Examples
    --------
    >>> read_quantile(41.3, 0.5, (0, 100), field="age", epsilon=1.0, n=200, num_bins=50).mechanism.sensitivity
    1.0
    """
    lower, upper = read_range(bounds)
    remedy = "Read several quantiles one by one, each with its part of epsilon, and pass them to dpjax.joint."
    for name, given in {"value": value, "probability": probability}.items():
        if np.ndim(given):
            fail(name, f"{np.size(given)} numbers", "one number", remedy)
    return interval_quantile(
        value,
        probability,
        lower=lower,
        upper=upper,
        num_bins=num_bins,
        field=field,
        epsilon=read_epsilon(epsilon),
        n=read_n(n),
    )


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
        Of the coefficients, the intercept first where there is one. Of more than two classes the `dpjax.joint` one of
        as many fits, each of a class against the rest with its part of ε.

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
    With r the norm of a record and ``C`` as there, it minimises Σ ℓ + |w|² / 2C + bᵀθ + κ |θ|² / 2, with b of density
    ∝ exp(−|b| ε' / 2r) and ε' = ε − 2 log(1 + rC / 4), κ = 0; where that ε' is not positive, ε' = ε / 2 and κ = r / 4
    (e^(ε/4) − 1) − 1 / C. Slopes w have the first penalty, the intercept the second alone, and r² is ``data_norm``² + 1
    where there is one. Read from diffprivlib 0.6.6 with scikit-learn 1.5.2. A ``data_norm`` that was left out was
    taken from the records, which the fitted model does not tell: then it cannot be used.

    Examples
    --------
    >>> published = {
    ...     **{"model": "LogisticRegression", "classes_": [0, 1], "coef_": [[0.875]], "intercept_": [0.125]},
    ...     **{"epsilon": 2.0, "data_norm": 1.0, "C": 1.0, "fit_intercept": True},
    ...     **{"tol": 1e-4, "n_iter_": [7], "max_iter": 100},
    ... }
    >>> release = read_model(published, n=500)
    >>> release.value.tolist(), round(release.mechanism.noise.scale, 2)
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
    if name in REFUSED:
        refuse_model(name)
    if name != "LogisticRegression":
        fail("fitted", name, "a LogisticRegression of diffprivlib", "Other models cannot be read.", error=TypeError)
    missing = [key for key in (*ATTRIBUTES, "max_iter") if given.get(key) is None]
    if missing:
        fail("fitted", f"no {', '.join(missing)}", "a fitted model with its parameters", "Call fit before.")
    given["fit_intercept"] = bool(given["fit_intercept"])
    return given


def refuse_model(name: str) -> NoReturn:
    """Raise for a model whose density given the records is not known."""
    remedy = "Publish the noisy sums themselves, each a dpjax.Release."
    fail("fitted", f"{name}: {REFUSED[name]}", "a LogisticRegression", remedy)


def check_fit(model: Mapping[str, Any]) -> None:
    """Raise unless a logistic regression has sound parameters and its optimiser stopped at a minimum."""
    for key in ("epsilon", "data_norm", "C", "tol"):
        check_positive_number(f"fitted.{key}", model[key], "Pass the fitted model as it was published.")
    fits = 1 if len(model["classes_"]) == 2 else len(model["classes_"])
    shape, offsets = np.shape(model["coef_"]), np.shape(model["intercept_"])
    if len(shape) != 2 or shape[0] != fits or offsets != (fits,):
        given = f"shapes {list(shape)} and {list(offsets)}"
        fail("fitted.coef_, intercept_", given, f"[{fits}, p] and [{fits}]", "One row for each fit.")
    if np.max(model["n_iter_"]) >= model["max_iter"]:
        remedy = "Have it fitted with a larger max_iter: the coefficients of an unfinished fit have no known density."
        fail("fitted.n_iter_", np.max(model["n_iter_"]), f"fewer than max_iter = {model['max_iter']}", remedy)


def warn_of_tolerance(error: float) -> None:
    """Warn where the optimiser's tolerance is not small against the scale of the noise."""
    if error > TOLERABLE:
        text = f"The optimiser may have stopped where the log-density is off by {error:.2g}, as tol allows."
        warnings.warn(f"{text} Have it fitted with a smaller tol.", UserWarning, stacklevel=3)


def bins_within(field: str, edges: tuple[float, ...]) -> Statistic:
    """The counts of a field in bins, of which the last has its upper edge too; records beyond are not counted."""
    beyond = float(np.nextafter(np.float32(edges[-1]), np.float32(inf)))  # also above the edge in float32
    all_bins = histogram(field, [edges[0] - 1.0, *edges[:-1], beyond, beyond + 1.0])
    return linear(all_bins, np.eye(len(edges) + 1)[1:-1])


def clamped(noise: Laplace | DiscreteLaplace, lower: Any, upper: Any) -> Censored:
    """Noise of which values beyond a bound were set to it, as the library's truncated mechanisms do."""
    return Censored(noise, lower, upper)


def read_range(bounds: Any) -> tuple[float, float]:
    """Two increasing numbers, or an error."""
    given = () if bounds is None else as_floats("bounds", np.ravel(bounds).tolist())
    if len(given) != 2 or given[0] >= given[1]:
        fail("bounds", bounds, "two increasing numbers (lower, upper)", BOUNDS)
    return given[0], given[1]


def read_n(n: Any) -> int:
    """The public number of records, or an error: bounds and scales of the library depend on it."""
    return check_count("n", n, "Pass the number of records: the noise or its bounds depend on it.")


def read_epsilon(epsilon: Any) -> float:
    """A positive ε, or an error."""
    check_positive_number("epsilon", epsilon, EPSILON)
    return float(epsilon)


def read_value(value: Any) -> Array:
    """One published number as a vector, or an error."""
    check_number("value", value)
    check_array("value", value, np.isfinite, "a finite number", "Pass the published number; NaN says nothing.")
    return jnp.array([float(value)])
