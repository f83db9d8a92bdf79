"""Xiong and Ju (2025), in the version of 2025 and in the first one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import Number, Paper, Row
from benchmarks.papers.soma.first_version import ROWS, entry
from benchmarks.papers.soma.time_use_numbers import table1, table2

PAIRS = 100
"""Of figures 7 and 8."""

SAMPLERS = {"SOMA": "soma", "Sys-IMwG": "imwg_systematic", "Ran-IMwG": "imwg_random"}


def smallest_lead(result: dict[str, Any], prior: str) -> tuple[float, float]:
    """By how much SOMA accepts more than systematic IMwG, at the ε where that is least, and its standard error."""
    soma, other = (result["acceptance_rate"][prior][name] for name in ("soma", "imwg_systematic"))
    leads = np.subtract(soma["mean"], other["mean"])
    errors = np.hypot(soma["standard_error"], other["standard_error"])
    return float(np.min(leads)), float(errors[np.argmin(leads)])


def rate_of(result: dict[str, Any], kernel: str) -> tuple[float, float]:
    """The logarithm of a rate of coupling and its standard error, by the interval of 95 %."""
    rate, lower, upper = np.log(result["survival"][kernel]["rate"])
    return float(rate), float((upper - lower) / (2 * 1.96))


def rate_ratio(result: dict[str, Any]) -> tuple[float, float]:
    """The rate of SOMA over that of systematic IMwG, and its standard error."""
    (soma, own), (other, theirs) = (rate_of(result, kernel) for kernel in ("soma", "imwg_systematic"))
    ratio = float(np.exp(soma - other))
    return ratio, ratio * float(np.hypot(own, theirs))


def with_error(read: Callable[..., tuple[float, float]], **arguments: Any) -> dict[str, Any]:
    """What reads both parts of such a pair."""
    return {part: lambda result, at=at: read(result, **arguments)[at] for at, part in enumerate(("read", "error"))}


def settled(result: dict[str, Any], sampler: str) -> float:
    """The mean, over repeated sets of chains, of the iterations from which R-hat stays below 1.05."""
    return entry(result, "samplers", sampler, "mean")


def error_of_settled(result: dict[str, Any], sampler: str) -> float:
    """The standard error of the difference to a figure of one set of chains."""
    row = result["samplers"][sampler]
    return float(row["standard_deviation"] * np.sqrt(1 + 1 / len(row["below"])))


def percentage(result: dict[str, Any], sampler: str) -> float:
    """The median meeting time of relabelled SOMA, in per cent of another sampler's by equal indices."""
    times = result["median_meeting_time"]
    return float(100 * times["soma"] / times[sampler])


def error_of_percentage(result: dict[str, Any], sampler: str) -> float:
    """The standard error of the difference to that of as many pairs at one release, which spreads times as well.

    At a release times are about exponential, with a mean of 1.44 medians. What means exceed this by is of releases,
    whose logarithms are taken to be Normal.
    """
    errors, names = result["log_median_error"], ("soma", sampler)
    means, medians = result["mean_meeting_time"], result["median_meeting_time"]
    spread = sum(max(0.0, 2 * np.log(np.log(2) * means[name] / medians[name])) for name in names)
    return percentage(result, sampler) * float(np.sqrt(2 * sum(errors[name] ** 2 for name in names) + spread))


def crossing(result: dict[str, Any], prior: str) -> tuple[float, float]:
    """Minus the posterior correlation below which relabelled SOMA is faster than systematic IMwG, and its error.

    Between two values of ε the difference of the rates is a line; its error there is that of one end.
    """
    rows = result[prior]
    soma, other = (np.array(rows["rate"][name]) for name in ("soma", "imwg_systematic"))
    gaps, errors = (
        soma[:, 0] - other[:, 0],
        np.hypot(*((rate[:, 2] - rate[:, 1]) / (2 * 1.96) for rate in (soma, other))),
    )
    place = int(np.flatnonzero(gaps < 0)[0])
    before, after = rows["correlation"][place - 1 : place + 1]
    slope = (after - before) / (gaps[place - 1] - gaps[place])
    return float(-before - slope * gaps[place - 1]), float(abs(slope) * errors[place - 1 : place + 1].max())


