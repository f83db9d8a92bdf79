"""Neal's algorithm 5 behind a channel: every record in turn is offered a cluster from the urn, and a value from it.

Algorithm 1 of Beraha, Favaro and Rao (2025). Whose cluster a record is offered can be drawn before the sweep: that of
another record, all with equal probability, or a new one. It waits only for that one record, and only if that comes
earlier, so all records decide at once in a few rounds, and what comes out is the sweep in turn, number by number. The
same holds where one release tells of all records (section 5.1): there a round decides by a scan over bins.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureState, Theta
from dpjax.mixture.samplers.conditional import Problem, at_labels
from dpjax.mixture.samplers.records import channel_densities, decide, take
from dpjax.mixture.samplers.relabelled import MarginalScheme, Relabelled
from dpjax.mixture.samplers.slices import first_above, running_sums
from dpjax.numerics import proper_density

__all__ = ["Urn", "draw_urn", "offered_labels", "settle"]


class Urn(NamedTuple):
    """Which cluster each record is offered.

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


class Offers(NamedTuple):
    """What the records are offered: slots [n], auxiliary records [m, n, ...] and their log q(z_i | ·) [m, n]."""

    labels: Array
    records: Array
    log_channel: Array


def offered_labels(problem: Problem, scheme: MarginalScheme, key: Key, state: MixtureState) -> Relabelled:
    """A sweep of Metropolis steps over the records that leaves labels and auxiliary records invariant.

    The target is the urn's law of the labels times Π_i (1/m) Σ_j q(z_i | y_ij) Π_j f(y_ij | θ_(c_i)); an offer from the
    urn and from f is taken with probability min(1, ĝ' / ĝ). One release η of all records takes the product's place, and
    its ratio that of ĝ.
    """
    channel = problem.channel
    assert channel is not None
    key_fresh, key_urn, key_accept, key_offer, key_redraw, key_select = jax.random.split(key, 6)
    n, dtype = state.labels.shape[0], state.counts.dtype
    theta = fill_empty(problem.component.sample_prior(key_fresh, scheme.capacity), state)
    held = unpack(problem, scheme, key_redraw, theta, state)
    urn = draw_urn(jax.random.uniform(key_urn, (n,), dtype), state.counts, state.concentration)

    def offer(labels: Array) -> Offers:
        # In every round the same numbers, so that an offer of the same cluster is the same offer.
        records = draw_records(problem, jax.random.clone(key_offer), theta, labels, scheme.auxiliaries)
        return Offers(labels, records, log_channels(problem, records))

    def accept(offers: Offers) -> Array:
        log_ratios = log_mean(offers.log_channel) - present
        return decide(channel, held.records[0], offers.records[0], log_ratios, log_uniforms)

    present = log_mean(held.log_channel)
    log_uniforms = jnp.log1p(-jax.random.uniform(key_accept, (n,), dtype))
    offers = settle(urn, state.labels, offer, accept)
    accepted = accept(offers)
    records = jax.vmap(take, in_axes=(None, 0, 0))(accepted, offers.records, held.records)
    log_channel = jnp.where(accepted[None], offers.log_channel, held.log_channel)
    labels = jnp.where(accepted, offers.labels, state.labels)
    packed = pack(scheme, key_select, Offers(labels, records, log_channel))
    num_nonfinite = jnp.sum(jnp.any(jnp.isnan(offers.log_channel), axis=0))
    rate = jnp.mean(accepted, dtype=dtype)
    return Relabelled(*packed, theta, rate, num_nonfinite, urn.overflow)


def fill_empty(fresh: Theta, state: MixtureState) -> Theta:
    """The parameters [H, ...] of the clusters, with fresh ones in the empty slots."""
    occupied, present = state.counts > 0, state.mixing.theta
    return {name: take(occupied, present[name], leaf) for name, leaf in fresh.items()}


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


