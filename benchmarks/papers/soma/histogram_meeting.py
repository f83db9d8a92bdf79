"""Figure 7-B: meeting times of the perturbed histogram, one proposal being one step, means restricted at the cap."""

from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

import jax

import dpjax
from benchmarks.papers.soma.meetings import acceptance_rate, coupled_steps, meet
from benchmarks.papers.soma.problems import SAMPLERS, histogram
from dpjax.coupling import CoupledKernel, coupled_gibbs

EPSILON = 5.0
KERNELS = {
    "soma": ("soma", True),
    "soma_equal_indices": ("soma", False),
    "imwg_systematic": ("imwg_systematic", False),
    "imwg_random": ("imwg_random", False),
}
"""The sampler, and whether its second chain is relabelled; IMwG as in the paper, which insists on equal indices."""


class AtRelease(NamedTuple):
    """A chain, or a pair of them, and the value [d] that was released to it."""

    value: jax.Array
    state: Any


def measure(n: int, pairs: int, cap: int) -> dict[str, Any]:
    """Mean and median meeting time of each kernel, how many pairs had not met at the cap, and the acceptance rate.

    Every pair has a simulated release of its own, because how long equal indices take depends on the release most.
    A systematic scan is looked at after every sweep of n proposals, which adds less than n to its times.
    """
    problem = histogram(n, EPSILON)
    rates = {name: acceptance_rate(problem, imputation) for name, imputation in SAMPLERS.items()}
    result: dict[str, Any] = {"mean_meeting_time": {}, "median_meeting_time": {}, "capped": {}, "acceptance_rate": {}}
    for name, (sampler, relabel) in KERNELS.items():
        unit = n if sampler == "imwg_systematic" else 1
        kernel = make_kernel(problem, SAMPLERS[sampler], relabel, unit)
        meetings = meet(kernel, pairs, -(-cap // unit))
        times = [min(cap, unit * steps) for steps in coupled_steps(meetings)]
        result["mean_meeting_time"][name] = sum(times) / pairs
        result["median_meeting_time"][name] = median(times)
        result["capped"][name] = meetings.num_censored
        result["acceptance_rate"][name] = rates[sampler]
    return result


def make_kernel(problem: tuple, imputation: dpjax.base.Imputation, relabel: bool, proposals: int) -> CoupledKernel:
    """Pairs whose steps make so many proposals, at releases of their own; the first chain brings the pair's release."""
    model, template = problem

    def coupled(value: jax.Array) -> CoupledKernel:
        return coupled_gibbs(model, replace(template, value=value), imputation, relabel=relabel, proposals=proposals)

    any_release = coupled(template.value)

    def sample_start(key: jax.Array) -> AtRelease:
        records_key, noise_key, start_key = jax.random.split(key, 3)
        value = template.sample(noise_key, model.sample_records(records_key, {}, template.n)).value
        return AtRelease(value, any_release.sample_start(start_key))

    def join(first: AtRelease, second: AtRelease, met: jax.Array) -> AtRelease:
        return AtRelease(first.value, any_release.join(first.state, second.state, met))

    def step(rng_key: jax.Array, pair: AtRelease) -> tuple[AtRelease, Any]:
        state, info = coupled(pair.value).step(rng_key, pair.state)
        return AtRelease(pair.value, state), info

    return CoupledKernel(
        sample_start=sample_start,
        join=join,
        step=step,
        met=lambda pair: any_release.met(pair.state),
        first=lambda pair: AtRelease(pair.value, any_release.first(pair.state)),
        second=lambda pair: AtRelease(pair.value, any_release.second(pair.state)),
    )


def draw(result: dict[str, Any], axes: Any) -> None:
    """The mean meeting times as bars; means restricted at the cap are lower bounds and hatched."""
    means = result["mean_meeting_time"]
    bars = axes.barh(list(means), list(means.values()), log=True)
    for bar, capped in zip(bars, result["capped"].values(), strict=True):
        bar.set_hatch("//" if capped else "")
    axes.set_xlabel("mean meeting time in proposals (hatched: some pairs reached the cap)")
