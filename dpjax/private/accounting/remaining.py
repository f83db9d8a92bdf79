"""What is left of a budget: the release, the loss and the noise that still fit."""

from collections.abc import Sequence
from math import exp, inf, log
from typing import NamedTuple

from dpjax._util.validation import check_choice, check_count, fail
from dpjax.private.accounting.closed_form import epsilon, largest_mu
from dpjax.private.accounting.events import mu_of, pure_epsilon
from dpjax.private.accounting.privacy_filter import excess
from dpjax.private.accounting.query import LEAST_MULTIPLIER, MOST_SUMS, Budget, NoiseFamily, Query, total

__all__ = ["Remaining", "what_remains"]

BISECTIONS = 50
MARGIN = 1e-11
"""The share by which the noise is above the least, so that whatever is computed from it fits too."""
LEAST_LEFT = 1e-9
"""The share of a budget below which nothing is taken to be left of it."""


class Remaining(NamedTuple):
    """What a ledger still allows to queries of one kind: the same in several units, so that any one uses it up.

    Attributes
    ----------
    epsilon
        The largest ε of the queries, at `delta`. For one query ``Budget(epsilon, delta, neighbours)`` is what a release
        may cost. 0 if nothing is left, or if δ alone allows all that is.
    delta
        That of the ledger's budget with Gaussian noise, and 0 with Laplace noise.
    rho
        ρ of zero-concentrated differential privacy, which adds up. With Laplace noise None: there ε does.
    noise_multiplier
        The least that the queries may have; infinite if nothing is left.

    Examples
    --------
    >>> from dpjax import private
    >>> ledger = private.Ledger(private.Budget(1.0, 1e-6, neighbours="replace-one"))
    >>> ledger.charge([private.Query("mean", noise_multiplier=12.0, grade="secure")])
    >>> left = ledger.remaining()
    >>> round(left.epsilon, 3), round(left.noise_multiplier, 2)
    (0.692, 11.9)
    """

    epsilon: float
    delta: float
    rho: float | None
    noise_multiplier: float

    def __str__(self) -> str:
        if self.noise_multiplier == inf:
            return "nothing"
        at = f" at δ = {self.delta:g}" if self.delta else ""
        return f"ε = {self.epsilon:.6g}{at}, or one sum with a noise multiplier of {self.noise_multiplier:.6g}"


def what_remains(charged: Sequence[Query], budget: Budget, noise: NoiseFamily | None, count: int) -> Remaining:
    """What may still be charged to a budget with these queries charged, by `count` queries of one kind.

    The least noise is sought by the function that decides about charges, in which it decreases.
    """
    family = read_family(noise, budget)
    count = check_count("count", count, most=MOST_SUMS)

    def asked(log_multiplier: float) -> Query:
        return Query("remaining", exp(log_multiplier), "secure", count, noise=family)

    def fits(log_multiplier: float) -> bool:
        return excess(total((*charged, asked(log_multiplier))), budget) <= 0

    most = -log(LEAST_MULTIPLIER) * (1 - MARGIN)
    if not fits(most):
        return nothing(budget, family)
    low, high, margin = -most, most, MARGIN
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    while not fits(min(high + margin, most)):  # rounding may differ from one multiplier to the next
        margin *= 2
    return (laplace_left if family == "laplace" else gaussian_left)(asked(min(high + margin, most)), budget)


def nothing(budget: Budget, family: NoiseFamily) -> Remaining:
    """What is left if all is spent."""
    return Remaining(0.0, 0.0, None, inf) if family == "laplace" else Remaining(0.0, budget.delta, 0.0, inf)


def laplace_left(query: Query, budget: Budget) -> Remaining:
    """What is left, if these queries use it up."""
    left = pure_epsilon([query], budget.neighbours)
    if left <= LEAST_LEFT * budget.epsilon:
        return nothing(budget, "laplace")
    return Remaining(left, 0.0, None, query.noise_multiplier)


def gaussian_left(query: Query, budget: Budget) -> Remaining:
    """What is left, if these queries use it up."""
    rho = query.count * mu_of(query, budget.neighbours)
    if rho <= LEAST_LEFT * largest_mu(budget.epsilon, budget.delta):
        return nothing(budget, "gaussian")
    fitting = fitting_epsilon(budget.delta, rho * (1 - LEAST_LEFT))
    return Remaining(fitting, budget.delta, rho, query.noise_multiplier)


def fitting_epsilon(delta: float, rho: float) -> float:
    """The largest ε for which a release costs no more than ρ; 0 if none is known, so near 0 that δ alone allows ρ."""
    found, share = epsilon(delta, rho), MARGIN
    while found > 0 and largest_mu(found, delta) > rho:
        found, share = found * max(1 - share, 0.0), 2 * share
    return found


def read_family(noise: NoiseFamily | None, budget: Budget) -> NoiseFamily:
    """The family of the noise, by default that of `private.release`, or an error unless the budget allows it."""
    if noise is None:
        return "gaussian" if budget.delta > 0 else "laplace"
    check_choice("noise", noise, ("gaussian", "laplace"), "Name the family of the noise.")
    if noise == "gaussian" and budget.delta == 0:
        fail("noise", "'gaussian', with a δ of 0", "'laplace', the only noise of such a budget", "Leave it out.")
    return noise
