"""Orders of the second chain's records that bring a pair closer; a law of exchangeable records knows no order.

Why this is allowed. Let the kernel of a chain commute with permutations, as do full SOMA and random-scan IMwG. Then
the multiset of its records is a Markov chain by itself, whatever the order in which they are written, and the second
chain may be reordered after each attempt, by any rule that looks at both chains. A systematic scan or a contiguous
window does not commute. Then a sweep must begin from a uniform order: the second chain is reordered after a sweep and
one common uniform permutation is applied to both, after which either order is uniform given the past.
"""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.coupling.sides import Choice, Side, Sides, is_place
from dpjax.numerics import sum_rows

__all__ = ["between_sweeps", "within_sweep"]


def within_sweep(sides: Sides, one: Choice, other: Choice, same_offer: Array) -> Sides:
    """The pair after an attempt, relabelled: an offer that both took at two places is moved to one.

    Then, if the place touched differs between the chains, the second's record there is exchanged with that of
    another unmatched place, where this brings the statistics of the two chains closer.
    """
    aligned = one.accepted & other.accepted & same_offer & (one.place != other.place)
    second = exchange(sides.second, one.place, jnp.where(aligned, other.place, one.place))
    same = sides.same | (is_place(sides.same, one.place) & aligned)
    touched = jnp.where(other.accepted, other.place, one.place)
    return exchange_closer(Sides(sides.first, second, same), touched)


def exchange(side: Side, place: Array, other: Array) -> Side:
    """The side with the records at two places [] exchanged."""
    here, there = is_place(side.source, place), is_place(side.source, other)

    def swap(values: Array) -> Array:
        at_place, at_other = values[..., place], values[..., other]
        return jnp.where(here, at_other[..., None], jnp.where(there, at_place[..., None], values))

    return side._replace(columns=swap(side.columns), source=swap(side.source))


def exchange_closer(sides: Sides, place: Array) -> Sides:
    """The second chain with the exchange of an unmatched place [] that shortens the summed L1 distance most, if any."""
    first, second, same = sides
    one, other = first.columns[:, place], second.columns[:, place]

    def row(index: int) -> Array:
        ours, theirs = first.columns[index], second.columns[index]
        now = jnp.abs(one[index] - other[index]) + jnp.abs(ours - theirs)
        return now - jnp.abs(one[index] - theirs) - jnp.abs(ours - other[index])

    gain = jnp.where(same | same[place], 0.0, sum_rows(row, len(one)))
    best = jnp.argmax(gain)
    return Sides(first, exchange(second, place, jnp.where(gain[best] > 0, best, place)), same)


def between_sweeps(key: Key, sides: Sides, same_offers: Array) -> Sides:
    """The pair after a sweep: same records at the same places, the rest by closeness, in a common uniform order.

    Parameters
    ----------
    same_offers : [m] bool
        Which offers of the sweep were the same for both chains.
    """
    n = sides.same.shape[0]
    sides = align(sides, same_offers)
    sides, _ = jax.lax.scan(lambda sides, place: (exchange_closer(sides, place), None), sides, jnp.arange(n))
    order = jax.random.permutation(key, n)

    def reorder(side: Side) -> Side:
        return side._replace(columns=side.columns[:, order], source=side.source[order])

    return Sides(reorder(sides.first), reorder(sides.second), sides.same[order])


def align(sides: Sides, same_offers: Array) -> Sides:
    """The second chain with every offer that both chains hold moved to the first chain's place of it."""
    first, second, same = sides
    n = same.shape[0]
    shared = (first.source >= n) & same_offers[jnp.maximum(first.source - n, 0)]
    held = shared[:, None] & (first.source[:, None] == second.source[None, :])  # [place, place of the second chain]
    held = held | jnp.diag(same)
    here, there = jnp.any(held, axis=1), jnp.any(held, axis=0)
    # The rest of the second chain fills the rest of the places, in order.
    spare = jnp.argsort(there, stable=True)[jnp.maximum(jnp.cumsum(~here) - 1, 0)]
    order = jnp.where(here, jnp.argmax(held, axis=1), spare)
    moved = second._replace(columns=second.columns[:, order], source=second.source[order])
    return Sides(first, moved, here)
