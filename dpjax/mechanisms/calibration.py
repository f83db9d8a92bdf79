"""Noise scales from privacy parameters and back, in plain floats: for planning a release, never for inference.

Every sensitivity is that of the whole statistic under the neighbouring relation of your choice: in the L1 norm
for Laplace noise, in the L2 norm for Gaussian noise.
"""

from math import exp, expm1, inf, log, log1p, pi, sqrt

import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_moderate, check_number, check_positive_number, fail

LARGEST_EPSILON = 1e9

BISECTIONS = 200  # more than halvings of any bracket of doubles


@names_arguments
def laplace_scale(epsilon: float, sensitivity: float) -> float:
    """The Laplace scale b = sensitivity / epsilon that gives pure ε-DP (Dwork et al. 2006).

    The same scale serves the discrete Laplace mechanism on integer statistics.

    Parameters
    ----------
    epsilon
        ε.
    sensitivity
        The L1 sensitivity Δ₁.

    Raises
    ------
    ValueError
        If an argument is not finite and positive.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.mechanisms.laplace_scale(epsilon=0.5, sensitivity=2.0)
    4.0
    """
    _check_positive(epsilon=epsilon, sensitivity=sensitivity)
    return float(sensitivity / epsilon)


def gaussian_delta(epsilon: float, scale: float, sensitivity: float) -> float:
    """The smallest δ for which Gaussian noise of standard deviation `scale` is (ε, δ)-DP.

    Parameters
    ----------
    epsilon
        ε.
    scale
        The standard deviation σ of the noise.
    sensitivity
        The L2 sensitivity Δ₂.

    Raises
    ------
    ValueError
        If an argument is not finite and positive.

    Notes
    -----
    Theorem 8 of Balle and Wang (2018) is exact: δ = Φ(a) - e^ε Φ(b), a, b = ± Δ / (2σ) - ε σ / Δ.
    The relative rounding error is of the order of 1e-14 max(1, σ / Δ).

    Examples
    --------
    >>> from dpjax.mechanisms.calibration import gaussian_delta
    >>> gaussian_delta(epsilon=1.0, scale=3.73, sensitivity=1.0)
    1e-05
    """
    _check_positive(epsilon=epsilon, scale=scale, sensitivity=sensitivity)
    check_epsilon(epsilon)
    return exp(log_gaussian_delta(epsilon, scale / sensitivity))


@names_arguments
def gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """The smallest standard deviation for which Gaussian noise is (ε, δ)-DP, for any ε > 0 and δ in (0, 1).

    Parameters
    ----------
    epsilon
        ε.
    delta
        δ.
    sensitivity
        The L2 sensitivity Δ₂.

    Raises
    ------
    ValueError
        If ε or the sensitivity is not finite and positive, or δ is not in (0, 1).

    Notes
    -----
    The analytic calibration of Balle and Wang (2018). Their exact condition is solved by bisection in log σ and log δ,
    and the end of the last bracket that keeps the promise is returned.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.mechanisms.gaussian_scale(epsilon=1.0, delta=1e-5, sensitivity=1.0)
    3.73
    """
    _check_positive(epsilon=epsilon, sensitivity=sensitivity)
    check_epsilon(epsilon)
    _check_delta(delta)
    target = log(delta)
    low, high = 0.0, 0.0
    while log_gaussian_delta(epsilon, exp(low)) <= target:
        low -= 1.0
    while log_gaussian_delta(epsilon, exp(high)) > target:
        high += 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if log_gaussian_delta(epsilon, exp(middle)) <= target else (middle, high)
    return float(sensitivity * exp(high))


