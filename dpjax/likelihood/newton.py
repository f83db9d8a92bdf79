"""Newton's method on an imputed likelihood: steps by Louis's information, and chains as long as the error asks for.

At each step chains at the present parameters give score and information. Between them the step is that of Newton if it
is at most a few standard errors long. If it would be longer, it is nearer to that of complete data, a step of
expectation and maximisation. The numbers of parameters are small: all of this is on the host, in float64.

Optimisers in libraries compare exact values of the function. Here there are none, and derivatives have Monte Carlo
error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax.base import Array, Key
from dpjax.likelihood.surface import Moments, Surface

__all__ = ["Constraint", "Optimum", "Solution", "climb", "jackknife", "leave_one_out", "solve", "step_at"]

RADIUS = 3.0
"""The longest step that Louis's information alone is trusted for, in standard errors."""

FLOORS = tuple(2.0**-power for power in range(1, 13))
"""Smallest share of the complete-data information that a step takes to be left, from the most cautious."""

LEAST_GAP = 1e-6
"""Smallest share of the complete-data information by which it is inverted."""

FIRST_LENGTH, LONG = 64, 2**14
"""Sweeps of the first step; and how many sweeps make do for the error of the standard errors."""

OVERSHOT, SHARES_BACK = 0.5, (0.05, 0.7)
"""A step went too far if the likelihood falls at its end by this multiple of its rise at the start; the part that is
then made of it."""

WORTH = 4_096
"""The information at an estimate nearby counts as so many sweeps of all chains of a fit."""

GROWTH = 4.0
MAX_STEPS = 200


class Solution(NamedTuple):
    """A Newton step and what it was made of, with any leading axes.

    Attributes
    ----------
    change
        The step [..., k].
    multiplier
        The slope of the constrained maximum in the held quantity [...]; 0 without one.
    covariance
        The inverse [..., k, k] of the information, with its eigenvalues bounded from below.
    shares
        The eigenvalues [..., k] of the information relative to that of complete data, in rising order.
    steps
        Independent steps [..., k, k] of a standard error along their eigenvectors, one a row.
    slope
        The gradient [..., k], less what the held quantity takes of it; 0 at the maximum.
    """

    change: np.ndarray
    multiplier: np.ndarray
    covariance: np.ndarray
    shares: np.ndarray
    steps: np.ndarray
    slope: np.ndarray


class Constraint(NamedTuple):
    """A quantity that a fit holds: its gradient [..., k], zero for none, and how far it still has to go [...]."""

    gradient: np.ndarray
    missing: np.ndarray


