"""What the rows of the paper read of kept runs, with standard errors.

Those of a ratio come from its data sets, where the file has each; from the spread of their median, where it has
quartiles or an interval; and from the cells of a table over which a ratio is averaged, such as δ and ε.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

NEAL_2, NEAL_3, NEAL_10 = "Neal 2, model (11)", "Neal 3, model (11)", "Neal 5, m = 1, model (10)"
NEAL, MANY, SLICE = "Neal 5, m = 1", "Neal 5, m = 5", "paper's slice"

Result = dict[str, Any]
Chosen = dict[str, Any]
"""Values of columns that rows must have."""

OF_MEDIAN = float(np.sqrt(np.pi / 2))
"""The standard error of the median of Normal numbers over that of their mean."""

DEVIATIONS = {"quartiles": 1.349, "interval": 3.92}
"""How many standard deviations of Normal numbers are between the quartiles, and the ends of an interval of 95 %."""


def choose(result: Result, chosen: Chosen) -> list[Result]:
    """The rows that have these values."""
    return [row for row in result["rows"] if all(row[name] == value for name, value in chosen.items())]


def measured(logs: Callable[[Result], np.ndarray]) -> Chosen:
    """What reads a geometric mean of ratios, whose logarithms these are, and its standard error."""

    def ratio(result: Result) -> float:
        return float(np.exp(np.mean(logs(result))))

    def error(result: Result) -> float:
        found = logs(result)
        return ratio(result) * float(np.std(found, ddof=1) / np.sqrt(len(found)))

    return {"read": ratio, "error": error}


def each(result: Result, figure: str, chosen: Chosen) -> np.ndarray:
    """A figure of each data set, mean over the rows that are chosen."""
    return np.mean([row[f"{figure}_each"] for row in choose(result, chosen)], axis=0)


def over(figure: str, one: Chosen, other: Chosen) -> Chosen:
    """The ratio of a figure in some rows to that in others, geometric mean over the data sets that both have."""

    def logs(result: Result) -> np.ndarray:
        top, bottom = each(result, figure, one), each(result, figure, other)
        both = min(len(top), len(bottom))
        found: np.ndarray = np.log(top[:both] / bottom[:both])
        return found

    return measured(logs)


def of_each(figure: str, chosen: Chosen) -> Chosen:
    """A figure, mean over the data sets."""

    def error(result: Result) -> float:
        found = each(result, figure, chosen)
        return float(np.std(found, ddof=1) / np.sqrt(len(found)))

    return {"read": lambda result: float(np.mean(each(result, figure, chosen))), "error": error}


def over_means(figure: str, one: Chosen, other: Chosen) -> Chosen:
    """The same of means over data sets, for a figure that may be 0."""

    def ratio(result: Result) -> float:
        return float(np.mean(each(result, figure, one)) / np.mean(each(result, figure, other)))

    def error(result: Result) -> float:
        below = each(result, figure, other)
        left = each(result, figure, one) - ratio(result) * below
        return float(np.std(left, ddof=1) / np.sqrt(len(left)) / np.mean(below))

    return {"read": ratio, "error": error}


def over_cells(figure: str, one: Chosen, other: Chosen) -> Chosen:
    """The same over the cells of the table, which some rows and the others have in one order."""

    def logs(result: Result) -> np.ndarray:
        top, bottom = ([row[figure] for row in choose(result, chosen)] for chosen in (one, other))
        found: np.ndarray = np.log(np.divide(top, bottom))
        return found

    return measured(logs)


def over_medians(figure: str, one: Chosen, other: Chosen, spread: str = "interval") -> Chosen:
    """The ratio of two medians over data sets, as if these were not the same."""

    def ratio(result: Result) -> float:
        top, bottom = (median(result, figure, chosen, spread) for chosen in (one, other))
        return top[0] / bottom[0]

    def error(result: Result) -> float:
        relative = [np.divide(*median(result, figure, chosen, spread)[::-1]) for chosen in (one, other)]
        return ratio(result) * float(np.hypot(*relative))

    return {"read": ratio, "error": error}


def of_median(figure: str, chosen: Chosen) -> Chosen:
    """What reads a median over data sets, and its standard error."""
    return {
        "read": lambda result: median(result, figure, chosen, "interval")[0],
        "error": lambda result: median(result, figure, chosen, "interval")[1],
    }


def median(result: Result, figure: str, chosen: Chosen, spread: str) -> tuple[float, float]:
    """A median over data sets, and its standard error by quartiles or an interval."""
    (row,) = choose(result, chosen)
    name = f"effective_{spread}" if figure == "effective_per_1000" else f"{figure}_{spread}"
    deviation = np.ptp(row[name]) / DEVIATIONS[spread]
    return row[figure], OF_MEDIAN * float(deviation) / np.sqrt(result["settings"]["repeats"])


def kernel_over_posterior(result: Result) -> np.ndarray:
    """The logarithms of the kernel's distance from the truth over that of the posterior, of all sizes and ε."""
    rows = [row for row in result["rows"] if row["epsilon"] is not None]
    return np.log([row["kernel_truth"] / row["posterior_truth"] for row in rows])


