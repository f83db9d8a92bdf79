"""Appendix C: 250 records of three Beta groups, known through draws from their smoothed histogram, or noisy counts."""

import sys
from collections.abc import Iterator
from itertools import product
from math import exp, floor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture import fixed
from benchmarks.papers.mixture.chains import Length
from benchmarks.papers.mixture.densities import betas_density, shorten, summarize_runs
from benchmarks.papers.mixture.fixed import GRID
from benchmarks.papers.mixture.problems import BETA_BASES, CONCENTRATION, MASS, Problem, name_base, three_betas
from benchmarks.papers.parts import repeats_of
from dpjax import statistics

N = 250
NUM_DRAWS = floor(N ** (3 / 5) + 1)
GROUPS = 3
"""Clusters at the start, as the authors have."""


class Variant(NamedTuple):
    """What is released and how it is read: draws or noisy counts, the sampler, and the mass of the process."""

    released: str
    sampler: str
    concentration: Any


VARIANTS = {
    "Neal 5": Variant("draws", "Neal 5, m = 1", MASS),
    "conditional": Variant("draws", "metropolis", CONCENTRATION),
    "noisy counts": Variant("counts", "metropolis", CONCENTRATION),
}
"""The authors have α ~ Gamma(4, 2) with Neal 5, and 1 with the conditional sampler."""

STYLES = {"conditional": "-", "Neal 5": ":", "noisy counts": "--"}


def measure(
    repeats: int, sweeps: int, epsilons: list[float], levels: list[int], variants: list[str], part: int
) -> Iterator[dict[str, Any]]:
    """A row for every number of bins L ⌊n^(1/5) + 1⌋, ε, base measure and variant: medians over data sets.

    Each has a chain of so many sweeps, after a third as many of warm-up.
    """
    rows: list[dict[str, Any]] = []
    result = {"n": N, "draws_released": NUM_DRAWS, "grid": shorten(GRID), "rows": rows}
    result["weights"] = [describe_weight(level, epsilon) for level in levels for epsilon in epsilons]
    for level, name, rates, epsilon in product(levels, variants, BETA_BASES, epsilons):
        rows.append(measure_row(level, epsilon, rates, name, repeats_of(part, repeats), Length(sweeps // 3, sweeps)))
        print({name: value for name, value in rows[-1].items() if name != "density"}, file=sys.stderr, flush=True)
        yield result


def count_bins(level: int) -> int:
    """The number of bins."""
    return level * floor(N ** (1 / 5) + 1)


def make_release(records: np.ndarray, num_bins: int, epsilon: float, released: str, key: Any) -> dpjax.Release:
    """One release of the records' histogram."""
    histogram = statistics.histogram("record", np.linspace(0, 1, num_bins + 1))
    if released == "counts":
        mechanism = dpjax.Laplace(dpjax.mechanisms.laplace_scale(epsilon, histogram.sensitivity(1, "replace-one")))
        template = dpjax.Release(jnp.zeros(num_bins), mechanism, histogram, N)
    else:
        weight = dpjax.mechanisms.smoothing_weight(epsilon, NUM_DRAWS, num_bins, N)
        mechanism = dpjax.mechanisms.SmoothedHistogram(weight, NUM_DRAWS)
        template = dpjax.Release(jnp.zeros(NUM_DRAWS), mechanism, histogram, N)
    return template.sample(key, {"record": jnp.asarray(records, float)})


def describe_weight(level: int, epsilon: float) -> dict[str, float]:
    """δ: the smallest that is ε-private, that of the condition as the paper prints it, and the ε which that keeps."""
    share = count_bins(level) / N
    printed = share / (share + exp(epsilon / NUM_DRAWS) + 1)
    return {
        "level": level,
        "epsilon": epsilon,
        "weight": dpjax.mechanisms.smoothing_weight(epsilon, NUM_DRAWS, count_bins(level), N),
        "printed_weight": printed,
        "epsilon_of_printed": NUM_DRAWS * float(np.log1p((1 - printed) * share / printed)),
    }


def measure_row(
    level: int, epsilon: float, rates: tuple[float, float], name: str, repeats: range, length: Length
) -> dict[str, Any]:
    """The figures of one cell of the table, and the density of its first data set."""
    variant = VARIANTS[name]
    chains = []
    for repeat in repeats:
        records = three_betas(N, np.random.default_rng([44, repeat]))
        release = make_release(records, count_bins(level), epsilon, variant.released, jax.random.key(repeat))
        component, mass = jax.tree.map(jnp.asarray, (BETA_BASES[rates], variant.concentration))
        problem = Problem(release, None, component, mass)
        chains += fixed.run(variant.sampler, problem, length, [(repeat, GROUPS)])
    figures = summarize_runs([fixed.figures(chain) for chain in chains], each=True)
    told = {"variant": name, "base": name_base(rates), "level": level, "bins": count_bins(level), "epsilon": epsilon}
    return {**told, **figures, "density": shorten(chains[0].density, 3)}


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities: a row of panels for each base measure, a column for each number of bins, a colour for each ε."""
    levels = sorted({row["level"] for row in result["rows"]})
    epsilons = sorted({row["epsilon"] for row in result["rows"]})
    cells = product(map(name_base, BETA_BASES), levels)
    for panel, (base, level) in zip(axes, cells, strict=False):
        panel.plot(GRID, betas_density(GRID), "k", linewidth=1)
        for row in (row for row in result["rows"] if (row["base"], row["level"]) == (base, level)):
            style = STYLES.get(row["variant"])
            if style:
                label = f"ε = {row['epsilon']:g}" if row["variant"] == result["rows"][0]["variant"] else None
                color = f"C{epsilons.index(row['epsilon'])}"
                panel.plot(GRID, row["density"], style, color=color, linewidth=1, label=label)
        panel.set(title=f"L = {level}, a, b ~ {base}", xlabel="record", ylim=(0, 5))
    axes[0].legend(fontsize="small", title="— conditional, ··· Neal 5, -- noisy counts", title_fontsize="small")