class NearbyInformation(NamedTuple):
    """The information [k, k] at an estimate nearby, and its weight beside that of short chains."""

    information: np.ndarray
    weight: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where a climb ended.

    Parameters
    ----------
    vectors
        The estimates [release, k].
    solution
        The last step [release, ...], which the estimates include.
    replicates
        The estimates [group, release, k] and solutions that leave out one group each.
    errors
        The largest Monte Carlo error of an entry, in standard errors [release].
    settled
        Which fits reached the precision asked for [release].
    chains
        Where the chains are.
    num_steps
        How many sweeps each chain has made.
    num_nonfinite
        How many derivatives were not finite.
    """

    vectors: np.ndarray
    solution: Solution
    replicates: tuple[np.ndarray, Solution]
    errors: np.ndarray
    settled: np.ndarray
    chains: Any
    num_steps: int
    num_nonfinite: int


def solve(mean: Moments, held: Constraint, floor: np.ndarray, near: NearbyInformation | None = None) -> Solution:
    """The step A⁻¹ (S − λ a) for the score S and the information A, whose relative eigenvalues are at least `floor`.

    Parameters
    ----------
    mean
        The averages over groups, with any leading axes.
    held
        With gradient a, λ is such that the step makes up for what is missing, to first order.
    floor
        The lower bound [...] of the eigenvalues relative to `Moments.scale`.
    near
        An information that is averaged with that of the moments.
    """
    root = inverse_root(mean.scale)
    information = louis(mean)
    if near is not None:
        information = (1 - near.weight) * information + near.weight * near.information
    shares, basis = np.linalg.eigh(root @ symmetrize(information) @ transpose(root))
    bounded = np.maximum(shares, floor[..., None])
    steps = transpose(transpose(root) @ basis) / np.sqrt(bounded)[..., :, None]
    covariance = transpose(steps) @ steps
    newton, along = apply(covariance, mean.score), apply(covariance, held.gradient)
    squared = np.sum(held.gradient * along, axis=-1)
    is_held = squared > 0
    excess = np.sum(held.gradient * newton, axis=-1) - held.missing
    multiplier = np.where(is_held, excess / np.where(is_held, squared, 1.0), 0.0)
    slope = mean.score - multiplier[..., None] * held.gradient
    return Solution(newton - multiplier[..., None] * along, multiplier, covariance, shares, steps, slope)


def louis(mean: Moments) -> np.ndarray:
    """The information [..., k, k] of averages over groups."""
    return mean.curvature - mean.square + mean.score[..., :, None] * mean.score[..., None, :]


def inverse_root(scale: np.ndarray) -> np.ndarray:
    """A matrix R [..., k, k] with R scale Rᵀ = 1, where small and negative eigenvalues of the scale are raised."""
    diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
    size = np.sqrt(np.maximum(diagonal, 1e-12 * np.max(np.abs(diagonal), axis=-1, keepdims=True) + 1e-300))
    values, basis = np.linalg.eigh(symmetrize(scale) / size[..., :, None] / size[..., None, :])
    return transpose(basis / np.sqrt(np.maximum(values, 1e-8))[..., None, :]) / size[..., None, :]


def symmetrize(matrix: np.ndarray) -> np.ndarray:
    """The symmetric part of matrices."""
    return (matrix + transpose(matrix)) / 2


def transpose(matrix: np.ndarray) -> np.ndarray:
    """Matrices with their last two axes exchanged."""
    return np.swapaxes(matrix, -1, -2)


def apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Matrices [..., k, k] times vectors [..., k]."""
    return (matrix @ vector[..., None])[..., 0]


def standard_errors(covariance: np.ndarray) -> np.ndarray:
    """The roots [..., k] of the diagonal."""
    return np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))


def leave_one_out(moments: Moments) -> Moments:
    """The averages over all groups but one [group, release, ...], of moments [release, group, ...]."""

    def without(leaf: np.ndarray) -> np.ndarray:
        count = leaf.shape[1]
        # A single group is one without Monte Carlo error.
        others = leaf if count == 1 else (np.sum(leaf, axis=1, keepdims=True) - leaf) / (count - 1)
        return np.moveaxis(others, 1, 0)

    return Moments(*map(without, moments))


def jackknife(replicates: np.ndarray) -> np.ndarray:
    """The standard error [...] of a function of averages, by its values [group, ...] without one group each."""
    count = len(replicates)
    if count == 1:
        return np.zeros(replicates.shape[1:])
    return np.sqrt((count - 1) * np.var(replicates, axis=0))


def choose_floor(mean: Moments, held: Constraint, least: np.ndarray, near: NearbyInformation | None) -> np.ndarray:
    """The least bound [release] by which the step is at most `RADIUS` standard errors long; one half if none is."""
    chosen = np.full(least.shape, FLOORS[0])
    for floor in FLOORS:
        bound = np.maximum(floor, least)
        step = solve(mean, held, bound, near)
        length = np.sum(step.change * apply(np.linalg.inv(step.covariance), step.change), axis=-1)
        chosen = np.where(length <= RADIUS**2, bound, chosen)
    return chosen


@dataclass
class ChainLengths:
    """How long the chains of a climb are, which grows with what the error asks for."""

    precision: float
    budget: int
    length: int
    with_errors: bool
    made: int = 0

    def next(self, wanted: float) -> None:
        """Lengthen the chains by the factor that is wanted, within bounds and what is left."""
        self.made += self.length
        longer = int(self.length * np.clip(1.1 * wanted, 1.0, GROWTH)) if wanted > 1 else self.length
        self.length = min(longer, self.budget - self.made)

    @property
    def is_spent(self) -> bool:
        """Whether there is no room for another step."""
        return self.length < FIRST_LENGTH // 2


