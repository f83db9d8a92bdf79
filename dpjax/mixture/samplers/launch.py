"""Launch states of split-merge moves, in the sense of Jain and Neal (2004, 2007).

Two records, the anchors, are chosen; the move divides all records that share a cluster with one of them between the
two, or puts them together. A launch state is where the proposal is drawn from: it depends on the anchors and on which
records are concerned, but not on how they are divided at present. Here it consists of the parameters and weights of two
clusters and the parameters of their union, after a few Gibbs scans restricted to the records concerned. Given it the
records choose sides independently of each other, so that the proposal density is a product.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Component, Theta, Tractable
from dpjax.mixture.problem import Problem
from dpjax.mixture.samplers.clusters import at_labels, at_slots
from dpjax.mixture.starts import start_records
from dpjax.numerics.gamma import draw_log_gamma

__all__ = [
    "TOGETHER",
    "Anchors",
    "LaunchState",
    "SplitMove",
    "SplitProposal",
    "draw_launch",
    "log_imputed",
    "log_sides",
    "summarize_sides",
]

TOGETHER = 2
"""The row of the union, after those of the two clusters (sides 0 and 1); also the side of records not concerned."""


class Anchors(NamedTuple):
    """The two records [] whose cluster is split, or whose clusters are merged, and all [n] that share one with them."""

    first: Array
    second: Array
    concerned: Array


class SplitMove(NamedTuple):
    """What is fixed during one move.

    Attributes
    ----------
    tractable
        The known marginal g(z | θ), if the records concerned are proposed anew with their sides; None if they stay.
    theta
        Parameters [3, ...] of the right shapes, from which an exact draw does not depend.
    """

    problem: Problem
    tractable: Tractable | None
    theta: Theta
    anchors: Anchors


class LaunchState(NamedTuple):
    """What a proposal is drawn from.

    Attributes
    ----------
    theta
        The parameters [3, ...] of the two clusters and of their union.
    log_densities
        The log-densities [3, n] under them of the records, or of the released values where records are proposed anew.
    log_odds
        The log-odds [n] of the second cluster against the first.
    """

    theta: Theta
    log_densities: Array
    log_odds: Array


class SplitProposal(NamedTuple):
    """The sides [n] of the records, 0 or 1, and the records [n, ...] that go with two clusters and with their union."""

    sides: Array
    apart: Array
    together: Array


def draw_launch(move: SplitMove, key: Key, num_scans: int, records: Array) -> tuple[LaunchState, SplitProposal]:
    """The launch state after some scans, and a proposal drawn from it.

    The first scan starts from the anchors alone, the others unallocated, so that the launch state depends on the
    present one through the anchors and the records concerned only.
    """
    key_start, key_scan = jax.random.split(key)
    if move.tractable is not None:
        # The present records are proposed anew, so that the launch state may not depend on them.
        records = start_records(move.problem, key_start)
    nobody = jnp.full(records.shape[0], TOGETHER, jnp.int32)
    start = SplitProposal(with_anchors(move.anchors, nobody), records, records)

    def scan(proposal: SplitProposal, index: Array) -> tuple[SplitProposal, LaunchState]:
        key_launch, key_proposal = jax.random.split(jax.random.fold_in(key_scan, index))
        launch = fit(move, key_launch, proposal)
        return draw_proposal(move, key_proposal, launch, proposal), launch

    proposal, launches = jax.lax.scan(scan, start, jnp.arange(num_scans + 1))
    return jax.tree.map(lambda leaf: leaf[-1], launches), proposal


def with_anchors(anchors: Anchors, sides: Array) -> Array:
    """The sides [n] with those of the anchors, which are fixed, and none for records that are not concerned."""
    places = jnp.arange(sides.shape[0], dtype=jnp.int32)
    sides = jnp.where(places == anchors.first, 0, jnp.where(places == anchors.second, 1, sides))
    return jnp.where(anchors.concerned, sides, TOGETHER)


def fit(move: SplitMove, key: Key, proposal: SplitProposal) -> LaunchState:
    """A launch state drawn given an allocation: parameters and weights of the clusters given their records."""
    key_theta, key_share = jax.random.split(key)
    problem = move.problem
    counts, totals = summarize_sides(problem.component, proposal)
    theta = problem.component.update(key_theta, move.theta, counts, totals)
    log_gammas = draw_log_gamma(key_share, counts[:TOGETHER])
    if move.tractable is None:
        log_densities = at_slots(problem.component.log_density, proposal.apart, theta)
    else:
        log_densities = at_slots(move.tractable.log_marginal, problem.values, theta)
    log_odds = log_densities[1] - log_densities[0] + log_gammas[1] - log_gammas[0]
    return LaunchState(theta, log_densities, log_odds)


def summarize_sides(component: Component, proposal: SplitProposal) -> tuple[Array, Array]:
    """The numbers of records [3] and sums of features [3, k] of the two clusters and of their union."""
    apart, together = (jax.vmap(component.features)(records) for records in (proposal.apart, proposal.together))
    sides = jnp.arange(TOGETHER, dtype=jnp.int32)[:, None] == proposal.sides[None]
    both = jnp.any(sides, axis=0)
    precise = jax.lax.Precision.HIGHEST
    of_sides = jnp.matmul(sides.astype(apart.dtype), apart, precision=precise)
    of_both = jnp.matmul(both[None].astype(apart.dtype), together, precision=precise)
    members = jnp.concatenate([sides, both[None]]).astype(apart.dtype)
    return jnp.sum(members, axis=1), jnp.concatenate([of_sides, of_both])


def draw_proposal(move: SplitMove, key: Key, launch: LaunchState, present: SplitProposal) -> SplitProposal:
    """Sides given a launch state and, where the marginal is known, records given the sides."""
    key_side, key_apart, key_together = jax.random.split(key, 3)
    uniforms = jax.random.uniform(key_side, launch.log_odds.shape, launch.log_odds.dtype)
    sides = with_anchors(move.anchors, (uniforms < jax.nn.sigmoid(launch.log_odds)).astype(jnp.int32))
    if move.tractable is None:
        return present._replace(sides=sides)
    values, draw = move.problem.values, move.tractable.sample_latent
    apart = draw(key_apart, values, at_labels(launch.theta, sides))
    together = draw(key_together, values, at_labels(launch.theta, jnp.full_like(sides, TOGETHER)))
    return SplitProposal(sides, apart, together)


def log_sides(move: SplitMove, launch: LaunchState, sides: Array) -> Array:
    """The log-probability [] given a launch state of the sides that are free: those of the anchors are not."""
    places = jnp.arange(sides.shape[0], dtype=jnp.int32)
    free = move.anchors.concerned & (places != move.anchors.first) & (places != move.anchors.second)
    return jnp.sum(jnp.where(free, jax.nn.log_sigmoid(jnp.where(sides == 1, launch.log_odds, -launch.log_odds)), 0))


def log_imputed(move: SplitMove, launch: LaunchState, sides: Array, records: Array) -> Array:
    """The log-density [] of the records concerned, drawn from f(y | θ) q(z | y) / g(z | θ), without the factors q."""
    theta = at_labels(launch.theta, sides)
    log_records = jax.vmap(move.problem.component.log_density)(records, theta)
    log_values = launch.log_densities[sides, jnp.arange(sides.shape[0])]
    return jnp.sum(jnp.where(move.anchors.concerned, log_records - log_values, 0))
