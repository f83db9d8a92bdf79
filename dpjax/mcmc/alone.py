"""A run of `dpjax.sample` in which the records are summed out and the parameters move alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.host import once_on_cpu
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Parameters
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.parameters.kernels import SteppedKernel
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.summed_out import sum_out
from dpjax.data_augmentation.summed_out.likelihood import LEFT_OUT, MOST_LEFT_OUT, error_of_thinning, in_words
from dpjax.mcmc.climb import Ascent, fit_to, rescale_by, settle
from dpjax.mcmc.run import MIN_WINDOW, Kernel, PosteriorRun, advance_chains, next_step, tune_to_draws
from dpjax.mcmc.step import search_from
from dpjax.models.programs import jit_model
from dpjax.models.recentred import Recentred
from dpjax.models.simulation import GibbsState
from dpjax.runtime.chunk import CHAIN_AXES, Segment
from dpjax.runtime.devices import gather_to_host, over_devices
from dpjax.runtime.progress import Progress, announce
from dpjax.runtime.run import Run, Status, run_to_end

__all__ = ["AloneRun", "SearchingRun", "make_run_alone", "warn_of_left_out", "worst_draws"]

MOST_ATTEMPTS = 2
"""Most runs that are made again with wider windows."""

NUM_DRAWS = 64
"""Draws to which windows are fitted anew."""

GROWING = (1, 1, 2, 4, 8)
"""Lengths of the warm-up windows, in twentieths of the warm-up; the rest finds the last step size."""

REST = 4

PILOT_SHARE, SHORTEST_PILOT = 10, 50
"""A pilot run has one over this as its share of the warm-up, and as many draws, and at least so many.

At the mode of standardised effects their spread can be far from what it is in the posterior. The curvature there took
effects of 500 units of mean two to be known, and chains diverged near a spread of zero.
"""

run_alone = jit_model(
    over_devices(by_chain=Run.SHARED, made=CHAIN_AXES)(advance_chains),
    static_argnames=("plan", "collect", "capacity", "mesh"),
    ahead=True,
    optimized=True,
)
"""The program of `advance_chains` with all optimisation: for large sums it takes half the time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchingRun(PosteriorRun):
    """A run of parameters alone: each chain searches for its step size while it moves, in the warm-up.

    Parameters
    ----------
    ascent
        Where the climbs to the modes have led to; None before.
    attempt
        How often the run was made again.
    """

    ascent: Ascent | None = None
    attempt: int = 0

    def states_at(self, parameters: Parameters) -> GibbsState:
        """The states of all chains at parameters."""
        raise NotImplementedError

    def with_better_sums(self, draws: Any) -> Self | None:
        """The run with sums fitted to the draws of one; None if those that it has are good enough."""
        raise NotImplementedError

    def at_known_starts(self) -> Status:
        """The status before the first step, with chains where they have climbed to."""
        assert self.ascent is not None
        return self.open(self.states_at(self.ascent.starts), self.ascent.tuning, None)

    def widened(self, status: Status) -> Self | None:
        """The run with windows fitted to the draws of one that left out too much, from where its chains are."""
        if not self.is_done(status) or self.attempt == MOST_ATTEMPTS or LEFT_OUT not in status.draws.info:
            return None
        better = self.with_better_sums(status.draws)
        if better is None or self.ascent is None:
            return None
        starts = gather_to_host(self.mesh, status.chains.state).parameters
        ascent = self.ascent._replace(starts=starts, tuning=status.kernel.tuning)
        return replace(better, ascent=ascent, attempt=self.attempt + 1)

    def before_draws(self, segment: int, kernel: Kernel, state: GibbsState) -> Status:
        """The status at the start of a segment, without room for draws, with a new search in the warm-up."""
        status = super().before_draws(segment, kernel, state)
        if kernel.tuning is None or not isinstance(self.problem.plan.parameter_kernel, SteppedKernel):
            return status
        given: Any = kernel.tuning.step_size
        sizes = np.ones(given.shape, given.dtype) if isinstance(given, jax.ShapeDtypeStruct) else np.asarray(given)
        num_chains, is_on = self.keys.chains.shape[-1], self.schedule[segment].phase == "warm-up"
        searches = [search_from(size, num_chains, is_on) for size in sizes.reshape(-1)]
        search = jax.tree.map(lambda *leaves: np.stack(leaves).reshape(*sizes.shape, num_chains), *searches)
        return status._replace(chains=status.chains._replace(search=search))

    def adapt_step(self, segment: int, tuning: Tuning | None, state: GibbsState) -> Tuning | None:
        """The tuning as it is: the step size was found by the chains."""
        return tuning

    def adapt_kernel(self, status: Status) -> Kernel:
        """The kernel of the next segment, with the step size, of each release, that chains have found in the mean."""
        search, tuning = status.chains.search, status.kernel.tuning
        if search is not None:
            found = np.mean(np.asarray(gather_to_host(self.mesh, search).averaging.log_step_size_avg), axis=-1)
            tuning = tuning._replace(step_size=jnp.asarray(np.exp(found), tuning.step_size.dtype))
        return super().adapt_kernel(status._replace(kernel=status.kernel._replace(tuning=tuning)))


@dataclass(frozen=True, eq=False, kw_only=True)
class AloneRun(SearchingRun):
    """A run of `dpjax.sample` of parameters alone."""

    def fit_tuning(self, draws: Parameters, before: Tuning | None) -> Tuning:
        """The tuning fitted to the draws of a segment, from that by the curvature on."""
        fitted: Tuning = tune_to_draws.unoptimized(self.problem.model, draws, before)
        return fitted

    def states_at(self, parameters: Parameters) -> GibbsState:
        """See `SearchingRun`."""
        # Records, if any are drawn, are drawn for the states that are kept.
        nothing = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self.state_shapes.latent)
        return GibbsState(parameters, nothing)

    def with_better_sums(self, draws: Any) -> "AloneRun | None":
        """See `SearchingRun`."""
        problem = better_sums(self.problem, worst_draws(draws), bool(np.max(draws.info[LEFT_OUT]) > MOST_LEFT_OUT))
        return None if problem is None else replace(self, problem=problem)


