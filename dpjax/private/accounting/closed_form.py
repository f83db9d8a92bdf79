"""The privacy cost of a DP-MCMC run: the closed forms of Räisä, Koskela and Honkela (2021), in plain floats.

A run is a composition of Gaussian queries. τ is the standard deviation of the noise of one query over the query's
sensitivity *under the neighbouring relation that the promise is about*. So μ and everything made of it holds for either
relation. The algorithms add noise of standard deviation 2 τ b to sums of records of norm at most b. This is τ
sensitivities for ``"replace-one"`` and 2 τ of them for ``"add-or-remove"``. `sensitivity` says which, and `Ledger` and
`events` ask for the relation.
"""

from collections.abc import Callable
from functools import partial
from math import exp, inf, log, log1p, sqrt
from typing import NamedTuple

import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import LARGEST_COUNT, LARGEST_NUMBER, check_count, check_moderate, check_positive, fail
from dpjax.mechanisms.calibration import LARGEST_EPSILON, check_epsilon, log_gaussian_delta
from dpjax.mechanisms.privacy import Neighbours, check_neighbours
from dpjax.private.arguments import check_not_negative, check_real

LOWEST_MU, HIGHEST_MU = 1e-30, 1e12
OVERFLOWS = 1e300
"""From here on twice a μ may be no float."""
LOG_TOLERANCE = 1e-14
LOG_ERROR = 1e-12
"""Error of log δ, for noise up to some thousand sensitivities; the further error is added."""
FAR_BELOW = 1e3  # stands for -inf in root finding

GROWTH = 4
PRECISION = 1e-3  # of a count whose cost takes long to compute
EDGE = 0.02  # the least share of a bracket that a step cuts off


class Taus(NamedTuple):
    """The noise of a run, in sensitivities: of the log-likelihood ratio and of one gradient (None without).

    Attributes
    ----------
    tau_l
        The noise of the log-likelihood ratio.
    tau_g
        The noise of one gradient; None without gradients.

    Examples
    --------
    >>> from dpjax.private.accounting import taus_for
    >>> taus_for(epsilon=1.0, delta=1e-6, num_iterations=100, num_leapfrog=9, gradient_share=0.5).tau_l
    59.7
    """

    tau_l: float
    tau_g: float | None


@names_arguments
def sensitivity(bound: float, neighbours: Neighbours) -> float:
    """The L2 sensitivity of a sum over records of vectors with norm at most `bound`.

    Replacing one record moves the sum by up to 2 bound, adding or removing one by up to bound.

    Parameters
    ----------
    bound
        The largest norm b of one record's vector.
    neighbours
        The neighbouring relation: 2b under ``"replace-one"``, b under ``"add-or-remove"``.

    Raises
    ------
    ValueError
        If the bound is not finite and positive or the relation is not named.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.accounting.sensitivity(1.0, neighbours="replace-one")
    2.0
    """
    check_positive("bound", check_real("bound", bound))
    check_moderate("bound", bound)
    check_neighbours(neighbours)
    return (2.0 if neighbours == "replace-one" else 1.0) * bound


@names_arguments
def mu(num_iterations: int, tau_l: float, tau_g: float | None, num_leapfrog: int) -> float:
    """The mean μ = k / (2 τ_l²) + k (L + 1) / (2 τ_g²) of the privacy loss of k iterations (Theorem 3.5).

    Parameters
    ----------
    num_iterations
        k, over all chains that read the same records.
    tau_l
        The noise of the log-likelihood ratio, one query an iteration.
    tau_g
        The noise of a gradient; None for an algorithm without gradients, such as DP-penalty.
    num_leapfrog
        L. An iteration asks for L + 1 gradients.

    Raises
    ------
    TypeError, ValueError
        If a count or a noise is out of range.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.accounting.mu(num_iterations=100, tau_l=10.0, tau_g=20.0, num_leapfrog=9)
    1.75
    """
    iterations = check_count("num_iterations", num_iterations, least=0)
    gradients = check_count("num_leapfrog", num_leapfrog, least=0) + 1
    _check_tau("tau_l", tau_l)
    if tau_g is None:
        return iterations / tau_l / tau_l / 2
    _check_tau("tau_g", tau_g)
    return iterations / tau_l / tau_l / 2 + iterations * gradients / tau_g / tau_g / 2


