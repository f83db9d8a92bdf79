"""Section 4.1 over many data sets: densities, the deconvoluting kernel, and clusterings against the true one.

By the exact sampler, whose posterior is that of the paper's. The clustering is that of `mixture.find_partition`, the
index is that of Hubert and Arabie (1985): 1 where two clusterings agree, 0 on average where they do by chance.
"""

import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from scipy.special import comb

import dpjax
from benchmarks.papers.mixture.chains import SAMPLERS
from benchmarks.papers.mixture.densities import compare_normals, posterior_density, shorten
from benchmarks.papers.mixture.problems import BASE, DIAMETER, normal_groups, pose, simulate_normals
from dpjax import mixture

GRID = np.linspace(-12, 12, 121)
STARTS = 2
"""Of the search for the best clustering."""

PARTITIONS = 100
"""Draws that a clustering is made of."""


def measure(
    sizes: tuple[int, ...], epsilons: tuple[float, ...], repeats: int, sweeps: int, losses: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Medians and 95 % intervals over data sets, each with a chain of `sweeps` after a third as many."""
    rows = []
    for n in sizes:
        for epsilon in (*epsilons, None):
            found = [fit(n, epsilon, repeat, sweeps, losses) for repeat in range(repeats)]
            told: dict[str, Any] = {"n": n, "epsilon": epsilon}
            for name in found[0]:
                low, middle, high = shorten(np.quantile([each[name] for each in found], [0.025, 0.5, 0.975]), 3)
                told |= {name: middle, f"{name}_interval": [low, high]}
            print(told, file=sys.stderr, flush=True)
            rows.append(told)
            yield {"rows": rows}


def fit(n: int, epsilon: float | None, repeat: int, sweeps: int, losses: tuple[str, ...]) -> dict[str, float]:
    """The figures of one data set; without noise if ε is None."""
    values = simulate_normals(n, np.inf if epsilon is None else epsilon, repeat)
    scale = 0.0 if epsilon is None else DIAMETER / epsilon
    problem = pose(values, None if epsilon is None else dpjax.Laplace(scale), BASE)
    thin = max(1, sweeps // PARTITIONS)
    posterior = mixture.sample(
        jax.random.key(repeat),
        *problem.released,
        component=problem.component,
        concentration=problem.concentration,
        sampler=SAMPLERS["exact"],
        num_chains=1,
        num_warmup=sweeps // 3,
        num_samples=sweeps // thin,
        thin=thin,
        collect=("labels",),
        progress=False,
    )
    distances, _ = compare_normals(posterior_density(posterior, GRID)["mean"], values, scale, GRID)
    return distances | clusterings(posterior, normal_groups(n, repeat), losses)


def clusterings(posterior: mixture.MixturePosterior, truth: np.ndarray, losses: tuple[Any, ...]) -> dict[str, float]:
    """The adjusted Rand index of the best clustering by each loss, and its number of clusters."""
    found = {}
    for loss in losses:
        best = posterior.partition(jax.random.key(0), loss=loss, num_starts=STARTS)
        found |= {f"rand_{loss}": adjusted_rand(best.labels, truth), f"clusters_{loss}": float(best.num_clusters)}
    return found


def adjusted_rand(one: np.ndarray, other: np.ndarray) -> float:
    """The adjusted Rand index of two clusterings [n]; 1 if both are one cluster."""
    _, rows = np.unique(one, return_inverse=True)
    _, columns = np.unique(other, return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    both, of_one, of_other = (comb(count, 2).sum() for count in (table, table.sum(axis=1), table.sum(axis=0)))
    expected = of_one * of_other / comb(len(one), 2)
    most = (of_one + of_other) / 2
    return 1.0 if most == expected else float((both - expected) / (most - expected))


def draw(result: dict[str, Any], axes: Any) -> None:
    """The adjusted Rand index against ε, above distances of densities, a column for each size."""
    sizes = sorted({row["n"] for row in result["rows"]})
    for panel in (*axes[len(sizes) : 4], *axes[4 + len(sizes) :]):
        panel.set_axis_off()
    for column, n in enumerate(sizes):
        noisy = [row for row in result["rows"] if row["n"] == n and row["epsilon"] is not None]
        rows = sorted(noisy, key=lambda row: float(row["epsilon"]))
        places = [row["epsilon"] for row in rows]
        for number, name in enumerate(name for name in rows[0] if name.startswith("rand_") and "interval" not in name):
            axes[column].plot(places, [row[name] for row in rows], f"C{number}.-", label=name.removeprefix("rand_"))
            lower, upper = zip(*(row[f"{name}_interval"] for row in rows), strict=True)
            axes[column].fill_between(places, lower, upper, color=f"C{number}", alpha=0.2)
        for number, name in enumerate(("posterior_truth", "kernel_truth", "posterior_prior")):
            axes[4 + column].plot(places, [row[name] for row in rows], f"C{number}.-", label=name.replace("_", " to "))
        axes[column].set(xscale="log", title=f"n = {n}", ylim=(-0.1, 1.05), ylabel="adjusted Rand index")
        axes[4 + column].set(xscale="log", xlabel="ε", ylim=(0, 1), ylabel="Hellinger distance")
    axes[0].legend(fontsize="x-small")
    axes[4].legend(fontsize="x-small")
