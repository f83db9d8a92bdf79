"""A run, step by step: what is fixed, what moves, and one chunk of work."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters import Tuning, fit_step_size, fit_tuning
from dpjax.data_augmentation.plan import SweepPlan, adapt_plan, is_open
from dpjax.data_augmentation.records.unknown_number import check_room
from dpjax.diagnostics.streaming import StreamingSummary, empty_summary
from dpjax.mcmc.chunks import Chains, Collect, Draw, choose_capacity, num_numbers, numbers_of, run_chunk
from dpjax.models.recipe import jit_model
from dpjax.models.simulation import GibbsState, draw_state
from dpjax.release import PrivateRelease
from dpjax.runtime.checkpoint import Arrays, PeriodicCheckpoint, fill, read_place
from dpjax.runtime.devices import bring_home, place, same_everywhere, to_host
from dpjax.runtime.fingerprint import plain_values, restore
from dpjax.runtime.schedule import Segment, chunk_numbers, is_done

CHECKED = 3
"""The segment of the warm-up after which a surrogate that is too often wrong is given up."""

ENOUGH_ACCEPTED = 0.5
"""An exact move costs about as much as ten by surrogate, of which fewer than half then bring less."""

WINDOWS = (1, 1, 1, 1, 2, 2, 4, 4)
"""Lengths of the warm-up windows, in sixteenths of the warm-up. Each gives as many draws: longer ones are thinned."""

MIN_WINDOW = 4
"""Draws of each chain that a window needs before anything is fitted to them."""


@dataclass(frozen=True, eq=False)
class Run:
    """What stays as it is from the first step to the last.

    Parameters
    ----------
    plan
        As the user wants it; what is tuned is in `Status`.
    mesh
        The devices that share the chains; None for one.
    summarized
        Whether the draws are not kept, but entered into a digest.
    """

    model: Model
    release: PrivateRelease
    plan: SweepPlan
    collect: Collect | None
    schedule: tuple[Segment, ...]
    chain_keys: Key
    plan_key: Key
    step_size_key: Key
    mesh: Mesh | None = None
    summarized: bool = False

    @cached_property
    def state_shapes(self) -> GibbsState:
        """The shapes [chain, ...] and types of the chains' states."""
        start = partial(draw_state, model=self.model, release=self.release)
        return jax.eval_shape(jax.vmap(start), self.chain_keys)

    @cached_property
    def capacity(self) -> int:
        """How many draws a chunk can hold."""
        return choose_capacity(self.model, self.collect, self.state_shapes)


class Status(NamedTuple):
    """How far a run has come; a checkpoint holds all of it.

    Attributes
    ----------
    segment
        The number of the current segment.
    filled
        How many draws it has made.
    plan
        The kernel, as adapted so far.
    tuning
        Its tuning; None where no step of it uses one.
    chains
        What the chains carry.
    draws
        Host arrays [chain, draw, ...] of the current segment; those beyond `filled` mean nothing.
    digest
        Stands for the draws of the last segment where these are not kept; the arrays are then empty.
    """

    segment: int
    filled: int
    plan: SweepPlan
    tuning: Tuning | None
    chains: Chains
    draws: Draw
    digest: StreamingSummary | None = None


def open_run(run: Run, state: GibbsState, tuning: Tuning | None) -> Status:
    """The status before the first step, with chains at the given starts, to which the step size is fitted."""
    tuning = adapt_step_size(run, 0, tuning, state)
    plan = adapt_plan(run.model, run.release, run.plan, state, run.plan_key)
    return open_segment(run, 0, plan, tuning, state)


def open_segment(run: Run, segment: int, plan: SweepPlan, tuning: Tuning | None, state: GibbsState) -> Status:
    """The status at the start of a segment, with empty arrays for its draws; tuning and state may be shapes."""
    status = before_draws(run, segment, plan, tuning, state)
    if not is_digested(run, segment):
        return status._replace(draws=allocate(run, status, run.schedule[segment].draws))
    draws = allocate(run, status, 0)
    return status._replace(draws=draws, digest=empty_summary(len(run.chain_keys), num_numbers(draws)))


def before_draws(run: Run, segment: int, plan: SweepPlan, tuning: Tuning | None, state: GibbsState) -> Status:
    """The status at the start of a segment, without room for draws; tuning and state may be shapes."""
    accepted = np.zeros((len(run.chain_keys), run.release.n), np.int32)
    return Status(segment, 0, plan, tuning, Chains(state, accepted), draws=None)  # type: ignore[arg-type]


def lower_first(run: Run, tuning: Tuning | None) -> Any:
    """The program of the first chunk, not compiled yet, from the shapes of the tuning.

    None where starts decide what the program is, or several devices.
    """
    if is_open(run.plan.imputation) or run.mesh is not None:
        return None
    status = before_draws(run, 0, run.plan, tuning, run.state_shapes)
    return run_chunk.lower(*static(run, status), **dynamic(run, status, 0))


def is_digested(run: Run, segment: int) -> bool:
    """Whether the draws of a segment are entered into a digest."""
    return run.summarized and segment == len(run.schedule) - 1


