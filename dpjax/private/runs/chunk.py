"""The compiled part of a run: a chunk of iterations of many chains, with nothing charged to anyone."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.kernels.base import NotPrivate, ravel
from dpjax.private.targets.target import Target
from dpjax.running.chunk import CHAIN_AXES, Chunk, make_draws
from dpjax.running.devices import over_devices

__all__ = ["Draw", "Totals", "log_priors", "run_chunk", "start_chains"]


class Totals(NamedTuple):
    """Sums over iterations of a chain []: how many were accepted, and the diagnostics that are not private."""

    accepted: Array
    not_private: NotPrivate


class Draw(NamedTuple):
    """What is kept of a draw: the parameters on the reported scale, and sums over the iterations since the last one."""

    parameters: Any
    totals: Totals


@partial(jax.jit, static_argnames="build")
def start_chains(build: Callable[[Target], SamplingAlgorithm], target: Target, positions: Any) -> Any:
    """The states [chains] at unconstrained positions with leading axis [chains]."""
    return jax.vmap(lambda position: build(target).init(position))(positions)


@jax.jit
def log_priors(target: Target, positions: Any) -> Array:
    """The log-density of the prior [chains] at unconstrained positions with leading axis [chains]."""
    return jax.vmap(lambda position: target.log_prior(ravel(position)))(positions)


@partial(jax.jit, static_argnames=("build", "capacity", "mesh"))
@over_devices(by_chain=("chain_keys", "states"), arrays=("target", "start", "length", "thin"), made=CHAIN_AXES)
def run_chunk(
    build: Callable[[Target], SamplingAlgorithm],
    target: Target,
    chain_keys: Key,
    states: Any,
    *,
    start: Array,
    length: Array,
    thin: Array,
    capacity: int,
    mesh: Mesh | None,
) -> Chunk:
    """Exactly ``length * thin`` iterations from number `start` on; every `thin`-th position is kept.

    Their number is an argument of the program and not a shape, so that none is made and thrown away: each is a query of
    the records. See `make_draws`, whose draws are here `Draw`.
    """
    algorithm = build(target)

    def step(key: Key, state: Any) -> tuple[Any, Totals]:
        state, info = algorithm.step(key, state)
        return state, Totals(info.is_accepted.astype(info.not_private.clipped_ratios.dtype), info.not_private)

    def keep(state: Any, totals: Totals) -> Draw:
        return Draw(target.terms.constrain(state.position), totals)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=states,
        start=start,
        length=length,
        thin=thin,
        capacity=capacity,
    )
