"""Launch states of split-merge moves: from where the cluster of two records is divided, or two are put together.

A launch knows which records are concerned but not how they are divided at present: it holds parameters of two clusters
and their shares, and parameters of one cluster, which a few scans have fitted to the records. Given it the records
choose sides independently of each other, so that the density of a division is a product.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Theta, Tractable
from dpjax.mixture.samplers.conditional import Problem, at_labels, at_slots
from dpjax.mixture.starts import start_records
from dpjax.models.gamma import draw_log_gamma

__all__ = [
    "TOGETHER",
    "Division",
    "Launch",
    "Pair",
    "Setting",
    "draw_launch",
    "log_imputed",
    "log_sides",
    "summarize_places",
]

TOGETHER = 2
"""The place of the one cluster, behind those of the two sides; also that of records that are not concerned."""


class Pair(NamedTuple):
    """Two records [] and all [n] that share a cluster with one of them."""

    first: Array
    second: Array
    concerned: Array


class Setting(NamedTuple):
    """What is given while divisions are drawn.

    tractable
        The known marginal if records are drawn anew with their sides; None if they stay as they are.
    theta
        Parameters [3, ...] of the right shapes; an exact draw ignores them.
    """

    problem: Problem
    tractable: Tractable | None
    theta: Theta
    pair: Pair


class Launch(NamedTuple):
    """What a division is drawn from.

    theta
        The parameters [3, ...] of the two sides and of both together.
    log_densities
        The log-densities [3, n] of the records under them, or of the released values where records are drawn anew.
    log_odds
        Of the second side [n].
    """

    theta: Theta
    log_densities: Array
    log_odds: Array


class Division(NamedTuple):
    """The sides [n], 0 or 1, and the records [n, ...] that go with two clusters and with one."""

    sides: Array
    apart: Array
    together: Array


def draw_launch(setting: Setting, key: Key, num_scans: int, records: Array) -> tuple[Launch, Division]:
    """A launch after some scans, and a division drawn from it.

    The first scan knows the sides of the two records alone.
    """
    key_start, key_scan = jax.random.split(key)
    if setting.tractable is not None:
        # The present records take part in the move, so that the launch may not know them.
        records = start_records(setting.problem, key_start)
    nobody = jnp.full(records.shape[0], TOGETHER, jnp.int32)
    start = Division(with_pair(setting.pair, nobody), records, records)

    def scan(division: Division, index: Array) -> tuple[Division, Launch]:
        key_launch, key_division = jax.random.split(jax.random.fold_in(key_scan, index))
        launch = fit(setting, key_launch, division)
        return draw_division(setting, key_division, launch, division), launch

    division, launches = jax.lax.scan(scan, start, jnp.arange(num_scans + 1))
    return jax.tree.map(lambda leaf: leaf[-1], launches), division


def with_pair(pair: Pair, sides: Array) -> Array:
    """The sides [n] with those of the two records, which are fixed, and none for those not concerned."""
    places = jnp.arange(sides.shape[0], dtype=jnp.int32)
    sides = jnp.where(places == pair.first, 0, jnp.where(places == pair.second, 1, sides))
    return jnp.where(pair.concerned, sides, TOGETHER)


def fit(setting: Setting, key: Key, division: Division) -> Launch:
    """Parameters and shares drawn given a division."""
    key_theta, key_share = jax.random.split(key)
    problem = setting.problem
    counts, totals = summarize_places(problem.component, division)
    theta = problem.component.update(key_theta, setting.theta, counts, totals)
    log_gammas = draw_log_gamma(key_share, counts[:TOGETHER])
    if setting.tractable is None:
        log_densities = at_slots(problem.component.log_density, division.apart, theta)
    else:
        log_densities = at_slots(setting.tractable.log_marginal, problem.values, theta)
    log_odds = log_densities[1] - log_densities[0] + log_gammas[1] - log_gammas[0]
    return Launch(theta, log_densities, log_odds)


def summarize_places(component: Any, division: Division) -> tuple[Array, Array]:
    """The numbers of records [3] and sums of features [3, k] of the two sides and of both together."""
    apart, together = (jax.vmap(component.features)(records) for records in (division.apart, division.together))
    sides = jnp.arange(TOGETHER, dtype=jnp.int32)[:, None] == division.sides[None]
    both = jnp.any(sides, axis=0)
    precise = jax.lax.Precision.HIGHEST
    of_sides = jnp.matmul(sides.astype(apart.dtype), apart, precision=precise)
    of_both = jnp.matmul(both[None].astype(apart.dtype), together, precision=precise)
    members = jnp.concatenate([sides, both[None]]).astype(apart.dtype)
    return jnp.sum(members, axis=1), jnp.concatenate([of_sides, of_both])


def draw_division(setting: Setting, key: Key, launch: Launch, present: Division) -> Division:
    """Sides and, from a known marginal, records drawn from a launch."""
    key_side, key_apart, key_together = jax.random.split(key, 3)
    uniforms = jax.random.uniform(key_side, launch.log_odds.shape, launch.log_odds.dtype)
    sides = with_pair(setting.pair, (uniforms < jax.nn.sigmoid(launch.log_odds)).astype(jnp.int32))
    if setting.tractable is None:
        return present._replace(sides=sides)
    values, draw = setting.problem.values, setting.tractable.sample_latent
    apart = draw(key_apart, values, at_labels(launch.theta, sides))
    together = draw(key_together, values, at_labels(launch.theta, jnp.full_like(sides, TOGETHER)))
    return Division(sides, apart, together)


def log_sides(setting: Setting, launch: Launch, sides: Array) -> Array:
    """The log-probability [] of the sides that were free to choose."""
    places = jnp.arange(sides.shape[0], dtype=jnp.int32)
    free = setting.pair.concerned & (places != setting.pair.first) & (places != setting.pair.second)
    return jnp.sum(jnp.where(free, jax.nn.log_sigmoid(jnp.where(sides == 1, launch.log_odds, -launch.log_odds)), 0))


def log_imputed(setting: Setting, launch: Launch, sides: Array, records: Array) -> Array:
    """The log-density [] of records drawn from f(y | θ) q(z | y) / g(z | θ), without the factors q."""
    theta = at_labels(launch.theta, sides)
    log_records = jax.vmap(setting.problem.component.log_density)(records, theta)
    log_values = launch.log_densities[sides, jnp.arange(sides.shape[0])]
    return jnp.sum(jnp.where(setting.pair.concerned, log_records - log_values, 0))
