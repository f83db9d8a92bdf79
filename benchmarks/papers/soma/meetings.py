"""When coupled chains of a problem meet, in coupled steps, and how often its samplers accept."""

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.problems import Problem
from dpjax.coupling import CoupledKernel, Meetings, meeting_times

LAG = 1


def meet(kernel: CoupledKernel, pairs: int, cap: int, seed: int = 2, batch_size: int = 1_024) -> Meetings:
    """Pairs that start independently and run for at most `cap` coupled steps."""
    run = {"lag": LAG, "num_pairs": pairs, "max_steps": cap + LAG, "batch_size": min(pairs, batch_size)}
    return meeting_times(jax.random.key(seed), kernel, **run)


def coupled_steps(meetings: Meetings) -> list[int]:
    """How many steps each pair made together until it met, at most the cap."""
    return [int(time) for time in meetings.times - meetings.lag]


def acceptance_rates(
    problem: Problem, imputation: dpjax.base.Imputation, chains: int = 64, sweeps: int = 500
) -> np.ndarray:
    """The share of proposals that each of so many chains accepts, after a quarter as many sweeps of warm-up."""
    model, release = problem
    algorithm = dpjax.gibbs(model, release, imputation, interweave=False)

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> jax.Array:
        parameter_key, records_key, run_key = jax.random.split(key, 3)
        state = algorithm.init(model.sample_prior(parameter_key), records_key)

        def step(state: dpjax.data_augmentation.GibbsState, index: jax.Array) -> tuple:
            state, info = algorithm.step(jax.random.fold_in(run_key, index), state)
            return state, info.imputation.acceptance_rate

        return jnp.mean(jax.lax.scan(step, state, jnp.arange(sweeps + sweeps // 4))[1][sweeps // 4 :])

    return np.asarray(run(jax.random.split(jax.random.key(3), chains)))
