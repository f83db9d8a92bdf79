"""The chains: NUTS on whitened parameters and latent noise, adapted in windows, all steps by one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.mcmc.hmc import HMCState
from blackjax.mcmc.nuts import NUTSInfo
from jax.sharding import Mesh

from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.density import build_problem, build_target, unravel_of
from dpjax.clt.moments import Source
from dpjax.data_augmentation.parameters.coordinates import Tuning, constrain
from dpjax.models.recipe import jit_model
from dpjax.release import Release
from dpjax.runtime.chunk import CHAIN_AXES, MAX_CAPACITY, Chunk, make_draws
from dpjax.runtime.devices import bring_home, over_devices, place, platform_of, same_everywhere, to_host
from dpjax.runtime.schedule import Segment, steps_made

__all__ = ["Draw", "Run", "Status", "begin", "make_chunk", "make_schedule"]

FIRST_STEP_SIZE = 0.5
"""Of a density that is whitened at its mode."""

ACCEPTANCE = 0.8
"""The acceptance rate that the step size is adapted to."""

begin_search, continue_search, _ = dual_averaging_adaptation(ACCEPTANCE)


FIRST, WINDOW, LAST = 75, 25, 50
"""Steps before the first window that a covariance is taken of, of that window, and after the last one."""

FEWEST = 20
"""Shorter warm-ups have no such window."""


class Chains(NamedTuple):
    """What the chains carry, each [chain, ...].

    Attributes
    ----------
    state
        Where they are.
    step_size
        That of their kernels.
    inverse_mass_matrix
        That of their kernels.
    search
        The search for a step size by dual averaging, of which nothing is used once the warm-up is over.
    """

    state: HMCState
    step_size: Array
    inverse_mass_matrix: Array
    search: DualAveragingAdaptationState


class Draw(NamedTuple):
    """What is kept of a step: the chain's vector, parameters, what the model derives from them, and reports."""

    vector: Array
    parameters: Parameters
    derived: Parameters
    info: dict[str, Array]


class Run(NamedTuple):
    """What stays as it is from the first step to the last; see `dpjax.clt.density.build_problem`.

    `mesh` has the devices that share the chains; None for one.
    """

    model: Model
    release: Release
    source: Source
    rule: Any
    simulated: Array
    tuning: Tuning
    schedule: tuple[Segment, ...]
    places: Array
    chain_keys: Key
    mesh: Mesh | None

    @property
    def arrays(self) -> dict[str, Any]:
        """What the compiled programs take as ordinary values, the same for all chains."""
        return {name: getattr(self, name) for name in ("release", "rule", "simulated", "tuning")}


class Status(NamedTuple):
    """How far a run has come: its segment, the draws made there, the chains, and these draws [chain, draw, ...]."""

    segment: int
    filled: int
    chains: Chains
    draws: list[Draw]


@partial(jit_model, static_argnames=("source",))
def first_states(
    model: Model, source: Source, *, release: Release, rule: Any, simulated: Array, tuning: Tuning, places: Array
) -> HMCState:
    """The states [chain, ...] at vectors [chain, size]."""
    target = build_target(model, build_problem(model, release, source, rule, simulated), tuning)
    return jax.vmap(lambda place: blackjax.nuts.init(place, target))(places)


@partial(jit_model, static_argnames=("source", "mesh"))
@over_devices(
    by_chain=("chain_keys", "chains"),
    arrays=("release", "rule", "simulated", "tuning", "start", "length", "adapt"),
    made=CHAIN_AXES,
)
def run_chunk(
    model: Model,
    source: Source,
    mesh: Mesh | None,
    *,
    release: Release,
    rule: Any,
    simulated: Array,
    tuning: Tuning,
    chain_keys: Key,
    chains: Chains,
    start: Array,
    length: Array,
    adapt: Array,
) -> Chunk:
    """Advance all chains by `length` steps, whose draws are kept; their step sizes change if `adapt` is true.

    A processor makes the chains' steps in turn: no chain then waits for a longer trajectory, and a chain's program, and
    with it every bit, is the same however many there are.
    """
    problem = build_problem(model, release, source, rule, simulated)
    target, kernel = build_target(model, problem, tuning), blackjax.nuts.build_kernel()

    def step(key: Key, chain: Chains) -> tuple[Chains, dict[str, Array]]:
        state, info = kernel(key, chain.state, target, chain.step_size, chain.inverse_mass_matrix)
        with jax.numpy_dtype_promotion("standard"):  # as BlackJAX has it
            search = continue_search(chain.search, info.acceptance_rate)
        step_size = jnp.where(adapt, jnp.exp(search.log_step_size), chain.step_size)
        return Chains(state, step_size, chain.inverse_mass_matrix, search), report(info)

    def keep(chain: Chains, info: dict[str, Array]) -> Draw:
        vector = chain.state.position
        parameters = constrain(model, unravel_of(model)(tuning.colour(problem.place(vector).whitened)))
        return Draw(vector, parameters, {} if model.derived is None else model.derived(parameters), info)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=chains,
        start=start,
        length=length,
        thin=jnp.ones_like(length),
        capacity=MAX_CAPACITY,
        in_turn=platform_of(mesh) == "cpu",
    )


