"""The chains: NUTS on whitened parameters and latent noise, adapted in windows, all steps by one compiled program.

The parts of BlackJAX's window adaptation are used, and not the whole. The whole runs to its end, whatever the user
does. It is also a second program that contains NUTS, so that a first call takes almost twice as long.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.adaptation.window_adaptation import build_schedule
from blackjax.mcmc.hmc import HMCState
from blackjax.mcmc.nuts import NUTSInfo
from jax.sharding import Mesh

from dpjax._util.jit import jit_unoptimized
from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.density import build_problem, build_target, unravel_of
from dpjax.clt.moments import Source
from dpjax.clt.number import with_place
from dpjax.data_augmentation.parameters.coordinates import Tuning
from dpjax.models.data_sets import NUMBER
from dpjax.models.programs import jit_model
from dpjax.release import Release
from dpjax.release.unknown_count import is_unknown
from dpjax.runtime.chunk import CHAIN_AXES, MAX_CAPACITY, Chunk, Segment, Steps, make_draws
from dpjax.runtime.devices import gather_to_host, over_devices, platform_of
from dpjax.runtime.run import Run, Status

__all__ = ["CLTRun", "CltDraw", "make_schedule"]

FIRST_STEP_SIZE = 0.5
"""For a density that is whitened at its mode."""

ACCEPTANCE = 0.9
"""The acceptance rate that the step size is adapted to. With the usual 0.8 four times as many trajectories diverge in
tails of Laplace noise and in curved posteriors, and effective draws cost as much."""

begin_search, continue_search, _ = dual_averaging_adaptation(ACCEPTANCE)


class CltChains(NamedTuple):
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
    step_size: Array | np.ndarray
    inverse_mass_matrix: Array | np.ndarray
    search: DualAveragingAdaptationState


class CltDraw(NamedTuple):
    """What is kept of a step: the chain's vector, parameters, what the model derives from them, and reports."""

    vector: Array
    parameters: Parameters
    derived: Parameters
    info: dict[str, Array]


class Step(NamedTuple):
    """What is reported of a step, and a uniform number by which an unknown number of records is drawn."""

    info: dict[str, Array]
    uniform: Array | None


@partial(jit_model, static_argnames=("source",))
def first_states(
    model: Model, source: Source, *, release: Release, rule: Any, simulated: Array, tuning: Tuning, places: Array
) -> HMCState:
    """The states [chain, ...] at vectors [chain, size]."""
    target = build_target(model, build_problem(model, release, source, rule, simulated), tuning)
    return jax.vmap(lambda place: blackjax.nuts.init(place, target))(places)


@partial(jit_model, static_argnames=("source", "mesh"), ahead=True)
@over_devices(by_chain=Run.SHARED, made=CHAIN_AXES)
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
    chains: CltChains,
    steps: Steps,
    adapt: Array,
) -> Chunk:
    """Advance all chains by these steps and keep every `thin`-th; step sizes change if `adapt` is true.

    A processor makes the chains' steps in turn. No chain then waits for a longer trajectory. A chain's program, and
    with it every bit, is the same however many chains there are.
    """
    problem = build_problem(model, release, source, rule, simulated)
    target, kernel = build_target(model, problem, tuning), blackjax.nuts.build_kernel()
    model = with_place(model, release)

    def step(key: Key, chain: CltChains) -> tuple[CltChains, Step]:
        key, number_key = jax.random.split(key) if is_unknown(release) else (key, None)
        state, info = kernel(key, chain.state, target, chain.step_size, chain.inverse_mass_matrix)
        with jax.numpy_dtype_promotion("standard"):  # as BlackJAX has it
            search = continue_search(chain.search, info.acceptance_rate)
        step_size = jnp.where(adapt, jnp.exp(search.log_step_size), chain.step_size)
        uniform = None if number_key is None else jax.random.uniform(number_key, dtype=step_size.dtype)
        return CltChains(state, step_size, chain.inverse_mass_matrix, search), Step(report(info), uniform)

    def keep(chain: CltChains, step: Step) -> CltDraw:
        place = problem.place(chain.state.position)
        parameters = model.constrain(unravel_of(model)(tuning.colour(place.whitened)))
        derived = model.derived(parameters)
        if step.uniform is not None:
            number = problem.draw_number(step.uniform, parameters, place.scales, place.sums)
            parameters = parameters | {NUMBER: number}
        return CltDraw(chain.state.position, parameters, derived, step.info)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=chains,
        steps=steps,
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