def allocate(run: Run, status: Status, draws: int) -> Draw:
    """Host arrays [chain, draw, ...] for so many draws."""
    shapes = run_chunk.eval_shape(*static(run, status), **dynamic(run, status, 0)).draws
    return jax.tree.map(lambda leaf: np.zeros((leaf.shape[1], draws, *leaf.shape[2:]), leaf.dtype), shapes)


def static(run: Run, status: Status) -> tuple[Model, SweepPlan, Collect | None, int, Mesh | None]:
    """The arguments of the compiled program that decide what is compiled."""
    return run.model, status.plan, run.collect, run.capacity, run.mesh


def dynamic(run: Run, status: Status, length: int) -> dict[str, Any]:
    """The arguments of the compiled program that are ordinary values."""
    return {
        "release": run.release,
        "tuning": status.tuning,
        "chain_keys": run.chain_keys,
        "chains": status.chains,
        **chunk_numbers(run.schedule, status, length),
    }


def make_chunk(run: Run, status: Status, length: int) -> tuple[Status, int]:
    """Make up to `length` draws within the current segment, and say how many; at its end, adapt and open the next.

    The old status stays whole, so that an interruption leaves a consistent one.
    """
    segment = run.schedule[status.segment]
    length = same_everywhere(run.mesh, min(length, run.capacity, segment.draws - status.filled))
    arguments = place(run.mesh, dynamic(run, status, length), by_chain=("chain_keys", "chains"))
    chunk = run_chunk(*static(run, status), **arguments)
    if status.digest is None:
        store(status.draws, chunk.draws, status.filled, length)
    else:
        status = status._replace(digest=status.digest.add(numbers_of(chunk.draws, length)))
    status = status._replace(chains=chunk.states, filled=status.filled + length)
    ended = status.filled == segment.draws and not is_done(run.schedule, status)
    return (close_segment(run, status) if ended else status), length


def store(draws: Draw, buffers: Draw, filled: int, length: int) -> None:
    """Copy the first `length` entries of device buffers [draw, chain, ...] behind the draws already held."""
    for held, buffer in zip(jax.tree.leaves(draws), jax.tree.leaves(buffers), strict=True):
        held[:, filled : filled + length] = np.swapaxes(to_host(buffer)[:length], 0, 1)


def close_segment(run: Run, status: Status) -> Status:
    """Adapt the kernel to the segment's draws where the schedule says so, and open the next segment."""
    tuning, plan, state = status.tuning, status.plan, bring_home(run.mesh, status.chains.state)
    check_room(run.release, status.draws.reported)
    if run.schedule[status.segment].adapt and tuning is not None:
        tuning = adapt.quickly(run.model, status.draws.parameters)._replace(step_size=tuning.step_size)
        tuning = adapt_step_size(run, status.segment + 1, tuning, state)
    if status.segment == 0:
        # At the starts the plan was a guess; now the chains have come some way.
        plan = adapt_plan(run.model, run.release, run.plan, state, run.plan_key)
    elif status.segment == CHECKED:
        plan = check_surrogate(plan, status.draws.info)
    return open_segment(run, status.segment + 1, plan, tuning, status.chains.state)


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


def adapt_step_size(run: Run, segment: int, tuning: Tuning | None, state: GibbsState) -> Tuning | None:
    """The tuning of a segment, with the step size fitted to where the chains are, state [chain, ...]."""
    key = jax.random.fold_in(run.step_size_key, segment)
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


class Checkpoint(PeriodicCheckpoint):
    """The checkpoint file of one run of `sample`; its fingerprint is that of `make_fingerprint`."""

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The plan, and the tuning, the chains and the draws."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        digest = jax.tree.map(np.asarray, status.digest)
        trees = {"tuning": status.tuning, "chains": status.chains, "draws": held, "digest": digest}
        return {"plan": plain_values(status.plan)}, trees


def restore_status(run: Run, tuning: Tuning | None, progress: dict[str, Any], arrays: Arrays) -> Status:
    """The status in a file; whatever does not fit the run is an error. Of the tuning only the shapes are used."""
    segment, filled = read_place(run.schedule, progress)
    status = open_segment(run, segment, restore(run.plan, progress["plan"]), tuning, run.state_shapes)
    made = jax.tree.map(lambda held: held[:, :filled], status.draws)
    for held, saved in zip(jax.tree.leaves(made), jax.tree.leaves(fill("draws", made, arrays)), strict=True):
        held[...] = saved
    parts = {name: fill(name, getattr(status, name), arrays) for name in ("tuning", "chains")}
    status = status._replace(filled=filled, **jax.tree.map(jnp.asarray, parts))
    return status if status.digest is None else status._replace(digest=restore_digest(status.digest, filled, arrays))


def restore_digest(empty: StreamingSummary, filled: int, arrays: Arrays) -> StreamingSummary:
    """The digest of so many draws in a file; whatever does not fit is an error."""
    num_chains, size = empty.last_means.shape
    shapes = empty_summary(num_chains, size, filled)
    saved: StreamingSummary = fill("digest", jax.tree.map(np.asarray, shapes), arrays)
    return saved._replace(number=filled, sketch=saved.sketch._replace(number=shapes.sketch.number))
