"""Xiong and Ju (2025), in the version of 2025 and in the first one."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import Number, Paper, Row
from benchmarks.papers.soma.readings import ROWS, entry

SAMPLERS = {"SOMA": "soma", "Sys-IMwG": "imwg_systematic", "Ran-IMwG": "imwg_random"}


def smallest_lead(result: dict[str, Any], prior: str) -> float:
    """By how much SOMA accepts more than systematic IMwG, at the ε where that is least."""
    rates = result["acceptance_rate"][prior]
    return float(np.min(np.subtract(rates["soma"]["mean"], rates["imwg_systematic"]["mean"])))


def settled(result: dict[str, Any], sampler: str) -> float:
    """The median, over repeated sets of chains, of the iterations from which R-hat stays below 1.05."""
    below = result["samplers"][sampler]["below"]
    return float(np.median([np.inf if iterations is None else iterations for iterations in below]))


def effective_ratio(result: dict[str, Any], group: str) -> float:
    """The effective size of α₁ of SOMA over that of IMwG."""
    samplers = result[group]["samplers"]
    return float(samplers["soma"]["ess"][0] / samplers["imwg"]["ess"][0])


def percentage(result: dict[str, Any], sampler: str, average: str = "mean") -> float:
    """SOMA's mean or median meeting time by equal indices, in per cent of another sampler's."""
    times = result[f"{average}_meeting_time"]
    return float(100 * times["soma_equal_indices"] / times[sampler])


def crossing(result: dict[str, Any], prior: str) -> float:
    """The posterior correlation below which relabelled SOMA is faster than systematic IMwG."""
    rows = result[prior]
    gaps = [own[0] - other[0] for own, other in zip(rows["rate"]["soma"], rows["rate"]["imwg_systematic"], strict=True)]
    place = int(np.flatnonzero(np.array(gaps) < 0)[0])
    share = gaps[place - 1] / (gaps[place - 1] - gaps[place])
    before, after = rows["correlation"][place - 1 : place + 1]
    return float(before + share * (after - before))


def distance_at(result: dict[str, Any], sampler: str, iteration: int) -> float:
    """The MMD after so many iterations."""
    place = result["iterations"].index(iteration)
    return float(np.sqrt(max(result["samplers"][sampler]["squared_mmd"][place], 0)))


def arrival(result: dict[str, Any], sampler: str) -> float:
    """The first iteration from which the mean of β₀ stays within 0.1 of the posterior's."""
    means = np.array([one["mean"] for one in result["samplers"][sampler]["intercept"]])
    away = np.flatnonzero(np.abs(means - result["posterior"]["mean"]) > 0.1)
    return float(result["iterations"][min(away[-1] + 1, len(means) - 1)])


def distinct(result: dict[str, Any], sampler: str) -> float:
    """How many different points a trace has."""
    return float(len({tuple(point) for point in result["traces"][sampler]}))


def lead_of_acceptance(result: dict[str, Any], n: int) -> float:
    """By how much SOMA accepts more than systematic IMwG with n records."""
    rates, place = result["acceptance_rate"], result["n"].index(n)
    return float(rates["soma"][place] - rates["imwg_systematic"][place])


def settling(result: dict[str, Any], n: int, start: str, sampler: str) -> float:
    """The sweeps until quartiles stay within 0.02 of the exact ones, SOMA's over those of another sampler."""
    found = result["quartiles"][str(n)][start]
    return float(found["soma"]["sweeps"]["0.02"] / found[sampler]["sweeps"]["0.02"])


def settlings() -> tuple[Number, ...]:
    """That SOMA settles first, by start, number of records and sampler."""
    return tuple(
        Number(
            f"n = {n}, from {where}: SOMA's over {label}'s",
            1.0,
            partial(settling, n=n, start=start, sampler=sampler),
            kind="at most",
        )
        for start, where in (("0.05", "0.05"), ("prior", "the prior"))
        for n in (20, 50)
        for label, sampler in (("Sys-IMwG", "imwg_systematic"), ("Ran-IMwG", "imwg_random"))
    )


