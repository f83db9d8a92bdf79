"""Rows of the appendix and of the paper's first version."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import Number, Row, exactly


def entry(result: dict[str, Any], *path: str | int) -> float:
    """A number of a result by its place."""
    found: Any = result
    for name in path:
        found = found[name]
    return float(found)


def away(result: dict[str, Any], sampler: str) -> float:
    """How far the mean of log |C| is from that of weighted draws."""
    return float(result["components"][sampler]["mean"] - result["components"]["exact"])


def error_of_away(result: dict[str, Any], sampler: str) -> float:
    """Its standard error."""
    return float(np.hypot(result["components"][sampler]["standard_error"], result["components"]["error_of_exact"]))


def way(n: int, column: str, first: str, second: str) -> dict[str, Any]:
    """A column of one way to sample over that of another, and the standard error of the ratio."""

    def value(result: dict[str, Any]) -> float:
        rows = result["ways"][str(n)]
        return float(rows[first][column] / rows[second][column])

    def relative(row: dict[str, float]) -> float:
        if column == "acceptance":
            return row["error_of_acceptance"] / row["acceptance"]
        return row["relative_error_of_effective"]

    def error(result: dict[str, Any]) -> float:
        rows = result["ways"][str(n)]
        return value(result) * float(np.hypot(relative(rows[first]), relative(rows[second])))

    return {"read": value, "error": error}


def accepted_over(result: dict[str, Any]) -> tuple[float, float]:
    """The acceptance of SOMA over that of IMwG in example 3, and its standard error."""
    rows = [result["components"][name] for name in ("soma", "imwg")]
    ratio = float(rows[0]["acceptance"] / rows[1]["acceptance"])
    return ratio, ratio * float(np.hypot(*(row["error_of_acceptance"] / row["acceptance"] for row in rows)))


def lead_of_subsets(result: dict[str, Any], attempts: str) -> float:
    """The mean of β₀ with subsets less that with windows."""
    rows = result["attempts"][attempts]
    return float(rows["subsets"]["mean"] - rows["windows"]["mean"])


def error_of_lead(result: dict[str, Any], attempts: str) -> float:
    """Its standard error."""
    rows = result["attempts"][attempts]
    return float(np.hypot(rows["subsets"]["standard_error"], rows["windows"]["standard_error"]))


ROWS = (
    Row(
        "Appendix A.2",
        "soma",
        "subsets",
        "SOMA at uniform subsets keeps the distribution: mean of β₀, less that at windows",
        tuple(
            Number(f"{m} attempts", 0.0, partial(lead_of_subsets, attempts=m), partial(error_of_lead, attempts=m))
            for m in ("5", "20")
        ),
        looks="Both accept as often: 87.5 and 87.6 % with 5 attempts, 96.6 % with 20.",
    ),
    Row(
        "Example 1 of the first version",
        "soma",
        "examples",
        "Bernoulli–Laplace: orders of 3 ones among 6 that SOMA reaches",
        (
            Number("if their sum is fixed", 20, lambda result: float(result["constraint"]["fixed"]), exactly),
            Number("if it may err", 20, lambda result: float(result["constraint"]["laplace"]), exactly),
        ),
        cause="A proposal in the place of a record keeps the sum only if the two are equal. So a chain of single "
        "proposals, by SOMA or IMwG, stays in one order. The density is invariant, as the paper says, but its "
        "diffusion swaps two records. With Laplace noise in the sum all orders are reached.",
    ),
    Row(
        "Example 3 of the first version",
        "soma",
        "examples",
        "Bayesian PCA, two columns: mean of log |C|, less that of weighted draws",
        (
            Number("SOMA", 0.0, partial(away, sampler="soma"), partial(error_of_away, sampler="soma")),
            Number("IMwG", 0.0, partial(away, sampler="imwg"), partial(error_of_away, sampler="imwg")),
            Number(
                "accepted by SOMA over IMwG",
                1.0,
                lambda result: accepted_over(result)[0],
                lambda result: accepted_over(result)[1],
                kind="at least",
            ),
        ),
    ),
    Row(
        "Figure 1 of the first version",
        "soma",
        "examples",
        "the ordered space: accepted there over accepted in the whole space",
        tuple(
            Number(
                f"IMwG, n = {n}",
                1.0,
                kind="at most",
                **way(n, "acceptance", "ordered", "imwg"),
            )
            for n in (2, 5, 20)
        ),
        looks="Both give one mean of Σ x². A proposal has to fall between its neighbours, so the ordered space gets "
        "worse with n: 1 effective draw for 100 of the whole space at n = 20.",
    ),
    Row(
        "Remark 3",
        "soma",
        "examples",
        "multiple-try Metropolis with importance weights: effective draws for each record drawn, SOMA over it",
        tuple(
            Number(
                f"n = {n}",
                1.0,
                kind="at least",
                **way(n, "effective_per_1000_draws", "soma", "multiple_try"),
            )
            for n in (2, 5, 20)
        ),
        looks="With n tries both accept as often, and give as many effective draws a step. SOMA draws one record for "
        "n of the other. Per evaluation of the release neither is ahead of IMwG.",
    ),
)
