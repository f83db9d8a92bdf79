"""The chains: NUTS on whitened parameters and latent noise, adapted by BlackJAX's windows."""

from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.base import get_filter_adapt_info_fn
from blackjax.mcmc.hmc import HMCState
from blackjax.mcmc.nuts import NUTSInfo

from dpjax.base import Array, Key, Model, Parameters
from dpjax.large.density import Place, build_problem, build_target, unravel_of
from dpjax.large.moments import Source
from dpjax.numbered import jit_model
from dpjax.parameters.coordinates import Tuning, constrain
from dpjax.release import Release
from dpjax.running.chunk import MAX_CAPACITY, Chunk, make_draws
from dpjax.running.schedule import Segment

__all__ = ["Draw", "Run", "Status", "begin", "make_chunk"]

FIRST_STEP_SIZE = 0.5
"""Where there is no warm-up: of a density that is whitened at its mode."""


class Chains(NamedTuple):
    """What the chains carry, each [chain, ...]: their states, step sizes, and inverse mass matrices."""

    state: HMCState
    step_size: Array
    inverse_mass_matrix: Array


class Draw(NamedTuple):
    """What is kept of a step: parameters, what the model derives from them, and reports."""

    parameters: Parameters
    derived: Parameters
    info: dict[str, Array]


class Run(NamedTuple):
    """What stays as it is from the first step to the last; see `dpjax.large.density.build_problem`."""

    model: Model
    release: Release
    source: Source
    rule: Any
    simulated: Array
    tuning: Tuning
    schedule: tuple[Segment, ...]
    places: Place
    warmup_keys: Key
    chain_keys: Key

    @property
    def parts(self) -> dict[str, Any]:
        """What the compiled programs take."""
        names = ("model", "release", "source", "rule", "simulated", "tuning")
        return {name: getattr(self, name) for name in names}


class Status(NamedTuple):
    """How far a run has come: its segment, the draws made there, the chains once warmed up, and [chain, draw, ...]."""

    segment: int
    filled: int
    chains: Chains | None
    draws: list[Draw]


@partial(jit_model, static_argnames=("source", "num_steps"))
def adapt(
    model: Model,
    release: Release,
    source: Source,
    rule: Any,
    simulated: Array,
    tuning: Tuning,
    keys: Key,
    places: Place,
    num_steps: int,
) -> Chains:
    """The chains after a warm-up, each with a step size and a dense mass matrix of its own."""
    target = build_target(model, build_problem(model, release, source, rule, simulated), tuning)

    def begin(place: Place) -> Chains:
        size = sum(leaf.size for leaf in place)
        state = blackjax.nuts.init(place, target)
        step_size = jnp.asarray(FIRST_STEP_SIZE, place.whitened.dtype)
        return Chains(state, step_size, jnp.eye(size, dtype=place.whitened.dtype))

    def warm(key: Key, place: Place) -> Chains:
        silent = get_filter_adapt_info_fn()
        warmup = blackjax.window_adaptation(
            blackjax.nuts, target, is_mass_matrix_diagonal=False, adaptation_info_fn=silent
        )
        with jax.numpy_dtype_promotion("standard"):  # as BlackJAX has it
            (state, found), _ = warmup.run(key, place, num_steps)
        return Chains(state, found["step_size"], found["inverse_mass_matrix"])

    return jax.vmap(warm)(keys, places) if num_steps else jax.vmap(begin)(places)


@partial(jit_model, static_argnames=("source",))
def run_chunk(
    model: Model,
    release: Release,
    source: Source,
    rule: Any,
    simulated: Array,
    tuning: Tuning,
    chain_keys: Key,
    chains: Chains,
    start: Array,
    length: Array,
) -> Chunk:
    """Advance all chains by `length` steps, whose draws are kept."""
    target = build_target(model, build_problem(model, release, source, rule, simulated), tuning)
    kernel = blackjax.nuts.build_kernel()

    def step(key: Key, chain: Chains) -> tuple[Chains, dict[str, Array]]:
        state, info = kernel(key, chain.state, target, chain.step_size, chain.inverse_mass_matrix)
        return chain._replace(state=state), report(info)

    def keep(chain: Chains, info: dict[str, Array]) -> Draw:
        whitened = chain.state.position.whitened
        parameters = constrain(model, unravel_of(model)(tuning.colour(whitened)))
        return Draw(parameters, {} if model.derived is None else model.derived(parameters), info)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=chains,
        start=start,
        length=length,
        thin=jnp.ones_like(length),
        capacity=MAX_CAPACITY,
    )


def report(info: NUTSInfo) -> dict[str, Array]:
    """What is reported of a trajectory."""
    return {
        "acceptance_rate": info.acceptance_rate,
        "num_divergent": info.is_divergent.astype(int),
        "num_integration_steps": info.num_integration_steps,
    }


def begin(run: Run) -> Status:
    """The status before the first step."""
    if run.schedule[0].adapt:
        return Status(0, 0, None, [])
    return Status(0, 0, adapt(**run.parts, keys=run.warmup_keys, places=run.places, num_steps=0), [])


def make_chunk(run: Run, status: Status, length: int) -> tuple[Status, int]:
    """The status after the warm-up, which is one piece, or after up to so many draws more; and how many were made."""
    segment = run.schedule[status.segment]
    if segment.adapt:
        chains = adapt(**run.parts, keys=run.warmup_keys, places=run.places, num_steps=segment.draws)
        return Status(status.segment + 1, 0, jax.block_until_ready(chains), []), segment.draws
    length = min(length, MAX_CAPACITY, segment.draws - status.filled)
    start, steps = jnp.array(status.filled), jnp.array(length)
    chunk = run_chunk(**run.parts, chain_keys=run.chain_keys, chains=status.chains, start=start, length=steps)
    draws = jax.tree.map(lambda leaf: np.moveaxis(np.asarray(leaf)[:length], 0, 1), chunk.draws)
    return Status(status.segment, status.filled + length, chunk.states, [*status.draws, draws]), length
