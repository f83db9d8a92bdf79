"""Records of an unknown number: births, deaths and exchanges.

A reversible-jump form of IMwG, after Awan, Barrientos and Ju (2024, "Statistical inference for privatized data with
unknown sample size", arXiv:2406.06231). Given the parameters the target is that of n *ordered* records,

    π(n, x_1, …, x_n) ∝ p(n) Π f(x_i | θ) η(s | Σ t(x_i)).

Put them into n of N slots, chosen uniformly. With z ∈ {0, 1}^N for the slots that hold a record,

    π(z, x) ∝ p(n) / C(N, n) · Π_{z_i = 1} f(x_i | θ) · η(s | Σ_{z_i = 1} t(x_i)),    n = Σ z_i.

A *birth* proposes a draw y ~ f(· | θ) for a free slot; a *death* proposes to free a slot that holds a record. Each slot
allows one of them, and they reverse each other. The density f(y | θ) cancels; a birth is accepted with probability
min(1, r),

    r = p(n + 1) / p(n) · (n + 1) / (N − n) · η(s | Σt + t(y)) / η(s | Σt),

and the death that undoes it with min(1, 1 / r). The factor (n + 1) / (N − n) balances the tries, of n + 1 deaths and
N − n births. It would be 1 if a coin chose between a birth and the death of one of the n + 1 records. An *exchange*
proposes a draw from f(· | θ) for a record, as in IMwG.

A sweep visits all slots in a random order: first for births and deaths, then for exchanges. All proposals are drawn
before the first decision, so that the scans carry only the residual, the log-density and n.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.records.proposals import metropolis
from dpjax.data_augmentation.records.unknown_number import DataSetSum, log_probabilities
from dpjax.models.data_sets import join, split
from dpjax.numerics import decision_uniforms, tree_where
from dpjax.release import Release

__all__ = ["build_births_kernel", "sweep", "up_gains"]


class ScanState(NamedTuple):
    """The state of a scan: the residual [d], the release's log-density [], and the number of records []."""

    residual: Array
    log_density: Array
    number: Array


def build_births_kernel(model: Model, release: Release) -> ImputationKernel:
    """The kernel of one data set: it leaves p(n, records | parameters, release) invariant.

    Parameters
    ----------
    model
        In the form of `dpjax.data_augmentation.records.unknown_number`.
    release
        In the form of `dpjax.data_augmentation.records.unknown_number`.
    """
    design = design_of(release)
    with jax.ensure_compile_time_eval():
        gains = up_gains(design)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        birth_key, exchange_key, order_key, accept_key = jax.random.split(rng_key, 4)
        births, exchanges = (
            first(split(model.sample_records(key, parameters, 1))[0]) for key in (birth_key, exchange_key)
        )
        order = jax.random.permutation(order_key, design.capacity)
        uniforms = decision_uniforms(accept_key, (2, design.capacity))
        return sweep(release, gains, first(latent.records), births, exchanges, order, uniforms)

    return step


def design_of(release: Release) -> DataSetSum:
    """The statistic of a data set, with the prior of its number of records."""
    assert isinstance(release.statistic, DataSetSum)
    return release.statistic


def first(records: Records) -> Records:
    """The first of several data sets."""
    return jax.tree.map(lambda leaf: leaf[0], records)


def up_gains(design: DataSetSum) -> Array:
    """The log-ratio of a birth from the number alone [N]: log p(n + 1) / p(n) + log (n + 1) / (N − n) for n < N."""
    numbers = jnp.arange(design.capacity)
    log_prior = log_probabilities(design.prior, np.arange(design.capacity + 1)).astype(float)
    return (
        jnp.diff(log_prior) + jnp.log((numbers + 1).astype(float)) - jnp.log((design.capacity - numbers).astype(float))
    )


def sweep(
    release: Release,
    gains: Array,
    data_set: Records,
    births: Records,
    exchanges: Records,
    order: Array,
    uniforms: Array,
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations.

    Parameters
    ----------
    release
        Of one data set.
    gains : [N]
        See `up_gains`.
    data_set
        Rows [N, ...] and how many of them, the first ones, are real.
    births
        Rows [N, ...] proposed for birth to each slot, in the order of visits.
    exchanges
        Rows [N, ...] proposed in exchange, likewise.
    order : [N]
        The row that stands in each slot, in the order of visits: a permutation.
    uniforms : [2, N]
        Births and deaths, and exchanges, are accepted if these are below the acceptance ratio.
    """
    contributions = contributions_of(release)
    rows, number = split(data_set)
    present = order < number
    rows = tree_where(present, jax.tree.map(lambda leaf: leaf[order], rows), births)
    current = contributions(rows)
    # The sum is recomputed in each sweep, so that rounding does not accumulate.
    residual = release.noisy_sum - jnp.sum(jnp.where(present[None], current, 0), axis=1)
    state = ScanState(residual, release.log_density_at(residual), number)

    signs = jnp.where(present, -1, 1)
    state, flipped, broken = attempt_all(release, gains, state, signs[None] * current, signs, uniforms[0])
    present = present ^ flipped

    changes = jnp.where(present[None], contributions(exchanges) - current, 0)
    state, taken, more_broken = attempt_all(release, gains, state, changes, jnp.zeros_like(signs), uniforms[1])
    rows = tree_where(taken & present, exchanges, rows)

    accepted = jnp.sum(flipped) + jnp.sum(taken & present)
    info = ImputationInfo(accepted / (order.size + jnp.sum(present)), accepted[None], broken + more_broken)
    place = jnp.argsort(~present, stable=True)
    moved = join(jax.tree.map(lambda leaf: leaf[place][None], rows), state.number[None])
    return Latent(moved, release.noisy_sum - state.residual, state.log_density), info


def contributions_of(release: Release) -> Callable[[Records], Array]:
    """The function that gives what each of m rows adds to the sum [d, m], in the type of the value."""
    statistic = design_of(release).at(release.value).statistic
    return jax.vmap(lambda record: statistic(record).astype(release.value.dtype), out_axes=1)


def attempt_all(
    release: Release, gains: Array, state: ScanState, changes: Array, steps: Array, uniforms: Array
) -> tuple[ScanState, Array, Array]:
    """The state after proposals in order, which were accepted, and how many had a non-finite density.

    Parameters
    ----------
    changes : [d, N]
        What each proposal adds to the sum.
    steps : [N]
        What it adds to the number of records: 1, −1 or 0.
    """

    def attempt(state: ScanState, proposal: tuple[Array, Array, Array]) -> tuple[ScanState, tuple[Array, Array]]:
        change, step, log_uniform = proposal
        # A rise from n gains gains[n], and a fall from n undoes the rise to it from n - 1.
        gain = step.astype(gains.dtype) * gains[state.number - (step < 0).astype(step.dtype)]
        # The gain of the number is subtracted from the threshold: log u < log r.
        threshold = log_uniform - jnp.where(step == 0, 0, gain).astype(log_uniform.dtype)
        kept, (accepted, broken) = metropolis(
            release, state.residual, state.log_density, state.residual - change, threshold
        )
        return ScanState(*kept, state.number + jnp.where(accepted, step, 0)), (accepted, broken)

    state, (accepted, broken) = jax.lax.scan(attempt, state, (changes.T, steps, jnp.log(uniforms)))
    return state, accepted, jnp.sum(broken)
