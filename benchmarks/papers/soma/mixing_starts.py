"""Figure 3 from chains that start at the parameters that gave the release, and not in the prior."""

from typing import Any

import jax
import numpy as np

from benchmarks.papers.soma.distances_readings import TRUTH
from benchmarks.papers.soma.mixing import PAPER, THRESHOLD
from benchmarks.papers.soma.mixing_readings import readings
from benchmarks.papers.soma.problems import COLORS, SAMPLERS
from benchmarks.papers.soma.regression_chains import make_chains
from dpjax.diagnostics import split_r_hat


def measure(chains: int, iterations: int, points: int) -> dict[str, Any]:
    """The iterations from which R-hat stays below 1.05, by sampler and definition, and the largest R-hat's curve."""
    grid = [int(t) for t in np.linspace(0, iterations, points + 1)[1:]]
    rows = {}
    for name, sampler in SAMPLERS.items():
        draws = make_chains(sampler, iterations, start=TRUTH)(jax.random.split(jax.random.key(21), chains))
        curve = [float(split_r_hat(draws[:, :t]).max()) for t in grid]
        rows[name] = readings(draws, points) | {"r_hat": curve, "paper_below": PAPER[name]}
    return {"iterations": grid, "samplers": rows}


def draw(result: dict[str, Any], axes: Any) -> None:
    """R-hat against iterations; dotted lines are where the paper's falls below 1.05."""
    for name, row in result["samplers"].items():
        axes.plot(result["iterations"], row["r_hat"], color=COLORS[name], label=name)
        axes.axvline(row["paper_below"], color=COLORS[name], linestyle=":")
    axes.axhline(THRESHOLD, color="0.5", linestyle="--")
    axes.set(xlabel="iterations", ylabel="largest R-hat")
    axes.legend()
