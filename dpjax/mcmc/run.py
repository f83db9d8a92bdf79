"""A run of `dpjax.sample`: its compiled program, its draws, and how the kernel is adapted between segments."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax._util.jit import jit_quickly
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters import Tuning, fit_step_size, fit_to_prior, fit_tuning
from dpjax.data_augmentation.plan import SweepPlan, adapt_plan, is_open
from dpjax.data_augmentation.records.unknown_number import check_room
from dpjax.data_augmentation.sweep import GibbsInfo, build_sweep
from dpjax.diagnostics.streaming import StreamingSummary, empty_summary
from dpjax.models.recipe import jit_model
from dpjax.models.simulation import GibbsState, draw_state
from dpjax.posterior.streaming import StreamingDraws
from dpjax.release import PrivateRelease
from dpjax.runtime.checkpoint import Arrays, fill, read_place
from dpjax.runtime.chunk import CHAIN_AXES, Chunk, make_draws, most_draws, num_bytes
from dpjax.runtime.devices import bring_home, over_devices, to_host
from dpjax.runtime.fingerprint import plain_values, restore
from dpjax.runtime.run import Run, Segment, Status

CHECKED = 3
"""The segment of the warm-up after which a surrogate that is too often wrong is given up."""

ENOUGH_ACCEPTED = 0.5
"""An exact move costs about as much as ten by surrogate, of which fewer than half then bring less."""

WINDOWS = (1, 1, 1, 1, 2, 2, 4, 4)
"""Lengths of the warm-up windows, in sixteenths of the warm-up. Each gives as many draws: longer ones are thinned."""

MIN_WINDOW = 4
"""Draws of each chain that a window needs before anything is fitted to them."""

Collect = Callable[[GibbsState], Any]

MANY_BYTES = 2**22
"""Chains whose latent records take more are advanced one after another: a sweep makes arrays some times as large, and
side by side those of all chains would be held at once."""

__all__ = ["drawn_of", "num_numbers", "numbers_of", "read_streaming", "reports_of"]


class RunKeys(NamedTuple):
    """The parts of the one key of a run; `chains` has one key for each chain [chain]."""

    starts: tuple[Key, Key]
    tuning: Key
    plan: Key
    chains: Key
    step_size: Key


@partial(jit_quickly, static_argnames=("num_chains",))
def split_key(key: Key, num_chains: int) -> RunKeys:
    """The keys of a run; chain i has ``fold_in(key, i)`` of one of them."""
    search, climb, tuning, plan, chains, step_size = jax.random.split(key, 6)
    by_chain = jax.vmap(partial(jax.random.fold_in, chains))(jnp.arange(num_chains))
    return RunKeys((search, climb), tuning, plan, by_chain, step_size)


class Kernel(NamedTuple):
    """The kernel as adapted so far: its plan, and its tuning, which is None where no step of it uses one."""

    plan: SweepPlan
    tuning: Tuning | None


class Chains(NamedTuple):
    """What the chains carry from step to step.

    Attributes
    ----------
    state
        The states, leading axis [chain].
    accepted
        How many proposals each record has accepted since sampling began, int32 [chain, n]; None where no rates are
        kept.
    """

    state: GibbsState
    accepted: Array | np.ndarray | None


def advance_chains(
    model: Model,
    plan: SweepPlan,
    collect: Collect | None,
    capacity: int,
    mesh: Mesh | None,
    *,
    release: PrivateRelease,
    tuning: Tuning | None,
    chain_keys: Key,
    chains: Chains,
    start: Array,
    length: Array,
    thin: Array,
) -> Chunk:
    """Advance all chains by ``length * thin`` steps of the posterior's kernel and keep every ``thin``-th.

    See `make_draws`, whose states are here `Chains` and whose draws are `Draw`.

    Parameters
    ----------
    mesh
        The devices that share the chains, for `over_devices`; nothing here depends on it.
    """
    sweep = build_sweep(model, release, plan)

    def step(key: Key, chain: Chains) -> tuple[Chains, dict[str, Array]]:
        state, info = sweep.move(key, chain.state, tuning)
        if chain.accepted is None:
            return Chains(state, None), {}
        accepted = chain.accepted + info.imputation.accepted.astype(chain.accepted.dtype)
        return Chains(state, accepted), report(info)

    def complete(key: Key, chain: Chains, total: dict[str, Array]) -> tuple[Chains, dict[str, Array]]:
        state, num_nonfinite = sweep.complete(key, chain.state)
        counts = {} if chain.accepted is None else {"num_nonfinite": total["num_nonfinite"] + num_nonfinite}
        return chain._replace(state=state), total | counts

    def keep(chain: Chains, total: dict[str, Array]) -> Draw:
        info = {name: leaf / thin.astype(leaf.dtype) if is_rate(leaf) else leaf for name, leaf in total.items()}
        derived = {} if model.derived is None else model.derived(chain.state.parameters)
        reported = {} if model.reported is None else model.reported(chain.state.latent.records)
        collected = None if collect is None else collect(chain.state)
        return Draw(chain.state.parameters, derived, reported, info, collected)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=chains,
        start=start,
        length=length,
        thin=thin,
        capacity=capacity,
        complete=complete,
        in_turn=num_bytes(chains.state.latent.records) > MANY_BYTES * chain_keys.shape[0],
    )


run_chunk = jit_model(
    over_devices(
        by_chain=("chain_keys", "chains"),
        arrays=("release", "tuning", "start", "length", "thin"),
        made=CHAIN_AXES,
    )(advance_chains),
    static_argnames=("plan", "collect", "capacity", "mesh"),
    ahead=True,
)
"""The compiled program of `advance_chains`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorRun(Run):
    """A run of `dpjax.sample`.

    Parameters
    ----------
    plan
        As the user wants it; what is tuned is in the status.
    summarized
        Whether the draws are not kept, but entered into a streaming summary.
    """

    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_chunk)

    model: Model
    release: PrivateRelease
    plan: SweepPlan
    collect: Collect | None
    keys: RunKeys
    summarized: bool = False

    @cached_property
    def state_shapes(self) -> GibbsState:
        """The shapes [chain, ...] and types of the chains' states."""
        start = partial(draw_state, model=self.model, release=self.release)
        return jax.eval_shape(jax.vmap(start), self.keys.chains)

    @cached_property
    def most_draws(self) -> int:
        """How many draws a chunk can hold."""
        return choose_capacity(self.model, self.collect, self.state_shapes)

    def capacity(self, status: Status) -> int:
        """How many draws a chunk can hold, whatever the kernel."""
        return self.most_draws

    def static(self, status: Status) -> tuple[Any, ...]:
        """Model, plan, what is collected, capacity and devices."""
        return self.model, status.kernel.plan, self.collect, self.most_draws, self.mesh

    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """The release, the tuning, keys and chains, and the numbers of the chunk."""
        return {
            "release": self.release,
            "tuning": status.kernel.tuning,
            "chain_keys": self.keys.chains,
            "chains": status.chains,
            **self.numbers(status, length),
        }

    def open(self, state: GibbsState, tuning: Tuning | None) -> Status:
        """The status before the first step, with chains at the given starts, to which the step size is fitted."""
        tuning = adapt_step_size(self, 0, tuning, state)
        plan = adapt_plan(self.model, self.release, self.plan, state, self.keys.plan)
        return self.open_segment(0, Kernel(plan, tuning), state)

    def open_segment(self, segment: int, kernel: Kernel, state: GibbsState) -> Status:
        """The status at the start of a segment, with room for its draws; tuning and state may be shapes."""
        status = self.before_draws(segment, kernel, state)
        if not (self.summarized and self.is_last(status)):
            return status._replace(draws=self.allocate(status, self.schedule[segment].draws))
        draws = self.allocate(status, 0)
        return status._replace(draws=draws, streaming=empty_summary(len(self.keys.chains), num_numbers(draws)))

    def before_draws(self, segment: int, kernel: Kernel, state: GibbsState) -> Status:
        """The status at the start of a segment, without room for draws; tuning and state may be shapes."""
        accepted = np.zeros((len(self.keys.chains), self.release.n), np.int32)
        return Status(segment, 0, kernel, Chains(state, accepted))

    def lower_first(self, tuning: Tuning | None) -> Any:
        """The program of the first chunk, not compiled yet, from the shapes of the tuning.

        None where starts decide what the program is, or several devices.
        """
        if is_open(self.plan.imputation):
            return None
        return self.lower(self.before_draws(0, Kernel(self.plan, tuning), self.state_shapes))

    def store(self, status: Status, chunk: Chunk, length: int) -> tuple[Status, int]:
        """The status after a chunk, whose draws are kept or entered into the streaming summary."""
        if status.streaming is None:
            return super().store(status, chunk, length)
        streaming = status.streaming.add(numbers_of(chunk.draws, length))
        return status._replace(chains=chunk.states, filled=status.filled + length, streaming=streaming), length

    def close_segment(self, status: Status) -> Status:
        """Adapt the kernel to the segment's draws where the schedule says so, and open the next segment."""
        (plan, tuning), state = status.kernel, bring_home(self.mesh, status.chains.state)
        check_room(self.release, status.draws.reported)
        if self.schedule[status.segment].adapt and tuning is not None:
            tuning = adapt.quickly(self.model, status.draws.parameters)._replace(step_size=tuning.step_size)
            tuning = adapt_step_size(self, status.segment + 1, tuning, state)
        if status.segment == 0:
            # At the starts the plan was a guess; now the chains have come some way.
            plan = adapt_plan(self.model, self.release, self.plan, state, self.keys.plan)
        elif status.segment == CHECKED:
            plan = check_surrogate(plan, status.draws.info)
        return self.open_segment(status.segment + 1, Kernel(plan, tuning), status.chains.state)

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The plan, and the tuning, the chains and the draws."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        digest = jax.tree.map(np.asarray, status.streaming)
        trees = {"tuning": status.kernel.tuning, "chains": status.chains, "draws": held, "digest": digest}
        return {"plan": plain_values(status.kernel.plan)}, trees

    def restore(self, progress: dict[str, Any], arrays: Arrays) -> Status:
        """The status in a file; whatever does not fit the run is an error."""
        segment, filled = read_place(self.schedule, progress)
        kernel = Kernel(restore(self.plan, progress["plan"]), self.tuning_shapes)
        status = self.open_segment(segment, kernel, self.state_shapes)
        made = jax.tree.map(lambda held: held[:, :filled], status.draws)
        for held, saved in zip(jax.tree.leaves(made), jax.tree.leaves(fill("draws", made, arrays)), strict=True):
            held[...] = saved
        tuning, chains = jax.tree.map(
            jnp.asarray, (fill("tuning", kernel.tuning, arrays), fill("chains", status.chains, arrays))
        )
        status = status._replace(filled=filled, kernel=kernel._replace(tuning=tuning), chains=chains)
        if status.streaming is None:
            return status
        return status._replace(streaming=restore_streaming(status.streaming, filled, arrays))

    def first_tuning(self) -> Tuning | None:
        """The tuning fitted to the prior; None where no step of the sweep uses one."""
        return tune_to_prior.quickly(self.model, self.keys.tuning) if self.plan.uses_tuning else None

    @cached_property
    def tuning_shapes(self) -> Tuning | None:
        """The shapes and types of the tuning."""
        return tune_to_prior.eval_shape(self.model, self.keys.tuning) if self.plan.uses_tuning else None


