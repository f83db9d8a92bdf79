"""A sweep whose proposals are tried at several records, or at random ones, as a function of its random numbers.

It is of any density of exchangeable records that tells the weights of proposals at these: that of a released sum, or
those of `dpjax.exchangeable`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, Latent, Records
from dpjax.data_augmentation.records.proposals import take_sources
from dpjax.numerics import accept
from dpjax.numerics.loops import scan_short
from dpjax.release import Release

Window = tuple[Array, int] | None
"""The first of some neighbouring records [] and their number; None for all records."""


class ExchangeableTarget(Protocol):
    """A density π of n exchangeable records with proposals from q, through its proper log-weights.

    The proper log-weight of records x is log π(x) − Σ log q(x_j) up to a constant: Xiong and Ju (2025), Corollary 6.
    For each record the *column* [d] of numbers is kept that the weights depend on, and for all records a running
    *summary* [d]. So a proposal needs no pass over the records.
    """

    n: int

    def columns(self, records: Records) -> Array:
        """The columns [d, m] of m records."""

    def summarize(self, columns: Array) -> Array:
        """The summary [d] of n columns; replacing a column changes it by the difference."""

    def log_weight(self, summary: Array, columns: Array) -> Array:
        """The log-weight log w_0 [] of the current records."""

    def log_weight_with(self, summary: Array, columns: Array, place: Array, proposal: Array) -> Array:
        """The log-weight [] with the proposal [d] in one place []."""

    def log_weights_with(self, summary: Array, columns: Array, window: Window, proposal: Array) -> Array:
        """The log-weights log w_i [m] with the proposal [d] in each of the places of a window."""


class SummedTarget:
    """A density that depends on the sum of the columns alone, so that a weight costs O(d).

    Parameters
    ----------
    density
        A `Release`, or an object with its `contributions`, `noisy_sum`, `log_density_at` and `log_densities_at`. For a
        release the proposals come from the model, whose density cancels from the weights.
    n
        The number of records.
    """

    def __init__(self, density: Any, n: int) -> None:
        self.density, self.n = density, n

    def columns(self, records: Records) -> Array:
        """The statistic [d, m] of each record."""
        return self.density.contributions(records)

    def summarize(self, columns: Array) -> Array:
        """Minus the residual noisy sum − Σ columns [d], so that a proposal adds to it."""
        return jnp.sum(columns, axis=1) - self.density.noisy_sum

    def log_weight(self, summary: Array, columns: Array) -> Array:
        """The log-density at the residual."""
        return self.density.log_density_at(-summary)

    def log_weight_with(self, summary: Array, columns: Array, place: Array, proposal: Array) -> Array:
        """The log-density with the proposal in one place."""
        return self.density.log_density_at(columns[:, place] - (summary + proposal))

    def log_weights_with(self, summary: Array, columns: Array, window: Window, proposal: Array) -> Array:
        """The log-densities with the proposal in each place."""
        # Windows do not depend on the chain, so that under vmap they stay slices.
        tried = columns if window is None else jax.lax.dynamic_slice_in_dim(columns, *window, axis=1)
        return self.density.log_densities_at(tried - (summary + proposal)[:, None])


class SweepState(NamedTuple):
    """The state of one chain within a sweep; see `ExchangeableTarget`.

    Pairs of chains also keep the source of the record at each place [n]: i < n for record i at the start of the sweep,
    n + k for proposal k. One chain learns it from the places that were taken.
    """

    summary: Array
    log_weight: Array
    columns: Array
    source: Any = None


class Decision(NamedTuple):
    """A chain's decision on a proposal: its place [], whether it is accepted [], and the log-weight with it []."""

    place: Array
    accepted: Array
    log_weight: Array


Decide = Callable[[ExchangeableTarget, SweepState, Array, Any], tuple[Decision, Array]]
"""``(target, state, column, innovation) -> (decision, is_nonfinite)`` on a proposal with this column [d]."""


def start_sweep(target: ExchangeableTarget, columns: Array) -> SweepState:
    """The state at the start of a sweep, with the summary recomputed, so that rounding does not accumulate."""
    summary = target.summarize(columns)
    return SweepState(summary, target.log_weight(summary, columns), columns)


def sweep_release(
    release: Release, records: Records, proposals: Records, decide: Decide, innovations: Any
) -> tuple[Latent, ImputationInfo]:
    """One sweep under a release of a sum; see `sweep`."""
    records, state, info = sweep(SummedTarget(release, release.n), records, proposals, decide, innovations)
    return Latent(records, release.noisy_sum + state.summary, state.log_weight), info


def sweep(
    target: ExchangeableTarget, records: Records, proposals: Records, decide: Decide, innovations: Any
) -> tuple[Records, SweepState, ImputationInfo]:
    """One sweep as a function of its innovations, leaves [proposals, ...]: the records after it, and their weights.

    The columns are kept as [d, n], and the proposal at each place follows from the places taken. A step begins by
    writing the column of the previous one. As all reads come after the write, XLA makes it in place. So a step costs
    O(d) for each record tried, and not O(d n).
    """

    def attempt(carry: Any, step: Any) -> Any:
        (state, written, column), (proposal, innovation) = carry, step
        columns = jax.lax.dynamic_update_slice_in_dim(state.columns, column[:, None], written, axis=1)
        (place, accepted, log_weight), nonfinite = decide(target, state._replace(columns=columns), proposal, innovation)
        replaced = columns[:, place]
        summary = jnp.where(accepted, state.summary + proposal - replaced, state.summary)
        state = SweepState(summary, jnp.where(accepted, log_weight, state.log_weight), columns)
        taken = jnp.where(accepted, place, target.n)
        return (state, place, jnp.where(accepted, proposal, replaced)), (taken, nonfinite)

    columns, made = target.columns(records), target.columns(proposals).T
    first = (start_sweep(target, columns), jnp.zeros((), int), columns[:, 0])
    (state, *_), (taken, nonfinite) = scan_short(attempt, first, (made, innovations))
    # A rejected proposal counts at the spare last place.
    counts = jnp.zeros(target.n + 1, int).at[taken].add(1)[:-1]
    source = jnp.full(target.n + 1, -1).at[taken].max(jnp.arange(len(made)))[:-1]
    info = ImputationInfo(jnp.sum(counts) / len(made), counts, jnp.sum(nonfinite))
    return take_sources(source, proposals, records), state, info


def decide_at(
    target: ExchangeableTarget, state: SweepState, column: Array, innovation: tuple[Array, Array]
) -> tuple[Decision, Array]:
    """The decision of IMwG on a proposal to a place [], by the logarithm of a uniform []."""
    place, log_uniform = innovation
    proposed = target.log_weight_with(state.summary, state.columns, place, column)
    accepted, nonfinite = accept(proposed, state.log_weight, log_uniform)
    return Decision(place, accepted, proposed), nonfinite
