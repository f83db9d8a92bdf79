"""Runs that save every step, for `test_kills` to kill: ``python -m tests.runtime.killed_runs NAME FILE X64``."""

import sys
from typing import Any

import jax
import numpy as np

import dpjax
from dpjax import coupling, mixture
from dpjax.coupling import pool
from dpjax.runtime import checkpoint, run as runtime_run
from tests.coupling.enumerated import kernel, ones

CHAINS = {"num_chains": 2, "num_warmup": 100, "num_samples": 4_000, "progress": False}


def draw(path: Any) -> Any:
    """The arrays of a run of `dpjax.sample`."""
    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    release = dpjax.Release([3.1], dpjax.Laplace(0.8), dpjax.statistics.total("y", -2.0, 2.0), n=10)
    posterior = dpjax.sample(jax.random.key(1), model, release, **CHAINS, checkpoint=path)
    return posterior.draws, posterior.info, posterior.final_states


def draw_mixture(path: Any) -> Any:
    """The arrays of a run of `mixture.sample`, whose slots change in number."""
    component = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    options = {"component": component, "concentration": 0.3, "collect": "labels", **CHAINS, "num_samples": 1_500}
    values = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
    posterior = mixture.sample(jax.random.key(3), values, dpjax.Laplace(0.6), **options, checkpoint=path)
    return posterior.draws, posterior.mixing, posterior.info, posterior.collected, posterior.final_states


def draw_pairs(path: Any) -> Any:
    """The arrays of a run of coupled pairs, most of which wait for lanes."""
    numbers = {"k": 2, "m": 100, "lag": 2, "num_pairs": 200, "max_steps": 500, "batch_size": 16}
    estimates = coupling.unbiased_estimates(jax.random.key(5), kernel(), ones, **numbers, checkpoint=path)
    return estimates.values, estimates.averages, estimates.cost, estimates.meetings.times


RUNS = {"sample": draw, "mixture": draw_mixture, "pairs": draw_pairs}


def main() -> None:
    """Make one run, in steps as small as can be, each of them saved; say so when it begins."""
    name, path, x64 = sys.argv[1:]
    jax.config.update("jax_enable_x64", x64 == "True")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    runtime_run.next_length = lambda made, seconds: 1
    pool.next_steps = lambda steps, share: 1
    checkpoint.SECONDS_BETWEEN_SAVES = 0.0
    print("begins", flush=True)
    RUNS[name](path)
    print("ends", flush=True)


if __name__ == "__main__":
    main()
