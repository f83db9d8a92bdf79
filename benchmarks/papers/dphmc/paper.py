"""Räisä, Koskela and Honkela (2021)."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import PAPERS, Number, Paper, Row, exactly, read_result

Result = dict[str, Any]

DYNAMICS = (
    "DP-SGLD is ahead of DP-HMC here. The authors pair a step of η with noise of variance η. Its target is the square "
    "of the posterior, with standard deviations of 1/√2 of the right ones: the row below shows that this is enough. "
    "Their accounting counts the sensitivity twice, which leaves a quarter of the iterations. It is not enough: ours "
    "with as many, 0.9 million, has .85 of the MMD of DP-HMC."
)


def error_of_mean(numbers: np.ndarray) -> float:
    """The standard error of the mean of independent repeats."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


def ratio(model: str, algorithm: str, place: int) -> dict[str, Any]:
    """The mean MMD of an algorithm over that of DP-HMC from the same starts, at a budget."""

    def pairs(result: Result) -> tuple[np.ndarray, np.ndarray]:
        algorithms = result["models"][model]["algorithms"]
        own, other = (np.array(algorithms[name]["budgets"][place]["mmd"]) for name in (algorithm, "DP-HMC"))
        return own, other

    def value(result: Result) -> float:
        own, other = pairs(result)
        return float(own.mean() / other.mean())

    def error(result: Result) -> float:
        own, other = pairs(result)
        return error_of_mean(own - value(result) * other) / float(other.mean())

    return {"read": value, "error": error}


def clipped(model: str, algorithm: str, bound: float) -> dict[str, Any]:
    """The share of ratios that are clipped at the largest bound measured that is no more than the paper's."""

    def shares(result: Result) -> list[float]:
        rows = [row for row in result["models"][model][algorithm] if row["bound"] is not None and row["bound"] <= bound]
        found: list[float] = rows[-1]["clipped_ratios_each"]
        return found

    return {
        "read": lambda result: float(np.mean(shares(result))),
        "error": lambda result: error_of_mean(np.array(shares(result))) if len(shares(result)) > 1 else None,
    }


