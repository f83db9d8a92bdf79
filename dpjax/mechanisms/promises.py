"""What a mechanism promises of the sums that it protects, as far as that follows from its noise."""

from collections.abc import Callable
from math import tanh
from typing import Any, Literal, NamedTuple

import numpy as np

from dpjax.mechanisms.calibration import zcdp_rho
from dpjax.mechanisms.privacy import Neighbours

__all__ = [
    "NO_NOISE",
    "Promise",
    "Promised",
    "ProtectedSums",
    "Unpromised",
    "concentrated",
    "narrow",
    "pure",
    "smallest",
]

NO_NOISE = "Without noise nothing is promised."


class Unpromised(Exception):
    """The reason why nothing is known to be promised, as a sentence."""


class Promise(NamedTuple):
    """What is promised of a release.

    Attributes
    ----------
    epsilon
        ε of pure differential privacy; None if there is none.
    rho
        ρ of zero-concentrated differential privacy.
    """

    epsilon: float | None
    rho: float


class ProtectedSums(NamedTuple):
    """Sums over records that one mechanism protects.

    Attributes
    ----------
    sensitivity
        ``norm -> float``: how far the sums move between neighbouring data sets, in the L1 or L2 norm. Raises
        `Unpromised` if that is not known.
    neighbours
        The neighbouring relation.
    n
        The number of records; None if it is unknown.
    num_bins
        The number of sums if they are the counts of a histogram, each record in exactly one bin; else None.
    is_whole
        Whether they are known to be whole numbers, without which integer noise gives them away.
    """

    sensitivity: Callable[[Literal[1, 2]], float]
    neighbours: Neighbours
    n: int | None
    num_bins: int | None
    is_whole: bool


def no_words() -> str:
    """Words for noise of which none are given."""
    return "of a kind that is not described"


def unpromised(sums: Any) -> Promise:
    """Nothing is known to be promised."""
    del sums
    raise Unpromised("What the mechanism promises is not known.")


class Promised(NamedTuple):
    """What a mechanism promises, and in what words its noise is described.

    Attributes
    ----------
    words
        ``() -> str``: the distribution of the noise, in words that follow "Noise:".
    of_sums
        ``sums -> promise``: the `Promise` of the `ProtectedSums` that are released by the
        mechanism. It raises `Unpromised` if nothing follows.
    local
        ``num_coordinates -> promise``: the `Promise` of one record's value of so many numbers, whatever two values of
        the record are compared. It raises `Unpromised` if nothing follows.
    stated
        The `dpjax.mechanisms.Privacy` that was stated with the release, or None.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.Laplace(2.0).promise.words()
    'Laplace of scale 2'
    """

    words: Callable[[], str] = no_words
    of_sums: Callable[[Any], Promise] = unpromised
    local: Callable[[int], Promise] = unpromised
    stated: Any = None


def pure(epsilon: float, count: int = 1) -> Promise:
    """So many independent answers, each ε-DP and so ρ-zCDP with ρ = ε tanh(ε / 2), which is less than ε² / 2.

    Any ε-DP mechanism is post-processing of randomized response: Kairouz, Oh and Viswanath (2015). The Rényi divergence
    of that, of order α and divided by α, is (g(u²) - g(1/4)) / (u² - 1/4) with g(s) = log cosh(ε √s) and u = α - 1/2.
    As g is concave, no order exceeds its slope at 1/4, which is ε tanh(ε / 2).
    """
    return Promise(count * epsilon, count * epsilon * tanh(epsilon / 2))


def narrow(epsilon: float) -> Promise:
    """What follows if log ratios of neighbouring data sets lie in an interval of length ε: Cesar and Rogers (2021)."""
    return Promise(epsilon, min(epsilon * epsilon / 8, pure(epsilon).rho))


def concentrated(scale: float, sensitivity: float) -> Promise:
    """ρ of Gaussian noise of this scale, discrete or not; ε = 0 of sums that one record does not move."""
    return Promise(None, zcdp_rho(scale, sensitivity)) if sensitivity else pure(0.0)


def smallest(scale: Any) -> float:
    """The smallest scale, which bounds what all coordinates promise together."""
    return float(np.min(np.asarray(scale)))
