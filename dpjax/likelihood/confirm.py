"""The last step of a fit: by new chains, with standard errors at the estimate, wherever their chains were.

Chains that end once the standard errors look precise have them too small, by chance: they are then made anew. And the
information is that at the point before the last step. How it changes on the way is seen a standard error away from the
estimate, on either side. So it is carried along, and the Monte Carlo error of the estimate enters that of the standard
errors.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from dpjax.base import Key
from dpjax.likelihood.newton import (
    FIRST_LENGTH,
    GROWTH,
    LONG,
    Optimum,
    Solution,
    jackknife,
    louis,
    standard_errors,
    step_at,
)
from dpjax.likelihood.surface import Moments, Surface

__all__ = ["NearbyDerivatives", "carried", "confirm", "look_around"]

SHARE = 4
"""A look away from the estimate takes one in so many sweeps of the last step."""

SURER = 1.25
"""By how much longer the last chains are than those that were precise enough."""


FALL = -0.15
"""The slope of the log-likelihood a standard error away from the estimate, per standard error. It is −1 if the
likelihood is Normal, and nearly 0 towards a boundary."""

CHANCE = 1.5
"""By how much more than asked for the error of the standard errors may be in the end, as it has one itself."""

AGREE = 4.0
"""By how many Monte Carlo errors standard errors of two fits may differ."""


class NearbyDerivatives(NamedTuple):
    """What the likelihood is like a standard error away from an estimate.

    Attributes
    ----------
    steps
        Steps [k, k] of a standard error along independent directions, one a row.
    slopes
        The slope of the log-likelihood [k, 2] at the end of each step and of its opposite, along it.
    turns
        By how much the information [k, k, k] changes for each step.
    """

    steps: np.ndarray
    slopes: np.ndarray
    turns: np.ndarray

    @property
    def at_boundary(self) -> np.ndarray:
        """Along which steps [k] the likelihood hardly falls, so that standard errors mean nothing."""
        return ~np.all(self.slopes < FALL, axis=1)


def look_around(surface: Surface, key: Key, fitted: Optimum, length: int) -> NearbyDerivatives:
    """Chains of this length at both ends of each step."""
    steps = fitted.solution.steps[0]

    def look(number: int, away: np.ndarray) -> Moments:
        own = jax.random.fold_in(key, number)
        found, _ = surface.evaluate(own, surface.values, fitted.vectors + away, fitted.chains, length)
        return Moments(*(np.mean(leaf[0], axis=0) for leaf in found))

    both = [(step, -step) for step in steps]
    ends = [[look(2 * place + side, away) for side, away in enumerate(pair)] for place, pair in enumerate(both)]
    slopes = [[end.score @ away for end, away in zip(*two, strict=True)] for two in zip(ends, both, strict=True)]
    return NearbyDerivatives(steps, np.array(slopes), np.array([(louis(up) - louis(down)) / 2 for up, down in ends]))


def carried(fitted: Optimum, looks: NearbyDerivatives) -> Optimum:
    """The fit with the information at its estimates, and at those of its replicates."""
    vectors, replicates = fitted.replicates
    return replace(fitted, solution=moved(fitted.solution, looks), replicates=(vectors, moved(replicates, looks)))


def moved(solution: Solution, looks: NearbyDerivatives) -> Solution:
    """A step [..., k] with the information where it ends, if that is positive definite and no boundary is near."""
    # No further than what has been seen.
    along = np.clip(np.linalg.solve(looks.steps.T, solution.change[..., None])[..., 0], -1.0, 1.0)
    information = np.linalg.inv(solution.covariance) + np.tensordot(along * ~looks.at_boundary, looks.turns, axes=1)
    fine = np.linalg.eigvalsh(information)[..., 0] > 0
    safe = np.where(fine[..., None, None], information, np.linalg.inv(solution.covariance))
    return solution._replace(covariance=np.linalg.inv(safe))


def confirm(
    surface: Surface, key: Key, fitted: Optimum, looks: NearbyDerivatives, length: int, room: int, precision: float
) -> tuple[Optimum, int]:
    """The fit by new chains from its estimate, and how many sweeps they made.

    Parameters
    ----------
    length
        The sweeps of the last step.
    room
        How many sweeps each chain may still make.
    precision
        The largest Monte Carlo error of the standard errors, relative.
    """
    ends = carried(fitted, looks)
    length = min(int(SURER * length * np.clip(worst_error(ends) / precision, 1.0, GROWTH**0.5) ** 2), room)
    if not np.all(fitted.settled) or surface.is_exact or length < FIRST_LENGTH // 2:
        return ends, 0
    found, chains = surface.evaluate(key, surface.values, fitted.vectors, fitted.chains, length)
    solution, replicates, quality = step_at(found, fitted.vectors)
    made = Optimum(
        vectors=fitted.vectors + solution.change,
        solution=solution,
        replicates=(fitted.vectors[None] + replicates.change, replicates),
        errors=quality.noise,
        settled=fitted.settled,
        chains=chains,
        num_steps=fitted.num_steps + length,
        num_nonfinite=fitted.num_nonfinite + int(np.sum(found.num_nonfinite)),
    )
    made = carried(made, looks)
    # At a boundary standard errors mean nothing, however imprecise they are.
    fine = length >= LONG or worst_error(made) <= CHANCE * precision or np.any(looks.at_boundary)
    there = quality.moved <= 3 * np.maximum(quality.noise, precision)
    return replace(made, settled=made.settled & there & fine & agree(ends, made, precision)), length


def errors_of(fitted: Optimum) -> tuple[np.ndarray, np.ndarray]:
    """The standard errors [release, k], and their Monte Carlo errors."""
    replicates = standard_errors(fitted.replicates[1].covariance)
    return standard_errors(fitted.solution.covariance), jackknife(replicates)


def worst_error(fitted: Optimum) -> float:
    """The largest Monte Carlo error of a standard error, relative to it."""
    errors, doubt = errors_of(fitted)
    return float(np.max(doubt / errors))


def agree(before: Optimum, after: Optimum, precision: float) -> bool:
    """Whether two fits have the same standard errors: where they change on the way, the climb has not ended."""
    (old, old_doubt), (new, new_doubt) = errors_of(before), errors_of(after)
    return bool(np.all(np.abs(new - old) <= AGREE * np.hypot(old_doubt, new_doubt) + precision * new))
