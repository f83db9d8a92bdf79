"""Ju, Awan, Gong and Rao (2022)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import Number, Paper, Row

Result = dict[str, Any]

NOMINAL = 0.9


def row_of(result: Result, epsilon: float, sampler: str = "paper's") -> Result:
    """The row of a sampler and a budget."""
    rows: list[Result] = result["rows"]
    return next(row for row in rows if (row["sampler"], row["epsilon"]) == (sampler, epsilon))


def over_releases(
    result: Result, summary: Callable[..., np.ndarray], sampler: str, epsilon: float, place: int
) -> float:
    """The mean of a posterior mean over releases, or its deviation: the width of the paper's clouds of points."""
    return float(summary(row_of(result, epsilon, sampler)["means"], axis=0)[place])


def coverage(result: Result, epsilon: float, place: int) -> float:
    """The coverage of one parameter by the paper's sampler."""
    return float(row_of(result, epsilon)["coverage"][place])


def all_coverages(result: Result, sampler: str) -> np.ndarray:
    """The coverages of a sampler [budget, parameter]."""
    return np.array([row["coverage"] for row in result["rows"] if row["sampler"] == sampler])


def share_covered(result: Result) -> float:
    """The share of the table's entries that are 0.9 or more."""
    return float(np.mean(all_coverages(result, "paper's") >= NOMINAL - 1e-9))


def mean_coverage(result: Result, sampler: str) -> float:
    """The coverage over all parameters and budgets."""
    return float(all_coverages(result, sampler).mean())


def error_of_mean(result: Result) -> float:
    """Its standard error if 0.9 is right, as if all parameters of a data set were one."""
    size = len(all_coverages(result, "paper's")) * result["settings"]["data_sets"]
    return float(np.sqrt(NOMINAL * (1 - NOMINAL) / size))


def limits(name: str, place: int, ends: dict[float, float], sampler: str) -> tuple[Number, ...]:
    """That posterior means are the prior's behind much noise, and those without noise behind little."""
    return tuple(
        Number(
            f"mean of {name}, ε = {epsilon:g}",
            paper,
            partial(over_releases, summary=np.mean, sampler=sampler, epsilon=epsilon, place=place),
            partial(over_releases, summary=np.std, sampler=sampler, epsilon=epsilon, place=place),
        )
        for epsilon, paper in ends.items()
    )


def bounds(epsilons: tuple[float, ...]) -> tuple[Number, ...]:
    """That acceptance is above exp(-ε), also of the record that accepts least."""
    return tuple(
        Number(
            f"{whose}, ε = {epsilon:g}",
            float(np.exp(-epsilon)),
            partial(lambda result, epsilon, column: float(row_of(result, epsilon)[column]), epsilon=epsilon, column=of),
            kind="at least",
        )
        for epsilon in epsilons
        for whose, of in (("accepted", "acceptance"), ("accepted of the worst record", "acceptance_of_worst_record"))
    )


def nominal(*samplers: str) -> tuple[Number, ...]:
    """That intervals hold the truth as often as they say, over the prior."""
    what = "sampler, mean over ε and parameters"
    return tuple(
        Number(f"{sampler} {what}", NOMINAL, partial(mean_coverage, sampler=sampler), error_of_mean)
        for sampler in samplers
    )


SIZE, SIZE_OF_COVERAGE = "100 releases, 10,000 iterations", "100 data sets, 10,000 iterations"

PAPER = Paper(
    "Ju, Awan, Gong and Rao (2022), data augmentation",
    (
        Row(
            "Figure 1, a",
            "damcmc",
            "log-linear",
            "posterior means of 100 releases of one data set; p₄ nears the prior's mean and that without noise",
            limits("p₄", 3, {0.1: 0.2, 10.0: 65 / 110}, "paper's"),
            SIZE,
        ),
        Row(
            "Figure 1, b",
            "damcmc",
            "log-linear",
            "acceptance, and its bound exp(−ε)",
            bounds((0.1, 0.3, 1.0, 3.0, 10.0)),
            SIZE,
        ),
        Row(
            "Table 1",
            "damcmc",
            "log-linear-coverage",
            "coverage of 90 % intervals, log-linear model; of its cells the text states these alone",
            (
                Number("share of entries of .9 or more", 0.5, share_covered, kind="at least"),
                Number("p₄ at ε = 0.1", NOMINAL, partial(coverage, epsilon=0.1, place=3), kind="at most"),
                Number("p₄ at ε = 0.3", NOMINAL, partial(coverage, epsilon=0.3, place=3), kind="at most"),
            ),
            SIZE_OF_COVERAGE,
        ),
        Row(
            "Table 1 with parameters from the prior",
            "damcmc",
            "log-linear-prior",
            "coverage of 90 % intervals, which has to be 90 %",
            nominal("paper's"),
        ),
        Row(
            "Figure 2",
            "damcmc",
            "regression",
            "posterior means of 100 releases of one data set; β₁ nears the prior's mean and that without noise",
            limits("β₁", 1, {0.1: 0.0, 30.0: -2.7821}, "paper's"),
            SIZE,
        ),
        Row(
            "Figure S1",
            "damcmc",
            "regression",
            "acceptance, and its bound exp(−ε)",
            bounds((0.1, 1.0, 3.0, 10.0, 30.0)),
            SIZE,
        ),
        Row(
            "Table of the supplement",
            "damcmc",
            "regression-coverage",
            "coverage of 90 % intervals, regression; of its cells the text states these alone",
            (
                Number("β₁ at ε = 1", NOMINAL, partial(coverage, epsilon=1.0, place=1), kind="at most"),
                Number("β₁ at ε = 3", NOMINAL, partial(coverage, epsilon=3.0, place=1), kind="at most"),
            ),
            SIZE_OF_COVERAGE,
        ),
        Row(
            "Table of the supplement with parameters from the prior",
            "damcmc",
            "regression-prior",
            "coverage of 90 % intervals, which has to be 90 %",
            nominal("paper's", "default"),
        ),
    ),
    {},
)
