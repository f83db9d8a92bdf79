"""Densities on a grid: the true ones, the posterior's, those of kernel estimates, and how far apart they are."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from scipy import stats

from benchmarks.papers.mixture.deconvolution import Noise, choose_bandwidth, estimate_density, laplace_noise
from benchmarks.papers.mixture.problems import BASE, BETAS, CENTRES
from benchmarks.papers.parts import pool
from dpjax.mixture import MixturePosterior, NormalInverseGamma

NUM_MIXTURES = 200
"""Draws of the mixture that a posterior density is made of."""


def normals_density(grid: np.ndarray) -> np.ndarray:
    """The density of the records of Section 4.1."""
    return np.mean([stats.norm.pdf(grid, centre) for centre in CENTRES], axis=0)


def betas_density(grid: np.ndarray) -> np.ndarray:
    """The density of the records of Section 4.2."""
    return np.mean([stats.beta.pdf(grid, *shapes) for shapes in BETAS], axis=0)


def prior_density(base: NormalInverseGamma, grid: np.ndarray) -> np.ndarray:
    """The density of a record with nothing known: a t law."""
    scale = np.sqrt(base.scale / base.shape * (1 + 1 / base.precision))
    return stats.t.pdf(grid, 2 * base.shape, base.mean, scale)


def posterior_density(posterior: MixturePosterior, grid: np.ndarray) -> dict[str, np.ndarray]:
    """The mean and the bounds of 95 % [points], of evenly chosen draws."""
    draws = posterior.draws["num_clusters"].shape[1]
    chosen = np.linspace(0, draws - 1, NUM_MIXTURES).astype(int)
    some = replace(posterior, mixing=jax.tree.map(lambda leaf: leaf[:, chosen], posterior.mixing))
    drawn = some.density_draws(grid)
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=(0, 1))
    return {"mean": np.mean(drawn, axis=(0, 1)), "lower": lower, "upper": upper}


def kernel_density(values: np.ndarray, grid: np.ndarray, noise: Noise, noise_variance: float) -> np.ndarray:
    """The deconvoluting estimate with its own bandwidth, cut at zero and scaled to one."""
    bandwidth = choose_bandwidth(values, noise, noise_variance)
    return as_density(estimate_density(values, grid, noise, bandwidth), grid)


def as_density(estimate: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The positive part with a mass of one on the grid."""
    positive = np.maximum(estimate, 0)
    return positive / np.trapezoid(positive, grid)


def measure_distances(estimate: np.ndarray, target: np.ndarray, grid: np.ndarray) -> dict[str, float]:
    """The integrated squared and absolute differences, and the Hellinger distance in [0, 1]."""
    difference = estimate - target
    affinity = np.trapezoid(np.sqrt(np.maximum(estimate * target, 0)), grid)
    return {
        "squared": float(np.trapezoid(difference**2, grid)),
        "absolute": float(np.trapezoid(np.abs(difference), grid)),
        "hellinger": float(np.sqrt(max(1 - affinity, 0.0))),
    }


def compare_normals(
    density: np.ndarray, values: np.ndarray, scale: float, grid: np.ndarray
) -> tuple[dict[str, float], np.ndarray]:
    """Hellinger distances of a posterior's density from truth and prior of Section 4.1; and the kernel estimate.

    With that of the kernel estimate from the truth. The values are behind Laplace noise of a scale, 0 for none.
    """
    kernel = kernel_density(values, grid, laplace_noise(scale), 2 * scale**2)
    truth, prior = normals_density(grid), prior_density(BASE, grid)
    pairs = {
        "posterior_truth": (density, truth),
        "kernel_truth": (kernel, truth),
        "posterior_prior": (density, prior),
    }
    return {name: measure_distances(*pair, grid)["hellinger"] for name, pair in pairs.items()}, kernel


def shorten(numbers: Any, digits: int = 4) -> list[float]:
    """Numbers with so many digits."""
    return [float(f"{number:.{digits}g}") for number in np.ravel(numbers)]


def summarize_runs(rows: list[dict[str, float]], *, each: bool = False) -> dict[str, Any]:
    """The median of every figure over the repeats that have it; and each, of which the medians then are."""
    found = {name: [row[name] for row in rows] for name in rows[0]}
    if each:
        lists = {name: shorten(numbers) for name, numbers in found.items()}
        return pool({f"{name}_each": numbers for name, numbers in lists.items()})
    known = {name: [number for number in numbers if np.isfinite(number)] for name, numbers in found.items()}
    return {name: float(f"{np.median(numbers):.4g}") if numbers else None for name, numbers in known.items()}
