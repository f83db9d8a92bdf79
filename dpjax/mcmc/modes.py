"""Modes of parameters that move alone: which there are, how much each has, and whether the draws have been there.

Chains that start at one mode may never see another, and agree with each other. Draws from the prior can see it: one of
high density, far from where all chains start, is climbed from as well. The weight of a mode is that of the Normal
distribution with its height and curvature (Laplace's approximation).
"""

from math import log
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Model, Parameters
from dpjax.data_augmentation.parameters import Tuning
from dpjax.models.programs import jit_model
from dpjax.models.unconstrained import to_vector

__all__ = ["Ends", "Mode", "distinct_modes", "far_candidates", "warn_of_modes"]

APART = 5.0
"""How many standard deviations lie between two modes at least, and between a mode and a candidate beyond it."""

LEAST_WEIGHT = 1e-3
"""Smallest weight of a mode that is missed, and of the density of a candidate relative to the highest mode."""


MOST_NAMED = 3
"""Most parameters that are named in a warning."""


class Ends(NamedTuple):
    """The ends [climb, ...] of climbs.

    Attributes
    ----------
    parameters
        The parameters there.
    heights
        The log-densities of the unconstrained vectors.
    tuning
        The whitenings by the curvature.
    are_modes
        Whether the density falls in all directions.
    curvatures
        The curvatures along the coordinates of each parameter.
    """

    parameters: Parameters
    heights: Array
    tuning: Tuning
    are_modes: Array
    curvatures: Parameters


class Mode(NamedTuple):
    """A mode and the Normal distribution around it.

    Attributes
    ----------
    location
        The unconstrained vector [k].
    factor
        A factor [k, k] of the covariance.
    weight
        Its share of the posterior probability.
    parameters
        The parameters there.
    """

    location: np.ndarray
    factor: np.ndarray
    weight: float
    parameters: Parameters


def distances(location: Any, factor: Any, vectors: np.ndarray) -> np.ndarray:
    """The lengths [m] of vectors [m, k] whitened by a location and a factor."""
    off = np.asarray(vectors, float) - np.asarray(location, float)[None]
    found: np.ndarray = np.linalg.norm(np.linalg.solve(np.asarray(factor, float), off.T), axis=0)
    return found


def far_candidates(candidates: np.ndarray, heights: np.ndarray, best: float, ends: Any, factors: Any) -> list[int]:
    """Which candidates [m, k] of some log-densities [m] are far from all ends [climb, k] of climbs, the highest first.

    Parameters
    ----------
    best
        The log-density at the highest end.
    factors
        The factors [climb, k, k] of the covariances in which distances from the ends are measured.
    """
    near = np.any([distances(*around, candidates) < APART for around in zip(ends, factors, strict=True)], axis=0)
    heights = np.where(near | ~(heights > best + log(LEAST_WEIGHT)), -np.inf, heights)
    chosen: list[int] = []
    for place in np.argsort(-heights)[: np.sum(np.isfinite(heights))]:
        if all(distances(candidates[place], factors[0], candidates[[other]])[0] > 1 for other in chosen):
            chosen.append(int(place))
    return chosen


def distinct_modes(ends: Ends) -> tuple[Mode, ...]:
    """The different modes among the ends of climbs; none unless the highest end is a mode."""
    ends = jax.tree.map(np.asarray, ends)
    heights = np.where(np.isfinite(ends.heights), ends.heights, -np.inf)
    if not ends.are_modes[np.argmax(heights)]:
        return ()
    locations, factors = np.asarray(ends.tuning.location, float), np.asarray(ends.tuning.factor, float)
    volumes = np.linalg.slogdet(factors)[1]
    logs = np.where(ends.are_modes, heights + volumes, -np.inf)
    kept: list[int] = []
    for place in np.argsort(-logs)[: np.sum(np.isfinite(logs))]:
        if all(distances(locations[one], factors[one], locations[[place]])[0] > APART for one in kept):
            kept.append(int(place))
    weights = np.exp(logs[kept] - np.max(logs))
    return tuple(
        Mode(
            locations[place],
            factors[place],
            float(weight),
            jax.tree.map(lambda leaf, place=place: leaf[place], ends.parameters),
        )
        for place, weight in zip(kept, weights / np.sum(weights), strict=True)
    )


def warn_of_modes(model: Model, modes: tuple[Mode, ...], draws: Parameters) -> None:
    """Warn if no draw [chain, draw, ...] has been at a mode that has some weight."""
    if len(modes) < 2:
        return
    vectors = np.asarray(unconstrained.unoptimized(model, jax.tree.map(jnp.asarray, draws)))
    reach = 2.0 + np.sqrt(vectors.shape[1])
    for mode in modes:
        if mode.weight > LEAST_WEIGHT and np.min(distances(mode.location, mode.factor, vectors)) > reach:
            warn_at_the_call(in_words(mode))


def in_words(mode: Mode) -> str:
    """What is said of a mode that was missed."""
    numbers = [f"{name} = {float(leaf):.3g}" for name, leaf in mode.parameters.items() if np.ndim(leaf) == 0]
    place = f"near {', '.join(numbers[:MOST_NAMED])}, a mode" if numbers else "at a mode"
    return (
        f"No draw has been {place} with about {mode.weight:.2g} of the posterior probability. Use dpjax.sample_smc, "
        "which moves between modes."
    )


@jit_model
def unconstrained(model: Model, draws: Parameters) -> Array:
    """The unconstrained vectors [m, k] of draws [chain, draw, ...]."""
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)
    return jax.vmap(lambda draw: to_vector(model, draw)[0])(flat)