@names_arguments
def zcdp_scale(rho: float, sensitivity: float) -> float:
    """The Gaussian σ = sensitivity / √(2ρ) that gives ρ-zCDP (Bun and Steinke 2016, Proposition 1.6).

    The same σ serves the discrete Gaussian mechanism on integer statistics (Canonne, Kamath and Steinke 2020).

    Parameters
    ----------
    rho
        ρ.
    sensitivity
        The L2 sensitivity Δ₂.

    Raises
    ------
    ValueError
        If an argument is not finite and positive.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.mechanisms.zcdp_scale(rho=0.02, sensitivity=1.0)
    5.0
    """
    _check_positive(rho=rho, sensitivity=sensitivity)
    return float(sensitivity / sqrt(2 * rho))


def zcdp_rho(scale: float, sensitivity: float) -> float:
    """The ρ = sensitivity² / (2σ²) of Gaussian or discrete Gaussian noise, the inverse of `zcdp_scale`.

    Parameters
    ----------
    scale
        The standard deviation σ of the noise.
    sensitivity
        The L2 sensitivity Δ₂.

    Raises
    ------
    ValueError
        If an argument is not finite and positive.

    Examples
    --------
    >>> from dpjax.mechanisms.calibration import zcdp_rho
    >>> zcdp_rho(scale=5.0, sensitivity=1.0)
    0.02
    """
    _check_positive(scale=scale, sensitivity=sensitivity)
    return float((sensitivity / scale) ** 2 / 2)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """An ε = ρ + 2 √(ρ log(1 / δ)) for which ρ-zCDP implies (ε, δ)-DP (Bun and Steinke 2016, Proposition 1.3).

    It holds for every ρ-zCDP mechanism; for one Gaussian release `gaussian_delta` is smaller.

    Parameters
    ----------
    rho
        ρ.
    delta
        δ.

    Raises
    ------
    ValueError
        If ρ is not finite and positive, or δ is not in (0, 1).

    Examples
    --------
    >>> from dpjax.mechanisms.calibration import zcdp_epsilon
    >>> zcdp_epsilon(rho=0.1, delta=1e-6)
    2.45
    """
    _check_positive(rho=rho)
    _check_delta(delta)
    return float(rho + 2 * sqrt(rho * -log(delta)))


def log_gaussian_delta(epsilon: float, ratio: float) -> float:
    """log δ of Gaussian noise with σ / Δ = ratio, for any ε >= 0 and however small δ is.

    Notes
    -----
    e^ε Φ(b) / Φ(a) is a ratio of two Mills' ratios, because e^ε cancels against their normal densities. The absolute
    error is below 1e-12 for ratios to 1e3 and δ down to e^-1000.
    """
    upper = 1 / (2 * ratio) - epsilon * ratio
    lower = -1 / (2 * ratio) - epsilon * ratio
    if upper > 1:  # δ is near 1, and what it lacks is known to full precision
        return log1p(-exp(float(scipy.special.log_ndtr(-upper))) - exp(epsilon + float(scipy.special.log_ndtr(lower))))
    loss = _log_mills(-lower) - _log_mills(-upper)
    return float(scipy.special.log_ndtr(upper)) + log(-expm1(loss)) if loss < 0 else -inf


def _log_mills(threshold: float) -> float:
    """The log of Mills' ratio P(X > c) / φ(c) of the standard normal distribution."""
    if threshold > -20:
        return log(scipy.special.erfcx(threshold / sqrt(2))) + log(pi / 2) / 2
    return float(scipy.special.log_ndtr(-threshold)) + threshold**2 / 2 + log(2 * pi) / 2


def check_epsilon(epsilon: float) -> None:
    """Raise unless ε is small enough to give any protection."""
    if epsilon > LARGEST_EPSILON:
        remedy = "An ε of some hundred promises nothing to anyone."
        fail("epsilon", epsilon, f"at most {LARGEST_EPSILON:g}", remedy)


def _check_positive(**arguments: float) -> None:
    for name, value in arguments.items():
        check_positive_number(name, value)
        check_moderate(name, value)


def _check_delta(delta: float) -> None:
    check_number("delta", delta)
    check_array(
        "delta", delta, lambda array: (array > 0) & (array < 1), "a number in (0, 1)", "Pass the δ of (ε, δ)-DP."
    )
