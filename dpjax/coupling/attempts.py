"""One offer made to both chains, as a function of its innovations: coupled SOMA and coupled IMwG."""

from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.coupling.indices import couple_indices
from dpjax.coupling.sides import Choice, Sides
from dpjax.coupling.simple import common_uniform
from dpjax.coupling.target import Target
from dpjax.imputation.soma import reverse_total
from dpjax.numerics import proper_density

__all__ = ["Innovation", "imwg_choices", "soma_choices"]


class Innovation(NamedTuple):
    """What an attempt draws.

    first, second
        The offer's column for each chain [d].
    same
        Whether both are the same offer [].
    places
        The places tried [m], common to both chains; None for all; of IMwG the one place [].
    select, accept
        Uniforms [] that choose the place and decide on the offer.
    """

    first: Array
    second: Array
    same: Array
    places: Array | None
    select: Array
    accept: Array


def soma_choices(target: Target, sides: Sides, offer: Innovation) -> tuple[Choice, Choice, Array]:
    """Coupled SOMA: places by a maximal coupling of w / W and w̃ / W̃, acceptance by one uniform; and if w is NaN [].

    Xiong and Ju (2025), Appendix A.6. Each chain alone makes an attempt of their Algorithm 1. The residuals begin with
    the places at which the chains differ, so that these are paired with each other rather than with places that agree;
    the proof of their Lemma 18 needs this order, and pairs meet about twice as soon.
    """
    first, second, same = sides
    raw = [
        target.log_weights_with(side.summary, side.columns, offer.places, column)
        for side, column in ((first, offer.first), (second, offer.second))
    ]
    weights, other_weights = map(proper_density, raw)
    tried = same if offer.places is None else same[offer.places]
    (index, log_total), (other, other_total) = couple_indices(offer.select, weights, other_weights, ~tried)
    accepted, other_accepted, _ = common_uniform(
        offer.accept,
        log_acceptance(weights[index], log_total, first.log_weight),
        log_acceptance(other_weights[other], other_total, second.log_weight),
    )
    if offer.places is not None:
        one, two = Choice(offer.places[index], accepted, weights[index]), offer.places[other]
    else:
        one, two = Choice(index, accepted, weights[index]), other
    broken = ~jnp.all(raw[0] < jnp.inf) | ~jnp.all(raw[1] < jnp.inf)
    return one, follow(sides, offer, one, Choice(two, other_accepted, other_weights[other])), broken


def log_acceptance(log_weight: Array, log_total: Array, log_current: Array) -> Array:
    """log W / (W + w_0 − w_I) [], the acceptance of equation (8) before the minimum with 1."""
    scale = jnp.maximum(log_total, log_current)
    weight, total, current = (jnp.exp(log - scale) for log in (log_weight, log_total, log_current))
    return log_total - scale - jnp.log(reverse_total(weight, total, current))


def imwg_choices(target: Target, sides: Sides, offer: Innovation) -> tuple[Choice, Choice, Array]:
    """Coupled IMwG: one place for both chains, acceptance by one uniform; and whether a weight is not a number []."""
    first, second, _ = sides
    place = jnp.asarray(offer.places)
    raw = target.log_weight_with(first.summary, first.columns, place, offer.first)
    other_raw = target.log_weight_with(second.summary, second.columns, place, offer.second)
    weight, other_weight = proper_density(raw), proper_density(other_raw)
    accepted, other_accepted, _ = common_uniform(
        offer.accept, weight - first.log_weight, other_weight - second.log_weight
    )
    one, other = Choice(place, accepted, weight), Choice(place, other_accepted, other_weight)
    return one, follow(sides, offer, one, other), ~((raw < jnp.inf) & (other_raw < jnp.inf))


def follow(sides: Sides, offer: Innovation, one: Choice, other: Choice) -> Choice:
    """The second chain's choice: the first's, bit for bit, where records and offer are all the same."""
    together = offer.same & jnp.all(sides.same)
    return Choice(*(jnp.where(together, mine, its) for mine, its in zip(one, other, strict=True)))
