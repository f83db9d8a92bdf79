"""Coupled sweeps of IMwG and SOMA over the records of two chains."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.coupling.attempts import Innovation, imwg_choices, soma_choices
from dpjax.coupling.relabel import between_sweeps, within_sweep
from dpjax.coupling.scheme import Scheme
from dpjax.coupling.sides import Offers, Pair, Sides, agree, finish, start, take, update_flags
from dpjax.coupling.target import Target
from dpjax.imputation.soma import window_starts
from dpjax.numerics import decision_uniforms

__all__ = ["SweepInfo", "draw_innovations", "sweep", "sweep_records"]


class SweepInfo(NamedTuple):
    """What a coupled sweep reports.

    acceptance_rate
        The share of offers accepted by each chain [2].
    num_nonfinite
        How many offers met a weight that is not a number, and is taken for zero [].
    """

    acceptance_rate: Array
    num_nonfinite: Array


def sweep_records(key: Key, target: Target, pair: Pair, offers: Offers, scheme: Scheme) -> tuple[Pair, SweepInfo]:
    """A coupled sweep of these offers: each chain alone makes the scheme's sweep with the offers to it."""
    innovation_key, order_key = jax.random.split(key)
    places, select, accept = draw_innovations(innovation_key, scheme)
    return sweep(target, pair, offers, scheme, places, select, accept, order_key)


def draw_innovations(key: Key, scheme: Scheme) -> tuple[Array | None, Array, Array]:
    """The places of a sweep's offers, and the uniforms [offers] that choose among them and decide."""
    accept_key, select_key = jax.random.split(key)
    accept = decision_uniforms(accept_key, (scheme.offers,))
    if scheme.kind == "random":
        return jax.random.randint(select_key, (scheme.offers,), 0, scheme.n), accept, accept
    return fixed_places(scheme), jax.random.uniform(select_key, (scheme.offers,), float), accept


def fixed_places(scheme: Scheme) -> Array | None:
    """The places at which each offer is tried: [offers, m] of windows, [offers] of a systematic scan, None for all."""
    if scheme.kind == "systematic":
        return jnp.arange(scheme.n)
    if scheme.attempts == scheme.n:
        return None
    return jnp.asarray(window_starts(scheme.n, scheme.attempts)[:, None] + jnp.arange(scheme.attempts)[None])


def sweep(
    target: Target,
    pair: Pair,
    offers: Offers,
    scheme: Scheme,
    places: Array | None,
    select: Array,
    accept: Array,
    order_key: Key,
) -> tuple[Pair, SweepInfo]:
    """A coupled sweep as a function of its innovations; the last is used where the scheme relabels between sweeps.

    Parameters
    ----------
    places
        The places tried: None for all, [m, attempts], or of IMwG [m].
    select, accept : [m]
        Uniforms that choose places and decide on offers.
    """
    columns = target.columns(offers.first)
    second_columns = jnp.where(offers.same, columns, target.columns(offers.second))

    def attempt(sides: Sides, step: Any) -> Any:
        index, innovation = step
        if scheme.kind == "soma":
            one, other, broken = soma_choices(target, sides, innovation)
        else:
            one, other, broken = imwg_choices(target, sides, innovation)
        moved = Sides(
            take(sides.first, one, index, innovation.first),
            take(sides.second, other, index, innovation.second),
            update_flags(sides, one, other, innovation.same),
        )
        if scheme.relabel == "within":
            moved = within_sweep(moved, one, other, innovation.same)
        return agree(moved), (jnp.stack([one.accepted, other.accepted]), broken)

    innovations = Innovation(columns.T, second_columns.T, offers.same, places, select, accept)
    steps = (jnp.arange(scheme.offers), innovations)
    sides, (accepted, broken) = jax.lax.scan(attempt, start(target, pair), steps)
    if scheme.relabel == "between":
        sides = between_sweeps(order_key, sides, offers.same)
    return finish(sides, pair, offers), SweepInfo(jnp.mean(accepted, axis=0), jnp.sum(broken))