def last_distance(result: dict[str, Any], n: int, kernel: str) -> float:
    """The median W₂ of the pairs after the last proposal."""
    return float(result["wasserstein"][str(n)][kernel]["quartiles"][-1][1])


def until_zero(result: dict[str, Any], n: int, kernel: str) -> float:
    """The proposals until the median W₂ is 0, SOMA's over those of another kernel."""

    def time(name: str) -> float:
        curve = result["wasserstein"][str(n)][name]
        place = int(np.flatnonzero(np.array(curve["quartiles"])[:, 1] > 0)[-1]) + 1
        return float(curve["proposals"][place])

    return time("soma") / time(kernel)


def both_errors(result: dict[str, Any], *path: str | int) -> float:
    """The standard error of the difference of two such means."""
    return float(np.sqrt(2) * entry(result, *path))


def of_samplers(what: str, paper: dict[str, float], *path: str, error: str = "", **options: Any) -> tuple[Number, ...]:
    """A number of each sampler: `what` takes its label, and its name is the star of the path.

    An error is the name of the standard error that stands beside ours; without one it is not known.
    """

    def number(label: str, name: str) -> Number:
        place = [name if part == "*" else part for part in path]
        own = (lambda result: both_errors(result, *place[:-1], error)) if error else None
        return Number(what.format(label), paper[label], lambda result: entry(result, *place), own, **options)

    return tuple(number(label, name) for label, name in SAMPLERS.items())


def coupling_times(epsilon: str, paper: dict[str, float]) -> tuple[Number, ...]:
    """The mean coupling times of Table 3."""
    what = f"ε = {epsilon}, mean coupling time of {{}}"
    return of_samplers(what, paper, epsilon, "*", "mean", error="standard_error")


def acceptances(epsilon: str, paper: dict[str, float]) -> tuple[Number, ...]:
    """The acceptance of Table 3, whose quartiles are a quarter of a point apart."""
    return of_samplers(f"ε = {epsilon}, accepted by {{}}, %", paper, epsilon, "*", "acceptance_percent")


def times_of_imwg(result: dict[str, Any], case: str) -> float:
    """The running time of SOMA, in those of systematic IMwG."""
    return entry(result, "rows", case, "soma", "seconds") / entry(result, "rows", case, "imwg_systematic", "seconds")


def times(*cases: str) -> tuple[Number, ...]:
    """That SOMA takes less than about twice the time of IMwG, as the paper says."""
    return tuple(
        Number(f"{case}: SOMA's time over Sys-IMwG's", 2.0, partial(times_of_imwg, case=case), kind="at most")
        for case in cases
    )


