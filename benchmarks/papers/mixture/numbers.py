"""What the rows of the paper read of kept runs."""

from typing import Any

import numpy as np

MARGINAL = NEAL_2, NEAL_3, NEAL_10 = "Neal 2, model (11)", "Neal 3, model (11)", "Neal 5, m = 1, model (10)"
NEAL, MANY, SLICE = "Neal 5, m = 1", "Neal 5, m = 5", "paper's slice"


def of(result: dict[str, Any], column: str, **chosen: Any) -> float:
    """A column of the rows that are chosen, mean over the others."""
    rows = [row for row in result["rows"] if all(row[name] == value for name, value in chosen.items())]
    return float(np.mean([row[column] for row in rows]))


def change(result: dict[str, Any], sampler: str) -> float:
    """The effective size of the number of clusters at ε = 50 over that at ε = 1, n = 200."""
    sizes = [of(result, "effective_per_1000", n=200, epsilon=epsilon, sampler=sampler) for epsilon in (50.0, 1.0)]
    return sizes[0] / sizes[1]


def lead(result: dict[str, Any], epsilon: float) -> float:
    """The effective size of Neal 5 over that of the slice sampler, n = 200."""
    sizes = [of(result, "effective_per_1000", n=200, epsilon=epsilon, sampler=name) for name in (NEAL, SLICE)]
    return sizes[0] / sizes[1]


def least_margin(result: dict[str, Any]) -> float:
    """The smallest ratio of an acceptance to exp(-ε), over samplers, sizes and budgets."""
    return min(float(row["acceptance"] / np.exp(-row["epsilon"])) for row in result["rows"])


def over_m(result: dict[str, Any], column: str, n: int) -> float:
    """A column with m = 5 auxiliary records over that with one, mean over ε."""
    return of(result, column, n=n, sampler=MANY) / of(result, column, n=n, sampler=NEAL)


def spread_over_epsilon(result: dict[str, Any]) -> float:
    """The largest ratio of a sampler's times of a sweep at two ε, n = 1,000, of the paper's samplers."""
    times = [
        [row["microseconds"] for row in result["rows"] if (row["n"], row["sampler"]) == (1_000, name)]
        for name in (NEAL, MANY, SLICE)
    ]
    return max(max(each) / min(each) for each in times)


def weak_over_strong(result: dict[str, Any]) -> float:
    """The distance from the truth at ε = 1 with 1,000 records over that at ε = 50 with 50."""
    weak = of(result, "posterior_truth", n=1_000, epsilon=1.0, sampler=SLICE)
    return weak / of(result, "posterior_truth", n=50, epsilon=50.0, sampler=SLICE)


def from_prior(result: dict[str, Any]) -> float:
    """The distance from the prior at ε = 50 over that at ε = 1, n = 200."""
    far = [of(result, "posterior_prior", n=200, epsilon=epsilon, sampler=SLICE) for epsilon in (50.0, 1.0)]
    return far[0] / far[1]


def rand_index(result: dict[str, Any], n: int, epsilon: float) -> float:
    """The median adjusted Rand index."""
    return of(result, "rand_variation", n=n, epsilon=epsilon)


