"""What the noise of a release promises, as far as it follows from the noise and from what one record can change.

Nothing here is needed for inference. A promise is an upper bound: the release is private at these numbers, and may be
so at smaller ones. Where the sensitivity or the noise is not known there is no promise, and a reason why.
"""

from collections.abc import Callable
from math import inf, isfinite, log, log1p
from typing import Any, NamedTuple

import numpy as np

from dpjax.mechanisms import (
    Censored,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Gaussian,
    HaarWavelet,
    Laplace,
    RandomizedResponse,
    SmoothedHistogram,
    haar_sensitivity,
    zcdp_rho,
)
from dpjax.mechanisms.base import Parts
from dpjax.mechanisms.privacy import Neighbours
from dpjax.release.local import LocalRelease
from dpjax.release.summed import Release
from dpjax.release.unknown import UnknownCount
from dpjax.statistics import Histogram, RecordStatistic, Stacked
from dpjax.statistics.base import dimension_of

__all__ = ["Promise", "Unpromised", "local_promise", "promise"]


class Promise(NamedTuple):
    """What is promised of a release.

    Attributes
    ----------
    epsilon
        ε of pure differential privacy; None where there is none.
    rho
        ρ of zero-concentrated differential privacy.
    """

    epsilon: float | None
    rho: float


OF_YOUR_OWN = "How far one record can move a function of your own is not known."


class Unpromised(Exception):
    """The reason why nothing is known to be promised, as a sentence."""


class Sums(NamedTuple):
    """Sums that one mechanism protects.

    Attributes
    ----------
    statistic
        The function of one record.
    neighbours
        The neighbouring relation.
    n
        The number of records, or an `dpjax.UnknownCount`.
    """

    statistic: Any
    neighbours: Neighbours
    n: Any

    def sensitivity(self, norm: Any) -> float:
        """How far the sums move between neighbours, or the reason why that is not known."""
        if not isinstance(self.statistic, RecordStatistic):
            raise Unpromised(OF_YOUR_OWN)
        try:
            return self.statistic.sensitivity(norm, self.neighbours)
        except (AttributeError, ValueError):
            raise Unpromised("One record can move the sums without bound.") from None


def pure(epsilon: float) -> Promise:
    """ε-DP, which is ε²/2-zCDP: Bun and Steinke (2016), Proposition 1.4."""
    return Promise(epsilon, epsilon**2 / 2)


def compose(promises: list[Promise]) -> Promise:
    """Independent releases of the same records: ε and ρ add up."""
    epsilons = [one.epsilon for one in promises]
    epsilon = None if None in epsilons else sum(one for one in epsilons if one is not None)
    return Promise(epsilon, sum(one.rho for one in promises))


def promise(release: Release, neighbours: Neighbours) -> Promise:
    """What the released value promises under a neighbouring relation; parts that are exact are left out.

    Raises
    ------
    Unpromised
        If it does not follow from the release.
    """
    protected = [(part, sums) for part, sums in parts(release, neighbours) if not isinstance(part, Exact)]
    if not protected:
        raise Unpromised("The sums were released as they are.")
    return compose([of_sums(part, sums) for part, sums in protected])


def parts(release: Release, neighbours: Neighbours) -> list[tuple[Any, Sums]]:
    """The mechanisms of a release, each with the statistic that it protects."""
    mechanism, statistic = release.mechanism, release.statistic
    if not isinstance(mechanism, Parts):
        return [(mechanism, Sums(statistic, neighbours, release.n))]
    inside = statistic.statistics if isinstance(statistic, Stacked) else ()
    sizes = [dimension_of(one) for one in inside]
    if None in sizes:
        raise Unpromised(OF_YOUR_OWN)
    if sizes != [size for _, size in mechanism.parts]:
        raise Unpromised("Which of the mechanisms protects which statistic is not known.")
    pairs = zip(mechanism.parts, inside, strict=True)
    return [(part, Sums(one, neighbours, release.n)) for (part, _), one in pairs]


def of_sums(mechanism: Any, sums: Sums) -> Promise:
    """What a mechanism promises of sums over records; nothing of a subclass, whose law may be another."""
    derive = DERIVATIONS.get(type(mechanism))
    if derive is None:
        raise Unpromised(f"What {type(mechanism).__name__} promises is not known.")
    return derive(mechanism, sums)


def of_laplace(mechanism: Laplace | DiscreteLaplace, sums: Sums) -> Promise:
    """ε = Δ₁ / b, on sums that are whole in the discrete case."""
    return pure(sums.sensitivity(1) / smallest(mechanism.scale))


def of_gaussian(mechanism: Gaussian | DiscreteGaussian, sums: Sums) -> Promise:
    """ρ = Δ₂² / 2σ²."""
    return Promise(None, zcdp_rho(smallest(mechanism.scale), sums.sensitivity(2)))


def of_censored(mechanism: Censored, sums: Sums) -> Promise:
    """Clamping what is noisy already costs nothing."""
    return of_sums(mechanism.mechanism, sums)


def of_smoothed_histogram(mechanism: SmoothedHistogram, sums: Sums) -> Promise:
    """Theorem 4.2 of Wasserman and Zhou (2010), of a public number of records."""
    if sums.neighbours != "replace-one" or isinstance(sums.n, UnknownCount) or type(sums.statistic) is not Histogram:
        raise Unpromised("It is known of a histogram of a public number of records only, where one is replaced.")
    weight = float(mechanism.weight)
    height = (1 - weight) * sums.statistic.dimension / (weight * sums.n)
    return pure(mechanism.num_draws * log1p(height))


DERIVATIONS: dict[type, Callable[[Any, Sums], Promise]] = {
    Laplace: of_laplace,
    DiscreteLaplace: of_laplace,
    Gaussian: of_gaussian,
    DiscreteGaussian: of_gaussian,
    Censored: of_censored,
    SmoothedHistogram: of_smoothed_histogram,
}


def local_promise(release: LocalRelease) -> Promise:
    """What the channel promises to each person, whatever two values of theirs are compared.

    Raises
    ------
    Unpromised
        If it does not follow from the release.
    """
    channel = release.channel
    coordinates = int(np.prod(release.values.shape[1:], dtype=int))
    if type(channel) is RandomizedResponse:
        epsilon = coordinates * response_epsilon(channel)
    elif type(channel) is HaarWavelet:
        epsilon = haar_sensitivity(channel.resolution) / smallest(channel.scale)
    else:
        raise Unpromised("How far apart two values of a person can be is not part of the release.")
    if not isfinite(epsilon):
        raise Unpromised("Some answers are possible for some values only, and give them away.")
    return pure(epsilon)


def response_epsilon(channel: RandomizedResponse) -> float:
    """The largest log ratio of the probabilities of one answer given two values."""
    if channel.matrix is not None:
        rows = np.asarray(channel.matrix, float)
        possible = rows[:, rows.max(axis=0) > 0]
        return float(np.max(np.log(possible.max(axis=0)) - log_or_minus_inf(possible.min(axis=0))))
    keep = float(channel.keep)  # type: ignore[arg-type]
    other = (1 - keep) / ((channel.num_categories or 2) - 1)
    return abs(log(keep) - log(other)) if other > 0 else inf


def log_or_minus_inf(numbers: np.ndarray) -> np.ndarray:
    """The logarithm, −∞ of 0."""
    return np.log(numbers, out=np.full_like(numbers, -inf), where=numbers > 0)


def smallest(scale: Any) -> float:
    """The smallest scale, which bounds what all promise together."""
    return float(np.min(np.asarray(scale)))