PAPER = Paper(
    "Xiong and Ju (2025), SOMA",
    (
        Row(
            "Figure 1",
            "soma",
            "acceptance",
            "traces of two records: different points in 250 sweeps",
            (
                Number(
                    "Ran-IMwG's over SOMA's",
                    1.0,
                    lambda result: distinct(result, "imwg_random") / distinct(result, "soma"),
                    kind="at most",
                ),
            ),
            looks="SOMA goes through the ridge of the density; a random scan stays at single points, as in the paper.",
            first="Figure 2",
        ),
        Row(
            "Figure 2",
            "soma",
            "acceptance",
            "acceptance against ε",
            (
                Number("Beta: least lead of SOMA", 0.0, lambda result: smallest_lead(result, "beta"), kind="at least"),
                Number(
                    "Exp: least lead of SOMA", 0.0, lambda result: smallest_lead(result, "exponential"), kind="at least"
                ),
            ),
            first="Figure 3",
        ),
        Row(
            "Figure 3",
            "soma",
            "mixing",
            "iterations until R-hat is below 1.05, n = 100, ε = 30",
            (
                Number("SOMA", 800, lambda result: settled(result, "soma")),
                Number("Sys-IMwG", 1_500, lambda result: settled(result, "imwg_systematic")),
                Number("Ran-IMwG", 1_500, lambda result: settled(result, "imwg_random")),
            ),
            "20 chains assumed; the paper gives no number",
            cause="The paper prints neither the release of 100 records, nor the start and warm-up of its chains, nor "
            "which R-hat and parameters are shown. β₀ alone takes 2,400 iterations and more. Other readings are in a "
            "row below.",
            first="Figure 9",
        ),
        Row(
            "Table 1",
            "soma",
            "time-use",
            "effective draws of α₁, SOMA over IMwG",
            (
                Number("women", 2754.5 / 2373.5, lambda result: effective_ratio(result, "female"), kind="ratio"),
                Number("men", 3406.8 / 2249.0, lambda result: effective_ratio(result, "male"), kind="ratio"),
            ),
            "10⁶ iterations of 20 chains",
            cause="An iteration is read as one proposal, and here the shapes move after every n of them alone. If they "
            "move after every proposal, sizes and order are near the paper's: see the row below. The survey is not "
            "public here: records are simulated.",
        ),
        Row(
            "Table 2",
            "soma",
            "time-use",
            "mean share of personal care",
            looks="Records are simulated at the paper's means, .4112 of women and .3919 of men. Ours, .411 and .391, "
            "say no more than that the sampler finds them again.",
        ),
        Row(
            "Figure 6",
            "soma",
            "histogram-quartiles",
            "quartiles of the records: sweeps until all stay within 0.02 of the exact ones",
            settlings(),
            "100 runs at one release",
            looks="SOMA is ahead of both, as in the paper, from either start. On single releases, such as that of "
            "`histogram`, which draws the figure, a systematic scan can be as fast.",
            first="Figure 5",
        ),
        Row(
            "Figure 7, A",
            "soma",
            "histogram",
            "acceptance against n",
            (
                Number(
                    "SOMA's lead over Sys-IMwG, n = 60 over n = 2",
                    1.0,
                    lambda result: lead_of_acceptance(result, 60) / lead_of_acceptance(result, 2),
                    kind="at least",
                ),
            ),
            looks="SOMA's rises with n and IMwG's does not, as in the paper.",
            first="Figure 6",
        ),
        Row(
            "Figure 7, B",
            "soma",
            "histogram-meeting",
            "SOMA's meeting time in per cent of the others', n = 20, by equal indices",
            (
                *(
                    Number(f"of {label}, {average}s, %", 1.0, partial(percentage, sampler=name, average=average))
                    for label, name in (("Sys-IMwG", "imwg_systematic"), ("Ran-IMwG", "imwg_random"))
                    for average in ("mean", "median")
                ),
            ),
            "100 pairs",
            cause="The release is not printed, and decides more than all else: on single releases the ratio is "
            "between 0.5 and 50 %. The figure draws medians, which are no nearer than means. No metric gives 1 %: "
            "pairs that are relabelled need less than 0.01 %.",
            first="Figure 6",
            file="histogram-meeting-long",
        ),
        Row(
            "Figure 8",
            "soma",
            "histogram",
            "W₂ between the chains of a pair: median after 10,000 proposals, and proposals until it is 0",
            (
                Number("n = 20, SOMA, relabelled", 0.0, partial(last_distance, n=20, kernel="soma")),
                *(
                    Number(
                        f"n = 20, {label}: it does not reach 0",
                        0.01,
                        partial(last_distance, n=20, kernel=kernel),
                        kind="at least",
                    )
                    for label, kernel in (("Sys-IMwG", "imwg_systematic"), ("Ran-IMwG", "imwg_random"))
                ),
                *(
                    Number(
                        f"n = 10, proposals until 0: SOMA's over {label}'s",
                        1.0,
                        partial(until_zero, n=10, kernel=kernel),
                        kind="at most",
                    )
                    for label, kernel in (("Sys-IMwG", "imwg_systematic"), ("Ran-IMwG", "imwg_random"))
                ),
            ),
            "100 pairs",
            looks="The metric is the same; the coupling gives the paper's curve. W₂ keeps falling for SOMA if pairs "
            "are relabelled, as in the paper; by equal indices it stalls.",
            first="Figure 7",
        ),
        Row(
            "Figure 9",
            "soma",
            "coupling-rate",
            "rates of coupling, ε = 20",
            (
                Number(
                    "SOMA's, where that of Sys-IMwG is 1",
                    1.0,
                    lambda result: (
                        entry(result, "survival", "soma", "rate", 0)
                        / entry(result, "survival", "imwg_systematic", "rate", 0)
                    ),
                    kind="at most",
                ),
            ),
            "100 pairs",
            first="Figure 12",
        ),
        Row(
            "Figure 10",
            "soma",
            "coupling-rate",
            "correlation below which SOMA is the fastest",
            (
                Number("Beta: minus the correlation", 0.4, lambda result: -crossing(result, "beta")),
                Number("Exp: minus the correlation", 0.4, lambda result: -crossing(result, "exponential")),
            ),
            first="Figure 4",
        ),
        Row(
            "Table 3",
            "soma",
            "table3",
            "coupling of the regression with 10 records",
            (
                *coupling_times("3", {"SOMA": 152.98, "Sys-IMwG": 99.60, "Ran-IMwG": 156.04}),
                *acceptances("3", {"SOMA": 99.49, "Sys-IMwG": 94.81, "Ran-IMwG": 94.80}),
                *coupling_times("30", {"SOMA": 120.64, "Sys-IMwG": 549.07, "Ran-IMwG": 900.79}),
                *acceptances("30", {"SOMA": 91.91, "Sys-IMwG": 50.94, "Ran-IMwG": 50.95}),
            ),
            cause="Acceptance at ε = 30 is that of another problem: the paper prints neither where records are clamped "
            "nor the scale of the noise. With covariates clamped at ±5 and a sensitivity of 15 chains accept nearly as "
            "often as in the paper, but then pairs meet later. Times depend on how parameters are coupled, which it "
            "does not say: by maximal coupling they are 143 ± 7 (SOMA) and 635 ± 39 (Sys-IMwG). Sixteen readings are "
            "in `python -m benchmarks soma table3-readings`; none gives both columns.",
            first="Table 1",
        ),
        Row(
            "Figure 11",
            "soma",
            "distances",
            "MMD of SOMA after 150 iterations, n = 100, ε = 30",
            (Number("MMD", 0.0, lambda result: distance_at(result, "soma", 150)),),
            "1,000 chains",
            cause="The start of the chains is not printed, and is the cause: see the row below. Ours start in the "
            "prior. The order of the samplers is the paper's.",
            first="Figure 13",
        ),
        Row(
            "Figure 12",
            "soma",
            "distances",
            "iterations until β₀ has converged (ours: until its mean is within 0.1)",
            (
                Number("SOMA", 150, lambda result: arrival(result, "soma")),
                Number("Sys-IMwG", 200, lambda result: arrival(result, "imwg_systematic")),
                Number("Ran-IMwG", 300, lambda result: arrival(result, "imwg_random")),
            ),
            "1,000 chains",
            first="Figure 8",
        ),
        Row(
            "Table 4",
            "soma",
            "table4",
            "running time of one chain, CPU",
            times("two records, beta, ε = 5", "histogram, n = 20, ε = 3", "regression, n = 100, ε = 30"),
            cause="SOMA weighs each attempt at all n records, IMwG at one. In the paper's programs the rest of a step "
            "takes most of the time, 102.6 s (Sys-IMwG) and 216.3 s (SOMA) for the regression. Here it takes .28 s and "
            "1.2 s: both are faster than there, IMwG 371 times and SOMA 178 times, so that attempts weigh more.",
            first="Table 2",
        ),
        *ROWS,
    ),
    {
        "Figures 4 and 5 (in the first version 10 and 11)": "diagrams of couplings",
        "The half of Table 4 that was measured on a GPU": "other hardware",
    },
)