@names_arguments
def log_delta(epsilon: float, mu: float) -> float:
    """log δ(ε) of a composition of Gaussian queries with privacy loss N(μ, 2μ) (Theorem 2.4), tight and in log space.

    Parameters
    ----------
    epsilon
        ε.
    mu
        μ, half the variance of the privacy loss.

    Raises
    ------
    ValueError
        If ε or μ is negative or not finite.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.accounting.log_delta(epsilon=1.0, mu=0.5)
    -2.06
    """
    check_not_negative("epsilon", epsilon)
    check_epsilon(epsilon)
    check_not_negative("mu", mu)
    return log_gaussian_delta(float(epsilon), ratio_of(mu)) if mu > 0 else -inf


def ratio_of(mu: float) -> float:
    """The standard deviation of one Gaussian query with this μ, over its sensitivity."""
    return 1 / sqrt(2 * mu) if mu < OVERFLOWS else sqrt(0.5) / sqrt(mu)


def log_delta_from_above(epsilon: float, mu: float) -> float:
    """An upper bound of `log_delta` with its rounding error, on which guarantees are based.

    δ is a difference of Mills' ratios at points 1/ratio apart around c = ε ratio, where they differ by a share of about
    min(1, 1/c) / ratio. Each is known to some units in the last place.
    """
    if mu == 0:
        return -inf
    ratio = ratio_of(mu)
    return min(log_delta(epsilon, mu) + LOG_ERROR + 2e-15 * ratio * max(1.25, epsilon * ratio), 0.0)


@names_arguments
def epsilon(delta: float, mu: float) -> float:
    """The smallest ε >= 0 at which a composition of Gaussian queries is (ε, δ)-DP: Theorem 2.4 solved for ε.

    Parameters
    ----------
    delta
        δ.
    mu
        μ, half the variance of the privacy loss.

    Raises
    ------
    ValueError
        If δ is not in (0, 1) or μ is negative, not finite, or so large that ε is beyond 10⁹.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.accounting.epsilon(delta=1e-5, mu=0.5)
    4.38
    """
    check_delta(delta)
    check_not_negative("mu", mu)
    if mu > LARGEST_EPSILON or log_delta_from_above(LARGEST_EPSILON, mu) > log(delta):
        remedy = "Noise that is this small protects nobody."
        fail("mu", mu, f"a loss with an ε of at most {LARGEST_EPSILON:g}", remedy)
    if mu == 0 or log_delta_from_above(0.0, mu) <= log(delta):
        return 0.0

    def excess(guess: float) -> float:
        return log_delta_from_above(guess, mu) - log(delta)

    high = 1.0
    while excess(high) > 0:
        high = min(2 * high, LARGEST_EPSILON)
    solution = float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-300, rtol=LOG_TOLERANCE))
    margin = LOG_TOLERANCE
    while excess(solution) > 0:  # from the side that keeps the promise
        solution, margin = solution * (1 + margin), 2 * margin
    return solution


def mu_of_pure(epsilon: float) -> float:
    """μ of the Gaussian queries that are at least as easy to distinguish as any pair of ε-DP answers.

    Randomized response is the hardest ε-DP mechanism, with a trade-off of errors that is straight between (0, 1), the
    point where both are 1 / (1 + e^ε), and (1, 0). The trade-off of a Gaussian query with Δ / σ = 2 Φ⁻¹(1 / (1 + e^-ε))
    is convex and goes through these points, so that it is nowhere above.
    """
    gap = -2 * float(scipy.special.ndtri_exp(-epsilon - log1p(exp(-epsilon)))) + 1e-14
    return gap**2 / 2 * (1 + LOG_ERROR)