def distance_at(result: dict[str, Any], sampler: str, iteration: int) -> float:
    """The MMD after so many iterations."""
    place = result["iterations"].index(iteration)
    return float(np.sqrt(max(result["samplers"][sampler]["squared_mmd"][place], 0)))


def error_of_distance(result: dict[str, Any], sampler: str, iteration: int) -> float:
    """Its standard error, by that of its square."""
    place = result["iterations"].index(iteration)
    error = result["samplers"][sampler]["standard_error"][place]
    return float(error / max(2 * distance_at(result, sampler, iteration), np.sqrt(error)))


def nearer(result: dict[str, Any], sampler: str, iteration: int) -> float:
    """The MMD of SOMA over that of another sampler."""
    return distance_at(result, "soma", iteration) / distance_at(result, sampler, iteration)


def error_of_nearer(result: dict[str, Any], sampler: str, iteration: int) -> float:
    """Its standard error."""
    names = ("soma", sampler)
    relative = (error_of_distance(result, name, iteration) / distance_at(result, name, iteration) for name in names)
    return nearer(result, sampler, iteration) * float(np.hypot(*relative))


def distinct(result: dict[str, Any]) -> tuple[float, float]:
    """How many different points traces of random IMwG have over those of SOMA, means over chains, and its error."""
    counts = [np.array(result["distinct"][name]) for name in ("imwg_random", "soma")]
    ratio = float(counts[0].mean() / counts[1].mean())
    return ratio, ratio * float(np.hypot(*(each.std(ddof=1) / np.sqrt(len(each)) / each.mean() for each in counts)))


def lead_of_acceptance(result: dict[str, Any], many: int, few: int) -> tuple[float, float]:
    """By how much SOMA accepts more than systematic IMwG with many records, over that with few, and its error."""

    def lead(n: int) -> tuple[float, float]:
        place = result["n"].index(n)
        rates, errors = (
            [result[figure][name][place] for name in ("soma", "imwg_systematic")]
            for figure in ("acceptance_rate", "error_of_acceptance")
        )
        return rates[0] - rates[1], float(np.hypot(*errors))

    (top, its), (bottom, other) = lead(many), lead(few)
    return top / bottom, top / bottom * float(np.hypot(its / top, other / bottom))


def settling(result: dict[str, Any], n: int, start: str, sampler: str) -> tuple[float, float]:
    """The sweeps until quartiles stay within 0.02 of the exact ones, SOMA's over another's, and its standard error."""
    found = [result["quartiles"][str(n)][start][name] for name in ("soma", sampler)]
    own, other = (row["sweeps"]["0.02"] for row in found)
    relative = [row["standard_error"]["0.02"] / row["sweeps"]["0.02"] for row in found]
    return own / other, own / other * float(np.hypot(*relative))


def settlings() -> tuple[Number, ...]:
    """That SOMA settles first, by start, number of records and sampler."""
    return tuple(
        Number(
            f"n = {n}, from {where}: SOMA's over {label}'s",
            1.0,
            kind="at most",
            **with_error(settling, n=n, start=start, sampler=sampler),
        )
        for start, where in (("0.05", "0.05"), ("prior", "the prior"))
        for n in (20, 50)
        for label, sampler in (("Sys-IMwG", "imwg_systematic"), ("Ran-IMwG", "imwg_random"))
    )


def error_of_median(quartiles: list[float]) -> float:
    """The standard error of a median of the pairs, by their quartiles, as of Normal numbers."""
    return float(np.sqrt(np.pi / 2 / PAIRS) * (quartiles[2] - quartiles[0]) / 1.349)


def last_distance(result: dict[str, Any], n: int, kernel: str) -> tuple[float, float]:
    """The median W₂ of the pairs after the last proposal, and its standard error."""
    quartiles = result["wasserstein"][str(n)][kernel]["quartiles"][-1]
    return float(quartiles[1]), error_of_median(quartiles)


def until_zero(result: dict[str, Any], n: int, kernel: str) -> tuple[float, float]:
    """The median meeting time, when W₂ is 0, of SOMA over that of another kernel, and its standard error."""
    rows = [result["meeting_time"][name][result["n"].index(n)]["quartiles"] for name in ("soma", kernel)]
    ratio = rows[0][1] / rows[1][1]
    return ratio, ratio * float(np.hypot(*(error_of_median(row) / row[1] for row in rows)))


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


