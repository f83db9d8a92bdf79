"""Coupled random walks of the parameters given the records: for models without an exact update, such as NumPyro's.

A step proposes from N(z, ε²) and N(z̃, ε²), coupled by maximal reflection, and accepts both by one uniform: Jacob,
O'Leary and Atchadé (2020), Section 4. Each chain alone makes Metropolis steps on the whitened unconstrained vector.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters
from dpjax.coupling.couplings import common_uniform, reflect
from dpjax.coupling.pairs import RecordPair
from dpjax.data_augmentation.parameters.centred import build_log_likelihood
from dpjax.data_augmentation.parameters.coordinates import build_log_density
from dpjax.data_augmentation.parameters.kernels import NormalRandomWalk
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.records import imwg
from dpjax.data_augmentation.sweep import prior_tuning
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import decision_uniforms, tree_where

__all__ = ["VectorPair", "build_coupled_walk", "walk_step"]

NUM_STEPS = 10
"""Steps between two sweeps of the records: about as many as make a draw of few parameters that forgets the last one."""


class VectorPair(NamedTuple):
    """Whitened vectors [k] of two chains, their log-densities [], and whether the vectors are the same []."""

    first: Array
    second: Array
    log_density: Array
    other_log_density: Array
    same: Array


def build_coupled_walk(model: Model, n: int) -> Callable[..., tuple[Parameters, Parameters, Array]]:
    """The update ``(key, first, second, same, pair) -> (first, second, same)`` of the parameters of two chains.

    Each chain leaves p(parameters | records) invariant, by a walk whose steps are fitted to draws from the prior.

    Parameters
    ----------
    model
        Any model with parameters.
    n
        The number of records.
    """
    tuning: Any = prior_tuning(model, n, SweepPlan(imwg(), False, NormalRandomWalk(num_steps=1)))

    def update(key: Key, first: Parameters, second: Parameters, same: Array, pair: RecordPair) -> Any:
        vector, unravel = to_vector(model, first)
        other = jnp.where(same, vector, to_vector(model, second)[0])
        densities = [
            build_log_density(model, tuning, unravel, build_log_likelihood(model, records))
            for records in (pair.first, pair.second)
        ]
        met = jnp.all(pair.same)

        def move(state: VectorPair, index: Array) -> tuple[VectorPair, None]:
            normal_key, reflect_key, accept_key = jax.random.split(jax.random.fold_in(key, index), 3)
            normal = jax.random.normal(normal_key, vector.shape, vector.dtype)
            uniforms = decision_uniforms(reflect_key), decision_uniforms(accept_key)
            return walk_step(densities, tuning.step_size, met, state, normal, *uniforms), None

        whitened = tuning.whiten(vector), tuning.whiten(other)
        start = VectorPair(*whitened, densities[0](whitened[0]), densities[1](whitened[1]), jnp.asarray(same))
        end, _ = jax.lax.scan(move, start, jnp.arange(NUM_STEPS))
        drawn, other_drawn = (model.constrain(unravel(tuning.colour(place))) for place in (end.first, end.second))
        return drawn, tree_where(end.same, drawn, other_drawn), end.same

    return update


def walk_step(
    densities: list[Callable[[Array], Array]],
    step_size: Array,
    met: Array,
    state: VectorPair,
    normal: Array,
    reflect_uniform: Array,
    accept_uniform: Array,
) -> VectorPair:
    """One step of both chains as a function of its innovations, a standard Normal vector [k] and two uniforms [].

    Parameters
    ----------
    densities
        The log-densities ``[k] -> []`` of the two chains.
    step_size
        The standard deviation ε [] of a step.
    met
        Whether the two densities are the same [].
    """
    first, second, log_density, other_log_density, same = state
    factor = step_size * jnp.eye(first.size, dtype=first.dtype)
    proposed, other, same_proposal = reflect(normal, reflect_uniform, first, second, factor)
    new, other_new = densities[0](proposed), densities[1](other)
    accepted, other_accepted, _ = common_uniform(accept_uniform, new - log_density, other_new - other_log_density)
    # Equal chains decide alike, whatever the last bits of a density that is computed twice.
    other_accepted = jnp.where(same & met, accepted, other_accepted)
    moved = VectorPair(
        jnp.where(accepted, proposed, first),
        jnp.where(other_accepted, other, second),
        jnp.where(accepted, new, log_density),
        jnp.where(other_accepted, other_new, other_log_density),
        jnp.where(accepted & other_accepted, same_proposal, same & ~accepted & ~other_accepted),
    )
    return moved._replace(second=jnp.where(moved.same, moved.first, moved.second))
