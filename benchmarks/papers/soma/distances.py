"""Figures 11 and 12: many short chains against the posterior, regression with 100 records, ε = 30."""

from typing import Any

import jax
import numpy as np
from scipy import stats

import dpjax
from benchmarks.papers.soma.problems import COLORS, SAMPLERS
from benchmarks.papers.soma.regression_chains import make_chains
from dpjax.coupling import median_width, squared_mmd

REFERENCE_CHAINS, REFERENCE_DRAWS = 100, 20
"""Of the posterior: systematic IMwG, which is fastest a second, thinned to 20 draws a chain after half as warm-up."""

QUARTILES = (0.25, 0.5, 0.75)
RIDGE_POINTS = 80
BAND = 0.1
"""β₀ has converged once its mean over chains stays so near to the posterior's."""

RESAMPLED = 200


def measure(chains: int, iterations: int, reference: int) -> dict[str, Any]:
    """MMD of the parameters to the posterior, and the law of β₀, over chains at a grid of iterations.

    Parameters
    ----------
    chains, iterations
        Independent chains of each sampler and how long they run.
    reference
        Iterations of each of the long chains that stand for the posterior.
    """
    posterior = draw_reference(reference)
    centre, scale = posterior.mean(axis=0), posterior.std(axis=0)
    width = median_width((posterior - centre) / scale, np.random.default_rng(1))
    grid = [int(t) for t in np.unique(np.linspace(1, iterations, 31).astype(int))]
    ridge = np.linspace(*np.quantile(posterior[:, 0], (0.001, 0.999)) + np.array([-0.5, 0.5]), RIDGE_POINTS)
    result: dict[str, Any] = {
        "iterations": grid,
        "width": width,
        "values": ridge.tolist(),
        "posterior": summarize(posterior[:, 0], ridge),
        "samplers": {},
    }
    for place, (name, sampler) in enumerate(SAMPLERS.items()):
        draws = make_chains(sampler, iterations)(jax.random.split(jax.random.key(30 + place), chains))
        found = [squared_mmd((draws[:, t - 1] - centre) / scale, (posterior - centre) / scale, width) for t in grid]
        result["samplers"][name] = {
            "squared_mmd": [distance.value for distance in found],
            "standard_error": [distance.standard_error for distance in found],
            "arrival": measure_arrival(draws[:, :, 0], posterior[:, 0]),
            "intercept": [summarize(draws[:, t - 1, 0], ridge) for t in grid],
        }
    return result


def draw_reference(iterations: int) -> np.ndarray:
    """Draws of the parameters [draw, 4] from long chains, the first half of each left out."""
    thinning = iterations // (2 * REFERENCE_DRAWS)
    run = make_chains(dpjax.imwg(), iterations, thinning)
    draws = run(jax.random.split(jax.random.key(29), REFERENCE_CHAINS))
    return draws[:, -REFERENCE_DRAWS:].reshape(-1, draws.shape[-1])


def measure_arrival(draws: np.ndarray, posterior: np.ndarray) -> dict[str, float]:
    """The iteration from which the mean of β₀ [chain, iteration] stays in the band, and its error by resampled chains.

    Draws of the posterior are resampled, too, in blocks of those of a chain.
    """
    rng = np.random.default_rng(1)
    means = posterior.reshape(REFERENCE_CHAINS, -1).mean(axis=1)

    def arrive(chains: np.ndarray, centre: float) -> float:
        away = np.flatnonzero(np.abs(chains.mean(axis=0) - centre) > BAND)
        return float(min(away[-1] + 2, draws.shape[1])) if away.size else 1.0

    resampled = [
        arrive(rng.choice(draws, len(draws)), float(rng.choice(means, len(means)).mean())) for _ in range(RESAMPLED)
    ]
    return {"iterations": arrive(draws, float(means.mean())), "standard_error": float(np.std(resampled, ddof=1))}


def summarize(values: np.ndarray, grid: np.ndarray) -> dict[str, Any]:
    """Quartiles, mean and smoothed density on a grid."""
    density = stats.gaussian_kde(values)(grid)
    return {
        "quartiles": np.quantile(values, QUARTILES).tolist(),
        "mean": float(values.mean()),
        "density": np.round(density, 4).tolist(),
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """MMD against iterations, then a ridge plot of β₀ for each sampler."""
    for name, figures in result["samplers"].items():
        axes[0].plot(
            result["iterations"], np.sqrt(np.maximum(0, figures["squared_mmd"])), color=COLORS[name], label=name
        )
    axes[0].set(xlabel="iterations", ylabel="MMD to the posterior", title="Figure 11")
    axes[0].legend()
    for panel, (name, figures) in zip(axes[1:], result["samplers"].items(), strict=True):
        draw_ridge(panel, result, figures["intercept"])
        panel.set(xlabel="β₀", ylabel="iterations", title=f"Figure 12: {name}")


def draw_ridge(axes: Any, result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Densities from the first iteration at the bottom; quartiles and mean over chains, and dashed the posterior's."""
    iterations, values = np.array(result["iterations"]), np.array(result["values"])
    height = 5 * iterations[-1] / len(iterations) / max(result["posterior"]["density"])
    for place in range(len(rows) - 1, -1, -1):
        ridge = iterations[place] + height * np.array(rows[place]["density"])
        axes.fill_between(values, iterations[place], ridge, facecolor="0.9", edgecolor="0.4", linewidth=0.6)
    quartiles = np.array([row["quartiles"] for row in rows])
    axes.plot(quartiles, iterations, color="C1")
    axes.plot([row["mean"] for row in rows], iterations, color="c")
    for value in result["posterior"]["quartiles"]:
        axes.axvline(value, color="r", linestyle="--", linewidth=0.8)
    axes.axvline(result["posterior"]["mean"], color="b", linestyle="--", linewidth=0.8)
    axes.set_xlim(values[0], values[-1])
