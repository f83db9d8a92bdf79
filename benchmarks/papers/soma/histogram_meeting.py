"""Figure 7-B: meeting times of the perturbed histogram, one proposal being one step, means restricted at the cap."""

from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.meetings import acceptance_rates, coupled_steps, meet
from benchmarks.papers.soma.problems import CONFIDENTIAL, SAMPLERS, histogram
from dpjax.coupling import CoupledKernel, coupled_gibbs

EPSILON = 5.0
KERNELS = {
    "soma": ("soma", True),
    "soma_equal_indices": ("soma", False),
    "imwg_systematic": ("imwg_systematic", False),
    "imwg_random": ("imwg_random", False),
}
"""The sampler, and whether its second chain is relabelled; IMwG as in the paper, which insists on equal indices."""


SETTLED_SWEEPS = 50
"""Of SOMA from the prior, whose last state stands for the posterior."""

RESAMPLED = 1_000


class AtRelease(NamedTuple):
    """A chain, or a pair of them, the value [d] that was released to it, and where its second chain starts."""

    value: jax.Array
    state: Any
    prior: Any


def measure(n: int, pairs: int, cap: int) -> dict[str, Any]:
    """Mean and median meeting time of each kernel, how many pairs had not met at the cap, and the acceptance rate.

    Every pair has a simulated release of its own, because how long equal indices take depends on the release most. As
    in the authors' code, the confidential records are Beta(10, 10) under a uniform model, and one chain starts in the
    prior and the other at the last state of a run of SOMA.
    A systematic scan is looked at after every sweep of n proposals, which adds less than n to its times.
    """
    problem = histogram(n, EPSILON)
    rates = {name: float(acceptance_rates(problem, imputation).mean()) for name, imputation in SAMPLERS.items()}
    result: dict[str, Any] = {
        name: {}
        for name in ("mean_meeting_time", "median_meeting_time", "log_median_error", "capped", "acceptance_rate")
    }
    for name, (sampler, relabel) in KERNELS.items():
        unit = n if sampler == "imwg_systematic" else 1
        kernel = make_kernel(problem, SAMPLERS[sampler], relabel, unit)
        meetings = meet(kernel, pairs, -(-cap // unit))
        times = [min(cap, unit * steps) for steps in coupled_steps(meetings)]
        result["mean_meeting_time"][name] = sum(times) / pairs
        result["median_meeting_time"][name] = median(times)
        result["log_median_error"][name] = error_of_log_median(times)
        result["capped"][name] = meetings.num_censored
        result["acceptance_rate"][name] = rates[sampler]
    return result


def error_of_log_median(times: list[float]) -> float:
    """The standard error of the logarithm of a median, by resampling."""
    drawn = np.random.default_rng(1).choice(np.maximum(times, 1), (RESAMPLED, len(times)))
    return float(np.std(np.log(np.median(drawn, axis=1)), ddof=1))


def make_kernel(problem: tuple, imputation: dpjax.base.Imputation, relabel: bool, proposals: int) -> CoupledKernel:
    """Pairs whose steps make so many proposals, at releases of their own; the first chain brings the pair's release."""
    model, template = problem

    def coupled(value: jax.Array) -> CoupledKernel:
        return coupled_gibbs(model, replace(template, value=value), imputation, relabel=relabel, proposals=proposals)

    any_release = coupled(template.value)

    def sample_start(key: jax.Array) -> AtRelease:
        confidential_key, noise_key, prior_key, start_key, run_key = jax.random.split(key, 5)
        confidential = {"y": jax.random.beta(confidential_key, *CONFIDENTIAL, (template.n,))}
        release = template.sample(noise_key, confidential)
        chain = dpjax.impute(model, release, {}, dpjax.soma())
        start = any_release.sample_start(start_key)

        def step(index: jax.Array, latent: Any) -> Any:
            return chain.step(jax.random.fold_in(run_key, index), latent)[0]

        latent = jax.lax.fori_loop(0, SETTLED_SWEEPS, step, chain.init(start.records))
        return AtRelease(release.value, start._replace(records=latent.records), any_release.sample_start(prior_key))

    def join(first: AtRelease, second: AtRelease, met: jax.Array) -> AtRelease:
        other = jax.tree.map(lambda same, own: jnp.where(met, same, own), first.state, second.prior)
        return AtRelease(first.value, any_release.join(first.state, other, met), second.prior)

    def step(rng_key: jax.Array, pair: AtRelease) -> tuple[AtRelease, Any]:
        state, info = coupled(pair.value).step(rng_key, pair.state)
        return pair._replace(state=state), info

    return CoupledKernel(
        sample_start=sample_start,
        join=join,
        step=step,
        met=lambda pair: any_release.met(pair.state),
        first=lambda pair: pair._replace(state=any_release.first(pair.state)),
        second=lambda pair: pair._replace(state=any_release.second(pair.state)),
    )


def draw(result: dict[str, Any], axes: Any) -> None:
    """The mean meeting times as bars; means restricted at the cap are lower bounds and hatched."""
    means = result["mean_meeting_time"]
    bars = axes.barh(list(means), list(means.values()), log=True)
    for bar, capped in zip(bars, result["capped"].values(), strict=True):
        bar.set_hatch("//" if capped else "")
    axes.set_xlabel("mean meeting time in proposals (hatched: some pairs reached the cap)")