def least_margin(result: Result) -> float:
    """The smallest ratio of an acceptance to exp(-ε) in the table."""
    return min(margins(result), key=lambda found: found[0])[0]


def error_of_margin(result: Result) -> float:
    """Its standard error: over data sets if the row has each, else its spread over the numbers of records."""
    return min(margins(result), key=lambda found: found[0])[1]


def margins(result: Result) -> list[tuple[float, float]]:
    """The ratio and its error of each row that has noise."""
    found = []
    for row in (row for row in result["rows"] if row["epsilon"] is not None):
        if "acceptance_each" in row:
            error = np.std(row["acceptance_each"], ddof=1) / np.sqrt(len(row["acceptance_each"]))
        else:
            alike = choose(result, {name: row[name] for name in ("sampler", "epsilon")})
            error = np.std([other["acceptance"] for other in alike], ddof=1)
        found.append((row["acceptance"] / np.exp(-row["epsilon"]), float(error) / np.exp(-row["epsilon"])))
    return found


MARGIN: Chosen = {"read": least_margin, "error": error_of_margin}


def agreeing(result: Result) -> list[Result]:
    """The comparisons of the slice sampler and Neal 5, of all sizes and ε."""
    return [row for row in result["agreement"] if set(row["samplers"]) == {SLICE, NEAL}]


def variation_by_chance(result: Result) -> np.ndarray:
    """The logarithms of how far two laws of the number of clusters are apart over what chance makes of it."""
    return np.log([row["variation"] / row["by_chance"] for row in agreeing(result)])


def more_clusters(result: Result) -> float:
    """The mean number of clusters by Neal 5 over that by the slice sampler, over sizes and ε."""
    signs = [1 if row["samplers"][0] == NEAL else -1 for row in agreeing(result)]
    differences = [row["difference"] for row in agreeing(result)]
    return 1 + float(np.dot(signs, differences)) / number_of_clusters(result)


def error_of_clusters(result: Result) -> float:
    """Its standard error, from those of the differences over data sets."""
    return float(np.linalg.norm([row["error"] for row in agreeing(result)])) / number_of_clusters(result)


def number_of_clusters(result: Result) -> float:
    """That of the slice sampler, summed over sizes and ε."""
    return float(sum(row["clusters"] for row in choose(result, {"sampler": SLICE})))


def of_densities(one: str, other: str) -> Chosen:
    """The distance to the truth of a sampler over that of another, over δ and ε."""
    return measured(lambda result: np.log([row[one] / row[other] for row in result["densities"]]))


def with_noise(result: Result) -> np.ndarray:
    """The logarithms of the distance to the truth at ε = 50 over that at ε = 5, of samplers and δ."""
    far = {(row["delta"], row["epsilon"]): row for row in result["densities"]}
    deltas = sorted({delta for delta, _ in far})
    names = (NEAL_2, NEAL_3, NEAL_10)
    return np.log([far[delta, 50.0][name] / far[delta, 5.0][name] for name in names for delta in deltas])


def apart(between: str, donors: str = "three groups") -> Chosen:
    """What reads a median distance of densities, and its standard error by the quartiles over data sets."""

    def row(result: Result) -> Result:
        return choose(result, {"between": between, "donors": donors, "base": "released"})[0]

    def error(result: Result) -> float:
        deviation = (row(result)["upper"] - row(result)["lower"]) / DEVIATIONS["quartiles"]
        return OF_MEDIAN * float(deviation) / float(np.sqrt(result["settings"]["repeats"]))

    return {"read": lambda result: float(row(result)["median"]), "error": error}
