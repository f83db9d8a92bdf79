"""The compiled loop: a chunk of iterations of many chains, with nothing charged to anyone."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.kernel import Info, NotPrivate, ravel
from dpjax.private.target import Target

__all__ = ["Chunk", "Totals", "log_priors", "run_chunk", "start_chains"]


class Totals(NamedTuple):
    """Sums over the iterations of a chain []: how many were accepted, and the diagnostics that are not private."""

    accepted: Array
    not_private: NotPrivate


class Chunk(NamedTuple):
    """What a chunk leaves: the states [chains], buffers of draws [capacity, chains, ...] and totals [chains]."""

    states: Any
    draws: Any
    totals: Totals


@partial(jax.jit, static_argnames="build")
def start_chains(build: Callable[[Target], SamplingAlgorithm], target: Target, positions: Any) -> Any:
    """The states [chains] at unconstrained positions with leading axis [chains]."""
    return jax.vmap(lambda position: build(target).init(position))(positions)


@jax.jit
def log_priors(target: Target, positions: Any) -> Array:
    """The log-density of the prior [chains] at unconstrained positions with leading axis [chains]."""
    return jax.vmap(lambda position: target.log_prior(ravel(position)))(positions)


@partial(jax.jit, static_argnames=("build", "capacity", "thin"))
def run_chunk(
    build: Callable[[Target], SamplingAlgorithm],
    target: Target,
    chain_keys: Key,
    states: Any,
    start: Array,
    length: Array,
    *,
    capacity: int,
    thin: int,
) -> Chunk:
    """Iterations `start`, ..., `start + length − 1`; every `thin`-th position is kept, on the reported scale.

    The number of iterations is an argument of the program and not a shape, so that none is made and thrown away: each
    is a query of the records.
    """
    algorithm = build(target)

    def report(state: Any) -> Any:
        return target.terms.constrain(state.position)

    def iterate(index: Array, chunk: Chunk) -> Chunk:
        keys = jax.vmap(lambda key: jax.random.fold_in(key, start + index))(chain_keys)
        states, info = jax.vmap(algorithm.step)(keys, chunk.states)
        draws = jax.tree.map(
            lambda kept, drawn: kept.at[index // thin].set(drawn), chunk.draws, jax.vmap(report)(states)
        )
        return Chunk(states, draws, jax.tree.map(jnp.add, chunk.totals, measure(info)))

    shapes = jax.eval_shape(jax.vmap(report), states)
    draws = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
    _, infos = jax.eval_shape(jax.vmap(algorithm.step), chain_keys, states)
    totals = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(measure, infos))
    return jax.lax.fori_loop(0, length, iterate, Chunk(states, draws, totals))


def measure(info: Info) -> Totals:
    """What one iteration adds to the totals."""
    return Totals(info.is_accepted.astype(info.not_private.clipped_ratios.dtype), info.not_private)
