"""A run of `dpjax.sample`: its compiled program, its draws, and how the kernel is adapted between segments."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax._util.jit import jit_unoptimized
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters import ParameterKernel, Tuning, fit_step_size, fit_to_prior, fit_tuning
from dpjax.data_augmentation.plan import SweepPlan, needs_tuning
from dpjax.data_augmentation.problem import Problem, tune_plan
from dpjax.data_augmentation.records.unknown_number import check_room
from dpjax.data_augmentation.refresh import Rates, RefreshTuning, prior_alone
from dpjax.data_augmentation.sweep import build_sweep
from dpjax.mcmc.draws import Draw, average
from dpjax.mcmc.rates import CostsOfOneCore, adapt_refresh, rates_to_try
from dpjax.mcmc.step import Chains, build_step
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.release import PrivateRelease
from dpjax.runtime.checkpoint import Arrays, fill, read_place
from dpjax.runtime.chunk import CHAIN_AXES, Chunk, Segment, Steps, make_draws, most_draws, num_bytes
from dpjax.runtime.devices import gather_to_host, over_devices, platform_of
from dpjax.runtime.fingerprint import plain_values, restore
from dpjax.runtime.run import Run, Status

CHECKED = 3
"""The segment of the warm-up after which a surrogate that is too often wrong is given up."""

ENOUGH_ACCEPTED = 0.5
"""An exact move costs about as much as ten by surrogate, of which fewer than half then bring less."""

WINDOWS = (1, 1, 1, 1, 2, 2, 2, 2, 4)
"""Lengths of the warm-up windows, in sixteenths of the warm-up. Each gives as many draws: longer ones are thinned."""

MIN_WINDOW = 4
"""Draws of each chain that a window needs before anything is fitted to them."""

Collect = Callable[[GibbsState], Any]

MANY_BYTES = 2**22
"""Chains whose latent records take more are advanced one after another.

