"""Table 3: coupling times of the regression with 10 records, a step being an update and 10 proposals."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.meetings import acceptance_rates, coupled_steps, meet
from benchmarks.papers.soma.problems import SAMPLERS, Problem, regression
from dpjax.coupling import CoupledKernel, convergence_rate, coupled_gibbs

PAPER = {
    3: {
        "imwg_random": (156.04, 0.9937, 94.80),
        "imwg_systematic": (99.60, 0.9904, 94.81),
        "soma": (152.98, 0.9937, 99.49),
    },
    30: {
        "imwg_random": (900.79, 0.9989, 50.95),
        "imwg_systematic": (549.07, 0.9982, 50.94),
        "soma": (120.64, 0.9909, 91.91),
    },
}
"""Mean coupling time, rate and acceptance in per cent, by ε."""

KERNELS = {
    "soma": ("soma", True),
    "soma_equal_indices": ("soma", False),
    "imwg_random": ("imwg_random", False),
    "imwg_systematic": ("imwg_systematic", False),
}

SETTLED_CHAINS, SETTLED_SWEEPS = 512, 400
"""Chains of SOMA, and their sweeps from the prior, whose last states stand for the posterior."""


class Starts(NamedTuple):
    """Where a chain can start, or a pair: the first chain of a pair at `settled`, the second at `prior`."""

    settled: Any
    prior: Any


def measure(
    pairs: int,
    cap: int,
    parameters: str,
    chains: int,
    epsilons: tuple[int, ...],
    kernels: tuple[str, ...],
    data: str | None,
) -> dict[str, Any]:
    """By ε and kernel: mean and quartiles of the coupling time, the rate with its interval, and the acceptance.

    As in the authors' code, the first chain of a pair starts at the last state of a run of SOMA and the second in the
    prior, and parameters are drawn by maximal couplings. Means are restricted at the cap. Acceptance is that of so many
    chains.
    """
    return {str(e): measure_budget(e, kernels, (pairs, cap), parameters, chains, data) for e in epsilons}


def measure_budget(
    epsilon: int, kernels: tuple[str, ...], size: tuple[int, int], parameters: Any, chains: int, data: str | None
) -> dict[str, Any]:
    """The rows of one privacy budget."""
    problem = regression(10, epsilon, data)
    settled = draw_settled(problem)
    chosen = {name: KERNELS[name] for name in kernels}
    samplers = dict.fromkeys(sampler for sampler, _ in chosen.values())
    rates = {name: 100 * acceptance_rates(problem, SAMPLERS[name], chains) for name in samplers}
    rows = {}
    for name, (sampler, relabel) in chosen.items():
        kernel = coupled_gibbs(*problem, SAMPLERS[sampler], relabel=relabel, parameters=parameters)
        rate = rates[sampler]
        rows[name] = measure_kernel(from_settled(kernel, settled), *size) | {
            "acceptance_percent": float(rate.mean()),
            "error_of_acceptance": float(rate.std(ddof=1) / np.sqrt(chains)),
            "paper": PAPER[epsilon][sampler],
        }
    return rows


def draw_settled(problem: Problem) -> Any:
    """The last positions of chains of SOMA, leading axis [chain]."""
    model, release = problem
    algorithm = dpjax.gibbs(model, release, SAMPLERS["soma"], interweave=False)

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> tuple:
        parameter_key, records_key, run_key = jax.random.split(key, 3)
        state = algorithm.init(model.sample_prior(parameter_key), records_key)

        def step(index: jax.Array, state: Any) -> Any:
            return algorithm.step(jax.random.fold_in(run_key, index), state)[0]

        state = jax.lax.fori_loop(0, SETTLED_SWEEPS, step, state)
        return state.parameters, state.latent.records

    return run(jax.random.split(jax.random.key(5), SETTLED_CHAINS))


def from_settled(kernel: CoupledKernel, settled: Any) -> CoupledKernel:
    """The same pairs from other starts: the first chain is a settled one, drawn at random."""

    def sample_start(key: jax.Array) -> Starts:
        place_key, prior_key = jax.random.split(key)
        prior = kernel.sample_start(prior_key)
        place = jax.random.randint(place_key, (), 0, SETTLED_CHAINS)
        return Starts(type(prior)(*jax.tree.map(lambda leaf: leaf[place], settled)), prior)

    def join(first: Starts, second: Starts, met: jax.Array) -> Any:
        other = jax.tree.map(lambda same, own: jnp.where(met, same, own), first.settled, second.prior)
        return kernel.join(first.settled, other, met)

    def both(position: Any) -> Starts:
        return Starts(position, position)

    return CoupledKernel(
        sample_start=sample_start,
        join=join,
        step=kernel.step,
        met=kernel.met,
        first=lambda pair: both(kernel.first(pair)),
        second=lambda pair: both(kernel.second(pair)),
    )


def measure_kernel(kernel: CoupledKernel, pairs: int, cap: int) -> dict[str, Any]:
    """The coupling times of one kernel."""
    meetings = meet(kernel, pairs, cap)
    times = coupled_steps(meetings)
    rate = convergence_rate(meetings, np.random.default_rng(1), num_bootstrap=200)
    return {
        "mean": float(np.mean(times)),
        "standard_error": float(np.std(times, ddof=1) / np.sqrt(pairs)),
        "quartiles": [float(q) for q in np.quantile(times, (0.25, 0.75))],
        "capped": meetings.num_censored,
        "rate": [rate.rate, rate.lower, rate.upper],
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Mean coupling times beside the paper's."""
    labels, ours, theirs = [], [], []
    for epsilon in (epsilon for epsilon in map(str, PAPER) if epsilon in result):
        for name, row in result[epsilon].items():
            labels.append(
                f"ε = {epsilon}, {name}" + (f"\n({row['capped']} of the pairs capped)" if row["capped"] else "")
            )
            ours.append(row["mean"])
            theirs.append(row["paper"][0])
    places = np.arange(len(labels))
    axes.barh(places - 0.2, ours, 0.4, label="measured")
    axes.barh(places + 0.2, theirs, 0.4, label="paper")
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("mean coupling time in sweeps")
    axes.legend()