@jit_model
def tune_to_prior(model: Model, key: Key) -> Tuning:
    """The tuning fitted to draws from the prior."""
    return fit_to_prior(key, model)


def has_check(schedule: tuple[Segment, ...]) -> bool:
    """Whether the warm-up is long enough to look at how good a surrogate is."""
    return len(schedule) > CHECKED + 1


def check_surrogate(plan: SweepPlan, info: dict[str, Array]) -> SweepPlan:
    """The plan without the surrogate if moves by it were mostly refused; info is [chain, draw]."""
    if plan.noise != "moved by surrogate" or np.mean(info["interweaving_is_accepted"]) >= ENOUGH_ACCEPTED:
        return plan
    return replace(plan, noise="moved")


@jit_model
def adapt(model: Model, parameters: Parameters) -> Tuning:
    """The tuning fitted to draws [chain, draw, ...] of all chains together."""

    def merge(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])

    return fit_tuning(model, jax.tree.map(merge, parameters))


def adapt_step_size(run: PosteriorRun, segment: int, tuning: Tuning | None, state: GibbsState) -> Tuning | None:
    """The tuning of a segment, with the step size fitted to where the chains are, state [chain, ...]."""
    if tuning is None or run.plan.parameter_kernel is None:
        return tuning
    key = jax.random.fold_in(run.keys.step_size, segment)
    return fit_step_size(key, run.model, run.plan.parameter_kernel, tuning, state.parameters, state.latent.records)


