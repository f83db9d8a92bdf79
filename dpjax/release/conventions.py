"""Mechanisms from the numbers that tools and reports publish in place of our `scale`."""

from collections.abc import Callable
from math import ceil
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_positive, check_share, describe, fail
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Privacy, laplace_scale, zcdp_scale
from dpjax.numerics.theta import integer_variance


class Convention(NamedTuple):
    """How one way of publishing the noise turns into a mechanism.

    Attributes
    ----------
    mechanism
        The mechanism's class.
    scale
        ``published -> scale``, or a function of the published number and of what is needed beside it.
    needs
        What that is: ``"sensitivity"``, if the noise was calibrated, or ``"alpha"``; None if nothing is.
    check
        Raises, in the name of ``published``, unless the positive numbers are possible.
    """

    mechanism: Callable[..., Any]
    scale: Callable[..., Any]
    needs: str | None = None
    check: Callable[[Any], None] = lambda published: None


SMALLEST_SCALE = 0.1
"""The least scale of discrete Gaussian noise: less is no noise."""

GAUSSIAN_TERMS = 9.0
"""How many scales are added up: what is left out is exp(-40) of the largest term."""


def root(excess: Callable[[float], Any], low: float, high: float) -> float:
    """Where a function of the scale is 0, between two scales at which it has different signs."""
    return float(scipy.optimize.brentq(excess, low, high, xtol=1e-14))


def variance_of(scale: float) -> float:
    """The variance of discrete Gaussian noise."""
    with jax.ensure_compile_time_eval():
        return float(integer_variance(scale))


@np.vectorize
def scale_of(variance: float) -> float:
    """The scale of discrete Gaussian noise of a variance, if that is not too small for any."""
    if variance >= 9:
        return float(np.sqrt(variance))
    return root(lambda scale: np.log(variance_of(scale) / variance), SMALLEST_SCALE, 3.0)


def check_ratio(published: Any) -> None:
    """Raise unless the ratio of a geometric distribution is below 1."""
    check_array("published", published, lambda alpha: alpha < 1, "a ratio between 0 and 1", "Pass α = e^(−1/b).")


def check_variance(published: Any, power: float = 1.0) -> None:
    """Raise unless some discrete Gaussian noise has this power of its variance."""
    least = variance_of(SMALLEST_SCALE) ** power
    remedy = "Less is no noise: use dpjax.Exact()."
    check_array("published", published, lambda number: number > least, f"numbers above {least:.3g}", remedy)


def check_deviation(published: Any) -> None:
    """Raise unless some discrete Gaussian noise has this standard deviation."""
    check_variance(published, 0.5)


def check_whole(published: Any) -> None:
    """Raise unless a half width of integer noise is a whole number."""
    remedy = "Pass the half width as it was published, such as 12."
    check_array("published", published, lambda number: number == np.round(number), "whole numbers above 0", remedy)


@np.vectorize
def gaussian_of_accuracy(accuracy: float, alpha: float) -> float:
    """The scale of Gaussian noise that is beyond the half width with probability α."""
    return float(-accuracy / NormalDist().inv_cdf(alpha / 2))


@np.vectorize
def discrete_laplace_of_accuracy(accuracy: float, alpha: float) -> float:
    """The scale of discrete Laplace noise that is at the half width or beyond with probability α."""

    def excess(scale: float) -> float:
        return float(np.log(2 / alpha) - accuracy / scale - np.log1p(np.exp(-1 / scale)))

    return root(excess, accuracy / np.log(2 / alpha) / (1 + 1e-9), accuracy / -np.log(alpha))


@np.vectorize
def discrete_gaussian_of_accuracy(accuracy: float, alpha: float) -> float:
    """The scale of discrete Gaussian noise that is at the half width or beyond with probability α."""

    def excess(scale: float) -> float:
        most = ceil(GAUSSIAN_TERMS * scale) + 1
        beyond, inside = np.arange(most) + accuracy, np.arange(1, most)
        total = 1 + 2 * np.sum(np.exp(-((inside / scale) ** 2) / 2))
        tail = np.sum(np.exp((accuracy**2 - beyond**2) / (2 * scale**2)))
        return float(np.log(2 * tail / total / alpha) - accuracy**2 / (2 * scale**2))

    most = 2 * accuracy / -NormalDist().inv_cdf(alpha / 2) + 1
    return root(excess, SMALLEST_SCALE, most)


