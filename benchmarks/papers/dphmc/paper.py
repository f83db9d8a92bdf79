"""Räisä, Koskela and Honkela (2021)."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import PAPERS, Number, Paper, Row, read_result

DYNAMICS = (
    "The authors' DP-SGLD pairs a step of η with noise of variance η. Its target is the square of the posterior, "
    "with standard deviations of 1/√2 of the right ones: the rows below show that this is enough. Their accounting "
    "counts the sensitivity twice, which leaves a quarter of the iterations. It is not enough: ours with as many, "
    "0.9 million, has .85 of the MMD of DP-HMC at ε = 15."
)


def ratio(result: dict[str, Any], model: str, algorithm: str, place: int) -> float:
    """The median MMD of an algorithm over that of DP-HMC, at a budget."""
    algorithms = result["models"][model]["algorithms"]
    own, other = (float(np.median(algorithms[name]["budgets"][place]["mmd"])) for name in (algorithm, "DP-HMC"))
    return own / other


def p_value(result: dict[str, Any], model: str) -> float:
    """Of DP-HMC against DP-penalty, the smallest over budgets."""
    return min(float(test["p_value"]) for test in result["models"][model]["wilcoxon"]["DP-penalty"])


def clipped(result: dict[str, Any], model: str, algorithm: str, bound: float) -> float:
    """The share of ratios that are clipped at the largest bound measured that is no more than the paper's."""
    rows = [row for row in result["models"][model][algorithm] if row["bound"] is not None and row["bound"] <= bound]
    return float(rows[-1]["not_private"]["clipped_ratios"])


def sgnht_ratio(result: dict[str, Any]) -> float:
    """The median MMD of DP-SGNHT with the authors' accounting over that of DP-HMC at ε = 4, of figure 1's run."""
    own = np.median(result["gaussian"]["DP-SGNHT"]["right"]["the authors'"]["mmd"])
    figure1 = read_result(PAPERS / "dphmc" / "results" / "figure1.json")
    return float(own / np.median(figure1["models"]["gaussian"]["algorithms"]["DP-HMC"]["budgets"][1]["mmd"]))


def in_tail(result: dict[str, Any], algorithm: str) -> float:
    """The share of the draws shown that are in the lowest tenth of θ₂ of the exact ones."""
    edge = np.quantile(np.array(result["exact"])[:, 1], 0.1)
    draws = np.concatenate(list(result["algorithms"][algorithm]["draws"].values()))
    return float(np.mean(draws[:, 1] < edge))


def of_all_records(result: dict[str, Any], way: str, place: int) -> float:
    """The effective draws of a test at q = 0.1 over those of `dp_penalty`, at one of the numbers of tests."""
    found = result["effective"]
    return float(found["q = 0.1"][way][place] / found["penalty"][place])


def lead_in_tail(result: dict[str, Any], algorithm: str) -> float:
    """The same, less that of DP-HMC."""
    return in_tail(result, algorithm) - in_tail(result, "DP-HMC")


PAPER = Paper(
    "Räisä, Koskela and Honkela (2021), DP-HMC",
    (
        Row(
            "Figure 1, top",
            "dphmc",
            "figure1",
            "banana: MMD against ε",
            (
                Number(
                    "DP-HMC and DP-penalty do not differ: least p-value",
                    0.05,
                    lambda result: p_value(result, "banana"),
                    kind="at least",
                ),
                Number(
                    "DP-SGLD is worse than DP-HMC at ε = 15: ratio of MMDs",
                    1.0,
                    lambda result: ratio(result, "banana", "DP-SGLD", 6),
                    kind="at least",
                ),
                Number(
                    "DP-SGNHT is worse at ε = 15: ratio",
                    1.0,
                    lambda result: ratio(result, "banana", "DP-SGNHT", 6),
                    kind="at least",
                ),
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
                Number(
                    "DP-SGLD is the best at ε = 6: ratio to DP-HMC",
                    1.0,
                    lambda result: ratio(result, "gaussian", "DP-SGLD", 2),
                    kind="at most",
                ),
                Number(
                    "DP-penalty is worse at ε = 6: ratio",
                    1.0,
                    lambda result: ratio(result, "gaussian", "DP-penalty", 2),
                    kind="at least",
                ),
                Number(
                    "DP-SGNHT is equal at ε = 6: ratio", 1.0, lambda result: ratio(result, "gaussian", "DP-SGNHT", 2)
                ),
            ),
            "10 repeats",
            cause="DP-SGNHT is ahead here. The same noise brings 2,600 iterations and more under an accountant that "
            "counts the sensitivity once; at ε = 2, with the fewest, the two are close.",
        ),
        Row(
            "Figure 1, bottom, with the authors' accounting",
            "dphmc",
            "figure1-arms",
            "Gaussian: DP-SGNHT over DP-HMC at ε = 4",
            (Number("ratio of MMDs", 1.0, sgnht_ratio),),
            "10 repeats",
            looks="So the accounting is why DP-SGNHT is ahead above.",
        ),
        Row(
            "Figure 2",
            "dphmc",
            "figure2",
            "draws on the banana at ε = 15: the share in the tail, the lowest tenth of θ₂",
            tuple(
                Number(
                    f"{name} less DP-HMC",
                    0.0,
                    partial(lead_in_tail, algorithm=name),
                    kind="at most",
                )
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
                Number("banana, HMC", 0.2, lambda result: clipped(result, "banana", "HMC", 0.1), kind="at most"),
                Number(
                    "banana, random walk", 0.2, lambda result: clipped(result, "banana", "RWMH", 0.15), kind="at most"
                ),
                Number("Gaussian, HMC", 0.2, lambda result: clipped(result, "gaussian", "HMC", 6), kind="at most"),
                Number(
                    "Gaussian, random walk", 0.2, lambda result: clipped(result, "gaussian", "RWMH", 10), kind="at most"
                ),
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
                    kind="at most",
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
