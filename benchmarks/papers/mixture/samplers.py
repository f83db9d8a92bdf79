"""Section 4.1: acceptance, effective draws, the number of clusters and densities behind Laplace noise.

The chains of all data sets and all ε are one program for each size and sampler (`side_by_side`). All are lengthened in
turn, as far as there is time, and there is a result after each.
"""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.papers.mixture.chains import COLORS, SAMPLERS
from benchmarks.papers.mixture.densities import measure_distances, normals_density, prior_density, shorten
from benchmarks.papers.mixture.problems import BASE, DIAMETER, simulate_normals
from benchmarks.papers.mixture.side_by_side import BLOCKS, THIN, Block, Chains, Run
from dpjax import diagnostics

GRID = np.linspace(-12, 12, 121)
GROUPS = (1, 8, 3, 16)
"""Clusters at the start of the first data set, of the second and so on, repeated."""

FIRST = 1_000
"""Sweeps of the first pass, which tells what sweeps cost, and is made whatever the time."""

MOST_CLUSTERS = 30
"""Of the histogram; more are counted as so many."""

MOST_READ = 10_000
"""Draws that effective sizes are read from: evenly chosen ones, if there are more."""

BANDS = "paper's slice"
"""The sampler of the densities with bands, as in the paper."""

Cell = tuple[int, str]
"""A number of records and a sampler."""

Figures = dict[str, Any]
"""The sweeps of the chains of a cell and what one takes, and figures of all chains, [repeat, ε, ...]."""