A sweep makes arrays some times as large, and side by side those of all chains would be held at once.
"""


class RunKeys(NamedTuple):
    """The parts of the one key of a run; `chains` has one key for each chain [chain]."""

    starts: tuple[Key, Key]
    tuning: Key
    plan: Key
    chains: Key
    step_size: Key
    rates: Key


@partial(jit_unoptimized, static_argnames=("num_chains",))
def split_key(key: Key, num_chains: int) -> RunKeys:
    """The keys of a run; chain i has ``fold_in(key, i)`` of one of them."""
    search, climb, tuning, plan, chains, step_size, rates = jax.random.split(key, 7)
    by_chain = jax.vmap(partial(jax.random.fold_in, chains))(jnp.arange(num_chains))
    return RunKeys((search, climb), tuning, plan, by_chain, step_size, rates)


class Kernel(NamedTuple):
    """The kernel as adapted so far: its plan, its tuning, and that of the refreshes; None for what it does not use."""

    plan: SweepPlan
    tuning: Tuning | None
    refresh: RefreshTuning | None = None


def advance_chains(
    model: Model,
    plan: SweepPlan,
    collect: Collect | None,
    capacity: int,
    mesh: Mesh | None,
    *,
    release: PrivateRelease,
    tuning: Tuning | None,
    refresh: RefreshTuning | None = None,
    chain_keys: Key,
    chains: Chains,
    steps: Steps,
) -> Chunk:
    """Advance all chains by the steps of the posterior's kernel and keep every ``thin``-th.

    See `make_draws`, whose states are here `Chains` and whose draws are `Draw`.

    Parameters
    ----------
    mesh
        The devices that share the chains, for `over_devices`; nothing here depends on it.
    """
    sweep = build_sweep(model, release, plan)

    def complete(key: Key, chain: Chains, total: dict[str, Array]) -> tuple[Chains, dict[str, Array]]:
        state, num_nonfinite = sweep.complete(key, chain.state)
        counts = {} if chain.accepted is None else {"num_nonfinite": total["num_nonfinite"] + num_nonfinite}
        return chain._replace(state=state), total | counts

    def keep(chain: Chains, total: dict[str, Array]) -> Draw:
        derived, reported = model.derived(chain.state.parameters), model.reported(chain.state.latent.records)
        collected = None if collect is None else collect(chain.state)
        info = average(total, steps.thin)
        info |= sweep.report(chain.state) if info else {}
        return Draw(chain.state.parameters, derived, reported, info, collected)

    target = getattr(plan.parameter_kernel, "target_acceptance", 0.0)
    return make_draws(
        build_step(model, sweep, tuning, refresh, target),
        keep,
        chain_keys=chain_keys,
        states=chains,
        steps=steps,
        capacity=capacity,
        complete=complete,
        in_turn=goes_in_turn(chains, plan, mesh),
        numbered=refresh is not None,
    )


def goes_in_turn(chains: Chains, plan: SweepPlan, mesh: Mesh | None) -> bool:
    """Whether chains are advanced one after another: with many records, or trajectories of unequal length."""
    if plan.sums_out:
        return platform_of(mesh) == "cpu"
    num_chains = jax.tree.leaves(chains.state)[0].shape[0]
    return num_bytes(chains.state.latent.records) > MANY_BYTES * num_chains


run_chunk = jit_model(
    over_devices(by_chain=Run.SHARED, made=CHAIN_AXES)(advance_chains),
    static_argnames=("plan", "collect", "capacity", "mesh"),
    ahead=True,
)
"""The compiled program of `advance_chains`."""


@jit_model
def tune_to_prior(model: Model, key: Key) -> Tuning:
    """The tuning fitted to draws from the prior."""
    return fit_to_prior(key, model)


@jit_model
def tune_to_draws(model: Model, parameters: Parameters, before: Tuning | None = None) -> Tuning:
    """The tuning fitted to draws [chain, draw, ...] of all chains together; see `fit_tuning`."""

    def merge(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])

    return fit_tuning(model, jax.tree.map(merge, parameters), before)


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorRun(Run):
    """A run of `dpjax.sample`.

    Parameters
    ----------
    problem
        With the plan as the user wants it; what is tuned is in the status.
    reports
        Whether acceptance rates and other reports are kept; without them the program is smaller.
    """

    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_chunk)
    TUNE_TO_PRIOR: ClassVar[Any] = staticmethod(tune_to_prior)
    TUNE_TO_DRAWS: ClassVar[Any] = staticmethod(tune_to_draws)

    problem: Problem
    collect: Any
    keys: RunKeys
    reports: bool = True

    @cached_property
    def state_shapes(self) -> GibbsState:
        """The shapes [chain, ...] and types of the chains' states."""
        return self.problem.state_shapes(self.keys.chains.shape)

    @cached_property
    def first_plan(self) -> SweepPlan | None:
        """The plan of the first segment; None where the starts decide it."""
        plan = self.problem.plan
        if needs_tuning(plan.imputation) and plan.own_latent_data is None:
            return None
        return replace(plan, imputation=self.problem.imputation_with_defaults)

    @cached_property
    def most_draws(self) -> int:
        """How many draws a chunk can hold."""
        return choose_capacity(self.problem.model, self.collect, self.state_shapes)

    def capacity(self, status: Status) -> int:
        """How many draws a chunk can hold, whatever the kernel."""
        return self.most_draws

    def static(self, status: Status) -> tuple[Any, ...]:
        """Model, plan, what is collected, capacity and devices."""
        return self.problem.model, status.kernel.plan, self.collect, self.most_draws, self.mesh

    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """The release, the tuning, keys and chains, and the steps of the chunk."""
        return {
            "release": self.problem.swept_release,
            "tuning": status.kernel.tuning,
            "refresh": status.kernel.refresh,
            "chain_keys": self.keys.chains,
            "chains": status.chains,
            "steps": self.steps(status, length),
        }

    def at_known_starts(self) -> Status | None:
        """The status before the first step, if it is known where chains start; None if starts are looked for."""
        return None

    def widened(self, status: Status) -> "PosteriorRun | None":
        """The run that is to be made in its place, if its draws show that it left something out."""
        del status
        return None

    def open(self, state: GibbsState, tuning: Tuning | None, refresh: RefreshTuning | None) -> Status:
        """The status before the first step, with chains at the given starts, to which the step size is fitted."""
        tuning = self.adapt_step(0, tuning, state)
        plan = self.first_plan or tune_plan(self.problem, state, self.keys.plan)
        return self.open_segment(0, Kernel(plan, tuning, refresh), state)

    def open_segment(self, segment: int, kernel: Kernel, state: GibbsState) -> Status:
        """The status at the start of a segment, with room for its draws; tuning and state may be shapes."""
        status = self.before_draws(segment, kernel, state)
        return status._replace(draws=self.allocate(status, self.schedule[segment].draws))

    def before_draws(self, segment: int, kernel: Kernel, state: GibbsState) -> Status:
        """The status at the start of a segment, without room for draws; tuning and state may be shapes."""
        shape = self.keys.chains.shape
        accepted = np.zeros((*shape, self.problem.num_imputed), np.int32) if self.reports else None
        return Status(segment, 0, kernel, Chains(state, accepted))

    def first_shapes(self) -> Status | None:
        """The status before the first step, with shapes for arrays; None where starts decide what the program is."""
        if self.first_plan is None:
            return None
        return self.before_draws(0, Kernel(self.first_plan, self.tuning_shapes, self.first_refresh), self.state_shapes)

    def close_segment(self, status: Status) -> Status:
        """Adapt the kernel to the segment's draws where the schedule says so, and open the next segment."""
        check_room(self.problem.release, status.draws.reported)
        kernel, state = self.adapt_kernel(status), status.chains.state
        if status.segment == 0:
            # At the starts the plan was a guess; now the chains have come some way.
            plan = tune_plan(self.problem, gather_to_host(self.mesh, state), self.keys.plan)
            kernel = kernel._replace(plan=plan)
        elif status.segment == CHECKED:
            kernel = kernel._replace(plan=check_surrogate(kernel.plan, status.draws.info))
        return self.open_segment(status.segment + 1, kernel, state)

    def adapt_kernel(self, status: Status) -> Kernel:
        """The kernel of the next segment, adapted to the draws of one where the schedule says so."""
        model, n, segment = self.problem.model, self.problem.release.n, self.schedule[status.segment]
        plan, tuning, refresh = status.kernel
        if not segment.tune or (tuning is None and refresh is None):
            return Kernel(plan, tuning, refresh)
        draws = status.draws.parameters
        fitted = self.fit_tuning(draws, tuning)
        if tuning is not None:
            tuning = fitted._replace(step_size=tuning.step_size)
            tuning = self.adapt_step(status.segment + 1, tuning, gather_to_host(self.mesh, status.chains.state))
        if refresh is not None:
            costs, tried = CostsOfOneCore().of(model, plan, n), rates_to_try(plan, n)
            place = place_of(status.segment, tried)
            refresh = adapt_refresh(refresh, fitted, tried, place, draws, status.draws.info, segment.thin, costs)
        return Kernel(plan, tuning, refresh)

    def fit_tuning(self, draws: Parameters, before: Tuning | None) -> Tuning:
        """The tuning fitted to the draws of a segment; `before` is that which it had."""
        del before
        fitted: Tuning = type(self).TUNE_TO_DRAWS.unoptimized(self.problem.model, draws)
        return fitted

    def adapt_step(self, segment: int, tuning: Tuning | None, state: GibbsState) -> Tuning | None:
        """The tuning of a segment, with the step size fitted to where the chains are; None stays None."""
        kernel = self.problem.plan.parameter_kernel
        return tuning if tuning is None or kernel is None else self.fit_step(segment, kernel, tuning, state)

    def fit_step(self, segment: int, kernel: ParameterKernel, tuning: Tuning, state: GibbsState) -> Tuning | None:
        """The tuning with the step size of a parameter kernel fitted to states [chain, ...]."""
        key = jax.random.fold_in(self.keys.step_size, segment)
        return fit_step_size(key, self.problem.model, kernel, tuning, state.parameters, state.latent.records)

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The plan, and the tuning, the chains and the draws."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        tunings = {"tuning": status.kernel.tuning, "refresh": status.kernel.refresh}
        trees = {**tunings, "chains": status.chains, "draws": held}
        return {"plan": plain_values(status.kernel.plan)}, trees

    def restore(self, progress: dict[str, Any], arrays: Arrays) -> Status:
        """The status in a file; whatever does not fit the run is an error."""
        segment, filled = read_place(self.schedule, progress)
        kernel = Kernel(restore(self.problem.plan, progress["plan"]), self.tuning_shapes, self.first_refresh)
        status = self.open_segment(segment, kernel, self.state_shapes)
        made = jax.tree.map(lambda held: held[:, :filled], status.draws)
        for held, saved in zip(jax.tree.leaves(made), jax.tree.leaves(fill("draws", made, arrays)), strict=True):
            held[...] = saved
        expected = {"tuning": kernel.tuning, "refresh": kernel.refresh, "chains": status.chains}
        saved = {name: jax.tree.map(jnp.asarray, fill(name, tree, arrays)) for name, tree in expected.items()}
        kernel = kernel._replace(tuning=saved["tuning"], refresh=saved["refresh"])
        return status._replace(filled=filled, kernel=kernel, chains=saved["chains"])

    def first_tuning(self) -> Tuning | None:
        """The tuning fitted to the prior; None where no step of the sweep uses one."""
        uses_tuning, given = self.problem.plan.uses_tuning, (self.problem.model, self.keys.tuning)
        return type(self).TUNE_TO_PRIOR.unoptimized(*given) if uses_tuning else None

    @cached_property
    def first_refresh(self) -> RefreshTuning | None:
        """The refreshes before any draw is made; None where there are none."""
        plan, model = self.problem.plan, self.problem.model
        return prior_alone(model, rates_to_try(plan, self.problem.release.n)) if plan.refresh else None

    @cached_property
    def tuning_shapes(self) -> Tuning | None:
        """The shapes and types of the tuning."""
        uses_tuning, given = self.problem.plan.uses_tuning, (self.problem.model, self.keys.tuning)
        return type(self).TUNE_TO_PRIOR.eval_shape(*given) if uses_tuning else None


