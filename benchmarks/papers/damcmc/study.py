"""Many data sets at each privacy budget: means of posteriors, coverage and width of intervals, and acceptance."""

import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.damcmc.problems import PROBLEMS, N, Problem
from dpjax.diagnostics import ess_bulk

LEVEL = 0.9

SAMPLERS: dict[str, dict[str, Any]] = {
    "paper's": {"imputation": dpjax.imwg(), "interweave": False, "refresh": False},
    "default": {},
}
"""The paper's algorithm 1, which redraws the parameters and makes a proposal for each record; and dpjax's own."""


def measure(problem: str, arm: str, data_sets: int, iterations: int) -> dict[str, Any]:
    """A row for each sampler and privacy budget, with one chain for each data set.

    Parameters
    ----------
    problem
        ``"log-linear"`` or ``"regression"``.
    arm
        ``"means"``: all data sets are releases of the authors' confidential one. ``"coverage"``: records, too, are
        drawn at the true parameters. ``"prior"``: so are the parameters, from the prior. Intervals of a sampler that is
        right then hold the truth as often as they say.
    data_sets
        How many there are at each budget.
    iterations
        Of each chain, of which the first half is left out.
    """
    given = PROBLEMS[problem]()
    rows = [
        measure_budget(given, arm, sampler, number, data_sets, iterations)
        for sampler in given.samplers
        for number in range(len(given.epsilons))
    ]
    return {"parameters": given.names, "non_private": given.non_private.tolist(), "rows": rows}


def measure_budget(
    problem: Problem, arm: str, sampler: str, number: int, data_sets: int, iterations: int
) -> dict[str, Any]:
    """The row of one privacy budget; both samplers have the same releases."""
    epsilon = problem.epsilons[number]
    print(f"{arm}, {sampler} sampler, ε = {epsilon:g}", file=sys.stderr, flush=True)
    simulate_key, noise_key, chain_key = jax.random.split(jax.random.fold_in(jax.random.key(2022), number), 3)
    truth, sums = simulate(simulate_key, problem, arm, data_sets)
    values = dpjax.Laplace(problem.sensitivity / epsilon).sample(noise_key, sums)
    releases = [problem.release(value, epsilon) for value in np.asarray(values)]
    half = {"num_chains": 1, "num_warmup": iterations // 2, "num_samples": iterations // 2, "progress": False}
    batch = dpjax.sample_batch(chain_key, problem.model, releases, **half, **SAMPLERS[sampler])
    draws = np.asarray(batch.draws[problem.reported], float)[:, 0]
    return {
        "sampler": sampler,
        "epsilon": epsilon,
        "bound": float(np.exp(-epsilon)),
        **describe_acceptance(batch.info),
        **describe_intervals(draws, np.asarray(truth)),
        "effective": np.median([ess_bulk(chain[None]) for chain in draws], axis=0).tolist(),
        **({"means": np.round(draws.mean(axis=1), 4).tolist()} if arm == "means" else {}),
    }


def simulate(key: jax.Array, problem: Problem, arm: str, data_sets: int) -> tuple[jax.Array, jax.Array]:
    """The reported parameter's true values [data set, k] and the confidential sums [data set, d]."""
    if arm == "means":
        truth, sums = problem.truth[problem.reported], jnp.asarray(problem.confidential, float)
        return jnp.tile(truth, (data_sets, 1)), jnp.tile(sums, (data_sets, 1))
    one = partial(simulate_one, problem, problem.truth if arm == "coverage" else None)
    truth, sums = jax.jit(jax.vmap(one))(jax.random.split(key, data_sets))
    return truth[problem.reported], sums


def simulate_one(problem: Problem, truth: dict[str, jax.Array] | None, key: jax.Array) -> tuple[Any, jax.Array]:
    """The parameters, drawn from the prior if none are given, and the sums of the records that they gave."""
    prior_key, record_key = jax.random.split(key)
    parameters = problem.model.sample_prior(prior_key) if truth is None else truth
    records = problem.model.sample_records(record_key, parameters, N)
    return parameters, jnp.sum(jax.vmap(problem.statistic)(records), axis=0)


def describe_acceptance(info: dict[str, Any]) -> dict[str, float]:
    """The share of proposals that were accepted: over all, and of the record and of the data set with the smallest.

    The first has its standard error over data sets. That of the worst record is how much the least record of a data
    set differs among them.
    """
    rates = np.asarray(info["acceptance_rate"], float).mean(axis=(1, 2))
    least = np.asarray(info["acceptance_rate_per_record"], float).reshape(len(rates), -1).min(axis=1)
    return {
        "acceptance": float(rates.mean()),
        "error_of_acceptance": float(rates.std(ddof=1) / np.sqrt(len(rates))),
        "acceptance_of_worst_data_set": float(rates.min()),
        "acceptance_of_worst_record": float(least.min()),
        "error_of_acceptance_of_worst_record": float(least.std(ddof=1)),
    }


def describe_intervals(draws: np.ndarray, truth: np.ndarray) -> dict[str, list[float]]:
    """By entry, how often the interval between quantiles holds the truth, and its width, mean over data sets."""
    lower, upper = np.quantile(draws, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=1)
    return {
        "coverage": np.mean((lower <= truth) & (truth <= upper), axis=0).tolist(),
        "width": np.mean(upper - lower, axis=0).tolist(),
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Against ε, posterior means and acceptance by the paper's sampler; or coverage and width by both."""
    if "means" in result["rows"][0]:
        draw_means(result, axes[0])
        draw_acceptance(result, axes[1])
        return
    for place, column in zip(axes, ("coverage", "width"), strict=True):
        draw_intervals(result, column, place)


def rows_of(result: dict[str, Any], sampler: str) -> list[dict[str, Any]]:
    """The rows of a sampler, by ε."""
    return [row for row in result["rows"] if row["sampler"] == sampler]


def draw_means(result: dict[str, Any], axes: Any) -> None:
    """Posterior means of each data set; a line is the mean without noise."""
    for number, name in enumerate(result["parameters"]):
        for row in rows_of(result, "paper's"):
            means = np.array(row["means"])[:, number]
            axes.plot(np.full(len(means), row["epsilon"]), means, ".", color=f"C{number}", alpha=0.3, markersize=3)
        axes.axhline(result["non_private"][number], color=f"C{number}", linewidth=1, label=name)
    axes.set(xscale="log", xlabel="ε", ylabel="posterior mean")
    axes.legend()


def draw_acceptance(result: dict[str, Any], axes: Any) -> None:
    """The mean acceptance, that of the record that accepts least, and the bound."""
    rows = rows_of(result, "paper's")
    for name in ("acceptance", "acceptance_of_worst_record", "bound"):
        axes.plot([row["epsilon"] for row in rows], [row[name] for row in rows], "o-", label=name.replace("_", " "))
    axes.set(xscale="log", xlabel="ε", ylabel="accepted")
    axes.legend()


def draw_intervals(result: dict[str, Any], column: str, axes: Any) -> None:
    """The coverage or width of each parameter's intervals; dashed by the default sampler."""
    for sampler, style in (("paper's", "o-"), ("default", "o--")):
        rows = rows_of(result, sampler)
        if not rows:
            continue
        for number, name in enumerate(result["parameters"]):
            label = name if sampler == "paper's" else None
            shown = [row[column][number] for row in rows]
            axes.plot([row["epsilon"] for row in rows], shown, style, color=f"C{number}", label=label)
    if column == "coverage":
        axes.axhline(LEVEL, color="0.5", linewidth=1)
    axes.set(xscale="log", xlabel="ε", ylabel=column)
    axes.legend()