def measure(
    sizes: tuple[int, ...],
    epsilons: tuple[float, ...],
    names: tuple[str, ...],
    repeats: int,
    sweeps: int,
    seconds: float,
) -> Iterator[dict[str, Any]]:
    """Results after ever more sweeps, up to these and a fifth as many before, or to the time.

    All ε share a data set's records and its noise but for the scale.
    """
    ends = time.monotonic() + seconds
    runs = {(n, name): pose(name, n, epsilons, repeats) for n in sizes for name in names}
    reads: dict[Cell, list[Future[Figures]]] = {cell: [] for cell in runs}
    with ThreadPoolExecutor() as threads:
        compiled = {cell: threads.submit(run.compile) for cell, run in runs.items()}
        for stop in stops(runs, sweeps * 5 // 4, ends):
            for cell, run in runs.items():
                compiled[cell].result()
                if advance(cell, run, stop, ends):
                    reads[cell].append(threads.submit(read, run, run.kept(), len(epsilons)))
                    yield collect(latest(reads), epsilons)
    yield collect(latest(reads), epsilons)


def latest(reads: dict[Cell, list[Future[Figures]]]) -> dict[Cell, Figures]:
    """The last figures of each cell that has some yet."""
    done = {cell: [each.result() for each in found if each.done()] for cell, found in reads.items()}
    return {cell: figures[-1] for cell, figures in done.items() if figures}


def pose(name: str, n: int, epsilons: tuple[float, ...], repeats: int) -> Run:
    """Chains of every data set at every ε, the ε of a data set after each other."""
    values = [simulate_normals(n, epsilon, repeat) for repeat in range(repeats) for epsilon in epsilons]
    scales = np.tile(DIAMETER / np.array(epsilons), repeats)
    groups = np.repeat(np.resize(GROUPS, repeats), len(epsilons))
    keys = jax.random.split(jax.random.key(n), len(values))
    chains = Chains(jnp.asarray(np.stack(values), float), jnp.asarray(scales, float), keys, jnp.asarray(groups))
    return Run(SAMPLERS[name], GRID, chains)


def stops(runs: dict[Cell, Run], sweeps: int, ends: float) -> Iterator[int]:
    """How many sweeps the runs go up to in each pass: a few, half of what there is time for, and all of it."""
    yield min(FIRST, sweeps)
    cost = sum(run.seconds / max(run.sweeps, 1) for run in runs.values())
    left = (ends - time.monotonic() + sum(run.seconds for run in runs.values())) / max(cost, 1e-9)
    fits = min(sweeps, int(left))
    yield fits // 2
    yield fits


def advance(cell: Cell, run: Run, stop: int, ends: float) -> bool:
    """Lengthen a run, say so, and return whether it is longer."""
    before = run.sweeps
    while run.sweeps + BLOCKS * THIN <= stop and (stop <= FIRST or time.monotonic() < ends):
        began = time.monotonic()
        run.go_on()
        run.seconds += time.monotonic() - began
    each = 1e6 * run.seconds / max(run.sweeps, 1)
    print(f"n = {cell[0]}, {cell[1]}: {run.sweeps} sweeps, {each:.0f} µs each", file=sys.stderr, flush=True)
    return run.sweeps > before


def read(run: Run, kept: Block, num_epsilons: int) -> Figures:
    """The figures of chains so far."""
    of_run = {"sweeps": run.sweeps, "microseconds": float(f"{1e6 * run.seconds / run.sweeps:.4g}")}
    clusters = kept.clusters.reshape(len(kept.clusters), -1).astype(int)
    histograms = [histogram(half) for half in (clusters, *np.array_split(clusters, 2, axis=1))]
    figures = {
        "acceptance": kept.acceptance.mean(axis=1),
        "clusters": clusters.mean(axis=1),
        "effective_per_1000": 1_000 * effective(clusters) / clusters.shape[1],
        "overflows": kept.overflows.sum(axis=1) / clusters.shape[1],
        "histogram": histograms[0],
        "halves": variation(*histograms[1:]),
        "density": kept.density.mean(axis=1),
        "band": np.quantile(kept.density[:num_epsilons], [0.025, 0.975], axis=1).swapaxes(0, 1),
    }
    return of_run | {name: found.reshape(-1, num_epsilons, *found.shape[1:]) for name, found in figures.items()}


def histogram(clusters: np.ndarray) -> np.ndarray:
    """The shares of the numbers of clusters [chain, MOST_CLUSTERS], from 1 on."""
    places = np.minimum(clusters, MOST_CLUSTERS)[:, :, None] == np.arange(1, MOST_CLUSTERS + 1)
    return np.stack([row.mean(axis=0) for row in places])


def effective(clusters: np.ndarray) -> np.ndarray:
    """The effective draws [chain] of numbers [chain, draw]; NaN where they are all one."""
    some = clusters[:, :: max(1, clusters.shape[1] // MOST_READ)].astype(float)
    moved = np.ptp(some, axis=1) > 0
    found = np.full(len(some), np.nan)
    found[moved] = diagnostics.ess_bulk(some[moved].T[None])
    return found


def variation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The total variation [...] of two laws [..., value]."""
    return np.abs(one - other).sum(axis=-1) / 2


def collect(done: dict[Cell, Figures], epsilons: tuple[float, ...]) -> dict[str, Any]:
    """The result."""
    rows, agreement, bands = [], [], []
    for (n, name), figures in done.items():
        told = {"n": n, "sampler": name, "sweeps": figures["sweeps"], "microseconds": figures["microseconds"]}
        rows += [told | {"epsilon": e} | summarize(figures, place) for place, e in enumerate(epsilons)]
        if name == BANDS:
            bands += [{"n": n, "epsilon": e} | show_band(figures, place) for place, e in enumerate(epsilons)]
    for (n, name), (size, other) in combinations(done, 2):
        if n == size:
            compared = compare(done[n, name], done[n, other])
            told = {"n": n, "samplers": [name, other]}
            agreement += [told | {"epsilon": e} | each for e, each in zip(epsilons, compared, strict=True)]
    curves = {"grid": shorten(GRID), "truth": shorten(normals_density(GRID)), "found": bands}
    return {"rows": rows, "agreement": agreement, "curves": curves}


def summarize(figures: Figures, place: int) -> dict[str, Any]:
    """Medians over the data sets at an ε, with the quartiles of some; and the mean law of the number of clusters."""
    here = {name: found[:, place] for name, found in figures.items() if isinstance(found, np.ndarray)}
    truth, prior = normals_density(GRID), prior_density(BASE, GRID)
    for name, target in (("posterior_truth", truth), ("posterior_prior", prior)):
        distances = [measure_distances(curve, target, GRID)["hellinger"] for curve in here["density"]]
        here[name] = np.array(distances)
    medians = ("acceptance", "clusters", "effective_per_1000", "posterior_truth", "posterior_prior")
    told: dict[str, Any] = {name: shorten(np.nanmedian(here[name]))[0] for name in medians}
    told["effective_quartiles"] = shorten(np.nanquantile(here["effective_per_1000"], [0.25, 0.75]), 3)
    told["overflows"] = shorten(np.mean(here["overflows"]), 2)[0]
    told["histogram"] = shorten(np.trim_zeros(here["histogram"].mean(axis=0).round(5), "b"), 3)
    return told


def compare(one: Figures, other: Figures) -> list[dict[str, float]]:
    """How far two samplers' laws of the number of clusters are apart, by ε, beside what chance makes of it.

    `by chance` is that total variation which the halves of the chains let one expect of samplers that agree.
    `difference` is that of the mean numbers of clusters, averaged over data sets, with its standard error.
    """
    apart = variation(one["histogram"], other["histogram"])
    chance = np.sqrt(one["halves"] ** 2 + other["halves"] ** 2) / 2
    pooled = variation(one["histogram"].mean(axis=0), other["histogram"].mean(axis=0))
    difference = one["clusters"] - other["clusters"]
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.zeros_like(pooled)
    found = {
        "variation": np.median(apart, axis=0),
        "by_chance": np.median(chance, axis=0),
        "variation_of_means": pooled,
        "difference": difference.mean(axis=0),
        "error": error,
    }
    return [
        {name: shorten(figure, 3)[0] for name, figure in zip(found, column, strict=True)}
        for column in zip(*found.values(), strict=True)
    ]


def show_band(figures: Figures, place: int) -> dict[str, list[float]]:
    """The density of the first data set, with the bounds of 95 %."""
    lower, upper = figures["band"][0, place]
    curves = {"mean": figures["density"][0, place], "lower": lower, "upper": upper}
    return {name: shorten(curve, 3) for name, curve in curves.items()}


def draw(result: dict[str, Any], axes: Any) -> None:
    """A column for each size: acceptance, effective draws, the number of clusters at two ε, and densities."""
    sizes = sorted({row["n"] for row in result["rows"]})
    for column, n in enumerate(sizes):
        rows = [row for row in result["rows"] if row["n"] == n]
        draw_figures(rows, axes[column], "acceptance")
        epsilons = sorted({row["epsilon"] for row in rows})
        axes[column].plot(epsilons, np.exp(-np.array(epsilons)), "k--", label="e^(-ε)")
        axes[column].set(ylim=(0, 1.05), title=f"n = {n}")
        draw_figures(rows, axes[4 + column], "effective_per_1000")
        axes[4 + column].set(yscale="log")
        draw_clusters(rows, axes[8 + column])
        for each in (each for each in result["curves"]["found"] if each["n"] == n):
            color = f"C{epsilons.index(each['epsilon'])}"
            axes[12 + column].plot(result["curves"]["grid"], each["mean"], color, label=f"ε = {each['epsilon']:g}")
        axes[12 + column].plot(result["curves"]["grid"], result["curves"]["truth"], "k", linewidth=1)
        axes[12 + column].set(xlabel="record", ylim=(0, 0.3))
    for row in range(4):
        if axes[4 * row].get_legend_handles_labels()[0]:
            axes[4 * row].legend(fontsize="x-small")


def draw_figures(rows: list[dict[str, Any]], panel: Any, figure: str) -> None:
    """One figure of every sampler against ε."""
    for name in dict.fromkeys(row["sampler"] for row in rows):
        mine = [row for row in rows if row["sampler"] == name]
        places = [row["epsilon"] for row in mine]
        panel.plot(places, [row[figure] for row in mine], ".-", color=COLORS[name], label=name)
    labels = {"acceptance": "accepted", "effective_per_1000": "effective draws in 1,000 sweeps"}
    panel.set(xscale="log", xlabel="ε", ylabel=labels[figure], xlim=(0.9, 56))


def draw_clusters(rows: list[dict[str, Any]], panel: Any) -> None:
    """The laws of the number of clusters at the least and at the greatest ε."""
    ends = {min(row["epsilon"] for row in rows): "-", max(row["epsilon"] for row in rows): ":"}
    for row in (row for row in rows if row["epsilon"] in ends):
        places = np.arange(1, len(row["histogram"]) + 1)
        label = f"{row['sampler']}, ε = {row['epsilon']:g}"
        panel.plot(places, row["histogram"], ends[row["epsilon"]], color=COLORS[row["sampler"]], label=label)
    panel.set(xlabel="clusters", ylabel="posterior probability", xlim=(0.5, 20.5))