class Quality(NamedTuple):
    """How good a step is, in standard errors [release]: its Monte Carlo error, its length, and the error of these."""

    noise: np.ndarray
    moved: np.ndarray
    error_of_errors: np.ndarray

    def settled(self, pace: ChainLengths) -> np.ndarray:
        """Which fits are as precise as asked for."""
        there = self.moved <= np.maximum(3 * self.noise, pace.precision)
        return there & (self.noise <= pace.precision) & (self._asked(pace) <= pace.precision)

    def wanted(self, pace: ChainLengths) -> np.ndarray:
        """By which factor the chains of each fit should be longer; 1 while the step is far above its error."""
        worst = np.maximum(self.noise, self._asked(pace)) / pace.precision
        return np.where(self.is_clear, 1.0, np.square(worst))

    @property
    def is_clear(self) -> np.ndarray:
        """Whether the step is far above its error [release]."""
        return self.moved > 4 * self.noise

    def _asked(self, pace: ChainLengths) -> np.ndarray:
        return self.error_of_errors if pace.with_errors and pace.length < LONG else np.zeros_like(self.noise)


def judge(solution: Solution, replicates: Solution) -> Quality:
    """The quality of a step [release, ...] by its replicates [group, release, ...]."""
    errors = standard_errors(solution.covariance)
    relative = jackknife(standard_errors(replicates.covariance)) / errors
    noise = jackknife(replicates.change) / errors
    return Quality(*(np.max(part, axis=-1) for part in (noise, np.abs(solution.change) / errors, relative)))


def climb(
    surface: Surface,
    key: Key,
    values: Array,
    vectors: np.ndarray,
    chains: Any,
    *,
    precision: float,
    num_steps: int,
    with_errors: bool = False,
    hold: Callable[[np.ndarray], Constraint] | None = None,
    nearby: np.ndarray | None = None,
    report: Callable[[int], None] = lambda made: None,
) -> Optimum:
    """Newton steps until the Monte Carlo error of all estimates is small, or the sweeps are used up.

    Parameters
    ----------
    values
        What was released [release, ...].
    vectors
        The starts of the fits [release, k].
    chains
        The chains of each [release, group, ...].
    precision
        The largest Monte Carlo error, in standard errors.
    num_steps
        How many sweeps each chain makes at most.
    with_errors
        Whether the standard errors are to have this precision, too, relative to their size.
    hold
        ``vectors -> held``, where each fit holds a quantity.
    nearby
        The information [k, k] at an estimate nearby, which steadies the steps while chains are short.
    report
        Is called with the sweeps made.
    """
    pace = ChainLengths(precision, num_steps, min(FIRST_LENGTH, num_steps), with_errors)
    nothing = Constraint(np.zeros_like(vectors), np.zeros(len(vectors)))
    trail, done, broken = LastStep(vectors, np.zeros_like(vectors), nothing.missing), nothing.missing > 0, 0
    ended: Iterate | None = None
    for number in range(MAX_STEPS):
        found, chains = surface.evaluate(jax.random.fold_in(key, number), values, vectors, chains, pace.length)
        report(pace.length)
        near = None if nearby is None else NearbyInformation(nearby, steadiness(found, pace.length))
        step = Iterate.at(vectors, *take_step(found, nothing if hold is None else hold(vectors), near))
        # What a fit was when it settled stays.
        ended = step if ended is None else ended.updated(step, ~done)
        done |= step.quality.settled(pace)
        broken += int(np.sum(found.num_nonfinite))
        pace.next(float(np.max(np.where(done, 0.0, step.quality.wanted(pace)))))
        if np.all(done) or pace.is_spent:
            break
        trail = trail.next(vectors, step.solution, step.quality.is_clear)
        vectors = np.where(done[:, None], vectors, trail.end())
    assert ended is not None
    replicates = ended.vectors[None] + ended.replicates.change, ended.replicates
    last = ended.vectors + ended.solution.change
    return Optimum(last, ended.solution, replicates, ended.quality.noise, done, chains, pace.made, broken)


