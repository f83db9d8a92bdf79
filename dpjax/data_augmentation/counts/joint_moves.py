"""Joint moves of parameters and counts.

If the noise is large compared with the sampling error of the counts, parameters and counts are strongly dependent, and
neither moves far given the other. Here the parameters move first, from θ to θ′. Each record then moves by the maximal
coupling of its old distribution p and its new one p′. Of the c_k records in cell k a Binomial(c_k, min(1, p′_k / p_k))
number stays. Those that leave are spread over the cells in proportion to (p′ − p)⁺. The pair of tables then has a
symmetric joint distribution, p(c | θ) q(c → c′) = p(c′ | θ′) q(c′ → c), so that only prior and noise enter the
acceptance probability min(1, p(θ′) η(s | c′) / (p(θ) η(s | c))). It is a pCN move for tables.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.counts.form import as_count_model
from dpjax.data_augmentation.counts.table import COUNTS
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import accept, decision_uniforms, tree_where
from dpjax.numerics.counts import draw_binomial, draw_multinomial
from dpjax.numerics.loops import scan_short
from dpjax.release import Release

__all__ = ["JointInfo", "build_joint_step", "move_records"]

NUM_MOVES = 4
"""Number of moves per sweep, with steps of different sizes."""

SMALLEST_STEP, LARGEST_STEP = 0.1, 2.5
"""Range of the log-uniform step size, divided by √k, of Normal steps in whitened coordinates."""


class JointInfo(NamedTuple):
    """The report of a sweep's joint moves.

    Attributes
    ----------
    acceptance_rate
        The fraction accepted [].
    num_nonfinite
        How many had a non-finite density [].
    """

    acceptance_rate: Array
    num_nonfinite: Array


def build_joint_step(
    model: Model, release: Release
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, JointInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)`` in the count form.

    It leaves p(parameters, counts | release) invariant and moves both.
    """
    of_cells = as_count_model(model).of_cells

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, JointInfo]:
        vector, unravel = to_vector(model, parameters)
        log_prior = build_log_density(model, tuning, unravel, lambda parameters: jnp.zeros(()))

        def parameters_at(whitened: Array) -> Parameters:
            return model.constrain(unravel(tuning.colour(whitened)))

        def move(state: MovePlace, index: Array) -> tuple[MovePlace, tuple[Array, Array]]:
            size_key, step_key, record_key, accept_key = jax.random.split(jax.random.fold_in(rng_key, index), 4)
            size = step_size(jax.random.uniform(size_key), vector.size)
            whitened = state.whitened + size * jax.random.normal(step_key, vector.shape, vector.dtype)
            log_probabilities = (of_cells(parameters_at(at)) for at in (state.whitened, whitened))
            counts = move_records(record_key, state.counts, *log_probabilities)
            density = log_prior(whitened) + release.log_likelihood({COUNTS: counts[None]})
            accepted, broken = accept(density, state.log_density, jnp.log(decision_uniforms(accept_key)))
            return tree_where(accepted, MovePlace(whitened, counts, density), state), (accepted, broken)

        whitened, counts = tuning.whiten(vector), records[COUNTS][0]
        first = MovePlace(whitened, counts, log_prior(whitened) + release.log_likelihood(records))
        last, (accepted, broken) = scan_short(move, first, jnp.arange(NUM_MOVES))
        moved = tree_where(jnp.any(accepted), parameters_at(last.whitened), parameters)
        return moved, {COUNTS: last.counts[None]}, JointInfo(jnp.mean(accepted), jnp.sum(broken))

    return step


class MovePlace(NamedTuple):
    """A whitened vector [k], counts [c], and the log-density of prior and release there, without that of the counts."""

    whitened: Array
    counts: Array
    log_density: Array


def step_size(uniform: Array, dimension: int) -> Array:
    """The size of a step, log-uniform."""
    low, high = jnp.log(SMALLEST_STEP), jnp.log(LARGEST_STEP)
    return jnp.exp(low + uniform * (high - low)) / jnp.sqrt(dimension)


def move_records(key: Key, counts: Array, old: Array, new: Array) -> Array:
    """Counts [c] after every record moves by the maximal coupling of two distributions, as log-probabilities [c]."""
    stay_key, spread_key = jax.random.split(key)
    possible = (old > -jnp.inf) & (counts > 0)
    stays = jnp.where(possible, jnp.exp(jnp.minimum(new - jnp.where(possible, old, 0.0), 0.0)), 0.0)
    stay = draw_binomial(stay_key, counts, stays)
    gained = jnp.maximum(jnp.exp(new) - jnp.exp(old), 0.0)
    # If the distributions are equal no record leaves, and no cell gains.
    total = jnp.sum(gained)
    share = jnp.where(total > 0, gained, 1.0)
    return stay + draw_multinomial(spread_key, jnp.sum(counts - stay), share)
