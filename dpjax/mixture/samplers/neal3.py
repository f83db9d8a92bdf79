"""Neal's algorithm 3: the cluster of each record in turn is drawn with the parameters integrated out as well."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureState
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
from dpjax.mixture.samplers.base import Slots
from dpjax.mixture.samplers.gibbs_labels import choose_index
from dpjax.mixture.samplers.marginal import Evidence, Marginal, Relabelled, check_conjugate, evidence_of

__all__ = ["Neal3", "neal3"]


@dataclass(frozen=True)
class Neal3(Marginal):
    """Neal's algorithm 3; see `neal3`."""

    def fit(self, problem: MixtureProblem) -> "Neal3":
        """The sampler, or an error unless the base measure is conjugate to the released values."""
        check_conjugate("neal3()", problem)
        return self

    def relabel(self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState) -> Relabelled:
        """A Gibbs sweep over the labels alone."""
        del slots
        return collapsed_labels(problem, key, state)


@names_arguments
def neal3() -> Neal3:
    """Move the labels one after another, with weights and parameters integrated out: Neal (2000), algorithm 3.

    It needs a base measure conjugate to the released values: records that are known and a component with
    ``log_evidence``, or `TruncatedNormalInverseGamma` behind Gaussian noise.

    Examples
    --------
    >>> import dpjax
    >>> sampler = dpjax.mixture.neal3()
    """
    return Neal3()


class Clusters(NamedTuple):
    """The sizes [H], sums of features [H, k] and log-evidence [H] of the clusters, and counts of failures."""

    counts: Array
    totals: Array
    log_evidence: Array
    num_nonfinite: Array
    overflow: Array


class MarginalSeat(NamedTuple):
    """One record's input to the scan: features [k], slot and a uniform draw."""

    features: Array
    label: Array
    uniform: Array


def collapsed_labels(problem: MixtureProblem, key: Key, state: MixtureState) -> Relabelled:
    """A Gibbs sweep over the labels alone.

    A record that is taken out joins cluster h with weight n_h m(y_h, z) / m(y_h), where m is the density of a cluster's
    values. It opens a new one with weight α m(z). With a discount d, n_h - d and α + d k take the place of n_h and α,
    where k is the number of other clusters.
    """
    uniforms = jax.random.uniform(key, state.labels.shape, state.counts.dtype)
    features = jax.vmap(problem.component.features)(problem.values)

    log_evidence = evidence_of(problem.component)
    process = problem.process(state.concentration)

    def turn(clusters: Clusters, seat: MarginalSeat) -> tuple[Clusters, Array]:
        return take_turn(log_evidence, process, clusters, seat)

    start = Clusters(
        state.counts, state.totals, log_evidence(state.counts, state.totals), jnp.array(0), jnp.array(False)
    )
    clusters, labels = jax.lax.scan(turn, start, MarginalSeat(features, state.labels, uniforms))
    one = jnp.ones((), uniforms.dtype)
    kept = (state.records, state.log_channel, state.mixing.theta)
    return Relabelled(labels, *kept, one, clusters.num_nonfinite, clusters.overflow)


def take_turn(
    log_evidence: Evidence, process: Process, clusters: Clusters, seat: MarginalSeat
) -> tuple[Clusters, Array]:
    """The clusters after one record is taken out and allocated again, and its new slot."""
    slots = jnp.arange(clusters.counts.shape[0], dtype=seat.label.dtype)
    own = (slots == seat.label).astype(clusters.counts.dtype)
    others = clusters.counts - own
    occupied = others > 0
    # Sums of emptied clusters are set to exactly 0, without rounding errors.
    totals = jnp.where(occupied[:, None], clusters.totals - jnp.outer(own, seat.features), 0)
    opening = slots == jnp.argmin(occupied).astype(slots.dtype)
    empty = jnp.where(opening, process.opening(jnp.sum(occupied)), 0)
    sizes = jnp.where(occupied, process.joining(others), empty)
    # One call for all clusters with the record, and its own without it.
    counts = jnp.append(others + 1, others[seat.label])
    found = log_evidence(counts, jnp.concatenate([totals + seat.features[None], totals[seat.label][None]]))
    joined, present = found[:-1], jnp.where(own > 0, found[-1], clusters.log_evidence)
    log_weights = jnp.where(sizes > 0, jnp.log(sizes) + joined - present, -jnp.inf)
    chosen, broken = choose_index(seat.uniform, log_weights)
    label = jnp.where(broken, seat.label, chosen)
    new = (slots == label).astype(others.dtype)
    after = (others + new, totals + jnp.outer(new, seat.features), jnp.where(new > 0, joined, present))
    num_nonfinite = clusters.num_nonfinite + jnp.where(broken, 1, 0)
    return Clusters(*after, num_nonfinite, clusters.overflow | jnp.all(occupied)), label
