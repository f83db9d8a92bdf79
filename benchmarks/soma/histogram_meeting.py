"""Figure 7-B: meeting times of the perturbed histogram, one offer being one step, means restricted at the cap."""

from typing import Any

import dpjax
from benchmarks.soma.meetings import acceptance_rate, coupled_steps, meet
from benchmarks.soma.problems import SAMPLERS, histogram
from dpjax.coupling import coupled_gibbs

EPSILON = 5.0
KERNELS = {
    "soma": ("soma", True),
    "soma_equal_indices": ("soma", False),
    "imwg_systematic": ("imwg_systematic", False),
    "imwg_random": ("imwg_random", False),
}
"""The sampler, and whether its second chain is relabelled; IMwG as in the paper, which insists on equal indices."""


def measure(n: int, pairs: int, cap: int) -> dict[str, Any]:
    """The mean meeting time of each kernel, how many pairs had not met at the cap, and the acceptance rate.

    A systematic scan is looked at after every sweep of n offers, which adds less than n to its times.
    """
    problem = histogram(n, EPSILON)
    rates = {name: acceptance_rate(problem, imputation) for name, imputation in SAMPLERS.items()}
    result: dict[str, Any] = {"mean_meeting_time": {}, "capped": {}, "acceptance_rate": {}}
    for name, (sampler, relabel) in KERNELS.items():
        unit = n if sampler == "imwg_systematic" else 1
        kernel = make_kernel(problem, SAMPLERS[sampler], relabel, unit)
        meetings = meet(kernel, pairs, -(-cap // unit))
        times = [min(cap, unit * steps) for steps in coupled_steps(meetings)]
        result["mean_meeting_time"][name] = sum(times) / pairs
        result["capped"][name] = meetings.num_censored
        result["acceptance_rate"][name] = rates[sampler]
    return result


def make_kernel(problem: tuple, imputation: dpjax.Imputation, relabel: bool, offers: int) -> Any:
    """Pairs whose steps make so many offers."""
    return coupled_gibbs(*problem, imputation, relabel=relabel, offers=offers)


def draw(result: dict[str, Any], axes: Any) -> None:
    """The mean meeting times as bars; means restricted at the cap are lower bounds and hatched."""
    means = result["mean_meeting_time"]
    bars = axes.barh(list(means), list(means.values()), log=True)
    for bar, capped in zip(bars, result["capped"].values(), strict=True):
        bar.set_hatch("//" if capped else "")
    axes.set_xlabel("mean meeting time in offers (hatched: some pairs reached the cap)")
