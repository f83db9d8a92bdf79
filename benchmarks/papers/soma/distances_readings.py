"""Figures 11 and 12 under other readings: which distance, which kernel width, and where chains start."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.papers.soma.distances import draw_reference
from benchmarks.papers.soma.problems import COEFFICIENTS, COLORS, SAMPLERS, VARIANCE
from benchmarks.papers.soma.regression_chains import make_chains
from dpjax.coupling import median_width, squared_mmd

TRUTH = {"coef": jnp.array(COEFFICIENTS), "variance": jnp.asarray(VARIANCE)}
STARTS = {"prior": None, "truth": TRUTH}
"""Parameters at the start; records are from the model at these."""

WIDTHS = (0.25, 1.0, 4.0)
"""Of the kernel, in median distances of posterior draws."""

BAND = 0.1
"""β₀ has converged if its mean over chains stays so near to the posterior's."""


def measure(chains: int, iterations: int, reference: int, points: int) -> dict[str, Any]:
    """MMD² by start, sampler, scale and width at some iterations, and when the mean of β₀ has converged.

    Parameters
    ----------
    chains, iterations
        Independent chains of each sampler and how long they run.
    reference
        Iterations of each of the long chains that stand for the posterior.
    points
        How many iterations are looked at.
    """
    posterior = draw_reference(reference)
    grid = [int(t) for t in np.linspace(iterations / points, iterations, points)]
    scales = {"standardised": posterior.std(axis=0), "as they are": np.ones(posterior.shape[1])}
    widths = {name: median_width(posterior / scale, np.random.default_rng(1)) for name, scale in scales.items()}
    result: dict[str, Any] = {"iterations": grid, "median_width": widths}
    for start, parameters in STARTS.items():
        result[start] = {}
        for place, (sampler, imputation) in enumerate(SAMPLERS.items()):
            run = make_chains(imputation, iterations, start=parameters)
            draws = run(jax.random.split(jax.random.key(30 + place), chains))
            away = np.abs(draws[:, :, 0].mean(axis=0) - posterior[:, 0].mean()) > BAND
            found = {
                f"{name}, width {width:g}": [
                    squared_mmd(draws[:, t - 1] / scale, posterior / scale, width * widths[name]).value for t in grid
                ]
                for name, scale in scales.items()
                for width in WIDTHS
            }
            arrived = int(np.flatnonzero(away)[-1]) + 2 if away.any() else 1
            result[start][sampler] = {"squared_mmd": found, "arrived": arrived}
    return result


def draw(result: dict[str, Any], axes: Any) -> None:
    """MMD, its square, and narrow and wide kernels, by start; full lines for chains from the prior."""
    for panel, width in zip(axes, WIDTHS, strict=True):
        for start, line in zip(STARTS, ("-", "--"), strict=True):
            for sampler, row in result[start].items():
                values = np.sqrt(np.maximum(row["squared_mmd"][f"standardised, width {width:g}"], 0))
                panel.plot(result["iterations"], values, line, color=COLORS[sampler], label=f"{sampler}, {start}")
        panel.set(xlabel="iterations", ylabel="MMD", title=f"width {width:g} of the median")
    axes[0].legend(fontsize="x-small")