def settle(urn: Urn, labels: Array, offer: Callable[[Array], Offers], accept: Callable[[Offers], Array]) -> Offers:
    """The offers that the records get when they decide one after another.

    Each round lets all decide at once, given what earlier records did in the round before. A record that waits for
    none is right in the first round, one that waits for it in the second, and so on; when a round changes no offer,
    all are right, for each follows from those before it.

    Parameters
    ----------
    labels : [n]
        The slots before the sweep.
    offer, accept
        ``labels -> offers`` and ``offers -> [n]``; what a record gets depends on its own label only, and whether it
        takes that on what no later record gets.
    """
    before = labels[urn.sources]
    earlier = urn.sources < jnp.arange(labels.shape[0], dtype=labels.dtype)

    def offered(after: Array) -> Array:
        return jnp.where(urn.fresh, urn.slots, jnp.where(earlier, after[urn.sources], before))

    def unfinished(carry: tuple[Array, Array, Offers, Array]) -> Array:
        return carry[3]

    def decide(carry: tuple[Array, Array, Offers, Array]) -> tuple[Array, Array, Offers, Array]:
        number, given, _, _ = carry
        offers = offer(given)
        following = offered(jnp.where(accept(offers), given, labels))
        # A kernel whose draws depend on other records' parameters could go round in circles.
        changed = jnp.any(following != given) & (number < labels.shape[0])
        return number + 1, following, offers, changed

    start = offered(labels)
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(offer, start))
    return jax.lax.while_loop(unfinished, decide, (jnp.array(0), start, empty, jnp.array(True)))[2]


def draw_records(problem: Problem, key: Key, theta: Theta, labels: Array, size: int) -> Array:
    """Several records [size, n, ...] for each of the labels [n]."""
    drawn = problem.component.sample(key, at_labels(theta, jnp.tile(labels, size)))
    return drawn.reshape(size, labels.shape[0], *drawn.shape[1:])


def log_channels(problem: Problem, records: Array) -> Array:
    """log q(z_i | y_ij) [m, n]."""
    assert problem.channel is not None
    channel = problem.channel
    return jax.vmap(lambda row: channel_densities(channel, problem.values, row))(records)


def log_mean(log_channel: Array) -> Array:
    """log ĝ_i [n], the mean over the auxiliaries of q (equation 8)."""
    if log_channel.shape[0] == 1:
        return log_channel[0]
    return logsumexp(log_channel, axis=0) - log(log_channel.shape[0])


def unpack(problem: Problem, scheme: MarginalScheme, key: Key, theta: Theta, state: MixtureState) -> Offers:
    """The auxiliary records held, or the one held beside others drawn anew, which leaves their law invariant."""
    if scheme.num_held > 1:
        return Offers(state.labels, jnp.swapaxes(state.records, 0, 1), state.log_channel.T)
    records, log_channel = state.records[None], state.log_channel[None]
    if scheme.auxiliaries > 1:
        others = draw_records(problem, key, theta, state.labels, scheme.auxiliaries - 1)
        records = jnp.concatenate([records, others])
        log_channel = jnp.concatenate([log_channel, log_channels(problem, others)])
    return Offers(state.labels, records, log_channel)


def pack(scheme: MarginalScheme, key: Key, held: Offers) -> Offers:
    """What the state holds of the auxiliary records: all, or one drawn with probability ∝ q(z_i | ·)."""
    if scheme.num_held > 1:
        return Offers(held.labels, jnp.swapaxes(held.records, 0, 1), held.log_channel.T)
    if scheme.auxiliaries == 1:
        return Offers(held.labels, held.records[0], held.log_channel[0])
    log_weights = proper_density(held.log_channel)
    peaks = jnp.max(log_weights, axis=0)
    weights = jnp.exp(log_weights - jnp.where(jnp.isfinite(peaks), peaks, 0)[None])
    uniform = jax.random.uniform(key, peaks.shape, peaks.dtype)
    chosen = jnp.where(jnp.isfinite(peaks), first_above(running_sums(weights), uniform), 0)
    place = jnp.arange(peaks.shape[0])
    return Offers(held.labels, held.records[chosen, place], held.log_channel[chosen, place])
