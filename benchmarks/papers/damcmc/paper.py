"""Ju, Awan, Gong and Rao (2022)."""

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


def coverage(result: Result, epsilon: float, place: int) -> float:
    """The coverage of one parameter by the paper's sampler."""
    return float(row_of(result, epsilon)["coverage"][place])


def error_of_coverage(result: Result, epsilon: float, place: int) -> float:
    """Its standard error, that of a share of the data sets."""
    share = coverage(result, epsilon, place)
    return float(np.sqrt(share * (1 - share) / result["settings"]["data_sets"]))


def below_nominal(what: str, epsilon: float, place: int) -> Number:
    """That the coverage of one parameter is below 0.9."""
    own = {"epsilon": epsilon, "place": place}
    error = partial(error_of_coverage, **own)
    return Number(f"{what} at ε = {epsilon:g}", NOMINAL, partial(coverage, **own), error, "at most")


def all_coverages(result: Result, sampler: str) -> np.ndarray:
    """The coverages of a sampler [budget, parameter]."""
    return np.array([row["coverage"] for row in result["rows"] if row["sampler"] == sampler])


def share_covered(result: Result) -> float:
    """The share of the table's entries that are 0.9 or more."""
    return float(np.mean(all_coverages(result, "paper's") >= NOMINAL - 1e-9))


def error_of_share(result: Result) -> float:
    """Its standard error, that of a share of so many entries."""
    share = share_covered(result)
    return float(np.sqrt(share * (1 - share) / all_coverages(result, "paper's").size))


def mean_coverage(result: Result, sampler: str) -> float:
    """The coverage over all parameters and budgets."""
    return float(all_coverages(result, sampler).mean())


def error_of_mean(result: Result) -> float:
    """Its standard error if 0.9 is right, as if all parameters of a data set were one."""
    size = len(all_coverages(result, "paper's")) * result["settings"]["data_sets"]
    return float(np.sqrt(NOMINAL * (1 - NOMINAL) / size))


def column_of(result: Result, epsilon: float, column: str) -> float:
    """A column by the paper's sampler."""
    return float(row_of(result, epsilon)[column])


def bounds(epsilons: tuple[float, ...]) -> tuple[Number, ...]:
    """That acceptance is above exp(-ε), also of the record that accepts least."""
    return tuple(
        Number(
            f"{whose}, ε = {epsilon:g}",
            float(np.exp(-epsilon)),
            partial(column_of, epsilon=epsilon, column=of),
            partial(column_of, epsilon=epsilon, column=f"error_of_{of}"),
            kind="at least",
        )
        for epsilon in epsilons
        for whose, of in (("accepted", "acceptance"), ("accepted of the worst record", "acceptance_of_worst_record"))
    )


def nominal(*samplers: str) -> tuple[Number, ...]:
    """That intervals hold the truth as often as they say, over the prior."""
    what = "sampler, mean over ε and parameters"
    return tuple(
        Number(f"{sampler} {what}", NOMINAL, partial(mean_coverage, sampler=sampler), error_of_mean, matters=0.02)
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
            "posterior means of 100 releases of one data set",
            paper_size=SIZE,
            looks="The paper prints no numbers. As ε falls p₄ nears the prior's mean of 0.2, as it grows that without "
            "noise, .591: at ε = 0.1 it is .210 in the mean over releases, at ε = 10 .592.",
        ),
        Row(
            "Figure 1, b",
            "damcmc",
            "log-linear",
            "acceptance, and its bound exp(−ε)",
            bounds((0.1, 0.3, 1.0, 3.0, 10.0)),
            SIZE,
            file="log-linear-acceptance",
        ),
        Row(
            "Table 1",
            "damcmc",
            "log-linear-coverage",
            "coverage of 90 % intervals, log-linear model; of its cells the text states these alone",
            (
                Number("share of entries of .9 or more", 0.5, share_covered, error_of_share, "at least"),
                below_nominal("p₄", 0.1, 3),
                below_nominal("p₄", 0.3, 3),
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
            "posterior means of 100 releases of one data set",
            paper_size=SIZE,
            looks="The paper prints no numbers. As ε falls β₁ nears the prior's mean of 0, as it grows that without "
            "noise, −2.78: at ε = 0.1 it is −.11 in the mean over releases, at ε = 30 −2.83.",
        ),
        Row(
            "Figure S1",
            "damcmc",
            "regression",
            "acceptance, and its bound exp(−ε)",
            bounds((0.1, 1.0, 3.0, 10.0, 30.0)),
            SIZE,
            file="regression-acceptance",
        ),
        Row(
            "Table of the supplement",
            "damcmc",
            "regression-coverage",
            "coverage of 90 % intervals, regression; of its cells the text states these alone",
            (
                below_nominal("β₁", 1.0, 1),
                below_nominal("β₁", 3.0, 1),
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