def place_of(segment: int, tried: tuple[Rates, ...]) -> int:
    """Which of the rates to try have their turn in a segment: the last of them in the last segment but one."""
    return segment - (len(WINDOWS) - 1 - len(tried))


def has_check(schedule: tuple[Segment, ...]) -> bool:
    """Whether the warm-up is long enough to look at how good a surrogate is."""
    return len(schedule) > CHECKED + 1


def check_surrogate(plan: SweepPlan, info: dict[str, Array]) -> SweepPlan:
    """The plan without the surrogate if moves by it were mostly refused; info is [chain, draw]."""
    if plan.noise != "moved by surrogate" or np.mean(info["interweaving_is_accepted"]) >= ENOUGH_ACCEPTED:
        return plan
    return replace(plan, noise="moved")


def make_schedule(num_warmup: int, num_samples: int, thin: int, tune: bool = True) -> tuple[Segment, ...]:
    """The segments of a run; they depend on these numbers only.

    A warm-up of fewer than 64 steps is made without adaptation, and so are the last steps of a warm-up that is no
    multiple of 16. Without `tune` the windows stay, and what was fitted before the run is left as it is.
    """
    unit = num_warmup // sum(WINDOWS)
    lengths = WINDOWS if unit >= MIN_WINDOW else ()
    segments: list[Segment] = []
    for length in lengths:
        segments.append(Segment("warm-up", next_step(segments), unit, length, tune=tune))
    rest = num_warmup - next_step(segments)
    if rest:
        segments.append(Segment("warm-up", next_step(segments), rest, 1))
    return (*segments, Segment("sampling", num_warmup, num_samples, thin))


def next_step(segments: list[Segment]) -> int:
    """The number of the step after these segments."""
    return segments[-1].stop if segments else 0


def choose_capacity(model: Model, collect: Collect | None, state: GibbsState) -> int:
    """How many draws of all chains fit the memory for one chunk; `state` is [chain, ...]."""

    def kept(state: GibbsState) -> Any:
        derived, reported = model.derived(state.parameters), model.reported(state.latent.records)
        return state.parameters, derived, reported, None if collect is None else collect(state)

    return most_draws(jax.eval_shape(jax.vmap(kept), state))