@dataclass(frozen=True, eq=False, kw_only=True)
class CLTRun(Run):
    """A run of `dpjax.sample_clt`; see `dpjax.clt.density.build_problem` for what its target is made of.

    Parameters
    ----------
    places
        The starting points of the chains [chain, size].
    chain_keys
        Keys [chain].
    """

    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_chunk)

    model: Model
    release: Release
    source: Source
    rule: Any
    simulated: Array
    tuning: Tuning
    places: Array
    chain_keys: Key

    @property
    def arrays(self) -> dict[str, Any]:
        """What the compiled programs take as ordinary values, the same for all chains."""
        return {name: getattr(self, name) for name in ("release", "rule", "simulated", "tuning")}

    def capacity(self, status: Status) -> int:
        """How many draws a chunk can hold."""
        return MAX_CAPACITY

    def static(self, status: Status) -> tuple[Any, ...]:
        """Model, source of the moments, and devices."""
        return self.model, self.source, self.mesh

    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """What the target is made of, keys and chains, the steps of the chunk, and whether step sizes change."""
        return {
            **self.arrays,
            "chain_keys": self.chain_keys,
            "chains": status.chains,
            "adapt": np.bool_(self.schedule[status.segment].phase == "warm-up"),
            "steps": self.steps(status, length),
        }

    def open(self) -> Status:
        """The status before the first step, with whitened coordinates as they are."""
        states = first_states.unoptimized(self.model, self.source, **self.arrays, places=self.places)
        return self.open_segment(0, self.at_starts(states))

    def first_shapes(self) -> Status:
        """The status before the first step; tuning and places may be shapes."""
        states = first_states.eval_shape(self.model, self.source, **self.arrays, places=self.places)
        return Status(0, 0, None, self.at_starts(states))

    def at_starts(self, states: HMCState) -> CltChains:
        """What the chains carry at these states, or their shapes."""
        num_chains, size = self.places.shape
        step_size = np.full(num_chains, FIRST_STEP_SIZE, self.places.dtype)
        matrix = np.broadcast_to(np.eye(size, dtype=self.places.dtype), (num_chains, size, size))
        return CltChains(states, step_size, matrix, search_from(step_size))

    def open_segment(self, segment: int, chains: CltChains) -> Status:
        """The status at the start of a segment, with empty arrays for its draws."""
        status = Status(segment, 0, None, chains)
        return status._replace(draws=self.allocate(status, self.schedule[segment].draws))

    def close_segment(self, status: Status) -> Status:
        """Take the average step size found, and the draws' covariance if the schedule says so."""
        chains = gather_to_host(self.mesh, status.chains)
        step_size = jnp.exp(chains.search.log_step_size_avg)
        chains = chains._replace(step_size=step_size, search=search_from(step_size))
        if self.schedule[status.segment].tune:
            matrices = np.stack([shrunk_covariance(vectors) for vectors in status.draws.vector])
            chains = chains._replace(inverse_mass_matrix=jnp.asarray(matrices, step_size.dtype))
        return self.open_segment(status.segment + 1, chains)


@jit_unoptimized
def search_from(step_size: Array) -> DualAveragingAdaptationState:
    """The search for better step sizes than these [chain], in the types that it goes on with."""
    return jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), jax.vmap(begin_search)(step_size))


def shrunk_covariance(vectors: np.ndarray) -> np.ndarray:
    """The covariance of vectors [draw, size], shrunk towards a thousandth of the identity as Stan does it."""
    weight = len(vectors) / (len(vectors) + 5.0)
    covariance = np.atleast_2d(np.cov(vectors, rowvar=False))
    return weight * covariance + (1 - weight) * 1e-3 * np.eye(vectors.shape[1])


def make_schedule(num_warmup: int, num_samples: int) -> tuple[Segment, ...]:
    """The segments of a run: the windows of Stan's warm-up, of which those with `adapt` end with a new mass matrix."""
    with jax.numpy_dtype_promotion("standard"):  # as BlackJAX has it
        stages, ends = np.asarray(build_schedule(num_warmup), int).reshape(-1, 2).T
    stops = np.flatnonzero((np.diff(stages, append=-1) != 0) | (ends == 1)) + 1
    windows = [
        Segment("warm-up", int(start), int(stop - start), 1, tune=bool(ends[stop - 1]))
        for start, stop in zip(np.append(0, stops), stops, strict=False)
    ]
    return (*windows, Segment("sampling", num_warmup, num_samples, 1))