def make_schedule(num_warmup: int, num_samples: int, thin: int, adapt: bool = True) -> tuple[Segment, ...]:
    """The segments of a run; they depend on these numbers only.

    A warm-up of fewer than 64 steps is made without adaptation, and so are the last steps of a warm-up that is no
    multiple of 16. Without `adapt` the windows stay, and what was fitted before the run is left as it is.
    """
    unit = num_warmup // sum(WINDOWS)
    lengths = WINDOWS if unit >= MIN_WINDOW else ()
    segments: list[Segment] = []
    for length in lengths:
        segments.append(Segment("warm-up", next_step(segments), unit, length, adapt=adapt))
    rest = num_warmup - next_step(segments)
    if rest:
        segments.append(Segment("warm-up", next_step(segments), rest, 1))
    return (*segments, Segment("sampling", num_warmup, num_samples, thin))


def next_step(segments: list[Segment]) -> int:
    """The number of the step after these segments."""
    return segments[-1].stop if segments else 0


def restore_streaming(empty: StreamingSummary, filled: int, arrays: Arrays) -> StreamingSummary:
    """The digest of so many draws in a file; whatever does not fit is an error."""
    num_chains, size = empty.last_means.shape
    shapes = empty_summary(num_chains, size, filled)
    saved: StreamingSummary = fill("digest", jax.tree.map(np.asarray, shapes), arrays)
    return saved._replace(number=filled, sketch=saved.sketch._replace(number=shapes.sketch.number))


