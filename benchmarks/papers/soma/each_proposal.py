"""Chains whose parameters are updated after every proposal, to a random record or where SOMA selects.

The text of the paper can be read so; `dpjax.gibbs` updates them after a sweep of n proposals.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import dpjax
from benchmarks.papers.soma.problems import Problem
from dpjax.data_augmentation.records.placed import SummedTarget, SweepState, decide_at, start_sweep
from dpjax.data_augmentation.records.soma import decide_among
from dpjax.exchangeable.sweeps import Innovations, Placement, draw_innovations

Update = Callable[[jax.Array, dpjax.base.Parameters, Any], dpjax.base.Parameters]
"""New parameters from a key, those before, and what is kept of the records [n, ...]."""

Keep = Callable[[dpjax.base.Records], Any]
"""What is kept of records for the update, with the same leading axis."""


class State(NamedTuple):
    """Parameters, what is kept of the records, and the state of the proposals."""

    parameters: dpjax.base.Parameters
    kept: Any
    sweep: SweepState


def advance(
    problem: Problem, kind: str, update: Update, keep: Keep, block: int, blocks: int
) -> Callable[[jax.Array, dpjax.base.Parameters, dpjax.base.Records], tuple]:
    """A chain as a function of its key and start: parameters and acceptance after every `block` proposals [blocks].

    Sums are computed anew in every block, so that rounding does not accumulate.
    """
    model, release = problem
    target, n = SummedTarget(release, release.n), release.n
    placement = Placement(kind, n, n if kind == "soma" else 1, block)  # type: ignore[arg-type]

    def propose(state: State, step: tuple[jax.Array, Innovations]) -> tuple[State, jax.Array]:
        key, innovation = step
        proposal_key, update_key = jax.random.split(key)
        proposal = model.sample_records(proposal_key, state.parameters, 1)
        column = target.columns(proposal)[:, 0]
        if kind == "soma":
            tried = (None, innovation.select, innovation.accept)
            (place, accepted, log_weight), _ = decide_among(n, target, state.sweep, column, tried)
        else:
            at = (innovation.places, jnp.log(innovation.accept))
            (place, accepted, log_weight), _ = decide_at(target, state.sweep, column, at)
        written = (jnp.arange(n) == place) & accepted

        def replace(kept: jax.Array, new: jax.Array) -> jax.Array:
            return jnp.where(written.reshape(-1, *(1,) * (kept.ndim - 1)), new, kept)

        kept = jax.tree.map(replace, state.kept, keep(proposal))
        summary = state.sweep.summary + column - state.sweep.columns[:, place]
        sweep = SweepState(
            jnp.where(accepted, summary, state.sweep.summary),
            jnp.where(accepted, log_weight, state.sweep.log_weight),
            jnp.where(written[None], column[:, None], state.sweep.columns),
        )
        return State(update(update_key, state.parameters, kept), kept, sweep), accepted

    def make_block(state: State, key: jax.Array) -> tuple[State, tuple]:
        innovations_key, steps_key = jax.random.split(key)
        steps = (jax.random.split(steps_key, block), draw_innovations(innovations_key, placement))
        state, accepted = jax.lax.scan(propose, state._replace(sweep=start_sweep(target, state.sweep.columns)), steps)
        return state, (state.parameters, jnp.mean(accepted))

    def run(key: jax.Array, parameters: dpjax.base.Parameters, records: dpjax.base.Records) -> tuple:
        start = State(parameters, keep(records), start_sweep(target, target.columns(records)))
        return jax.lax.scan(make_block, start, jax.random.split(key, blocks))[1]

    return run