def of_each(
    paper: dict[str, float], read: Callable[..., float], error: Callable[..., float], what: str = "{}", **options: Any
) -> tuple[Number, ...]:
    """A number of each sampler that the paper has one of, by functions of the result and its name."""
    return tuple(
        Number(
            what.format(label),
            theirs,
            partial(read, sampler=SAMPLERS[label]),
            partial(error, sampler=SAMPLERS[label]),
            **options,
        )
        for label, theirs in paper.items()
    )


def coupling_times(epsilon: str, paper: dict[str, float]) -> tuple[Number, ...]:
    """The mean coupling times of Table 3."""
    what = f"ε = {epsilon}, mean coupling time of {{}}"
    return of_samplers(what, paper, epsilon, "*", "mean", error="standard_error")


def acceptances(epsilon: str, paper: dict[str, float]) -> tuple[Number, ...]:
    """The acceptance of Table 3; two points matter, as they tell SOMA's two."""
    what = f"ε = {epsilon}, accepted by {{}}, %"
    return of_samplers(what, paper, epsilon, "*", "acceptance_percent", error="error_of_acceptance", matters=2.0)


def times_of_imwg(result: dict[str, Any], case: str) -> float:
    """The running time of SOMA, in those of systematic IMwG."""
    return entry(result, "rows", case, "soma", "seconds") / entry(result, "rows", case, "imwg_systematic", "seconds")


