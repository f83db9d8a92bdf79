"""Split-merge moves: the cluster of two records is split, or the two clusters that they are in are merged."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureInfo, MixtureState
from dpjax.mixture.samplers.conditional import Problem, Scheme, summarize_clusters, sweep
from dpjax.mixture.samplers.launch import (
    TOGETHER,
    Division,
    Launch,
    Pair,
    Setting,
    draw_launch,
    log_imputed,
    log_sides,
    summarize_places,
)
from dpjax.mixture.samplers.marginal import sweep_marginal
from dpjax.mixture.samplers.records import take
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.numerics import proper_density

__all__ = ["Reseated", "split_merge", "sweep_split_merge"]


class Reseated(NamedTuple):
    """Labels [n] and records [n, ...] after some moves, how many were accepted [], and whether slots ran out []."""

    labels: Array
    records: Array
    num_accepted: Array
    overflow: Array


def sweep_split_merge(
    problem: Problem, scheme: Scheme | MarginalScheme, key: Key, state: MixtureState
) -> tuple[MixtureState, MixtureInfo]:
    """Split-merge moves and then a sweep, which together leave p(labels, records, ... | values) invariant."""
    key_move, key_theta, key_sweep = jax.random.split(key, 3)
    moved = split_merge(problem, scheme, key_move, state)
    counts, totals = summarize_clusters(problem.component, scheme.capacity, moved.labels, moved.records)
    theta = problem.component.update(key_theta, state.mixing.theta, counts, totals)
    mixing = state.mixing._replace(theta=theta)
    state = MixtureState(moved.labels, moved.records, counts, totals, mixing, state.concentration, state.log_channel)
    after = sweep_marginal if isinstance(scheme, MarginalScheme) else sweep
    state, info = after(problem, scheme, key_sweep, state)  # type: ignore[arg-type]
    return state, info._replace(num_split_merges=moved.num_accepted, overflow=info.overflow | moved.overflow)


def split_merge(problem: Problem, scheme: Scheme | MarginalScheme, key: Key, state: MixtureState) -> Reseated:
    """Moves that leave p(labels, records | concentration, values) invariant, the parameters integrated out.

    That law has density ∝ α^K Π_k Γ(n_k) m(y_k) Π_i q(z_i | y_i), with m the component's evidence. Where the scheme
    draws records exactly, those of the clusters concerned are drawn anew with their sides; else they stay.

    Notes
    -----
    Jain and Neal (2004, 2007), but the shares of the two clusters are carried in the launch as well as their
    parameters, so that all records choose at once.
    """
    theta = {name: leaf[: TOGETHER + 1] for name, leaf in state.mixing.theta.items()}
    tractable = problem.tractable if draws_exactly(scheme) else None

    def propose(index: Array, present: Reseated) -> Reseated:
        key_pair, key_launch, key_accept = jax.random.split(jax.random.fold_in(key, index), 3)
        setting = Setting(problem, tractable, theta, draw_pair(key_pair, present.labels))
        launch, proposed = draw_launch(setting, key_launch, scheme.launch_scans, present.records)
        splitting = present.labels[setting.pair.first] == present.labels[setting.pair.second]
        division = compare(splitting, setting, proposed, present)
        log_ratio = log_split(setting, launch, division, state.concentration)
        uniform = jax.random.uniform(key_accept, (), state.concentration.dtype)
        accepted = jnp.log1p(-uniform) < proper_density(jnp.where(splitting, log_ratio, -log_ratio))
        return reseat(scheme.capacity, accepted, splitting, setting.pair, division, present)

    start = Reseated(state.labels, state.records, jnp.array(0), jnp.array(False))
    return jax.lax.fori_loop(0, scheme.split_merge, propose, start)


def draws_exactly(scheme: Scheme | MarginalScheme) -> bool:
    """Whether a scheme draws records from a known marginal, where there is one."""
    return scheme.sampler == "neal8" if isinstance(scheme, MarginalScheme) else scheme.num_offers == 0


def draw_pair(key: Key, labels: Array) -> Pair:
    """Two records, all pairs with equal probability."""
    key_first, key_second = jax.random.split(key)
    n = labels.shape[0]
    first = jax.random.randint(key_first, (), 0, n, jnp.int32)
    second = jax.random.randint(key_second, (), 0, n - 1, jnp.int32)
    second = second + (second >= first).astype(jnp.int32)
    return Pair(first, second, (labels == labels[first]) | (labels == labels[second]))


def compare(splitting: Array, setting: Setting, proposed: Division, present: Reseated) -> Division:
    """The two clusters and the one between which the move decides: one of the two is the present state."""
    pair = setting.pair
    now = jnp.where(pair.concerned, (present.labels == present.labels[pair.second]).astype(jnp.int32), TOGETHER)
    sides = jnp.where(splitting, proposed.sides, now)
    if setting.tractable is None:
        return Division(sides, present.records, present.records)
    apart = jnp.where(splitting, proposed.apart, present.records)
    return Division(sides, apart, jnp.where(splitting, present.records, proposed.together))


def log_split(setting: Setting, launch: Launch, division: Division, concentration: Array) -> Array:
    """The log-ratio [] of target over proposal density of two clusters to that of one; what they share cancels."""
    component: Any = setting.problem.component
    counts, totals = summarize_places(component, division)
    log_evidence, log_sizes = component.log_evidence(counts, totals), gammaln(counts)
    log_clusters = log_evidence + log_sizes
    log_ratio = jnp.log(concentration) + log_clusters[0] + log_clusters[1] - log_clusters[TOGETHER]
    log_ratio = log_ratio - log_sides(setting, launch, division.sides)
    if setting.tractable is None:
        return log_ratio
    one = jnp.full_like(division.sides, TOGETHER)
    of_two = log_imputed(setting, launch, division.sides, division.apart)
    return log_ratio - of_two + log_imputed(setting, launch, one, division.together)


def reseat(
    capacity: int, accepted: Array, splitting: Array, pair: Pair, division: Division, present: Reseated
) -> Reseated:
    """Labels and records after the decision; the second record's side gets the first empty slot."""
    labels = present.labels
    slots = jnp.arange(capacity, dtype=labels.dtype)
    occupied = jnp.any(labels[None, :] == slots[:, None], axis=1)
    opened = jnp.argmin(occupied).astype(labels.dtype)
    second_side = jnp.where(splitting, opened, labels[pair.first])
    moved = jnp.where(accepted & (division.sides == 1), second_side, labels)
    records = jnp.where(splitting, division.apart, division.together)
    records = take(accepted & pair.concerned, records, present.records)
    overflow = present.overflow | (accepted & splitting & jnp.all(occupied))
    return Reseated(moved, records, present.num_accepted + accepted.astype(present.num_accepted.dtype), overflow)
