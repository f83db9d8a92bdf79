"""Timed loops over imputation kernels and over whole sweeps, all chains side by side."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

import dpjax
from benchmarks.timing import Timing, time_program
from problems.regression import parameters


def time_imputation(
    model: dpjax.Model,
    release: dpjax.Release,
    imputation: dpjax.base.Imputation,
    chains: int,
    sweeps: int,
    repeats: int,
) -> tuple[Timing, float]:
    """The timing of so many sweeps of a bare imputation kernel at fixed parameters, and its acceptance rate."""
    start_key, run_key = jax.random.split(jax.random.key(1))
    algorithm = dpjax.gibbs(model, release, imputation=imputation)
    starts = jax.jit(jax.vmap(partial(algorithm.init, parameters())))(jax.random.split(start_key, chains))

    def program(release: dpjax.Release, parameters: dict, latent: dpjax.base.Latent) -> tuple[dpjax.base.Latent, Any]:
        kernel = imputation(model, release)
        return repeat(lambda key, latent: kernel(key, latent, parameters), run_key, latent, sweeps)

    timing, (_, info) = time_program(program, release, parameters(), starts.latent, repeats=repeats)
    return timing, float(jnp.mean(info.acceptance_rate))


def time_sweep(
    model: dpjax.Model,
    release: dpjax.Release,
    imputation: dpjax.base.Imputation,
    chains: int,
    sweeps: int,
    repeats: int,
) -> tuple[Timing, float]:
    """The timing of so many whole sweeps from adapted chains, and the acceptance rate of their imputation."""
    sample_key, run_key = jax.random.split(jax.random.key(2))
    options = {"num_chains": chains, "num_warmup": 500, "num_samples": 4, "imputation": imputation, "progress": False}
    posterior = dpjax.sample(sample_key, model, release, **options)

    def program(
        release: dpjax.Release, state: dpjax.data_augmentation.GibbsState
    ) -> tuple[dpjax.data_augmentation.GibbsState, jax.Array]:
        algorithm = dpjax.gibbs(model, release, imputation=imputation, tuning=posterior.tuning)
        return repeat(algorithm.step, run_key, state, sweeps)

    timing, (_, info) = time_program(program, release, posterior.final_states, repeats=repeats)
    return timing, float(jnp.mean(info.imputation.acceptance_rate))


def repeat(step: Callable[[jax.Array, Any], tuple[Any, Any]], key: jax.Array, states: Any, times: int) -> Any:
    """The states [chain, ...] after so many steps, and the scalar reports [step, chain] of each."""

    def body(states: Any, step_key: jax.Array) -> tuple[Any, Any]:
        chains = jax.tree.leaves(states)[0].shape[0]
        states, info = jax.vmap(step)(jax.random.split(step_key, chains), states)
        # Reports on each record are dropped, as in `dpjax.sample`.
        return states, jax.tree.map(lambda leaf: leaf if leaf.ndim == 1 else None, info)

    return jax.lax.scan(body, states, jax.random.split(key, times))
