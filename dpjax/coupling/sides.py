"""The two chains of a pair within a sweep, what an attempt does to them, and which of their places agree."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Records
from dpjax.coupling.target import Target
from dpjax.numerics import take_if

__all__ = ["Offers", "Pair", "Side", "Sides"]


class Pair(NamedTuple):
    """Records of two chains, leading axes [n], and the flags [n] of the places where they are one and the same.

    A flagged record of the second chain is a copy of the first chain's: equality is never read off the values, because
    a compiler may compute one value twice with different last bits.
    """

    first: Records
    second: Records
    same: Array


class Offers(NamedTuple):
    """m offers to each chain, leading axes [m], and which of them are one and the same [m]."""

    first: Records
    second: Records
    same: Array


class Side(NamedTuple):
    """One chain within a sweep.

    summary, log_weight, columns
        See `dpjax.coupling.target.Target`.
    source
        Where the record at each place comes from [n]: i < n is record i at the start of the sweep, n + k offer k.
    """

    summary: Array
    log_weight: Array
    columns: Array
    source: Array


class Sides(NamedTuple):
    """Both chains within a sweep and the flags [n] of the places where they agree."""

    first: Side
    second: Side
    same: Array


class Choice(NamedTuple):
    """What one chain does with an offer: its place [], whether it is taken [], and the log-weight it leads to []."""

    place: Array
    accepted: Array
    log_weight: Array


def start(target: Target, pair: Pair) -> Sides:
    """Both chains at the start of a sweep, their sums taken afresh."""
    columns = target.columns(pair.first)
    first = begin(target, columns)
    second = begin(target, jnp.where(pair.same, columns, target.columns(pair.second)))
    return agree(Sides(first, second, pair.same))


def begin(target: Target, columns: Array) -> Side:
    """One chain at the start of a sweep."""
    summary = target.summarize(columns)
    return Side(summary, target.log_weight(summary, columns), columns, jnp.arange(target.n))


def agree(sides: Sides) -> Sides:
    """The sides, with the second's sums copied from the first where all records are the same."""
    first, second, same = sides
    met = jnp.all(same)
    summary = jnp.where(met, first.summary, second.summary)
    log_weight = jnp.where(met, first.log_weight, second.log_weight)
    return Sides(first, second._replace(summary=summary, log_weight=log_weight), same)


def take(side: Side, choice: Choice, index: Array, offer: Array) -> Side:
    """The side after its choice on offer number `index` [] of column [d].

    Written with masks, which under `vmap` run several times faster than scattered writes.
    """
    written = is_place(side.source, choice.place) & choice.accepted
    replaced = side.columns[:, choice.place]
    return Side(
        jnp.where(choice.accepted, side.summary + offer - replaced, side.summary),
        jnp.where(choice.accepted, choice.log_weight, side.log_weight),
        jnp.where(written[None], offer[:, None], side.columns),
        jnp.where(written, side.source.shape[0] + index, side.source),
    )


def is_place(source: Array, place: Array) -> Array:
    """The mask [n] of one place []."""
    return jnp.arange(source.shape[0]) == place


def update_flags(sides: Sides, one: Choice, other: Choice, same_offer: Array) -> Array:
    """The flags [n] after both choices on an offer: set where both put the same offer, cleared where one wrote."""
    wrote_one = is_place(sides.same, one.place) & one.accepted
    wrote_other = is_place(sides.same, other.place) & other.accepted
    return jnp.where(wrote_one & wrote_other, same_offer, sides.same & ~(wrote_one | wrote_other))


def finish(sides: Sides, pair: Pair, offers: Offers) -> Pair:
    """The records after a sweep; flagged ones of the second chain are copies of the first chain's."""
    first = collect(sides.first, pair.first, offers.first)
    second = collect(sides.second, pair.second, offers.second)
    return Pair(first, take_if(sides.same, first, second), sides.same)


def collect(side: Side, records: Records, offers: Records) -> Records:
    """The records of one chain after a sweep, from those at its start and the offers."""
    return jax.tree.map(lambda kept, new: jnp.concatenate([kept, new])[side.source], records, offers)
