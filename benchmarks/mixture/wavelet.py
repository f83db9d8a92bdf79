"""Section 4.2: Beta mixtures behind Laplace noise and behind the Haar wavelet with J = 2, 4, 6."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.mixture.chains import Length, read_clusters, run_chains
from benchmarks.mixture.deconvolution import laplace_noise
from benchmarks.mixture.densities import (
    as_density,
    betas_density,
    kernel_density,
    measure_distances,
    posterior_density,
    shorten,
    summarize_runs,
)
from benchmarks.mixture.problems import pose, three_betas
from dpjax.mixture import GammaShapes

EPSILONS = (2.0, 10.0, 50.0, 100.0, 250.0)
RESOLUTIONS = (2, 4, 6)
CALIBRATIONS = ("tight", "paper")
N = 250
BASE = GammaShapes(shape=2.0, rate=2.0)
GRID = (np.arange(200) + 0.5) / 200
CELLS = (np.arange(128) + 0.5) / 128
"""Middles of the finest cells of J = 6: the values that the coefficients tell apart."""


class Channel(NamedTuple):
    """Laplace noise, where there is no resolution, or the Haar wavelet in one of two calibrations."""

    resolution: int | None
    calibration: str

    @property
    def name(self) -> str:
        """What it is called in the result."""
        return "Laplace" if self.resolution is None else f"J = {self.resolution}, {self.calibration}"

    def at(self, epsilon: float) -> Any:
        """The mechanism."""
        if self.resolution is None:
            return dpjax.Laplace(1 / epsilon)
        return dpjax.HaarWavelet(dpjax.haar_scale(epsilon, self.resolution, self.calibration), self.resolution)


CHANNELS = (Channel(None, "tight"), *(Channel(j, calibration) for calibration in CALIBRATIONS for j in RESOLUTIONS))


def measure(repeats: int, sweeps: int, neal_sweeps: int) -> dict[str, Any]:
    """Medians over data sets, each with a chain of the conditional sampler after a third as many sweeps of warm-up.

    Neal 5 makes `neal_sweeps` on the first data set alone, for its acceptance.
    """
    length, short = Length(sweeps // 3, sweeps), Length(neal_sweeps // 3, neal_sweeps)
    rows, curves = [], []
    for channel in CHANNELS:
        for epsilon in EPSILONS:
            released = [release(channel, epsilon, repeat) for repeat in range(repeats)]
            found = [fit(channel, epsilon, z, seed, length) for seed, z in enumerate(released)]
            row = {"channel": channel.name, "epsilon": epsilon, **summarize_runs([far for far, _ in found])}
            if channel.calibration == "tight":
                neal = run(channel, epsilon, released[0], "Neal 5, m = 1", 0, short)
                row["neal5_acceptance"] = read_clusters(*neal, short)["acceptance"]
            rows.append(row)
            curves.append({"channel": channel.name, "epsilon": epsilon, "mean": found[0][1]})
    grid, truth = shorten(GRID), shorten(betas_density(GRID))
    return {"rows": rows, "curves": {"grid": grid, "truth": truth, "found": curves}}


def release(channel: Channel, epsilon: float, repeat: int) -> np.ndarray:
    """What was released of the records of a repeat, [n] or [n, coefficients]."""
    generator = np.random.default_rng([42, repeat])
    records = three_betas(N, generator)
    mechanism = channel.at(epsilon)
    exact = records if channel.resolution is None else expand(mechanism, records)
    return exact + generator.laplace(size=exact.shape) * float(mechanism.scale)


def expand(mechanism: Any, records: np.ndarray) -> np.ndarray:
    """The coefficients of values [points], [points, coefficients]."""
    return np.asarray(jax.vmap(mechanism.coefficients)(jnp.asarray(records, float)))


def run(channel: Channel, epsilon: float, released: np.ndarray, sampler: str, seed: int, length: Length) -> Any:
    """A chain that starts from the likeliest records."""
    mechanism = channel.at(epsilon)
    start = likeliest(channel, mechanism, released)
    return run_chains(sampler, pose(released, mechanism, BASE), seed, length, records=start)


def likeliest(channel: Channel, mechanism: Any, released: np.ndarray) -> np.ndarray:
    """The records [n] most likely to be released so, among the middles of cells."""
    if channel.resolution is None:
        return np.clip(released, CELLS[0], CELLS[-1])
    table = expand(mechanism, CELLS)
    return CELLS[[int(np.argmin(np.abs(row - table).sum(axis=1))) for row in released]]


def fit(
    channel: Channel, epsilon: float, released: np.ndarray, seed: int, length: Length
) -> tuple[dict[str, float], list[float]]:
    """How far the posterior density and the direct estimate are from the truth, and the posterior's curve."""
    drawn = run(channel, epsilon, released, "metropolis", seed, length)
    density = posterior_density(drawn[0], GRID)["mean"]
    truth = betas_density(GRID)
    rival = measure_distances(estimate_directly(channel, epsilon, released), truth, GRID)
    figures = read_clusters(*drawn, length) | measure_distances(density, truth, GRID)
    return figures | {f"rival_{name}": far for name, far in rival.items()}, shorten(density)


def estimate_directly(channel: Channel, epsilon: float, released: np.ndarray) -> np.ndarray:
    """The kernel estimate, or the wavelet estimate of Butucea et al. (2020): mean coefficients, unthresholded."""
    mechanism = channel.at(epsilon)
    if channel.resolution is None:
        scale = float(mechanism.scale)
        return kernel_density(released, GRID, laplace_noise(scale), 2 * scale**2)
    return as_density(1 + expand(mechanism, GRID) @ released.mean(axis=0), GRID)


def draw(result: dict[str, Any], axes: Any) -> None:
    """The densities of the first data set behind every channel, and Hellinger distances from the truth."""
    curves = result["curves"]
    shown = [channel.name for channel in CHANNELS]
    for panel, name in zip([axes[0], *axes[1:4], *axes[5:8]], shown, strict=True):
        panel.plot(curves["grid"], curves["truth"], "k", linewidth=1)
        for number, epsilon in enumerate(EPSILONS):
            (found,) = [c for c in curves["found"] if (c["channel"], c["epsilon"]) == (name, epsilon)]
            panel.plot(curves["grid"], found["mean"], color=f"C{number}", linewidth=1, label=f"ε = {epsilon:g}")
        panel.set(title=name, ylim=(0, 6))
    axes[0].legend(fontsize="x-small")
    for name in shown:
        rows = [row for row in result["rows"] if row["channel"] == name]
        style = ".:" if "paper" in name else ".-"
        color = "k" if name == "Laplace" else f"C{RESOLUTIONS.index(int(name[4]))}"
        axes[4].plot(EPSILONS, [row["hellinger"] for row in rows], style, color=color, label=name)
    axes[4].set(xscale="log", xlabel="ε", ylabel="Hellinger distance to the truth")
    axes[4].legend(fontsize="x-small")
