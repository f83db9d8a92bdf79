"""Section 3.3: Beta records behind binomial counts, integrated out or imputed, and Laplace noise of the same ε."""

import sys
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import Length, read_clusters, run_chains
from benchmarks.papers.mixture.densities import (
    betas_density,
    measure_distances,
    posterior_density,
    shorten,
    summarize_runs,
)
from benchmarks.papers.mixture.problems import CONCENTRATION, Problem, three_betas
from dpjax.mixture import GammaShapes

N = 250
BASE = GammaShapes(shape=2.0, rate=0.05)
"""It allows for the true shapes of 50, which Gamma(2, 2) does not: see `wavelet`."""

GRID = (np.arange(200) + 0.5) / 200
RUNS = {"integrated out": "exact", "imputed": "metropolis", "Laplace": "metropolis", "none": "exact"}
"""The samplers of counts with records integrated out and imputed, of Laplace noise and of known records."""


def measure(repeats: int, sweeps: int, epsilons: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    """Medians over data sets, each with a chain of `sweeps` after a third as many; that of the first is timed."""
    length = Length(sweeps // 3, sweeps)
    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        for name in RUNS:
            if name != "none" or epsilon == epsilons[0]:
                found = [fit(name, epsilon, repeat, length) for repeat in range(repeats)]
                told: dict[str, Any] = {"run": name, "epsilon": None if name == "none" else epsilon}
                told |= summarize_runs([figures for figures, _ in found])
                told["hellinger_each"] = shorten([figures["hellinger"] for figures, _ in found])
                print(told, file=sys.stderr, flush=True)
                rows.append(told | {"density": shorten(found[0][1], 3)})
        trials = {f"{each:g}": num_trials(each) for each in epsilons}
        yield {"trials": trials, "grid": shorten(GRID), "truth": shorten(betas_density(GRID)), "rows": rows}


def num_trials(epsilon: float) -> int:
    """The trials that tell most of a record in the middle at an ε, where m tanh²(ε / 2m) is largest."""
    return max(1, round(epsilon / 2.18))


def fit(name: str, epsilon: float, repeat: int, length: Length) -> tuple[dict[str, float], np.ndarray]:
    """How far the posterior density is from the truth, how the chain moved, and the density."""
    drawn = run_chains(RUNS[name], pose(name, epsilon, repeat), repeat, length, timed=repeat == 0)
    density = posterior_density(drawn[0], GRID)["mean"]
    return read_clusters(*drawn, length) | measure_distances(density, betas_density(GRID), GRID), density


def pose(name: str, epsilon: float, repeat: int) -> Problem:
    """What was released of the records of a repeat."""
    generator = np.random.default_rng([44, repeat])
    records = three_betas(N, generator)
    concentration = jnp.asarray(CONCENTRATION, float)
    if name == "none":
        return Problem(jnp.asarray(records, float), None, BASE, concentration)
    if name == "Laplace":
        values = records + generator.laplace(size=N) / epsilon
        return Problem(jnp.asarray(values, float), dpjax.Laplace(jnp.asarray(1 / epsilon)), BASE, concentration)
    channel = dpjax.mechanisms.PoissonBinomial.from_epsilon(epsilon, num_trials(epsilon))
    counts = generator.binomial(channel.num_trials, 0.5 + float(channel.theta) * (2 * records - 1))
    return Problem(jnp.asarray(counts), channel, BASE, concentration)


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities of the first data set at each ε, and distances from the truth."""
    rows = result["rows"]
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows if row["epsilon"] is not None))
    (known,) = [row for row in rows if row["epsilon"] is None]
    for panel, epsilon in zip(axes, epsilons, strict=False):
        for row in (row for row in rows if row["epsilon"] in (epsilon, None)):
            color = f"C{list(RUNS).index(row['run'])}"
            panel.plot(result["grid"], row["density"], color, linewidth=1, label=row["run"])
        panel.plot(result["grid"], result["truth"], "k", linewidth=1, label="truth")
        panel.set(title=f"ε = {epsilon:g}", ylim=(0, 4))
    axes[0].legend(fontsize="x-small")
    for panel in axes[len(epsilons) : -1]:
        panel.set_axis_off()
    for name in RUNS:
        mine = [row for row in rows if row["run"] == name and row["epsilon"] is not None]
        if mine:
            axes[-1].plot([row["epsilon"] for row in mine], [row["hellinger"] for row in mine], ".-", label=name)
    axes[-1].axhline(known["hellinger"], color="k", linestyle=":", label="none")
    axes[-1].set(xscale="log", xlabel="ε", ylabel="Hellinger distance to the truth", ylim=(0, 0.7))
    axes[-1].legend(fontsize="x-small")