def agreeing(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The comparisons of the slice sampler and Neal 5, of all sizes and ε."""
    return [row for row in result["agreement"] if set(row["samplers"]) == {SLICE, NEAL}]


def variation_by_chance(result: dict[str, Any]) -> float:
    """How far the two laws of the number of clusters are apart over what chance makes of it, mean over sizes and ε."""
    return float(np.mean([row["variation"] / row["by_chance"] for row in agreeing(result)]))


def largest_difference(result: dict[str, Any]) -> float:
    """The largest difference of the mean numbers of clusters in its standard errors, of all sizes and ε."""
    return max(abs(row["difference"]) / row["error"] for row in agreeing(result))


def margin_of_release(result: dict[str, Any], column: str) -> float:
    """The same for one release of all records, or for the wavelet's channel."""
    rows = [row for row in result[column] if row["epsilon"] is not None]
    return min(float(row["acceptance"] / np.exp(-row["epsilon"])) for row in rows)


def at_borders(result: dict[str, Any], base: str, level: int) -> float:
    """The mass in the outermost cells of the grid, within .02 of 0 or 1, of draws at L, mean over ε and samplers."""
    rows = [row for row in result["rows"] if (row["base"], row["level"]) == (base, level)]
    rows = [row for row in rows if row["variant"] in ("conditional", "Neal 5")]
    return float(np.mean([0.02 * (row["density"][0] + row["density"][-1]) for row in rows]))


def of_draws(result: dict[str, Any], column: str, level: int) -> float:
    """A column of the draws at L under Gamma(2, 2), mean over ε and samplers."""
    return float(
        np.mean(
            [of(result, column, base="Gamma(2, 2)", level=level, variant=name) for name in ("conditional", "Neal 5")]
        )
    )


def of_channel(result: dict[str, Any], channel: str, epsilon: float | None = 50.0) -> float:
    """The distance to the truth behind a channel under the printed base measure."""
    return of(result, "hellinger", channel=channel, base="Gamma(2, 2)", epsilon=epsilon)


def least_of_readings(result: dict[str, Any], released: str) -> float:
    """The least distance to the truth of all readings of the base measure."""
    return min(row["hellinger"] for row in result["rows"] if row["released"] == released)


def neal(result: dict[str, Any], run: str, epsilon: float) -> np.ndarray:
    """The effective draws of a sampler at an ε, of each data set, mean over δ."""
    rows = [row for row in result["rows"] if (row["run"], row["epsilon"]) == (run, epsilon)]
    return np.mean([row["effective_each"] for row in rows], axis=0)


def logs_over(result: dict[str, Any], one: tuple[str, float], other: tuple[str, float]) -> np.ndarray:
    """The logarithms of effective draws of a sampler at an ε over those of another, of each data set."""
    found: np.ndarray = np.log(neal(result, *one) / neal(result, *other))
    return found


def over(one: tuple[str, float], other: tuple[str, float]) -> dict[str, Any]:
    """What reads that ratio, geometric mean over data sets, and its standard error."""

    def ratio(result: dict[str, Any]) -> float:
        return float(np.exp(logs_over(result, one, other).mean()))

    def error(result: dict[str, Any]) -> float:
        logs = logs_over(result, one, other)
        return ratio(result) * float(np.std(logs, ddof=1) / np.sqrt(len(logs)))

    return {"read": ratio, "error": error}


def of_densities(result: dict[str, Any], one: str, other: str) -> float:
    """The distance to the truth of a sampler over that of another, mean over δ and ε."""
    return float(np.mean([row[one] / row[other] for row in result["densities"]]))


def with_noise(result: dict[str, Any]) -> float:
    """The distance to the truth at ε = 50 over that at ε = 5, the largest of samplers and δ."""
    far = {(row["delta"], row["epsilon"]): row for row in result["densities"]}
    return max(far[delta, 50.0][name] / far[delta, 5.0][name] for name in MARGINAL for delta, _ in far)


def same_posterior(result: dict[str, Any]) -> tuple[float, float]:
    """The distance behind counts with records imputed over that with them integrated out, and its standard error."""
    rows = {(row["run"], row["epsilon"]): np.log(row["hellinger_each"]) for row in result["rows"]}
    logs = [rows["imputed", e] - found for (run, e), found in rows.items() if run == "integrated out"]
    ratio = float(np.exp(np.mean(logs)))
    return ratio, ratio * float(np.std(np.mean(logs, axis=0), ddof=1) / np.sqrt(len(logs[0])))


def integrated(result: dict[str, Any], column: str) -> float:
    """A column with records integrated out over that with them imputed, mean over ε."""
    return of(result, column, run="integrated out") / of(result, column, run="imputed")


def apart(between: str, donors: str = "three groups") -> dict[str, Any]:
    """What reads a median distance, and its standard error."""

    def row(result: dict[str, Any]) -> dict[str, Any]:
        chosen = (between, donors, "released")
        rows = [row for row in result["rows"] if (row["between"], row["donors"], row["base"]) == chosen]
        return rows[0]

    def median(result: dict[str, Any]) -> float:
        return float(row(result)["median"])

    def error(result: dict[str, Any]) -> float:
        return error_of_median(row(result), result["settings"]["repeats"])

    return {"read": median, "error": error}


def error_of_median(row: dict[str, Any], repeats: int) -> float:
    """The standard error of a median over so many data sets, by their quartiles, of a Normal distribution."""
    deviation = (row["upper"] - row["lower"]) / 1.349
    return float(np.sqrt(np.pi / 2 / repeats) * deviation)
