"""Figures 6 to 8: the perturbed histogram from n = 2 to 60: quantile traces, acceptance, meetings, Wasserstein."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.histogram_meeting import EPSILON, KERNELS
from benchmarks.papers.soma.meetings import acceptance_rates
from benchmarks.papers.soma.pairs import join, make_meet
from benchmarks.papers.soma.problems import COLORS, SAMPLERS, Problem, histogram
from dpjax.coupling import coupled_gibbs, wasserstein

QUARTILES = (0.25, 0.5, 0.75)
RUNS = 100
"""Repeated runs of the traces and of the distances, as in the paper."""

TRACE_SIZES, TRACE_SWEEPS, TRACE_START = (20, 50), 12, 0.05
DISTANCE_SIZES, DISTANCE_POINTS = (10, 20), 25


def measure(sizes: Sequence[int], pairs: int, cap: int, proposals: int) -> dict[str, Any]:
    """Acceptance and meeting times by n, and traces and distances at the paper's sizes; one proposal is one step.

    Parameters
    ----------
    sizes
        The numbers of records n.
    pairs, cap
        Coupled pairs of each kernel and n, and the most proposals of a pair; means and quartiles are restricted there.
    proposals
        How many proposals in all an acceptance rate is the mean of, at least.
    """
    problems = {n: histogram(n, EPSILON) for n in {*sizes, *TRACE_SIZES, *DISTANCE_SIZES}}
    rates = {
        name: [acceptance_rates(problems[n], sampler, chains=8, sweeps=-(-proposals // n)) for n in sizes]
        for name, sampler in SAMPLERS.items()
    }
    return {
        "n": list(sizes),
        "acceptance_rate": {name: [float(each.mean()) for each in found] for name, found in rates.items()},
        "error_of_acceptance": {
            name: [float(each.std(ddof=1) / np.sqrt(len(each))) for each in found] for name, found in rates.items()
        },
        "meeting_time": {name: [measure_meetings(problems[n], name, pairs, cap) for n in sizes] for name in KERNELS},
        "quartiles": {
            str(n): {name: trace_quartiles(problems[n], sampler) for name, sampler in SAMPLERS.items()}
            for n in TRACE_SIZES
        },
        "wasserstein": {
            str(n): {name: trace_distances(problems[n], name, min(cap, 10_000)) for name in KERNELS}
            for n in DISTANCE_SIZES
        },
    }


def measure_meetings(problem: Problem, name: str, pairs: int, cap: int) -> dict[str, Any]:
    """Mean, quartiles and number of capped pairs of a kernel's meeting times in proposals."""
    model, release = problem
    sampler, relabel = KERNELS[name]
    unit = release.n if sampler == "imwg_systematic" else 1
    meetings = make_meet(model, SAMPLERS[sampler], relabel, -(-cap // unit), proposals=unit)(release, pairs)
    times = np.minimum(cap, unit * (meetings.times - 1))
    quartiles = [float(q) for q in np.quantile(times, QUARTILES)]
    return {"mean": float(times.mean()), "quartiles": quartiles, "capped": meetings.num_censored}


def trace_quartiles(problem: Problem, imputation: dpjax.base.Imputation) -> list[Any]:
    """The quartiles over runs of the quartiles of the records [sweep, 3, 3], from records that all start at 0.05."""
    model, release = problem
    algorithm = dpjax.impute(model, release, {}, imputation)

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> jax.Array:
        def step(latent: dpjax.base.Latent, index: jax.Array) -> tuple:
            latent, _ = algorithm.step(jax.random.fold_in(key, index), latent)
            return latent, latent.records["y"]

        start = jnp.full(release.n, TRACE_START)
        path = jax.lax.scan(step, algorithm.init({"y": start}), jnp.arange(TRACE_SWEEPS))[1]
        return jnp.concatenate([start[None], path])

    records = np.asarray(run(jax.random.split(jax.random.key(7), RUNS)))
    quartiles = np.quantile(records, QUARTILES, axis=2)  # [quartile, run, sweep]
    return np.quantile(quartiles, QUARTILES, axis=1).transpose(2, 1, 0).tolist()


def trace_distances(problem: Problem, name: str, last: int) -> dict[str, Any]:
    """The quartiles over pairs of W₂ between the records of two chains, at numbers of proposals up to `last`."""
    model, release = problem
    sampler, relabel = KERNELS[name]
    unit = release.n if sampler == "imwg_systematic" else 1
    kernel = coupled_gibbs(model, release, SAMPLERS[sampler], relabel=relabel, proposals=unit)
    times = np.unique(np.geomspace(1, last // unit, DISTANCE_POINTS).astype(int))

    @jax.jit
    def advance(carry: tuple, stop: jax.Array) -> tuple:
        def one(key: jax.Array, time: jax.Array, pair: Any) -> tuple:
            def step(index: jax.Array, pair: Any) -> Any:
                return kernel.step(jax.random.fold_in(key, index), pair)[0]

            return key, stop, jax.lax.fori_loop(time, stop, step, pair)

        return jax.vmap(one)(*carry)

    join_keys, run_keys = jax.random.split(jax.random.key(8), (2, RUNS))
    carry = (run_keys, jnp.zeros(RUNS, int), jax.vmap(lambda key: join(key, kernel))(join_keys))
    rows = []
    for stop in times:
        carry = advance(carry, jnp.asarray(stop))
        first, second = (np.asarray(side(carry[2]).records["y"]) for side in (kernel.first, kernel.second))
        distances = [wasserstein({"y": one}, {"y": other}) for one, other in zip(first, second, strict=True)]
        rows.append([float(q) for q in np.quantile(distances, QUARTILES)])
    return {"proposals": (unit * times).tolist(), "quartiles": rows}


def draw(result: dict[str, Any], axes: Any) -> None:
    """Acceptance and meeting times against n; quantile traces; distances."""
    for name, rates in result["acceptance_rate"].items():
        style = ".--" if name == "imwg_systematic" else ".-"  # it lies upon the random scan
        axes[0].plot(result["n"], rates, style, color=COLORS[name], label=name)
    axes[0].set(xlabel="n", ylabel="acceptance rate", ylim=(0, 1), title="Figure 7-A")
    for name, rows in result["meeting_time"].items():
        low, middle, high = np.transpose([row["quartiles"] for row in rows])
        axes[1].plot(result["n"], middle, ".-", color=COLORS[name], label=name)
        axes[1].fill_between(result["n"], low, high, color=COLORS[name], alpha=0.15)
    axes[1].set(xlabel="n", ylabel="meeting time in proposals", yscale="log", title="Figure 7-B: medians and quartiles")
    for panel, (n, traces) in zip(axes[2:4], result["quartiles"].items(), strict=True):
        for name, rows in traces.items():
            draw_bands(panel, int(n) * np.arange(len(rows)), np.array(rows), name)
        panel.set(xlabel="proposals", ylabel="quartiles of the records", title=f"Figure 6: n = {n}")
    for panel, (n, curves) in zip(axes[4:], result["wasserstein"].items(), strict=True):
        for name, curve in curves.items():
            draw_bands(panel, np.array(curve["proposals"]), np.array(curve["quartiles"])[:, None], name)
        panel.set(xlabel="proposals", ylabel="W₂ of two chains", xscale="log", title=f"Figure 8: n = {n}")
    for panel in axes:
        panel.legend(fontsize="x-small")


def draw_bands(axes: Any, times: np.ndarray, rows: np.ndarray, name: str) -> None:
    """Medians with bands between quartiles, of rows [time, curve, 3]."""
    for curve in range(rows.shape[1]):
        low, middle, high = rows[:, curve].T
        axes.plot(times, middle, color=COLORS[name], label=name if curve == 0 else None)
        axes.fill_between(times, low, high, color=COLORS[name], alpha=0.15)
