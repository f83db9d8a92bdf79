"""Section 4.1: acceptance, effective draws of the number of clusters, and densities behind Laplace noise."""

from typing import Any

import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import COLORS, Length, read_clusters, run_chains
from benchmarks.papers.mixture.densities import (
    compare_normals,
    normals_density,
    posterior_density,
    shorten,
    summarize_runs,
)
from benchmarks.papers.mixture.problems import BASE, DIAMETER, pose, simulate_normals

SHOWN = (1.0, 10.0, 50.0)
SHOWN_SIZE = 200
GRID = np.linspace(-12, 12, 121)


def measure(
    sizes: tuple[int, ...], epsilons: tuple[float, ...], names: tuple[str, ...], repeats: int, sweeps: int
) -> dict[str, Any]:
    """Medians over data sets, each with one chain of `sweeps` after a fifth as many of warm-up.

    All ε share a data set's records and its noise but for the scale. Densities are those of the exact sampler.
    """
    length = Length(sweeps // 5, sweeps)
    rows, densities, curves = [], [], []
    for n in sizes:
        for epsilon in epsilons:
            data = [simulate_normals(n, epsilon, repeat) for repeat in range(repeats)]
            for name in names:
                runs = [run_chains(name, pose_laplace(z, epsilon), seed, length) for seed, z in enumerate(data)]
                figures = [read_clusters(*run, length) for run in runs]
                rows.append({"n": n, "epsilon": epsilon, "sampler": name, **summarize_runs(figures)})
                if name == "exact":
                    found = [compare(posterior, z, epsilon) for (posterior, _), z in zip(runs, data, strict=True)]
                    densities.append({"n": n, "epsilon": epsilon, **summarize_runs([far for far, _ in found])})
                    if n == SHOWN_SIZE and epsilon in SHOWN:
                        curves.append({"epsilon": epsilon, **found[0][1]})
    grid, truth = shorten(GRID), shorten(normals_density(GRID))
    return {"rows": rows, "densities": densities, "curves": {"grid": grid, "truth": truth, "found": curves}}


def pose_laplace(values: np.ndarray, epsilon: float) -> Any:
    """The values behind Laplace noise."""
    return pose(values, dpjax.Laplace(DIAMETER / epsilon), BASE)


def compare(posterior: Any, values: np.ndarray, epsilon: float) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Hellinger distances of posterior and kernel estimate from the truth and from the prior; and the curves."""
    density = posterior_density(posterior, GRID)
    distances, kernel = compare_normals(density["mean"], values, DIAMETER / epsilon, GRID)
    return distances, {name: shorten(curve) for name, curve in (density | {"kernel": kernel}).items()}


def draw(result: dict[str, Any], axes: Any) -> None:
    """Acceptance, effective draws and distances against ε, a column for each size; and three densities."""
    sizes, epsilons = (sorted({row[name] for row in result["rows"]}) for name in ("n", "epsilon"))
    for column, n in enumerate(sizes):
        draw_figures(result, axes[column], n, "acceptance")
        axes[column].plot(epsilons, np.exp(-np.array(epsilons)), "k--", label="e^(-ε)")
        axes[column].set(ylim=(0, 1.05), title=f"n = {n}")
        draw_figures(result, axes[3 + column], n, "effective_per_1000")
        axes[3 + column].set(yscale="log")
        draw_distances(result, axes[6 + column], n)
    axes[0].legend(fontsize="x-small")
    axes[6].legend(fontsize="x-small")
    curves = result["curves"]
    for panel, found in zip(axes[9:], curves["found"], strict=False):
        panel.fill_between(curves["grid"], found["lower"], found["upper"], color="C0", alpha=0.2)
        panel.plot(curves["grid"], found["mean"], "C0", label="posterior, exact sampler")
        panel.plot(curves["grid"], found["kernel"], "C3--", linewidth=1, label="deconvoluting kernel")
        panel.plot(curves["grid"], curves["truth"], "k", linewidth=1, label="truth")
        panel.set(title=f"n = {SHOWN_SIZE}, ε = {found['epsilon']:g}", ylim=(0, 0.3))
    axes[9].legend(fontsize="x-small")


def draw_figures(result: dict[str, Any], panel: Any, n: int, figure: str) -> None:
    """One figure of every sampler against ε."""
    for name in dict.fromkeys(row["sampler"] for row in result["rows"]):
        rows = [row for row in result["rows"] if (row["n"], row["sampler"]) == (n, name)]
        panel.plot(
            [row["epsilon"] for row in rows], [row[figure] for row in rows], ".-", color=COLORS[name], label=name
        )
    labels = {"acceptance": "accepted", "effective_per_1000": "effective draws in 1,000 sweeps"}
    panel.set(xscale="log", xlabel="ε", ylabel=labels[figure], xlim=(0.9, 56))


def draw_distances(result: dict[str, Any], panel: Any, n: int) -> None:
    """Hellinger distances against ε."""
    rows = [row for row in result["densities"] if row["n"] == n]
    labels = {
        "posterior_truth": ("C0.-", "posterior to truth"),
        "kernel_truth": ("C3.--", "kernel to truth"),
        "posterior_prior": ("C0.:", "posterior to prior"),
    }
    for name, (style, label) in labels.items():
        panel.plot([row["epsilon"] for row in rows], [row[name] for row in rows], style, label=label)
    panel.set(xscale="log", xlabel="ε", ylabel="Hellinger distance", ylim=(0, 1), xlim=(0.9, 56))