def report(info: NUTSInfo) -> dict[str, Array]:
    """What is reported of a trajectory."""
    return {
        "acceptance_rate": info.acceptance_rate,
        "num_divergent": info.is_divergent.astype(int),
        "num_integration_steps": info.num_integration_steps,
    }


def begin(run: Run) -> Status:
    """The status before the first step, with whitened coordinates as they are."""
    num_chains, size = run.places.shape
    step_size = jnp.full(num_chains, FIRST_STEP_SIZE, run.places.dtype)
    matrix = jnp.broadcast_to(jnp.eye(size, dtype=run.places.dtype), (num_chains, size, size))
    states = first_states(run.model, run.source, **run.arrays, places=run.places)
    return Status(0, 0, Chains(states, step_size, matrix, search_from(step_size)), [])


@jax.jit
def search_from(step_size: Array) -> DualAveragingAdaptationState:
    """The search for better step sizes than these [chain], in the types that it goes on with."""
    return jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), jax.vmap(begin_search)(step_size))


def make_chunk(run: Run, status: Status, length: int) -> tuple[Status, int]:
    """The status after up to so many draws more of the segment, at whose end chains are adapted; and their number."""
    segment = run.schedule[status.segment]
    length = same_everywhere(run.mesh, min(length, MAX_CAPACITY, segment.draws - status.filled))
    arguments = place(run.mesh, dynamic(run, status, length), by_chain=("chain_keys", "chains"))
    chunk = run_chunk(run.model, run.source, run.mesh, **arguments)
    draws = jax.tree.map(lambda leaf: np.moveaxis(to_host(leaf)[:length], 0, 1), chunk.draws)
    status = Status(status.segment, status.filled + length, chunk.states, [*status.draws, draws])
    ended = status.filled == segment.draws and segment.phase == "warm-up"
    return (close_window(run, status) if ended else status), length


def dynamic(run: Run, status: Status, length: int) -> dict[str, Any]:
    """The arguments of the compiled program that are ordinary values."""
    return {
        **run.arrays,
        "chain_keys": run.chain_keys,
        "chains": status.chains,
        "start": jnp.array(steps_made(run.schedule, status)),
        "length": jnp.array(length),
        "adapt": jnp.array(run.schedule[status.segment].phase == "warm-up"),
    }


def close_window(run: Run, status: Status) -> Status:
    """The status after a window of the warm-up: the average step size found, and its draws' covariance if asked for."""
    chains = bring_home(run.mesh, status.chains)
    step_size = jnp.exp(chains.search.log_step_size_avg)
    chains = chains._replace(step_size=step_size, search=search_from(step_size))
    if run.schedule[status.segment].adapt:
        vectors = np.concatenate([draw.vector for draw in status.draws], axis=1)
        matrices = np.stack([shrunk_covariance(chain) for chain in vectors])
        chains = chains._replace(inverse_mass_matrix=jnp.asarray(matrices, step_size.dtype))
    return Status(status.segment + 1, 0, chains, [])


def shrunk_covariance(vectors: np.ndarray) -> np.ndarray:
    """The covariance of vectors [draw, size], shrunk towards a thousandth of the identity as Stan does it."""
    weight = len(vectors) / (len(vectors) + 5.0)
    covariance = np.atleast_2d(np.cov(vectors, rowvar=False))
    return weight * covariance + (1 - weight) * 1e-3 * np.eye(vectors.shape[1])


def make_schedule(num_warmup: int, num_samples: int) -> tuple[Segment, ...]:
    """The segments of a run; they depend on these numbers only. Those with `adapt` end with a new mass matrix."""
    lengths = window_lengths(num_warmup)
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    windows = [
        Segment("warm-up", start, length, 1, adapt=0 < number < len(lengths) - 1)
        for number, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    return (*windows, Segment("sampling", num_warmup, num_samples, 1))


def window_lengths(num_warmup: int) -> list[int]:
    """The lengths of the windows: each between the first and the last twice as long as the one before."""
    if num_warmup < FEWEST:
        return [num_warmup] if num_warmup else []
    first, window, last = FIRST, WINDOW, LAST
    if first + window + last > num_warmup:
        first, last = int(0.15 * num_warmup), int(0.1 * num_warmup)
        window = num_warmup - first - last
    between, rest = [], num_warmup - first - last
    while rest:
        window = window if 3 * window <= rest else rest  # no window is left that is shorter than the one before
        between.append(window)
        rest, window = rest - window, 2 * window
    return [first, *between, last]