@names_arguments
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest μ at which a composition of Gaussian queries is (ε, δ)-DP: Theorem 2.4 solved for μ.

    It is what a budget is spent on: μ adds up over queries, chains and runs.

    Parameters
    ----------
    epsilon
        ε.
    delta
        δ.

    Raises
    ------
    ValueError
        If ε is not finite and positive or δ is not in (0, 1).

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.accounting.largest_mu(epsilon=1.0, delta=1e-5)
    0.0359
    """
    check_moderate("epsilon", check_real("epsilon", epsilon))
    check_epsilon(epsilon)
    check_delta(delta)

    def excess(log_mu: float) -> float:
        return max(log_delta_from_above(epsilon, exp(log_mu)) - log(delta), -FAR_BELOW)

    solution = scipy.optimize.brentq(excess, log(LOWEST_MU), log(HIGHEST_MU), xtol=LOG_TOLERANCE, rtol=LOG_TOLERANCE)
    margin = LOG_TOLERANCE
    while excess(solution) > 0:  # from the side that keeps the promise
        solution, margin = solution - margin, 2 * margin
    return exp(solution) * (1 - LOG_TOLERANCE)


@names_arguments
def max_iterations(epsilon: float, delta: float, tau_l: float, tau_g: float | None, num_leapfrog: int) -> int:
    """The largest number of iterations, over all chains, that stays within (ε, δ); 0 if none does.

    Parameters
    ----------
    epsilon
        ε.
    delta
        δ.
    tau_l
        Noise of the log-likelihood ratio, in sensitivities.
    tau_g
        Noise of one gradient, in sensitivities; None if none is asked for.
    num_leapfrog
        Leapfrog steps of one iteration.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.accounting.max_iterations(epsilon=1.0, delta=1e-5, tau_l=100.0, tau_g=100.0, num_leapfrog=9)
    65
    """
    check_moderate("epsilon", check_real("epsilon", epsilon))
    check_delta(delta)
    if mu(1, tau_l, tau_g, num_leapfrog) == 0:
        fail("tau_l", tau_l, "finite noise", "Without any cost no number of iterations is the largest.")
    cost = partial(mu, tau_l=tau_l, tau_g=tau_g, num_leapfrog=num_leapfrog)
    return largest_count(lambda count: log_delta_from_above(epsilon, cost(count)) <= log(delta))


@names_arguments
def taus_for(epsilon: float, delta: float, num_iterations: int, num_leapfrog: int, *, gradient_share: float) -> Taus:
    """The least noise with which `num_iterations` iterations are (ε, δ)-DP: Theorem 3.5 solved for τ_l and τ_g.

    Parameters
    ----------
    epsilon
        ε of the budget.
    delta
        δ of the budget.
    num_iterations
        Iterations over all chains.
    num_leapfrog
        L; an iteration asks for L + 1 gradients.
    gradient_share
        The part of μ that goes to the gradients, in [0, 1). With 0 there are none, and τ_g is None.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from dpjax.private.accounting import taus_for
    >>> taus_for(epsilon=1.0, delta=1e-6, num_iterations=100, num_leapfrog=9, gradient_share=0.5).tau_g
    188.9
    """
    iterations = check_count("num_iterations", num_iterations)
    gradients = iterations * (check_count("num_leapfrog", num_leapfrog, least=0) + 1)
    if not 0 <= check_real("gradient_share", gradient_share) < 1:
        fail("gradient_share", gradient_share, "a number in [0, 1)", "Leave a part for the acceptance test.")
    affordable = largest_mu(epsilon, delta)
    tau_l = sqrt(iterations / (2 * affordable * (1 - gradient_share)))
    tau_g = sqrt(gradients / (2 * affordable)) / sqrt(gradient_share) if gradient_share > 0 else None
    return Taus(tau_l, tau_g)


def check_delta(delta: float) -> None:
    """Raise unless δ is in (0, 1)."""
    if not 0 < check_real("delta", delta) < 1:
        remedy = "Pass the δ of (ε, δ)-DP, well below one over the number of records."
        fail("delta", delta, "a number in (0, 1)", remedy)


def _check_tau(name: str, tau: float) -> None:
    if not check_real(name, tau) > 0:
        fail(name, tau, "a number above 0", "Without noise there is no privacy.")
    if tau < 1 / LARGEST_NUMBER:
        fail(name, tau, f"at least {1 / LARGEST_NUMBER:g}", "So little noise protects nobody.")


def largest_count(fits: Callable[[int], bool]) -> int:
    """The largest count for which `fits` holds, if it holds up to some count; 0 if for none."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
        if high > LARGEST_COUNT:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def nearly_largest_count(excess: Callable[[int], float]) -> int:
    """A count with `excess` <= 0, an increasing function, at most one in a thousand below the largest such count.

    Each evaluation may take seconds, so there are few of them: regula falsi in the logarithm of the count, with the
    Illinois modification against an end that does not move.
    """
    low, high, above, below = 1, 1, excess(1), -inf
    while above <= 0:
        low, high, below = high, GROWTH * high, above
        if high > LARGEST_COUNT:
            return low
        above = excess(high)
    if high == 1:
        return 0
    last = 0
    while high - low > max(1, low * PRECISION):
        share = min(max(below / (below - above), EDGE), 1 - EDGE) if below > -inf else 0.5
        middle = min(max(round(low * (high / low) ** share), low + 1), high - 1)
        value = excess(middle)
        side = 1 if value > 0 else -1
        weight = 0.5 if side == last else 1.0
        low, high = (low, middle) if side > 0 else (middle, high)
        below, above = (below * weight, value) if side > 0 else (value, above * weight)
        last = side
    return low
