"""Short climbs from other starts: whether the likelihood has several maxima, and which is the highest."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax.base import Key, Model
from dpjax.likelihood.evidence import estimate_log_likelihood
from dpjax.likelihood.newton import Optimum, climb
from dpjax.likelihood.surface import Surface
from dpjax.release import PrivateRelease

__all__ = ["Maxima", "compare_starts", "far_starts"]

NUM_OTHERS = 2
"""Number of other starts."""

SHORT, ROUGH = 1_024, 0.3
"""Sweeps of a climb from another start at most, and its precision in standard errors."""

APART = 5.0
"""How many standard errors two maxima are apart at least."""

SURE, LEAST = 3.0, 0.1
"""By how many Monte Carlo errors a log-likelihood is higher at least; and by how much, if that is known."""


class Maxima(NamedTuple):
    """The climb to the highest maximum found, and what is to be said of others."""

    found: Optimum
    remarks: tuple[str, ...]


def far_starts(vectors: np.ndarray) -> np.ndarray:
    """Of starts [chain, k] the one furthest from their mean, and the one furthest from that [start, k]."""
    spread = np.std(vectors, axis=0)
    scaled = (vectors - np.mean(vectors, axis=0)) / np.where(spread > 0, spread, 1.0)
    first = int(np.argmax(np.sum(scaled**2, axis=1)))
    second = int(np.argmax(np.sum((scaled - scaled[first]) ** 2, axis=1)))
    return vectors[[first, second][:NUM_OTHERS]]


def compare_starts(
    key: Key,
    surface: Surface,
    model: Model,
    release: PrivateRelease,
    found: Optimum,
    starts: Sequence[np.ndarray],
    chains: Any,
    **settings: Any,
) -> Maxima:
    """The fit, or one that climbs from where another start led to if the likelihood is higher there.

    Parameters
    ----------
    model
        As the user knows it.
    release
        As the user knows it.
    found
        The fit from the first start.
    starts
        Other starts [k].
    chains
        The chains of the first start [1, group, ...].
    settings
        Of the fit.
    """
    climb_key, *keys = jax.random.split(key, 2 + len(starts))
    room = settings["num_steps"] - found.num_steps
    ends: list[Optimum] = []
    for place, start in enumerate(starts):
        other, length, precision = None, min(SHORT, room), ROUGH
        # A short climb may end on the way: what it led to elsewhere is climbed from as long as the fit was.
        for own in jax.random.split(jax.random.fold_in(climb_key, place)):
            if length < SHORT // 4:
                break
            vectors, at = (start[None], chains) if other is None else (other.vectors, other.chains)
            made = settings | {"precision": precision, "num_steps": length}
            # Far out numbers may overflow: such a climb ends nowhere.
            try:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    other = climb(surface, own, surface.values, vectors, at, **made)
            except np.linalg.LinAlgError:
                other = None
                break
            room -= other.num_steps
            fine = np.all(np.isfinite(other.vectors)) and np.all(np.isfinite(other.solution.covariance))
            if not fine or not all(are_apart(each, other) for each in (found, *ends)):
                other = None
                break
            length, precision = room, settings["precision"]
        if other is not None:
            ends.append(other)
    spent = settings["num_steps"] - room
    found = replace(found, num_steps=spent)
    if not ends:
        return Maxima(found, ())
    heights = [
        estimate_log_likelihood(each, surface, model, release, fit.vectors[0])
        for each, fit in zip(keys, [found, *ends], strict=False)
    ]
    order = np.argsort([-height for height, _ in heights])
    (highest, error), (other_height, other_error) = heights[order[0]], heights[order[1]]
    fits = [found, *ends]
    lower, doubt = highest - other_height, float(np.hypot(error, other_error))
    best = replace(fits[order[0]], num_steps=spent)
    second = fits[order[1]]
    # Where the likelihood is flat, far out, a climb ends without a maximum: its own standard errors are large there.
    is_maximum = np.all(second.settled) and is_apart(second, best) and lower > max(SURE * doubt, LEAST)
    return Maxima(best if lower > SURE * doubt else found, (tell(lower, doubt),) if is_maximum else ())


def is_apart(one: Optimum, other: Optimum) -> bool:
    """Whether two fits end at different points, as far as the first knows its standard errors."""
    difference = other.vectors[0] - one.vectors[0]
    squared = difference @ np.linalg.solve(one.solution.covariance[0], difference)
    return bool(squared > APART**2)


def are_apart(one: Optimum, other: Optimum) -> bool:
    """Whether two fits end at different points, as far as one of them knows its standard errors.

    Those of a climb that drifted to where the likelihood is flat are so large that all maxima seem to be within them.
    """
    return is_apart(one, other) or is_apart(other, one)


def tell(lower: float, doubt: float) -> str:
    """What is said of a maximum elsewhere."""
    return (
        f"Starts disagree: another one led to a maximum whose log-likelihood is lower by {lower:.2g} (Monte Carlo "
        f"error {doubt:.2g}). Compare fits from several `initial`."
    )
