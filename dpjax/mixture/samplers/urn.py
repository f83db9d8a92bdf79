"""Blackwell and MacQueen's urn: the cluster that each record is offered, and the order in which they decide.

Whose cluster a record is offered can be drawn before the sweep: that of another record, all with equal probability, or
a new one. It waits only for that one record, and only if that comes earlier, so all records decide at once in a few
rounds, and what comes out is the sweep in turn, number by number.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from dpjax.base import Array

__all__ = ["Urn", "draw_urn", "settle"]

Offered = TypeVar("Offered")
"""What the records are offered: a pytree."""


class Urn(NamedTuple):
    """Which cluster each record is offered.

    Attributes
    ----------
    sources
        The other record [n] whose cluster it is, where it is not new.
    fresh
        Whether it is new [n].
    slots
        The empty slot [n] of a new one, a slot for each.
    overflow
        Whether there are more new ones than empty slots [].
    """

    sources: Array
    fresh: Array
    slots: Array
    overflow: Array


def draw_urn(uniforms: Array, counts: Array, concentration: Array) -> Urn:
    """Offers to records that are each taken out: of n - 1 others and a new cluster, with weights 1 and α.

    Parameters
    ----------
    uniforms : [n]
        Draws from the uniform law on [0, 1).
    counts : [H]
        The sizes of the clusters.
    """
    n = uniforms.shape[0]
    places = jnp.floor(uniforms * (n - 1 + concentration)).astype(jnp.int32)
    fresh = places >= n - 1
    sources = places + (places >= jnp.arange(n, dtype=jnp.int32)).astype(jnp.int32)
    empty_so_far = jnp.cumsum(counts == 0)
    new_so_far = jnp.cumsum(fresh)
    slots = jnp.sum(empty_so_far[None, :] < new_so_far[:, None], axis=1, dtype=jnp.int32)
    last = counts.shape[0] - 1
    return Urn(jnp.where(fresh, 0, sources), fresh, jnp.minimum(slots, last), new_so_far[-1] > empty_so_far[-1])


def settle(urn: Urn, labels: Array, offer: Callable[[Array], Offered], accept: Callable[[Offered], Array]) -> Offered:
    """The offers that the records get when they decide one after another.

    Each round lets all decide at once, given what earlier records did in the round before. A record that waits for
    none is right in the first round, one that waits for it in the second, and so on; when a round changes no offer,
    all are right, for each follows from those before it.

    Parameters
    ----------
    labels : [n]
        The slots before the sweep.
    offer
        ``labels -> offers``; what a record gets depends on its own label only.
    accept
        ``offers -> [n]``; whether a record takes that depends on what no later record gets.
    """
    before = labels[urn.sources]
    earlier = urn.sources < jnp.arange(labels.shape[0], dtype=labels.dtype)

    def offered(after: Array) -> Array:
        return jnp.where(urn.fresh, urn.slots, jnp.where(earlier, after[urn.sources], before))

    def unfinished(carry: tuple[Array, Array, Offered, Array]) -> Array:
        return carry[3]

    def decide(carry: tuple[Array, Array, Offered, Array]) -> tuple[Array, Array, Offered, Array]:
        number, given, _, _ = carry
        offers = offer(given)
        following = offered(jnp.where(accept(offers), given, labels))
        # A component whose draws depend on other records' parameters could go round in circles.
        changed = jnp.any(following != given) & (number < labels.shape[0])
        return number + 1, following, offers, changed

    start = offered(labels)
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(offer, start))
    return jax.lax.while_loop(unfinished, decide, (jnp.array(0), start, empty, jnp.array(True)))[2]