def logs_of_sgnht(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of the MMD of DP-SGNHT with the authors' accounting, and of DP-HMC at ε = 4, of figure 1's run."""
    figure1 = read_result(PAPERS / "dphmc" / "results" / "figure1.json")
    own = result["gaussian"]["DP-SGNHT"]["right"]["the authors'"]["mmd"]
    return np.log(own), np.log(figure1["models"]["gaussian"]["algorithms"]["DP-HMC"]["budgets"][1]["mmd"])


def sgnht_ratio(result: Result) -> float:
    """The one over the other, of geometric means."""
    own, other = logs_of_sgnht(result)
    return float(np.exp(own.mean() - other.mean()))


def error_of_sgnht(result: Result) -> float:
    """Its standard error, of repeats that are not the same."""
    return sgnht_ratio(result) * float(np.hypot(*(error_of_mean(logs) for logs in logs_of_sgnht(result))))


def lead_in_tail(algorithm: str) -> dict[str, Any]:
    """The share of the draws shown in the lowest tenth of θ₂ of the exact ones, less that of DP-HMC."""

    def shares(result: Result, name: str) -> np.ndarray:
        edge = np.quantile(np.array(result["exact"])[:, 1], 0.1)
        found: np.ndarray = np.mean(np.array(result["algorithms"][name]["draws_each"])[:, :, 1] < edge, axis=1)
        return found

    return {
        "read": lambda result: float(np.mean(shares(result, algorithm)) - np.mean(shares(result, "DP-HMC"))),
        "error": lambda result: float(
            np.hypot(*(error_of_mean(shares(result, name)) for name in (algorithm, "DP-HMC")))
        ),
    }


def of_all_records(result: Result, way: str, place: int) -> float:
    """The effective draws of a test at q = 0.1 over those of `dp_penalty`, at one of the numbers of tests."""
    found = result["effective"]
    return float(found["q = 0.1"][way][place] / found["penalty"][place])


PAPER = Paper(
    "Räisä, Koskela and Honkela (2021), DP-HMC",
    (
        Row(
            "Figure 1, top",
            "dphmc",
            "figure1",
            "banana: MMD against ε",
            (
                Number("DP-penalty is like DP-HMC at ε = 15: ratio of MMDs", 1.0, **ratio("banana", "DP-penalty", 6)),
                Number("DP-SGLD is worse at ε = 15: ratio", 1.0, **ratio("banana", "DP-SGLD", 6), kind="at least"),
                Number("DP-SGNHT is worse at ε = 15: ratio", 1.0, **ratio("banana", "DP-SGNHT", 6), kind="at least"),
            ),
            "10 repeats",
            cause=DYNAMICS,
        ),
        Row(
            "Figure 1, top, with the authors' dynamics",
            "dphmc",
            "figure1-squared",
            "banana: the least MMD that their DP-SGLD can reach, by exact draws of the square of the posterior",
            (
                Number(
                    "it is not better than DP-HMC at ε = 15: ratio",
                    1.0,
                    lambda result: float(result["banana"]["over_dp_hmc"][6]),
                    lambda result: float(result["banana"]["standard_error"] / result["banana"]["mmd"]),
                ),
            ),
        ),
        Row(
            "Figure 1, bottom",
            "dphmc",
            "figure1",
            "Gaussian: MMD against ε",
            (
                Number("DP-SGLD is the best at ε = 6: ratio", 1.0, **ratio("gaussian", "DP-SGLD", 2), kind="at most"),
                Number(
                    "DP-penalty is worse at ε = 6: ratio", 1.0, **ratio("gaussian", "DP-penalty", 2), kind="at least"
                ),
                Number("DP-SGNHT is equal at ε = 6: ratio", 1.0, **ratio("gaussian", "DP-SGNHT", 2)),
            ),
            "10 repeats",
            cause="DP-SGNHT is ahead here. The same noise brings 2,600 iterations and more under an accountant that "
            "counts the sensitivity once; at ε = 2, with the fewest, the two are close. The row below has the authors' "
            "accounting.",
        ),
        Row(
            "Figure 1, bottom, with the authors' accounting",
            "dphmc",
            "figure1-arms",
            "Gaussian: DP-SGNHT over DP-HMC at ε = 4",
            (Number("ratio of MMDs", 1.0, sgnht_ratio, error_of_sgnht),),
            "10 repeats",
            looks="So the accounting is why DP-SGNHT is ahead above.",
        ),
        Row(
            "Figure 2",
            "dphmc",
            "figure2",
            "draws on the banana at ε = 15: the share in the tail, the lowest tenth of θ₂",
            tuple(
                Number(f"{name} less DP-HMC", 0.0, **lead_in_tail(name), kind="at most")
                for name in ("DP-SGLD", "DP-SGNHT")
            ),
            "10 repeats, and the whole budget of the subsampled algorithms: 2 CPU hours",
            looks="DP-HMC and DP-penalty follow the banana and miss the end of its tail, as in the paper. The "
            "subsampled algorithms were stopped after 20,000 iterations, near their start, so that their numbers say "
            "little. With the whole budget DP-SGLD has the smaller MMD: see Figure 1.",
        ),
        Row(
            "Figure 3",
            "dphmc",
            "figure3",
            "share of ratios clipped at the bounds chosen, which is below a fifth",
            (
                Number("banana, HMC", 0.2, **clipped("banana", "HMC", 0.1), kind="at most"),
                Number("banana, random walk", 0.2, **clipped("banana", "RWMH", 0.15), kind="at most"),
                Number("Gaussian, HMC", 0.2, **clipped("gaussian", "HMC", 6), kind="at most"),
                Number("Gaussian, random walk", 0.2, **clipped("gaussian", "RWMH", 10), kind="at most"),
            ),
            "10 repeats, and eight times the iterations: 40 CPU hours",
        ),
        Row(
            "Future research, a subsampled acceptance test",
            "dphmc",
            "subsampled-test",
            "it does not improve the results: effective draws at q = 0.1 over those with all records, ε = 4",
            tuple(
                Number(
                    f"{tests} tests, {way}",
                    1.0,
                    partial(of_all_records, way=way, place=place),
                    exactly,
                    "at most",
                )
                for tests, place in (("1,000", 1), ("10,000", 3))
                for way in ("known variance", "Poisson counts")
            ),
            looks="A sample saves no charge: with the same noise 701 tests at q = 1 are 703 at q = 0.1.",
        ),
        Row(
            "Future research, the last gradient reused",
            "dphmc",
            "reused-gradient",
            "the draws stay right: variance, exact 1",
            (
                Number(
                    "the noise stays with its position",
                    1.0,
                    lambda result: float(result["variance"]["reused"]["variance"]),
                    lambda result: float(result["variance"]["reused"]["standard_error"]),
                ),
            ),
            looks="A budget gives 7 % more effective draws with 3 steps and 4 % more with 12. A rejection that keeps "
            "the last gradient of its trajectory gives a variance of 1.22, one that draws fresh noise 0.994.",
        ),
    ),
    {},
)
