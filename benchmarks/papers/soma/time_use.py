"""Tables 1 and 2: shares of the day by women and men, Dirichlet records of a released log-composition."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers import authors
from benchmarks.papers.soma.problems import RELEASES, Problem
from benchmarks.papers.soma.time_use_numbers import ACTIVITIES, MEANS
from dpjax import models, statistics
from dpjax.diagnostics import ess_bulk, mcse_mean, split_r_hat

LOWER, EPSILON = 1 / 1_440, 10.0
"""The paper prints .0006 for the first, a minute of the day."""

SIZES = {"female": 3_528, "male": 3_128}

CONCENTRATION = 30.0
"""The sum of the shapes at which all chains start, and of simulated records."""

EARLY = 100_000
"""R-hat is taken after so many proposals, as in the paper."""

SLICES = 100
"""Slice updates of each shape after n proposals, as in the authors' code."""

UPDATE = dpjax.data_augmentation.parameter_kernel("coordinate_slice", num_steps=SLICES)
SAMPLERS = {"soma": dpjax.soma(), "imwg": dpjax.imwg()}


def measure(chains: int, proposals: int, sexes: tuple[str, ...], data: str | None) -> dict[str, Any]:
    """R-hat after 100,000 proposals and ESS after all, by sex and sampler, and the mean shares.

    One proposal is one iteration here. The shapes move after every n of them, and all chains start at 30 times the
    released shares. Without the authors' files records are simulated at the paper's fitted means.
    """
    result: dict[str, Any] = {}
    for sex in sexes:
        problem = make_problem(sex, data)
        sweeps = -(-proposals // problem[1].n)
        runs = {name: run_chains(problem, sampler, chains, sweeps) for name, sampler in SAMPLERS.items()}
        rows = {name: summarize(problem[1].n, *run) for name, run in runs.items()}
        result[sex] = {
            "n": problem[1].n,
            "sweeps": sweeps,
            "samplers": rows,
            "ratio": jackknife(lambda one, other: ess_bulk(one) / ess_bulk(other), *(run[0] for run in runs.values())),
        }
    return result


def make_problem(sex: str, data: str | None) -> Problem:
    """The model and the released means of log-shares, with noise of scale −3 log(a) / (n ε)."""
    n = SIZES[sex]
    model = models.dirichlet(models.GammaPrior(1.0, 0.1), 3)
    statistic = statistics.scaled(statistics.log_composition("share", LOWER, dimension=3), 1 / n)
    template = dpjax.Release(np.zeros(3), dpjax.Laplace(-3 * np.log(LOWER) / (n * EPSILON)), statistic, n)
    if data is not None:
        value = authors.read(data, RELEASES)[f"atus_{sex}_sdp_obs_eps_10.0"]
        return model, replace(template, value=jnp.asarray(value, float))
    records_key, noise_key = jax.random.split(jax.random.key(10 + list(SIZES).index(sex)))
    mean = jnp.array(MEANS[sex])
    records = model.sample_records(records_key, {"shape": CONCENTRATION * mean / mean.sum()}, n)
    return model, template.sample(noise_key, records)


def run_chains(problem: Problem, imputation: dpjax.base.Imputation, chains: int, sweeps: int) -> tuple:
    """The shapes [chain, sweep, 3] and the share of proposals accepted [chain, sweep]."""
    shares = jnp.exp(problem[1].value)
    algorithm = dpjax.gibbs(*problem, imputation, parameter_kernel=UPDATE)

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> tuple:
        records_key, run_key = jax.random.split(key)

        def step(state: Any, index: jax.Array) -> tuple:
            state, info = algorithm.step(jax.random.fold_in(run_key, index), state)
            return state, (state.parameters["shape"], info.imputation.acceptance_rate)

        start = algorithm.init({"shape": CONCENTRATION * shares / shares.sum()}, records_key)
        return jax.lax.scan(step, start, jnp.arange(sweeps))[1]

    return tuple(np.asarray(part) for part in run(jax.random.split(jax.random.key(12), chains)))


def summarize(n: int, shapes: np.ndarray, accepted: np.ndarray) -> dict[str, Any]:
    """The diagnostics of the shapes and the posterior mean of the shares, with standard errors."""
    early, shares = shapes[:, : max(4, EARLY // n)], shapes / shapes.sum(axis=-1, keepdims=True)
    return {
        "r_hat": jackknife(split_r_hat, early),
        "ess": jackknife(ess_bulk, shapes),
        "mean": {"value": shares.mean(axis=(0, 1)).tolist(), "standard_error": np.asarray(mcse_mean(shares)).tolist()},
        "acceptance_rate": float(accepted.mean()),
        "shapes": shapes[0].round(4).tolist(),
    }


def jackknife(function: Callable[..., Any], *draws: np.ndarray) -> dict[str, Any]:
    """A function of draws [chain, ...], and its standard error by leaving out a chain of each at a time."""
    chains = len(draws[0])
    without = np.array([function(*(np.delete(part, place, axis=0) for part in draws)) for place in range(chains)])
    error = np.sqrt((chains - 1) * without.var(axis=0))
    return {"value": np.asarray(function(*draws)).tolist(), "standard_error": error.tolist()}


def draw(result: dict[str, Any], axes: Any) -> None:
    """The first chain's shapes after each sweep."""
    for place, (panel, activity) in enumerate(zip(axes, ACTIVITIES, strict=True)):
        for sex in (sex for sex in SIZES if sex in result):
            for name, row in result[sex]["samplers"].items():
                panel.plot(np.array(row["shapes"])[:, place], label=f"{sex}, {name}", linewidth=0.8)
        panel.set(xlabel="sweeps of n proposals", ylabel="shape", title=activity)
    axes[0].legend(fontsize="small")