def time_of_two(result: dict[str, Any]) -> tuple[float, float]:
    """The same, mean over the six problems of two records, and its standard error."""
    ratios = [times_of_imwg(result, case) for case in result["rows"] if case.startswith("two records")]
    return float(np.mean(ratios)), float(np.std(ratios, ddof=1) / np.sqrt(len(ratios)))


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
            (Number("Ran-IMwG's over SOMA's", 1.0, kind="at most", **with_error(distinct)),),
            looks="SOMA goes through the ridge of the density; a random scan stays at single points, as in the paper.",
            first="Figure 2",
        ),
        Row(
            "Figure 2",
            "soma",
            "acceptance",
            "acceptance against ε",
            (
                Number("Beta: least lead of SOMA", 0.0, kind="at least", **with_error(smallest_lead, prior="beta")),
                Number(
                    "Exp: least lead of SOMA", 0.0, kind="at least", **with_error(smallest_lead, prior="exponential")
                ),
            ),
            first="Figure 3",
        ),
        Row(
            "Figure 3",
            "soma",
            "mixing",
            "iterations until R-hat is below 1.05, n = 100, ε = 30",
            of_each({"SOMA": 800, "Sys-IMwG": 1_500, "Ran-IMwG": 1_500}, settled, error_of_settled),
            "20 chains assumed; the paper gives no number",
            first="Figure 9",
        ),
        Row(
            "Table 1",
            "soma",
            "time-use",
            "effective draws of α₁, SOMA over IMwG",
            (table1("female", "women"), table1("male", "men")),
            "10⁶ iterations of 20 chains",
            looks="An iteration of the authors' code is n proposals, and 10⁶ of them are out of reach. So the ratio "
            "alone is compared. In 10⁶ proposals effective draws are .3 to .6 of the paper's.",
        ),
        Row(
            "Table 2",
            "soma",
            "time-use",
            "posterior mean shares of the day; a percentage point matters, which the paper tests",
            (*table2("female", "women"), *table2("male", "men")),
            "10⁶ iterations of 20 chains",
        ),
        Row(
            "Figure 6",
            "soma",
            "histogram-quartiles",
            "quartiles of the records: sweeps until all stay within 0.02 of the exact ones",
            settlings(),
            "100 runs at one release",
            looks="SOMA is ahead of both, as in the paper, from either start.",
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
                    kind="at least",
                    **with_error(lead_of_acceptance, many=60, few=2),
                ),
            ),
            looks="SOMA's rises with n and IMwG's does not, as in the paper.",
            first="Figure 6",
        ),
        Row(
            "Figure 7, B",
            "soma",
            "histogram-meeting",
            "meeting time of SOMA, relabelled as in the authors' code, in per cent of the others', n = 20",
            of_each({"Sys-IMwG": 1.0, "Ran-IMwG": 1.0}, percentage, error_of_percentage, "of {}'s, medians, %"),
            "100 pairs",
            looks="The release is not printed, and spreads times by a factor of three. By equal indices SOMA needs "
            "10 % of Sys-IMwG's proposals.",
            first="Figure 6",
        ),
        Row(
            "Figure 8",
            "soma",
            "histogram",
            "W₂ between the chains of a pair: median after 10,000 proposals, and proposals until it is 0",
            (
                Number("n = 20, SOMA, relabelled", 0.0, matters=0.01, **with_error(last_distance, n=20, kernel="soma")),
                *(
                    Number(
                        f"n = 20, {label}: it does not reach 0",
                        0.01,
                        kind="at least",
                        **with_error(last_distance, n=20, kernel=kernel),
                    )
                    for label, kernel in (("Sys-IMwG", "imwg_systematic"), ("Ran-IMwG", "imwg_random"))
                ),
                *(
                    Number(
                        f"n = 10, proposals until they meet: SOMA's over {label}'s",
                        1.0,
                        kind="at most",
                        **with_error(until_zero, n=10, kernel=kernel),
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
            (Number("SOMA's, where that of Sys-IMwG is 1", 1.0, kind="at most", **with_error(rate_ratio)),),
            "100 pairs",
            first="Figure 12",
        ),
        Row(
            "Figure 10",
            "soma",
            "coupling-rate",
            "correlation below which SOMA is the fastest",
            (
                Number("Beta: minus the correlation", 0.4, **with_error(crossing, prior="beta")),
                Number("Exp: minus the correlation", 0.4, **with_error(crossing, prior="exponential")),
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
            first="Table 1",
        ),
        Row(
            "Table 3, couplings of the authors' code",
            "soma",
            "relabelling",
            "mean coupling times of SOMA in NumPy, with their couplings of the parameters, proposals and places",
            tuple(
                Number(
                    f"ε = {epsilon}",
                    paper,
                    lambda result, epsilon=epsilon: entry(  # type: ignore[misc]
                        result, epsilon, "ways", "the authors'", "mean"
                    ),
                    lambda result, epsilon=epsilon: both_errors(  # type: ignore[misc]
                        result, epsilon, "ways", "the authors'", "standard_error"
                    ),
                )
                for epsilon, paper in (("3", 152.98), ("30", 120.64))
            ),
            looks="So the couplings are why pairs of Table 3 meet sooner here. The contributions that the relabelling "
            "leaves in place are not: with them moved it takes 142 ± 7 and 124 ± 5.",
        ),
        Row(
            "Figure 11",
            "soma",
            "distances",
            "MMD after 150 iterations, n = 100, ε = 30",
            (
                Number(
                    "MMD of SOMA: near 0 is read as a tenth",
                    0.1,
                    partial(distance_at, sampler="soma", iteration=150),
                    partial(error_of_distance, sampler="soma", iteration=150),
                    "at most",
                ),
                *of_each(
                    {"Sys-IMwG": 1.0, "Ran-IMwG": 1.0},
                    partial(nearer, iteration=150),
                    partial(error_of_nearer, iteration=150),
                    "SOMA's over {}'s",
                    kind="at most",
                ),
            ),
            "1,000 chains",
            first="Figure 13",
        ),
        Row(
            "Figure 12",
            "soma",
            "distances",
            "iterations until β₀ has converged (ours: until its mean is within 0.1)",
            of_samplers(
                "{}",
                {"SOMA": 150, "Sys-IMwG": 200, "Ran-IMwG": 300},
                *("samplers", "*", "arrival", "iterations"),
                error="standard_error",
            ),
            "1,000 chains",
            first="Figure 8",
        ),
        Row(
            "Table 4",
            "soma",
            "table4",
            "running time of one chain, CPU",
            (
                Number(
                    "two records, mean of six: SOMA's time over Sys-IMwG's",
                    2.0,
                    kind="at most",
                    **with_error(time_of_two),
                ),
                *times("histogram, n = 20, ε = 3", "regression, n = 100, ε = 30"),
            ),
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
