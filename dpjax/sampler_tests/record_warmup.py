"""Chains started at given parameters: initial records, their warm-up to p(records | parameters, release), and sweeps.

Records drawn from the model do not depend on the release. Imputation with the parameters fixed brings them to their
conditional distribution. The number of sweeps that this takes is measured: two independent sets of records are imputed
at the same parameters. Their difference does not depend on the parameters, and the sets are decorrelated once it no
longer depends on its value half as many sweeps before. Records then get four times as many sweeps: if a fraction of 0.3
of an initial difference is left after w sweeps, 0.3⁸ is left after 8 w.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.mcmc.starts import impute_all, starts_by
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.numerics import leading_size
from dpjax.release import PrivateRelease

MAX_LEFT = 0.3
"""Largest correlation of the sets' difference with its former value at which they count as decorrelated."""

LEVEL = 0.01
"""Level of the test that the correlation is above `MAX_LEFT`, over all summaries of the records."""

SAFETY = 4
MAX_SWEEPS = 1_024
"""Largest number of sweeps until decorrelation; beyond, the test is inconclusive."""


class RecordWarmup(NamedTuple):
    """The number of warm-up sweeps of the records, and whether they are known to be enough."""

    num_sweeps: int
    settled: bool


def start_at(key: Key, model: Model, release: PrivateRelease, plan: SweepPlan, parameters: Parameters) -> GibbsState:
    """States [chain, ...] of positive density at parameters [chain, ...].

    Raises
    ------
    ValueError
        If for some chain no records of positive density are found.
    """
    search_key, climb_key = jax.random.split(key)
    find = starts_by(plan.imputation)
    return find((search_key, climb_key), model, release, leading_size(parameters), parameters)


def choose_num_warmup(
    key: Key, model: Model, release: PrivateRelease, imputation: Imputation, pairs: GibbsState
) -> tuple[RecordWarmup, GibbsState]:
    """The number of sweeps for the records, from states [2 p, ...] with equal parameters in both halves; the states."""
    former, sweeps = record_summaries(model, release, pairs), 0
    while sweeps < MAX_SWEEPS:
        ahead = max(1, 2 * sweeps)
        pairs = impute_all(
            model, imputation, jax.random.fold_in(key, ahead), release, pairs, jnp.asarray(ahead - sweeps)
        )
        present, sweeps = record_summaries(model, release, pairs), ahead
        if is_decorrelated(half_differences(former), half_differences(present)):
            return RecordWarmup(SAFETY * 2 * sweeps, True), pairs
        former = present
    return RecordWarmup(sweeps, False), pairs


def half_differences(values: np.ndarray) -> np.ndarray:
    """The differences [p, k] of two halves [2 p, k]."""
    first, second = np.split(values, 2)
    return first - second


def is_decorrelated(former: np.ndarray, present: np.ndarray) -> bool:
    """Whether no difference [p, k] is significantly correlated with its former value, by Fisher's z transform.

    A summary that did not differ before, but does now, needs more sweeps.
    """
    moves = np.ptp(present, axis=0) > 0
    if np.any(moves & (np.ptp(former, axis=0) == 0)):
        return False
    former, present = former[:, moves], present[:, moves]
    if not present.size:
        return True
    pairs, count = present.shape
    covariance = np.mean(former * present, axis=0)
    correlation = covariance / np.sqrt(np.mean(former**2, axis=0) * np.mean(present**2, axis=0))
    margin = scipy.stats.norm.isf(LEVEL / count) / np.sqrt(max(pairs - 3, 1))
    return bool(np.all(correlation <= np.tanh(np.arctanh(MAX_LEFT) + margin)))


def record_summaries(model: Model, release: PrivateRelease, states: GibbsState) -> np.ndarray:
    """Summaries of records [chain, k]: their statistic, and the log-densities of the release and of the model."""
    return np.asarray(compute_summaries.unoptimized(model, states), float)


@jit_model
def compute_summaries(model: Model, states: GibbsState) -> Array:
    """The numbers of `record_summaries`."""

    def one(state: GibbsState) -> Array:
        parameters, latent = state
        likelihood = jnp.sum(model.log_density(parameters, latent.records)).astype(float)
        densities = jnp.stack([latent.log_density.astype(float), likelihood])
        return jnp.concatenate([latent.statistic.astype(float), densities])

    return jax.vmap(one)(states)


@partial(jit_model, static_argnames=("plan",))
def sweep_all(
    model: Model,
    plan: SweepPlan,
    key: Key,
    release: PrivateRelease,
    tuning: Tuning | None,
    states: GibbsState,
    length: Array,
) -> tuple[Parameters, Array]:
    """The parameters [chain, ...] after `length` [] exact sweeps, and the number of undone moves [chain]."""
    kernel = build_kernel(model, release, plan)

    def chain(key: Key, state: GibbsState) -> tuple[Parameters, Array]:
        def sweep(number: Array, carry: tuple[GibbsState, Array]) -> tuple[GibbsState, Array]:
            state, info = kernel(jax.random.fold_in(key, number), carry[0], tuning)
            return state, carry[1] + info.num_nonfinite

        state, num_nonfinite = jax.lax.fori_loop(0, length, sweep, (state, jnp.asarray(0)))
        return state.parameters, num_nonfinite

    return jax.vmap(chain)(jax.random.split(key, states.latent.log_density.shape[0]), states)
