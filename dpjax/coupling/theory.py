"""Proven bounds for SOMA and IMwG on releases with bounded density ratios: Xiong and Ju (2025), arXiv v2.

Throughout, ε bounds the log ratio of the release's density between data sets that differ in one record, as ε privacy
for replacing a record does. It may be smaller than the privacy budget: the mean of two values in [0, 1] with Laplace
noise of scale 1 / b has ε = b / 2. All functions take arrays and broadcast.

Some results of the paper order the two samplers at one state, with no number that ε and n decide. Lemma 16 does for one
proposal, whose chances of acceptance are `soma_proposal_acceptance` and `imwg_proposal_acceptance`. Theorem 10 is their
mean over proposals. Theorem 9, a bound of one transition density by n times the other, gives `soma_variance_bound`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array

__all__ = [
    "imwg_acceptance_bound",
    "imwg_approach_bound",
    "imwg_distance_bound",
    "imwg_mean_acceptance_bound",
    "imwg_mean_acceptance_bound_zcdp",
    "imwg_proposal_acceptance",
    "imwg_random_rate_bound",
    "imwg_systematic_rate_bound",
    "soma_acceptance_bound",
    "soma_approach_bound",
    "soma_contraction_bound",
    "soma_departure_bound",
    "soma_proposal_acceptance",
    "soma_rate_bound",
    "soma_variance_bound",
]

Numbers = NDArray[np.floating]


@names_arguments
def soma_acceptance_bound(epsilon: ArrayLike, n: ArrayLike) -> Numbers:
    """n / (n + e^ε − 1), a lower bound of SOMA's acceptance probability from any records: Theorem 12, equation (17).

    Parameters
    ----------
    epsilon
        The bound ε.
    n
        The number of records.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_acceptance_bound(1.0, 100))
    0.983
    """
    least = smallest_ratio(epsilon)
    size = read_size(n)
    return size * least / (size * least + 1 - least)


@names_arguments
def imwg_acceptance_bound(epsilon: ArrayLike) -> Numbers:
    """e^(−ε), a lower bound of IMwG's acceptance probability with either scan: Theorem 12, equation (17).

    Parameters
    ----------
    epsilon
        The bound ε.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_acceptance_bound(1.0))
    0.368
    """
    return smallest_ratio(epsilon)


@names_arguments
def imwg_mean_acceptance_bound(epsilon: ArrayLike, delta: ArrayLike = 0.0) -> Numbers:
    """2 (1 − δ) / (1 + e^ε), a lower bound of IMwG's acceptance on average over releases drawn from the model.

    For noise that is (ε, δ) private for replacing a record; any pair that it promises gives a bound. At δ = 0 it is
    above `imwg_acceptance_bound`, which holds for every release. The acceptance of a record is then on average 1 less
    the total variation between the releases with the record and with the proposal in its place.

    Parameters
    ----------
    epsilon
        The bound ε.
    delta
        The probability δ.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_mean_acceptance_bound(1.0))
    0.538
    """
    missed = read("delta", delta, lambda array: (array >= 0) & (array <= 1), "numbers from 0 to 1")
    least = smallest_ratio(epsilon)
    return 2 * least * (1 - missed) / (1 + least)


@names_arguments
def imwg_mean_acceptance_bound_zcdp(rho: ArrayLike) -> Numbers:
    """A lower bound of IMwG's acceptance on average over releases drawn from the model, under ρ-zCDP.

    1 less the smaller of √(ρ / 2), by Pinsker's inequality, and √(1 − e^(−ρ)), by that of Bretagnolle and Huber. For
    one release there is no bound, as the density ratio of Gaussian noise has none.

    Parameters
    ----------
    rho
        The ρ for replacing a record.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_mean_acceptance_bound_zcdp(0.5))
    0.5
    """
    spent = read("rho", rho, lambda array: array >= 0, "numbers of at least 0")
    return 1 - np.minimum(np.sqrt(spent / 2), np.sqrt(-np.expm1(-spent)))


@names_arguments
def soma_rate_bound(epsilon: ArrayLike) -> Numbers:
    """An upper bound of SOMA's convergence rate per proposal for two records: Theorem 13, equation (18).

    The distribution of the records converges geometrically at this rate or faster. The proof counts the records in
    which two chains differ up to their order, so the bound holds for functions that do not depend on the order. It is
    below those of both IMwG scans only for ε between 0.37 and 0.89; for large ε it misses 1 by 4 e^(−3ε), theirs by
    e^(−2ε) and e^(−2ε) / 2. Measured rates are in the opposite order.

    Parameters
    ----------
    epsilon
        The bound ε.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_rate_bound(1.0))
    0.917
    """
    x = smallest_ratio(epsilon)
    return (1 + 3 * x - 2 * x**2 + np.sqrt(1 + 2 * x + 9 * x**2 - 8 * x**3)) / (2 * (1 + x) ** 2)


@names_arguments
def imwg_random_rate_bound(epsilon: ArrayLike) -> Numbers:
    """An upper bound of the convergence rate per proposal of IMwG with random scan, two records: Theorem 13.

    Parameters
    ----------
    epsilon
        The bound ε.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_random_rate_bound(1.0))
    0.913
    """
    x = smallest_ratio(epsilon)
    return (3 - 2 * x + np.sqrt(1 + 4 * x - 4 * x**2)) / 4


@names_arguments
def imwg_systematic_rate_bound(epsilon: ArrayLike) -> Numbers:
    """An upper bound of the rate per proposal of IMwG with systematic scan, two records: Theorem 13, equation (19).

    Its square is the bound for a sweep of two proposals.

    Parameters
    ----------
    epsilon
        The bound ε.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_systematic_rate_bound(1.0))
    0.930
    """
    return np.sqrt(1 - smallest_ratio(epsilon) ** 2)


@names_arguments
def soma_approach_bound(epsilon: ArrayLike, n: ArrayLike, distance: ArrayLike) -> Numbers:
    """A lower bound of the probability that a proposal brings two SOMA chains one record closer: Lemma 18, (40).

    For the coupling with common proposals that couples unmatched places with each other. The M of the printed equation
    is e^ε.

    Parameters
    ----------
    epsilon
        The bound ε.
    n
        The number of records.
    distance
        The number of records d ≤ n in which the chains differ, up to their order.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_approach_bound(1.0, 10, 5))
    0.2295
    """
    x, d = smallest_ratio(epsilon), read_distance(distance)
    return soma_acceptance_bound(epsilon, n) * d * x / (d * x + read_size(n) - d)


@names_arguments
def imwg_approach_bound(epsilon: ArrayLike, n: ArrayLike, distance: ArrayLike) -> Numbers:
    """A lower bound of the probability that a proposal brings two random-scan IMwG chains one record closer: Lemma 18.

    Parameters
    ----------
    epsilon
        The bound ε.
    n
        The number of records.
    distance
        The number of records d ≤ n in which the chains differ.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_approach_bound(1.0, 10, 5))
    0.184
    """
    return smallest_ratio(epsilon) * read_distance(distance) / read_size(n)


@names_arguments
def soma_departure_bound(epsilon: ArrayLike, n: ArrayLike, distance: ArrayLike) -> Numbers:
    """An upper bound of the probability that a proposal takes two SOMA chains one record apart: Lemma 19, (42), (43).

    Parameters
    ----------
    epsilon
        The bound ε.
    n
        The number of records. For two records of which one differs, the sharper (43) is used.
    distance
        As in `soma_approach_bound`.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_departure_bound(1.0, 10, 5))
    0.502
    """
    x, d = smallest_ratio(epsilon), read_distance(distance)
    rest = read_size(n) - d
    general = rest / (rest + d * x) - soma_acceptance_bound(epsilon, n) * rest * x / (rest * x + d)
    return np.where((rest == 1) & (d == 1), (1 - x) / (1 + x) ** 2, general)


@names_arguments
def soma_contraction_bound(epsilon: ArrayLike, n: ArrayLike) -> Numbers:
    """An upper bound of SOMA's convergence rate per proposal for n records: 1 less the least expected approach.

    By Lemmas 18 and 19 a proposal multiplies the distance d of two chains on average by at most this. After t
    proposals their distributions are within n times its t-th power in total variation. It is below 1 for every n if 2
    sinh ε ≤ 1/2, that is for ε up to 0.247, and for two records up to log 2. Elsewhere it is 1, which says nothing.
    The paper has rates of two records alone; its Remark 6 gives up on more.

    Parameters
    ----------
    epsilon
        The bound ε.
    n
        The number of records.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_contraction_bound(0.1, 10))
    0.937
    """
    sizes = read("n", n, lambda array: (array >= 1) & (array == np.floor(array)), "whole numbers of at least 1")
    smallest_ratio(epsilon)

    def rate(epsilon: float, size: float) -> float:
        distances = np.arange(1, int(size) + 1)
        gained = soma_approach_bound(epsilon, size, distances) - soma_departure_bound(epsilon, size, distances)
        return 1 - max(0.0, float(np.min(gained / distances)))

    return np.vectorize(rate, otypes=[float])(epsilon, sizes)


@names_arguments
def soma_proposal_acceptance(log_weights: ArrayLike, log_current: ArrayLike) -> Numbers:
    """Σ (w_i / W) min(1, W / (W + w_0 − w_i)), the chance that SOMA takes a given proposal: the left of Lemma 16, (24).

    It is never below `imwg_proposal_acceptance`.

    Parameters
    ----------
    log_weights
        The logarithms [..., n] of w_i, the release's density with the proposal in the place of record i.
    log_current
        That [...] of w_0, with the records as they are.

    Returns
    -------
    array [...]

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_proposal_acceptance([0.0, -2.0], 0.0))
    0.948
    """
    weights, current = read_weights(log_weights, log_current)
    total = np.sum(weights, axis=-1, keepdims=True)
    # Where a weight is all of the total, rounding can leave less than nothing of the rest.
    back = np.maximum(total - weights, 0) + current[..., None]
    return np.sum(weights / np.maximum(total, back), axis=-1)


@names_arguments
def imwg_proposal_acceptance(log_weights: ArrayLike, log_current: ArrayLike) -> Numbers:
    """The mean of min(1, w_i / w_0), the chance that IMwG takes a given proposal at a random record: Lemma 16, (24).

    Parameters
    ----------
    log_weights
        As in `soma_proposal_acceptance`.
    log_current
        As in `soma_proposal_acceptance`.

    Returns
    -------
    array [...]

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_proposal_acceptance([0.0, -2.0], 0.0))
    0.568
    """
    weights, current = read_weights(log_weights, log_current)
    return np.mean(weights / np.maximum(weights, current[..., None]), axis=-1)


@names_arguments
def imwg_distance_bound(acceptance: ArrayLike, steps: ArrayLike) -> Numbers:
    """(1 − A)^t, how far a random-scan IMwG chain is at least from its limit after t proposals: Corollary 11.

    In total variation, for records of continuous distributions. The chain is where it started with this probability or
    more, and its limit has no mass there. With SOMA's A, which is no smaller by Theorem 10, the bound holds too.

    Parameters
    ----------
    acceptance
        The chance A that a proposal to the records at the start is accepted.
    steps
        The number of proposals t.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.imwg_distance_bound(0.1, 10))
    0.349
    """
    rate = read("acceptance", acceptance, lambda array: (array >= 0) & (array <= 1), "numbers from 0 to 1")
    return (1 - rate) ** read("steps", steps, lambda array: array >= 0, "numbers of at least 0")


@names_arguments
def soma_variance_bound(imwg_variance: ArrayLike, variance: ArrayLike, n: ArrayLike) -> Numbers:
    """(V − (n − 1) v) / n, a lower bound of SOMA's asymptotic variance per proposal: Corollary 15, (22).

    So n proposals of random-scan IMwG, which cost as many evaluations of the release as one of SOMA, are no worse for
    any mean but for v / T, the variance of T exact draws. SOMA is ahead only where attempts are cheaper side by side.

    Parameters
    ----------
    imwg_variance
        The asymptotic variance V of a mean by random-scan IMwG, per proposal.
    variance
        The variance v of the function in the posterior.
    n
        The number of records.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.coupling.theory.soma_variance_bound(100.0, 1.0, 10))
    9.1
    """
    slow = read("imwg_variance", imwg_variance, lambda array: array >= 0, "numbers of at least 0")
    own = read("variance", variance, lambda array: array >= 0, "numbers of at least 0")
    size = read_size(n)
    return np.maximum((slow - (size - 1) * own) / size, 0)


def read_weights(log_weights: ArrayLike, log_current: ArrayLike) -> tuple[Numbers, Numbers]:
    """The weights [..., n] and the current one [...], relative to the largest."""
    current = read("log_current", log_current, np.isfinite, "finite numbers")
    tried = read("log_weights", log_weights, lambda array: array.ndim > 0 and array.size > 0, "an array [..., n]")
    top = np.maximum(np.max(tried, axis=-1), current)
    return np.exp(tried - top[..., None]), np.exp(current - top)


def smallest_ratio(epsilon: ArrayLike) -> Numbers:
    """e^(−ε), the smallest ratio of densities when one record is replaced."""
    return np.exp(-read("epsilon", epsilon, lambda array: array >= 0, "numbers of at least 0"))


def read_size(n: ArrayLike) -> Numbers:
    """Numbers of records, or an error."""
    return read("n", n, lambda array: array >= 1, "numbers of at least 1")


def read_distance(distance: ArrayLike) -> Numbers:
    """Numbers of records in which chains differ, or an error."""
    return read("distance", distance, lambda array: array >= 0, "numbers of at least 0")


def read(argument: str, value: Any, accept: Callable[[np.ndarray], Any], expected: str) -> Numbers:
    """Numbers in double precision, or an error unless each is finite and accepted."""
    check_array(argument, value, accept, expected, "Pass a number, or an array of them.")
    return np.asarray(value, float)
