"""What a mechanism promises of the sums that it protects, as far as that follows from its noise."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from dpjax.mechanisms.calibration import zcdp_rho
from dpjax.mechanisms.privacy import Neighbours

__all__ = ["Promise", "Promised", "ProtectedSums", "Unpromised", "concentrated", "pure", "smallest"]


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
    local_epsilon
        ``num_coordinates -> ε``: the largest log ratio between the densities of one record's value of so many numbers,
        whatever the two values of the record. It raises `Unpromised` if that is not known.
    stated
        The `dpjax.mechanisms.Privacy` that was stated with the release, or None.
    local_rho
        ``num_coordinates -> ρ``: that of zero-concentrated privacy for the same values; None if it is ε² / 2.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.Laplace(2.0).promise.words()
    'Laplace of scale 2'
    """

    words: Callable[[], str] = no_words
    of_sums: Callable[[Any], Promise] = unpromised
    local_epsilon: Callable[[int], float] = unpromised  # type: ignore[assignment]
    stated: Any = None
    local_rho: Callable[[int], float] | None = None


def pure(epsilon: float) -> Promise:
    """ε-DP, which is ε²/2-zCDP: Bun and Steinke (2016), Proposition 1.4."""
    return Promise(epsilon, epsilon**2 / 2)


def concentrated(scale: float, sensitivity: float) -> Promise:
    """ρ of Gaussian noise of this scale, discrete or not; ε = 0 of sums that one record does not move."""
    return Promise(None, zcdp_rho(scale, sensitivity)) if sensitivity else pure(0.0)


def smallest(scale: Any) -> float:
    """The smallest scale, which bounds what all coordinates promise together."""
    return float(np.min(np.asarray(scale)))