@dataclass(frozen=True, eq=False, kw_only=True)
class LargeAloneRun(AloneRun):
    """A run of parameters alone whose gradients take nearly all of its time."""

    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_alone)


def worst_draws(draws: Any) -> Parameters:
    """Draws [draw, ...] of one release at which sums left out most, and some others."""
    left_out = draws.info[LEFT_OUT]
    worst = np.argsort(left_out, axis=None)[::-1]
    places = np.unravel_index(worst[:: max(len(worst) // NUM_DRAWS, 1)], left_out.shape)
    return {name: jnp.asarray(leaf[places]) for name, leaf in draws.parameters.items()}


def better_sums(problem: Problem, draws: Parameters, too_narrow: bool) -> Problem | None:
    """The problem with better sums at draws [draw, ...]; None if those that it has are good enough."""
    if too_narrow:
        return fit_to(problem, draws)
    present = problem.swept_release
    if not present.is_shortened:
        return None
    whole = present.whole if present.is_tabulated else sum_out(problem.given_model, problem.given_release, draws)
    good = error_of_thinning(present, whole, draws) <= max(MOST_LEFT_OUT, whole.rounding)
    return None if good else replace(problem, likelihood=whole)


def warn_of_left_out(info: dict[str, np.ndarray]) -> None:
    """Warn if windows of whole numbers left out more of the likelihood than they may."""
    largest = float(np.max(info.get(LEFT_OUT, np.zeros(1)), initial=0.0))
    if largest > MOST_LEFT_OUT:
        remedy = "Look at info['left_out'], or impute the records: imputation=dpjax.imwg()."
        warn_at_the_call(f"{in_words(largest)} at some draws. {remedy}")


def make_run_alone(
    problem: Problem, num_warmup: int, num_samples: int, thin: int, initial: Any, **given: Any
) -> AloneRun:
    """The run of a problem whose records are summed out, with chains at modes, or at `initial` [chain, ...]."""
    announce("climbing to the modes")
    keys = given["keys"]
    key, num_chains = keys.starts[0], len(keys.chains)
    found = problem.swept_release.find_starts(key, problem.model, num_chains)
    if found is not None:
        starts = found.parameters | (initial or {})
        settled, ascent = problem, Ascent(starts, found.log_density, found.tuning, starts)
    else:
        settled, ascent = settle(problem, key, initial, num_chains, in_turn=once_on_cpu())
    length = max(num_warmup // PILOT_SHARE, SHORTEST_PILOT)
    has_pilot = isinstance(settled.model, Recentred) and num_warmup >= 2 * length
    # A rough table is good enough for a pilot run, after which the sums are fitted anew.
    if not (has_pilot and settled.swept_release.is_shortened):
        settled = fit_to(settled, ascent.near)

    def make(schedule: tuple[Segment, ...], **given: Any) -> AloneRun:
        kind = LargeAloneRun if settled.swept_release.is_large else AloneRun
        return kind(problem=settled, ascent=ascent, schedule=schedule, **given)

    if has_pilot:
        announce("measuring the scales of effects")
        chains = jax.random.split(keys.tuning, num_chains)
        pilot = make(make_growing_schedule(length, length, 1), **given | {"keys": keys._replace(chains=chains)})
        settled, ascent = rescaled(pilot)
    return make(make_growing_schedule(num_warmup, num_samples, thin), **given)


def rescaled(pilot: AloneRun) -> tuple[Problem, Ascent]:
    """The problem with group effects on scales that a pilot run finds, and starts where its chains are at the end.

    Large sums are fitted to its draws. Those about the joint mode can be too far apart for a table.
    """
    with Progress(False) as hidden:
        status = run_to_end(pilot, pilot.at_known_starts(), None, hidden)
    if not pilot.is_done(status):
        raise KeyboardInterrupt("sample was interrupted while it measured the scales of effects. Nothing was drawn.")
    model, draws = pilot.problem.model, jax.tree.map(jnp.asarray, status.draws.parameters)
    assert isinstance(model, Recentred), "other models have no such effects"
    assert pilot.ascent is not None, "chains climb before they move"
    problem = replace(pilot.problem, model=rescale_by(model, draws))
    tuning = tune_to_draws.unoptimized(problem.model, draws)._replace(step_size=status.kernel.tuning.step_size)
    starts = gather_to_host(pilot.mesh, status.chains.state).parameters
    if problem.swept_release.whole.is_large:
        merged = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)
        problem = fit_to(problem, jax.tree.map(lambda leaf: leaf[:: max(len(leaf) // NUM_DRAWS, 1)], merged))
    return problem, pilot.ascent._replace(starts=starts, tuning=tuning)


def make_growing_schedule(num_warmup: int, num_samples: int, thin: int) -> tuple[Segment, ...]:
    """The segments of a run whose draws depend on each other little: all draws of a window are fitted to."""
    unit = num_warmup // (sum(GROWING) + REST)
    segments: list[Segment] = []
    for length in GROWING if unit >= MIN_WINDOW else ():
        segments.append(Segment("warm-up", next_step(segments), unit * length, 1, tune=True))
    if rest := num_warmup - next_step(segments):
        segments.append(Segment("warm-up", next_step(segments), rest, 1))
    return (*segments, Segment("sampling", num_warmup, num_samples, thin))
