"""Figures 9 and 10: how long chains of two records take to meet, and the rate against the posterior correlation."""

from typing import Any

import numpy as np

from benchmarks.papers.soma.pairs import Meet, make_meet
from benchmarks.papers.soma.problems import COLORS, MEAN, SAMPLERS, two_records
from dpjax.coupling import Meetings, convergence_rate, theory
from problems.two_records import PRIORS, two_records_posterior

KERNELS = {
    "soma": ("soma", True),
    "soma_equal_indices": ("soma", False),
    "imwg_random": ("imwg_random", False),
    "imwg_systematic": ("imwg_systematic", False),
}
"""The sampler, and whether its second chain is relabelled; IMwG as in the paper, by equal indices."""

SURVIVAL_EPSILON = 20.0
RANGES = {"beta": (0.5, 100.0), "exponential": (0.1, 10.0)}
"""The values of ε, which give posterior correlations from about zero to strong."""


def measure(points: int, pairs: int, cap: int) -> dict[str, Any]:
    """Survival at ε = 20 with the beta prior, and by prior and ε the exact correlation and the rate of every kernel.

    Times and rates are in proposals. A systematic scan is looked at after every sweep of two; its rate is the root.
    """
    result: dict[str, Any] = {}
    for prior in PRIORS:
        grid = [float(epsilon) for epsilon in np.geomspace(*RANGES[prior], points)]
        correlations = [two_records_posterior(prior, 2 * epsilon, MEAN).correlation for epsilon in grid]
        result[prior] = {
            "epsilon": grid,
            "correlation": correlations,
            "rate": {},
            "mean_meeting_time": {},
            "capped": {},
        }
        for name in KERNELS:
            meet = make_kernel_meet(prior, name, cap)
            if prior == "beta":
                result.setdefault("survival", {})[name] = survival(name, meet_at(meet, prior, SURVIVAL_EPSILON, pairs))
            found = [meet_at(meet, prior, epsilon, pairs) for epsilon in grid]
            result[prior]["rate"][name] = [estimate_rate(name, meetings) for meetings in found]
            times = [proposals_of(name) * float(np.mean(meetings.times - 1)) for meetings in found]
            result[prior]["mean_meeting_time"][name] = times
            result[prior]["capped"][name] = [meetings.num_censored for meetings in found]
    return result


def make_kernel_meet(prior: str, name: str, cap: int) -> Meet:
    """The meetings of a kernel's pairs."""
    sampler, relabel = KERNELS[name]
    unit = proposals_of(name)
    return make_meet(two_records(prior, 1.0)[0], SAMPLERS[sampler], relabel, cap // unit, proposals=unit)


def proposals_of(name: str) -> int:
    """How many proposals a step of a kernel makes."""
    return 2 if name == "imwg_systematic" else 1


def meet_at(meet: Meet, prior: str, epsilon: float, pairs: int) -> Meetings:
    """The meetings at a value of ε."""
    return meet(two_records(prior, epsilon)[1], pairs)


def estimate_rate(name: str, meetings: Meetings) -> list[float]:
    """The rate per proposal and the ends of its interval."""
    rate = convergence_rate(meetings, np.random.default_rng(1), num_bootstrap=100)
    return [value ** (1 / proposals_of(name)) for value in (rate.rate, rate.lower, rate.upper)]


def survival(name: str, meetings: Meetings) -> dict[str, Any]:
    """The share of pairs that have not met after each number of proposals, down to a hundredth."""
    steps = np.arange(int(np.quantile(meetings.times, 0.99)))
    shares = (meetings.times[None] - 1 > steps[:, None]).mean(axis=1)
    return {
        "proposals": (proposals_of(name) * steps).tolist(),
        "share": shares.tolist(),
        "rate": estimate_rate(name, meetings),
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Log survival with its fitted slope, and the rates against the correlation with the proved bounds."""
    for name, curve in result["survival"].items():
        label = f"{name}: {curve['rate'][0]:.3f}"
        axes[0].plot(curve["proposals"], curve["share"], color=COLORS[name], label=label)
    axes[0].set(yscale="log", xlabel="proposals t", ylabel="P(τ > t)", title=f"beta prior, ε = {SURVIVAL_EPSILON:g}")
    axes[0].legend(title="rate per proposal", fontsize="small")
    for panel, prior in zip(axes[1:], PRIORS, strict=True):
        figures = result[prior]
        for name, rates in figures["rate"].items():
            rate, lower, upper = np.array(rates).T
            errors = np.maximum(0, np.stack([rate - lower, upper - rate]))
            panel.errorbar(figures["correlation"], rate, errors, marker=".", color=COLORS[name], label=name)
        panel.set(xlabel="posterior correlation", ylabel="rate per proposal", title=f"{prior} prior")
    budget = np.array(result["beta"]["epsilon"])  # see acceptance.draw
    bounds = (theory.imwg_random_rate_bound, theory.imwg_systematic_rate_bound, theory.soma_rate_bound)
    for name, bound in zip(SAMPLERS, bounds, strict=True):
        label = f"{name} at most (Theorem 13)"
        axes[1].plot(result["beta"]["correlation"], bound(budget), ":", color=COLORS[name], label=label)
    axes[1].legend(fontsize="x-small")