CONVENTIONS = {
    "laplace_scale": Convention(Laplace, lambda scale: scale),
    "laplace_standard_deviation": Convention(Laplace, lambda deviation: deviation / np.sqrt(2)),
    "laplace_variance": Convention(Laplace, lambda variance: np.sqrt(variance / 2)),
    "laplace_accuracy": Convention(Laplace, lambda accuracy, alpha: accuracy / -np.log(alpha), needs="alpha"),
    "laplace_epsilon": Convention(Laplace, laplace_scale, needs="sensitivity"),
    "gaussian_standard_deviation": Convention(Gaussian, lambda deviation: deviation),
    "gaussian_variance": Convention(Gaussian, np.sqrt),
    "gaussian_accuracy": Convention(Gaussian, gaussian_of_accuracy, needs="alpha"),
    "gaussian_rho": Convention(Gaussian, zcdp_scale, needs="sensitivity"),
    "discrete_laplace_scale": Convention(DiscreteLaplace, lambda scale: scale),
    "discrete_laplace_variance": Convention(DiscreteLaplace, lambda variance: 0.5 / np.arcsinh((2 * variance) ** -0.5)),
    "discrete_laplace_standard_deviation": Convention(
        DiscreteLaplace, lambda deviation: 0.5 / np.arcsinh(1 / (np.sqrt(2) * deviation))
    ),
    "discrete_laplace_accuracy": Convention(DiscreteLaplace, discrete_laplace_of_accuracy, needs="alpha"),
    "discrete_laplace_epsilon": Convention(DiscreteLaplace, laplace_scale, needs="sensitivity"),
    "geometric_alpha": Convention(DiscreteLaplace, lambda alpha: -1 / np.log(alpha), check=check_ratio),
    "discrete_gaussian_scale": Convention(DiscreteGaussian, lambda scale: scale),
    "discrete_gaussian_squared_scale": Convention(DiscreteGaussian, np.sqrt),
    "discrete_gaussian_variance": Convention(DiscreteGaussian, scale_of, check=check_variance),
    "discrete_gaussian_standard_deviation": Convention(
        DiscreteGaussian, lambda deviation: scale_of(deviation**2), check=check_deviation
    ),
    "discrete_gaussian_accuracy": Convention(
        DiscreteGaussian, discrete_gaussian_of_accuracy, needs="alpha", check=check_whole
    ),
    "discrete_gaussian_rho": Convention(DiscreteGaussian, zcdp_scale, needs="sensitivity"),
}


@names_arguments
def mechanism_from_published(
    convention: str,
    published: Any,
    *,
    sensitivity: float | None = None,
    alpha: float | None = None,
    privacy: Privacy | None = None,
) -> Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian:
    """The mechanism whose noise was published as some other number than our scale.

    Parameters
    ----------
    convention
        One of `CONVENTIONS`:

        * ``"laplace_scale"`` (b), ``"laplace_standard_deviation"`` (√2 b), ``"laplace_variance"`` (2 b²),
          ``"laplace_epsilon"`` (Δ₁ / b);
        * ``"gaussian_standard_deviation"`` (σ), ``"gaussian_variance"`` (σ²), ``"gaussian_rho"`` (Δ₂² / 2σ²);
        * ``"discrete_laplace_scale"`` (b), ``"discrete_laplace_standard_deviation"``, ``"discrete_laplace_variance"``,
          ``"discrete_laplace_epsilon"`` (Δ₁ / b), ``"geometric_alpha"`` (the ratio e^(−1/b));
        * ``"discrete_gaussian_scale"`` (σ), ``"discrete_gaussian_squared_scale"`` (σ², which agencies call the
          variance), ``"discrete_gaussian_standard_deviation"`` and ``"discrete_gaussian_variance"`` (those of the
          noise itself, less than σ and σ² if σ is small), ``"discrete_gaussian_rho"`` (Δ₂² / 2σ²);
        * ``"laplace_accuracy"``, ``"gaussian_accuracy"``, ``"discrete_laplace_accuracy"`` and
          ``"discrete_gaussian_accuracy"``: the half width a with P(|noise| ≥ a) = α.
    published : [] or [d]
        The published number, in squared units of the value for variances; [] for ε and ρ.
    sensitivity
        The sensitivity Δ to which the noise was calibrated, in the norm above; only for ε and ρ.
    alpha
        The probability α beyond a half width, such as 0.05 if it was published at 95 %; only for accuracies.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If the convention is unknown, the number is not positive, or a sensitivity or α is missing or not used.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.release.mechanism_from_published("laplace_epsilon", 0.5, sensitivity=1.0).scale
    2.0
    """
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        fail("convention", repr(convention), f"one of {sorted(CONVENTIONS)}", "Name how the noise was published.")
    chosen = CONVENTIONS[convention]
    given = {"sensitivity": sensitivity, "alpha": alpha}
    for name, number in given.items():
        if (chosen.needs == name) != (number is not None):
            expected = f"the {name}" if chosen.needs == name else f"none, for {convention!r}"
            use = "epsilon and rho" if name == "sensitivity" else "accuracies"
            fail(name, describe(number), expected, f"It is needed for {use} only.")
    check_positive("published", published, "Pass the published number.")
    if alpha is not None:
        check_share("alpha", alpha, "Pass such as 0.05 for 95 %.")
    chosen.check(published)
    if chosen.needs == "sensitivity":
        return chosen.mechanism(chosen.scale(published, sensitivity), privacy=privacy)
    scale = chosen.scale(np.asarray(published, float), *([] if alpha is None else [alpha]))
    return chosen.mechanism(float(scale) if np.ndim(scale) == 0 else jnp.asarray(scale), privacy=privacy)