class Iterate(NamedTuple):
    """The fits [release, k], their last step with its replicates [group, release, ...], and how good it is."""

    vectors: np.ndarray
    solution: Solution
    replicates: Solution
    quality: Quality

    @classmethod
    def at(cls, vectors: np.ndarray, solution: Solution, replicates: Solution) -> "Iterate":
        """The step from these vectors."""
        return cls(vectors, solution, replicates, judge(solution, replicates))

    def updated(self, other: "Iterate", where: np.ndarray) -> "Iterate":
        """That of another step for some of the fits [release]."""

        def choose(axis: int, new: np.ndarray, old: np.ndarray) -> np.ndarray:
            return np.where(where.reshape(*[1] * axis, -1, *[1] * (new.ndim - axis - 1)), new, old)

        return Iterate(
            choose(0, other.vectors, self.vectors),
            jax.tree.map(partial(choose, 0), other.solution, self.solution),
            jax.tree.map(partial(choose, 1), other.replicates, self.replicates),
            jax.tree.map(partial(choose, 0), other.quality, self.quality),
        )


def steadiness(found: Moments, length: int) -> float:
    """The weight of an information nearby beside that of so many sweeps."""
    return WORTH / (WORTH + length * found.score.shape[1])


def take_step(found: Moments, held: Constraint, near: NearbyInformation | None) -> tuple[Solution, Solution]:
    """The step by all groups [release, ...], and those that leave out one each [group, release, ...]."""
    mean, others = Moments(*(np.mean(leaf, axis=1) for leaf in found)), leave_one_out(found)
    around = Constraint(held.gradient[None], held.missing[None])
    none = np.full(len(mean.score), LEAST_GAP)
    doubt = jackknife(solve(others, around, none[None], near).shares)[:, 0]
    floor = choose_floor(mean, held, np.maximum(doubt, LEAST_GAP), near)
    return solve(mean, held, floor, near), solve(others, around, floor[None], near)


def step_at(found: Moments, vectors: np.ndarray) -> tuple[Solution, Solution, Quality]:
    """The step from vectors [release, k] that hold nothing, its replicates, and how good it is."""
    solution, replicates = take_step(found, Constraint(np.zeros_like(vectors), np.zeros(len(vectors))), None)
    return solution, replicates, judge(solution, replicates)


class LastStep(NamedTuple):
    """The step that led to where the fits are.

    Attributes
    ----------
    origin
        Its beginning [release, k].
    change
        The step [release, k].
    rise
        The slope of the log-likelihood along it, where it began [release].
    """

    origin: np.ndarray
    change: np.ndarray
    rise: np.ndarray

    def next(self, vectors: np.ndarray, solution: Solution, judged: np.ndarray) -> "LastStep":
        """The next step from vectors [release, k]; if the last one went too far, a part of it instead.

        Parameters
        ----------
        judged
            Which fits [release] are precise enough to see whether it did.
        """
        fall = np.sum(self.change * solution.slope, axis=-1)
        back = judged & (self.rise > 0) & (fall < -self.rise * OVERSHOT)
        share = np.clip(self.rise / np.where(back, self.rise - fall, 1.0), *SHARES_BACK)
        onward = LastStep(vectors, solution.change, np.sum(solution.change * solution.slope, axis=-1))
        part = LastStep(self.origin, self.change * share[:, None], self.rise * share)
        wide = back[:, None]
        origin = np.where(wide, part.origin, onward.origin)
        return LastStep(origin, np.where(wide, part.change, onward.change), np.where(back, part.rise, onward.rise))

    def end(self) -> np.ndarray:
        """The end of the step [release, k]."""
        return self.origin + self.change
