"""The privacy loss of composed subsampled Gaussian queries, by a transform tilted to the tail that is asked for.

It shares no code with the accountant. A distribution of losses l is tilted to p e^{λl} / M(λ), so that the composition
has its mean at ε: δ is then a sum of numbers of the size of the largest, and known to some digits however small it is.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from dpjax.private import Query

POINTS, REACH, WIDTH = 40_001, 12.0, 26.0
MOST_STEPS = 2**20


class Losses(NamedTuple):
    """The losses of one query on a grid, their probabilities, and how many such queries there are."""

    loss: np.ndarray
    log_mass: np.ndarray
    count: int


def losses(query: Query, relation: str) -> Losses:
    """Of N(0, σ²) mixed with N(1, σ²), against N(0, σ²) ("removed"), the other way round ("added"), or N(-1, σ²)."""
    rate, deviation = query.sampling_rate, query.noise_multiplier
    edges = np.linspace(-REACH * deviation - 1, REACH * deviation + 1, POINTS)
    centres = (edges[1:] + edges[:-1]) / 2
    none, one = (log_masses(edges, place, deviation) for place in (0.0, 1.0))
    mixed = np.logaddexp(np.log1p(-rate) + none, np.log(rate) + one)
    gain = log_mixture(centres, rate, deviation)
    if relation == "added":
        return Losses(-gain, none, query.count)
    return Losses(
        gain - (log_mixture(-centres, rate, deviation) if relation == "replaced" else 0.0), mixed, query.count
    )


def log_masses(edges: np.ndarray, place: float, deviation: float) -> np.ndarray:
    """The log-probabilities of N(place, deviation²) between edges, from the nearer tail."""
    scores = (edges - place) / deviation
    low, high = scores[:-1], scores[1:]
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    upper = special.log_ndtr(high)
    return upper + np.log(-np.expm1(np.minimum(special.log_ndtr(low) - upper, -1e-300)))


def log_mixture(x: np.ndarray, rate: float, deviation: float) -> np.ndarray:
    """log(1 - q + q e^{(x - 1/2) / σ²})."""
    exponent = (x - 0.5) / deviation**2
    small = np.log1p(rate * np.expm1(np.minimum(exponent, 1.0)))
    return np.where(exponent < 1.0, small, np.logaddexp(np.log1p(-rate), np.log(rate) + exponent))


def log_delta(queries: list[Query], epsilon: float, relation: str) -> tuple[float, float]:
    """log δ at ε of the composition, and what the lattice may have added to it."""
    kinds = [losses(query, relation) for query in queries]
    if epsilon >= sum(kind.count * np.max(kind.loss) for kind in kinds) * (1 - 1e-9):
        return -np.inf, 0.0  # no loss is so large, but for what lies beyond twelve deviations
    tilt = find_tilt(kinds, epsilon)
    tilted = [np.exp(kind.log_mass + tilt * kind.loss - cumulant(kind, tilt)) for kind in kinds]
    spread = np.sqrt(sum(kind.count * variance(kind.loss, mass) for kind, mass in zip(kinds, tilted, strict=True)))
    furthest = max(np.max(np.abs(kind.loss[mass > 1e-18])) for kind, mass in zip(kinds, tilted, strict=True))
    window = max(WIDTH * spread, 4 * furthest)
    step = window / MOST_STEPS
    transform = np.ones(MOST_STEPS // 2 + 1, complex)
    for kind, mass in zip(kinds, tilted, strict=True):
        transform = transform * np.fft.rfft(on_lattice(kind.loss / step, mass)) ** kind.count
    composed = np.maximum(np.fft.irfft(transform, MOST_STEPS), 0.0)
    first = int(np.ceil(epsilon / step))
    places = np.arange(first, first + MOST_STEPS // 2)
    above = places * step - epsilon
    tail = np.sum(composed[places % MOST_STEPS] * np.exp(-tilt * above) * -np.expm1(-above))
    scale = sum(kind.count * cumulant(kind, tilt) for kind in kinds) - tilt * epsilon
    added = (tilt + 1) ** 2 * step**2 * sum(kind.count for kind in kinds) / 8 + 2 * step * (tilt + 1)
    return float(scale + np.log(max(tail, 1e-300))), float(added)


def find_tilt(kinds: list[Losses], epsilon: float) -> float:
    """λ >= 0 with which the composition has its mean at ε."""

    def excess(tilt: float) -> float:
        return sum(kind.count * slope(kind, tilt) for kind in kinds) - epsilon

    if excess(0.0) >= 0:
        return 0.0
    high = 1.0
    while excess(high) < 0 and high < 1e15:
        high *= 2
    assert excess(high) > 0, "no loss on the grid is so large"
    return float(optimize.brentq(excess, 0.0, high))


def cumulant(kind: Losses, tilt: float) -> float:
    return float(special.logsumexp(kind.log_mass + tilt * kind.loss))


def slope(kind: Losses, tilt: float) -> float:
    return float(np.sum(kind.loss * np.exp(kind.log_mass + tilt * kind.loss - cumulant(kind, tilt))))


def variance(values: np.ndarray, mass: np.ndarray) -> float:
    centre = np.sum(mass * values)
    return float(np.sum(mass * (values - centre) ** 2))


def on_lattice(places: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The probabilities shared between neighbours of a lattice, so that the mean stays."""
    low = np.floor(places)
    share = places - low
    lattice = np.zeros(MOST_STEPS)
    for offset, part in ((0, 1 - share), (1, share)):
        np.add.at(lattice, (low.astype(np.int64) + offset) % MOST_STEPS, mass * part)
    return lattice
