"""Appendix C: 250 records of three Beta groups, known through draws from their smoothed histogram, or noisy counts."""

from itertools import product
from math import exp, floor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import Length, read_clusters, run_chains
from benchmarks.papers.mixture.densities import betas_density, measure_distances, posterior_density, shorten
from benchmarks.papers.mixture.problems import CONCENTRATION, Problem, three_betas
from dpjax import diagnostics, mixture, statistics

N = 250
NUM_DRAWS = floor(N ** (3 / 5) + 1)
NUM_CHAINS = 2
GRID = np.linspace(0.01, 0.99, 50)
BASES = {rates: mixture.GammaShapes(*rates) for rates in ((2.0, 2.0), (90.0, 2.0), (2.0, 0.05))}
"""Those of the paper's figures 7 and 8, and one that allows for all three groups."""


class Variant(NamedTuple):
    """What is released and how it is read: draws with δ or noisy counts, and the sampler."""

    released: str
    sampler: str


VARIANTS = {
    "conditional": Variant("draws", "metropolis"),
    "Neal 5": Variant("draws", "Neal 5, m = 1"),
    "printed weight": Variant("draws of the printed weight", "metropolis"),
    "noisy counts": Variant("counts", "metropolis"),
}
STYLES = {"conditional": "-", "Neal 5": ":", "noisy counts": "--"}


def measure(num_warmup: int, num_samples: int, epsilons: list[float], levels: list[int]) -> dict[str, Any]:
    """A row for every number of bins L ⌊n^(1/5) + 1⌋, ε, base measure and variant."""
    records = three_betas(N, np.random.default_rng(20_250))
    grid = list(product(levels, epsilons, BASES, VARIANTS))
    length = Length(num_warmup, num_samples)
    rows = [measure_row(records, *cell, length) for cell in grid]
    return {
        "n": N,
        "draws_released": NUM_DRAWS,
        "concentration": CONCENTRATION,
        "chains": NUM_CHAINS,
        "grid": GRID.round(3).tolist(),
        "rows": rows,
    }


def make_release(records: np.ndarray, num_bins: int, epsilon: float, released: str) -> dpjax.Release:
    """One release of the records' histogram."""
    histogram = statistics.histogram("record", np.linspace(0, 1, num_bins + 1))
    if released == "counts":
        mechanism = dpjax.Laplace(dpjax.mechanisms.laplace_scale(epsilon, histogram.sensitivity(1, "replace-one")))
        template = dpjax.Release(jnp.zeros(num_bins), mechanism, histogram, N)
    else:
        weight = choose_weight(epsilon, num_bins, released)
        template = dpjax.Release(
            jnp.zeros(NUM_DRAWS), dpjax.mechanisms.SmoothedHistogram(weight, NUM_DRAWS), histogram, N
        )
    return template.sample(jax.random.key(7), {"record": jnp.asarray(records, float)})


def choose_weight(epsilon: float, num_bins: int, released: str) -> float:
    """δ: the smallest that is ε-private, or the smallest that fulfils the condition as the paper prints it."""
    if released == "draws":
        return dpjax.mechanisms.smoothing_weight(epsilon, NUM_DRAWS, num_bins, N)
    return num_bins / N / (num_bins / N + exp(epsilon / NUM_DRAWS) + 1)


def true_epsilon(weight: float, num_bins: int) -> float:
    """The ε that draws with this δ keep."""
    return NUM_DRAWS * float(np.log1p((1 - weight) * num_bins / (weight * N)))


def measure_row(
    records: np.ndarray, level: int, epsilon: float, rates: tuple[float, float], name: str, length: Length
) -> dict[str, Any]:
    """The figures of one cell of the table."""
    variant, num_bins = VARIANTS[name], level * floor(N ** (1 / 5) + 1)
    release = make_release(records, num_bins, epsilon, variant.released)
    problem = Problem(release, None, BASES[rates], jnp.asarray(CONCENTRATION, float))
    posterior, seconds = run_chains(variant.sampler, problem, 1, length, num_chains=NUM_CHAINS)
    figures = read_clusters(posterior, seconds, length)
    density = posterior_density(posterior, GRID)["mean"]
    row = {"variant": name, "base": name_base(rates), "level": level, "bins": num_bins, "epsilon": epsilon}
    if variant.released != "counts":
        weight = choose_weight(epsilon, num_bins, variant.released)
        row |= {"weight": float(f"{weight:.4g}"), "true_epsilon": round(true_epsilon(weight, num_bins), 2)}
    return row | {
        **{figure: float(f"{value:.4g}") for figure, value in figures.items()},
        "bound": float(f"{exp(-epsilon):.3g}"),
        "r_hat": round(float(diagnostics.split_r_hat(posterior.draws["num_clusters"].astype(float))), 3),
        **measure_distances(density, betas_density(GRID), GRID),
        "density": shorten(density),
    }


def name_base(rates: tuple[float, float]) -> str:
    """The law of the shapes, by its shape and rate."""
    return f"Gamma({rates[0]:g}, {rates[1]:g})"


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities: a row of panels for each base measure, a column for each number of bins, a colour for each ε."""
    levels = sorted({row["level"] for row in result["rows"]})
    epsilons = sorted({row["epsilon"] for row in result["rows"]})
    cells = product(map(name_base, BASES), levels)
    for panel, (base, level) in zip(axes, cells, strict=False):
        panel.plot(GRID, betas_density(GRID), "k", linewidth=1)
        for row in (row for row in result["rows"] if (row["base"], row["level"]) == (base, level)):
            style = STYLES.get(row["variant"])
            if style:
                label = f"ε = {row['epsilon']:g}" if style == "-" else None
                color = f"C{epsilons.index(row['epsilon'])}"
                panel.plot(GRID, row["density"], style, color=color, linewidth=1, label=label)
        panel.set(title=f"L = {level}, a, b ~ {base}", xlabel="record", ylim=(0, 5))
    axes[0].legend(fontsize="small", title="— conditional, ··· Neal 5, -- noisy counts", title_fontsize="small")
