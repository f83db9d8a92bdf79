"""A Gibbs sweep over the labels: the cluster of each record in turn is drawn given all others and the parameters.

The densities are those of the released values with the records integrated out, and must be known.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureState, Theta
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
from dpjax.mixture.samplers.base import at_labels
from dpjax.mixture.samplers.marginal import Relabelled
from dpjax.mixture.samplers.records import exact_records
from dpjax.numerics import proper_density, select_index, tree_where

__all__ = ["Fresh", "choose_index", "gibbs_labels", "value_density"]


class Fresh(NamedTuple):
    """New clusters for each record to choose from: parameters, leaves [n, m, ...], and the log-density [n, m] there."""

    theta: Theta
    log_densities: Array


DrawFresh = Callable[[MixtureProblem, Key, MixtureState], Fresh]


class Seat(NamedTuple):
    """One record's input to the scan: its value, slot, a uniform draw, and the new clusters to choose from."""

    value: Array
    label: Array
    uniform: Array
    fresh: Fresh


class SeatTable(NamedTuple):
    """The state of the scan: the sizes [H] and parameters [H, ...] of the clusters, and counts of failures."""

    counts: Array
    theta: Theta
    num_nonfinite: Array
    overflow: Array


def gibbs_labels(
    problem: MixtureProblem, key: Key, state: MixtureState, draw_fresh: DrawFresh, keeps_own: bool
) -> Relabelled:
    """A Gibbs sweep over the labels given the parameters, then exact draws of the records behind a channel.

    A record that is taken out joins cluster h with weight n_h g(z | θ_h), or opens one of its m new clusters with
    weight α / m times the density there. With a discount d, n_h - d and (α + d k) / m take the place of n_h and α / m,
    where k is the number of other clusters.

    Parameters
    ----------
    draw_fresh
        The function that draws the new clusters.
    keeps_own
        Whether a record alone in its cluster has that cluster's parameters to choose, in place of its first new
        cluster.
    """
    key_fresh, key_uniform, key_record = jax.random.split(key, 3)
    uniforms = jax.random.uniform(key_uniform, state.labels.shape, state.counts.dtype)
    take = partial(take_turn, value_density(problem), problem.process(state.concentration), keeps_own)
    fresh = draw_fresh(problem, key_fresh, state)

    start = SeatTable(state.counts, state.mixing.theta, jnp.array(0), jnp.array(False))
    table, labels = jax.lax.scan(take, start, Seat(problem.values, state.labels, uniforms, fresh))
    records = state.records
    if problem.tractable is not None:
        theta = at_labels(table.theta, labels)
        kernel = exact_records(problem.tractable)
        records = kernel(key_record, problem.values, theta, records, state.log_channel).records
    one = jnp.ones((), uniforms.dtype)
    return Relabelled(labels, records, state.log_channel, table.theta, one, table.num_nonfinite, table.overflow)


def value_density(problem: MixtureProblem) -> Callable[[Array, Theta], Array]:
    """log g(z | θ) [] of one value."""
    return problem.component.log_density if problem.tractable is None else problem.tractable.log_marginal


def take_turn(
    density: Callable[[Array, Theta], Array], process: Process, keeps_own: bool, table: SeatTable, seat: Seat
) -> tuple[SeatTable, Array]:
    """The table after one record is taken out and allocated again, and its new slot.

    Parameters
    ----------
    keeps_own
        Whether a record alone in its cluster may stay there; its first new cluster is then withdrawn.
    """
    slots = jnp.arange(table.counts.shape[0], dtype=seat.label.dtype)
    own = slots == seat.label
    others = table.counts - own.astype(table.counts.dtype)
    own_empty = own & (others <= 0)
    num_fresh = seat.fresh.log_densities.shape[0]
    of_one = (process.opening(jnp.sum(others > 0)) / num_fresh).astype(others.dtype)
    sizes = jnp.where(others > 0, process.joining(others), jnp.where(own_empty & keeps_own, of_one, 0))
    log_slots = jnp.log(sizes) + jax.vmap(density, in_axes=(None, 0))(seat.value, table.theta)
    withdrawn = (jnp.arange(num_fresh) == 0) & jnp.any(own_empty) & keeps_own
    log_fresh = jnp.where(withdrawn, -jnp.inf, jnp.log(of_one) + seat.fresh.log_densities)
    log_weights = jnp.concatenate([jnp.where(sizes > 0, log_slots, -jnp.inf), log_fresh])
    chosen, broken = choose_index(seat.uniform, log_weights)
    opened = ~broken & (chosen >= slots.size)
    place = jnp.where(opened, jnp.argmin(others > 0).astype(seat.label.dtype), chosen)
    label = jnp.where(broken, seat.label, place)
    new = slots == label
    which = jnp.maximum(chosen - slots.size, 0)

    def seated(leaf: Array, proposed: Array) -> Array:
        return tree_where(new & opened, proposed[which][None], leaf)

    theta = {name: seated(leaf, seat.fresh.theta[name]) for name, leaf in table.theta.items()}
    overflow = table.overflow | (opened & jnp.all(others > 0))
    counts = others + new.astype(others.dtype)
    return SeatTable(counts, theta, table.num_nonfinite + jnp.where(broken, 1, 0), overflow), label


def choose_index(uniform: Array, log_weights: Array) -> tuple[Array, Array]:
    """An index [] drawn with log-weights [H], and whether none was possible."""
    chosen, log_total = select_index(proper_density(log_weights), uniform)
    return chosen.astype(jnp.int32), ~jnp.isfinite(log_total)
