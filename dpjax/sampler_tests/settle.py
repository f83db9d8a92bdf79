"""Chains started at given parameters: records found, brought to p(records | parameters, release), and swept.

Records drawn from the model know nothing of the release. Imputation with the parameters held brings them to their law
given both, and how many sweeps that takes is measured: two sets of records, found apart, are imputed at the same
parameters. What they differ by is free of the parameters, and sweeps at which the difference no longer depends on what
it was half as many sweeps before have forgotten it. Records are then given four times as many: where a share of 0.3 of
a starting difference is left after w sweeps, a share of 0.3⁸ is left after 8 w.
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
from dpjax.models.recipe import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.numerics import leading_size
from dpjax.release import PrivateRelease

FORGOTTEN = 0.3
"""Sets of records have forgotten their difference where its correlation with a former one is not clearly above this."""

SURE = 0.01
"""How improbable a correlation clearly above has to be at `FORGOTTEN`, among those of all numbers that are watched."""

SAFETY = 4
MOST_SWEEPS = 1_024
"""Sets that have not forgotten after so many sweeps are given up."""


class Settling(NamedTuple):
    """How many sweeps records are given, and whether they are known to be enough."""

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


def settle(
    key: Key, model: Model, release: PrivateRelease, imputation: Imputation, pairs: GibbsState
) -> tuple[Settling, GibbsState]:
    """How many sweeps records need, by states [2 p, ...] whose halves are at the same parameters; and these states."""
    former, sweeps = watch(model, release, pairs), 0
    while sweeps < MOST_SWEEPS:
        ahead = max(1, 2 * sweeps)
        pairs = impute_all(
            model, imputation, jax.random.fold_in(key, ahead), release, pairs, jnp.asarray(ahead - sweeps)
        )
        present, sweeps = watch(model, release, pairs), ahead
        if has_forgotten(halves_apart(former), halves_apart(present)):
            return Settling(SAFETY * 2 * sweeps, True), pairs
        former = present
    return Settling(sweeps, False), pairs


def halves_apart(values: np.ndarray) -> np.ndarray:
    """The differences [p, k] of two halves [2 p, k]."""
    first, second = np.split(values, 2)
    return first - second


def has_forgotten(former: np.ndarray, present: np.ndarray) -> bool:
    """Whether no difference [p, k] is clearly correlated with what it was, by Fisher's z transform.

    A difference that was none before, and is one now, has not been watched for long enough.
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
    margin = scipy.stats.norm.isf(SURE / count) / np.sqrt(max(pairs - 3, 1))
    return bool(np.all(correlation <= np.tanh(np.arctanh(FORGOTTEN) + margin)))


def watch(model: Model, release: PrivateRelease, states: GibbsState) -> np.ndarray:
    """What is watched of records [chain, k]: their statistic, and log-densities of the release and of the model."""
    return np.asarray(measure(model, states), float)


@jit_model
def measure(model: Model, states: GibbsState) -> Array:
    """The numbers of `watch`."""

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
    """The parameters [chain, ...] after `length` [] exact sweeps, and how many moves were undone [chain]."""
    kernel = build_kernel(model, release, plan)

    def chain(key: Key, state: GibbsState) -> tuple[Parameters, Array]:
        def sweep(number: Array, carry: tuple[GibbsState, Array]) -> tuple[GibbsState, Array]:
            state, info = kernel(jax.random.fold_in(key, number), carry[0], tuning)
            return state, carry[1] + info.num_nonfinite

        state, num_nonfinite = jax.lax.fori_loop(0, length, sweep, (state, jnp.asarray(0)))
        return state.parameters, num_nonfinite

    return jax.vmap(chain)(jax.random.split(key, states.latent.log_density.shape[0]), states)