class Draw(NamedTuple):
    """What is kept of a step.

    Attributes
    ----------
    parameters
        The parameters.
    derived
        What the model derives from them.
    reported
        What it reports of the records.
    info
        Reports on the steps since the last draw: rates and flags are averaged, counts summed.
    collected
        What the user's function took from the state.
    """

    parameters: Parameters
    derived: Parameters
    reported: Records
    info: dict[str, Array]
    collected: Any


def report(info: GibbsInfo) -> dict[str, Array]:
    """The scalar reports on a chain's step by name; counts [n] are carried, and other arrays are not kept."""
    kept = {"acceptance_rate": info.imputation.acceptance_rate, "num_nonfinite": info.num_nonfinite}
    for path, leaf in jax.tree.leaves_with_path({"centred": info.centred, "interweaving": info.interweaving}):
        if jnp.ndim(leaf) == 0:
            # A BlackJAX kernel with a fixed number of steps reports it as a plain number.
            kept[jax.tree_util.keystr(path, simple=True, separator="_")] = jnp.asarray(leaf)
    # The energy of a divergent trajectory is NaN, which jax_debug_nans would report as a fault.
    kept = {
        name: jnp.where(jnp.isnan(leaf), jnp.inf, leaf) if "energy" in name else leaf for name, leaf in kept.items()
    }
    # The share of steps is the average of a flag.
    return {name: leaf.astype(float) if leaf.dtype == bool else leaf for name, leaf in kept.items()}


def is_rate(leaf: Array) -> bool:
    """Whether a report is averaged over steps; counts are summed."""
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def choose_capacity(model: Model, collect: Collect | None, state: GibbsState) -> int:
    """How many draws of all chains fit the memory for one chunk; `state` is [chain, ...]."""

    def kept(state: GibbsState) -> Any:
        derived = None if model.derived is None else model.derived(state.parameters)
        reported = None if model.reported is None else model.reported(state.latent.records)
        return state.parameters, derived, reported, None if collect is None else collect(state)

    return most_draws(jax.eval_shape(jax.vmap(kept), state))


def drawn_of(draws: Draw) -> dict[str, Any]:
    """What is kept under its name of each draw."""
    return {**draws.parameters, **draws.derived, **draws.reported}


def numbers_of(draws: Draw, length: int) -> np.ndarray:
    """The first `length` of the buffers [draw, chain, ...] as rows of numbers [draw, chain, k]."""
    leaves = [to_host(leaf)[:length] for leaf in [*drawn_of(draws).values(), *draws.info.values()]]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1).astype(float) for leaf in leaves], axis=2)


def num_numbers(draws: Draw) -> int:
    """How many numbers there are in a row."""
    return sum(prod(leaf.shape[2:]) for leaf in [*drawn_of(draws).values(), *draws.info.values()])


def read_streaming(draws: Draw, digest: StreamingSummary) -> StreamingDraws:
    """The summary with the names and shapes of what the arrays [chain, draw, ...] would hold."""
    drawn, reports = ({name: leaf.shape[2:] for name, leaf in part.items()} for part in (drawn_of(draws), draws.info))
    return StreamingDraws(drawn, reports, digest)


def reports_of(draws: Draw, streaming: StreamingDraws) -> dict[str, np.ndarray]:
    """The reports over all draws [chain, 1]: rates are averaged, counts summed."""

    def read(name: str, like: Any) -> np.ndarray:
        means = streaming.report(name)
        is_rate = like.dtype.kind == "f"
        return (means if is_rate else np.round(means * streaming.summary.number)).astype(like.dtype)

    return {name: read(name, leaf) for name, leaf in draws.info.items()}
