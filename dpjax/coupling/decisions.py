"""What both chains do with one offer, as a function of its random numbers: coupled SOMA and coupled IMwG."""

from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.coupling.indices import couple_indices
from dpjax.coupling.pairs import CoupledSweepState
from dpjax.coupling.simple import common_uniform
from dpjax.exchangeable.sweeps import Decision, Innovations
from dpjax.exchangeable.targets import ExchangeableTarget
from dpjax.imputation.soma import reverse_total
from dpjax.numerics import proper_density, take_if

__all__ = ["OfferedColumns", "decide_imwg", "decide_soma"]


class OfferedColumns(NamedTuple):
    """One offer to each chain as columns [d], and whether the two are one and the same []."""

    first: Array
    second: Array
    same: Array


def decide_soma(
    target: ExchangeableTarget, states: CoupledSweepState, offer: OfferedColumns, innovation: Innovations
) -> tuple[Decision, Decision, Array]:
    """Coupled SOMA: places by a maximal coupling of w / W and w̃ / W̃, acceptance by one uniform; and if any w is NaN [].

    Xiong and Ju (2025), Appendix A.6. Each chain alone makes an attempt of their Algorithm 1. The residuals begin with
    the places at which the chains differ, so that these are paired with each other rather than with places that agree;
    the proof of their Lemma 18 needs this order, and pairs meet about twice as soon.
    """
    first, second, same = states
    raw = [
        target.log_weights_with(side.summary, side.columns, innovation.places, column)
        for side, column in ((first, offer.first), (second, offer.second))
    ]
    weights, other_weights = map(proper_density, raw)
    tried = same if innovation.places is None else same[innovation.places]
    (index, log_total), (other, other_total) = couple_indices(innovation.select, weights, other_weights, ~tried)
    accepted, other_accepted, _ = common_uniform(
        innovation.accept,
        log_acceptance(weights[index], log_total, first.log_weight),
        log_acceptance(other_weights[other], other_total, second.log_weight),
    )
    places = (index, other) if innovation.places is None else (innovation.places[index], innovation.places[other])
    one = Decision(places[0], accepted, weights[index])
    two = Decision(places[1], other_accepted, other_weights[other])
    broken = ~jnp.all(raw[0] < jnp.inf) | ~jnp.all(raw[1] < jnp.inf)
    return one, follow(states, offer, one, two), broken


def log_acceptance(log_weight: Array, log_total: Array, log_current: Array) -> Array:
    """log W / (W + w_0 − w_I) [], the acceptance of equation (8) before the minimum with 1."""
    scale = jnp.maximum(log_total, log_current)
    weight, total, current = (jnp.exp(log - scale) for log in (log_weight, log_total, log_current))
    return log_total - scale - jnp.log(reverse_total(weight, total, current))


def decide_imwg(
    target: ExchangeableTarget, states: CoupledSweepState, offer: OfferedColumns, innovation: Innovations
) -> tuple[Decision, Decision, Array]:
    """Coupled IMwG: one place for both chains, acceptance by one uniform; and whether a weight is not a number []."""
    first, second, _ = states
    place = jnp.asarray(innovation.places)
    raw = target.log_weight_with(first.summary, first.columns, place, offer.first)
    other_raw = target.log_weight_with(second.summary, second.columns, place, offer.second)
    weight, other_weight = proper_density(raw), proper_density(other_raw)
    accepted, other_accepted, _ = common_uniform(
        innovation.accept, weight - first.log_weight, other_weight - second.log_weight
    )
    one, other = Decision(place, accepted, weight), Decision(place, other_accepted, other_weight)
    return one, follow(states, offer, one, other), ~((raw < jnp.inf) & (other_raw < jnp.inf))


def follow(states: CoupledSweepState, offer: OfferedColumns, one: Decision, other: Decision) -> Decision:
    """The second chain's decision: the first's, bit for bit, where records and offer are all the same."""
    return take_if(offer.same & jnp.all(states.same), one, other)
