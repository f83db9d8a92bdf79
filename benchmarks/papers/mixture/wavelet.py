"""Section 4.2: Beta mixtures behind Laplace noise and behind the Haar wavelet with J = 2, 4, 6."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import Length, read_clusters, run_chains
from benchmarks.papers.mixture.deconvolution import laplace_noise
from benchmarks.papers.mixture.densities import (
    as_density,
    betas_density,
    kernel_density,
    measure_distances,
    posterior_density,
    shorten,
    summarize_runs,
)
from benchmarks.papers.mixture.problems import pose, three_betas
from dpjax.mixture import GammaShapes

EPSILONS = (2.0, 10.0, 50.0, 100.0, 250.0)
CALIBRATIONS = ("tight", "paper")
N = 250
BASES = {"Gamma(2, 2)": GammaShapes(shape=2.0, rate=2.0), "Gamma(2, 0.05)": GammaShapes(shape=2.0, rate=0.05)}
"""The paper's, under which the true shapes of 50 have next to no weight, and one that allows for them."""

GRID = (np.arange(200) + 0.5) / 200


class Channel(NamedTuple):
    """Laplace noise, where the resolution is 0, or the Haar wavelet in one of two calibrations; or none."""

    resolution: int
    calibration: str | None

    @property
    def name(self) -> str:
        """What it is called in the result."""
        if self.calibration is None:
            return "none"
        return f"J = {self.resolution}, {self.calibration}" if self.resolution else "Laplace"

    def at(self, epsilon: float) -> Any:
        """The mechanism."""
        if self.calibration is None:
            return None
        if self.resolution == 0:
            return dpjax.Laplace(1 / epsilon)
        return dpjax.mechanisms.HaarWavelet(
            dpjax.mechanisms.haar_scale(epsilon, self.resolution, self.calibration), self.resolution
        )


NONE = Channel(0, None)
LAPLACE = Channel(0, "tight")

PAPER = "Gamma(2, 2)"
COLUMNS = 4


def measure(repeats: int, sweeps: int, neal_sweeps: int, resolutions: tuple[int, ...]) -> dict[str, Any]:
    """Medians over data sets, each with a chain of the conditional sampler after a third as many sweeps of warm-up.

    Neal 5 makes `neal_sweeps` on the first data set alone, for its acceptance behind Laplace noise.
    """
    haar = [Channel(resolution, calibration) for calibration in CALIBRATIONS for resolution in resolutions]
    length, short = Length(sweeps // 3, sweeps), Length(neal_sweeps // 3, neal_sweeps)
    rows, curves, direct, acceptance = [], [], [], []
    for channel in (NONE, LAPLACE, *haar):
        for epsilon in EPSILONS if channel.calibration else (None,):
            released = [release(channel, epsilon, repeat) for repeat in range(repeats)]
            told = {"channel": channel.name, "epsilon": epsilon}
            for name, base in BASES.items():
                found = [fit(channel, epsilon, base, z, seed, length) for seed, z in enumerate(released)]
                rows.append({**told, "base": name, **summarize_runs([far for far, _ in found])})
                curves.append({**told, "base": name, "mean": found[0][1]})
            if channel == LAPLACE:
                neal = run("Neal 5, m = 1", channel, epsilon, BASES[PAPER], released[0], 0, short)
                acceptance.append({**told, "acceptance": float(f"{read_clusters(*neal, short)['acceptance']:.4g}")})
            rivals = [direct_distances(channel, epsilon, z) for z in released]
            direct.append({**told, **summarize_runs(rivals)})
    grid, truth = shorten(GRID), shorten(betas_density(GRID))
    return {
        "rows": rows,
        "direct": direct,
        "neal5": acceptance,
        "curves": {"grid": grid, "truth": truth, "found": curves},
    }


def release(channel: Channel, epsilon: float | None, repeat: int) -> np.ndarray:
    """What was released of the records of a repeat, [n] or [n, coefficients]."""
    generator = np.random.default_rng([42, repeat])
    records = three_betas(N, generator)
    if epsilon is None:
        return records
    mechanism = channel.at(epsilon)
    exact = expand(mechanism, records) if channel.resolution else records
    return exact + generator.laplace(size=exact.shape) * float(mechanism.scale)


def expand(mechanism: Any, records: np.ndarray) -> np.ndarray:
    """The coefficients of values [points], [points, coefficients]."""
    return np.asarray(jax.vmap(mechanism.coefficients)(jnp.asarray(records, float)))


def run(
    sampler: str, channel: Channel, epsilon: float | None, base: Any, released: np.ndarray, seed: int, length: Length
) -> Any:
    """A chain, and its CPU seconds."""
    return run_chains(sampler, pose(released, channel.at(epsilon), base), seed, length)


def fit(
    channel: Channel, epsilon: float | None, base: Any, released: np.ndarray, seed: int, length: Length
) -> tuple[dict[str, float], list[float]]:
    """How far the posterior density is from the truth, how the chain moved, and the curve."""
    drawn = run("metropolis", channel, epsilon, base, released, seed, length)
    density = posterior_density(drawn[0], GRID)["mean"]
    distances = measure_distances(density, betas_density(GRID), GRID)
    return read_clusters(*drawn, length) | distances, shorten(density)


def direct_distances(channel: Channel, epsilon: float | None, released: np.ndarray) -> dict[str, float]:
    """Of the kernel estimate, or of the wavelet estimate of Butucea et al. (2020): mean coefficients, all of them."""
    mechanism = channel.at(epsilon)
    if channel.resolution:
        estimate = as_density(1 + expand(mechanism, GRID) @ released.mean(axis=0), GRID)
    else:
        scale = float(mechanism.scale) if mechanism is not None else 0.0
        estimate = kernel_density(released, GRID, laplace_noise(scale), 2 * scale**2)
    return measure_distances(estimate, betas_density(GRID), GRID)


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities of the first data set, the paper's base measure above the other; and distances from the truth."""
    curves = result["curves"]
    names = list(dict.fromkeys(row["channel"] for row in result["rows"] if row["epsilon"] is not None))
    for row, base in enumerate(BASES):
        panels = axes[(COLUMNS + 1) * row : (COLUMNS + 1) * (row + 1)]
        (known,) = [c for c in curves["found"] if (c["channel"], c["base"]) == ("none", base)]
        for panel, name in zip(panels[:COLUMNS], names, strict=False):
            found = [c for c in curves["found"] if (c["channel"], c["base"]) == (name, base)]
            for number, curve in enumerate(found):
                style = {"color": f"C{number}", "linewidth": 1, "label": f"ε = {curve['epsilon']:g}"}
                panel.plot(curves["grid"], curve["mean"], **style)
            panel.plot(curves["grid"], known["mean"], "k:", linewidth=1, label="records known")
            panel.plot(curves["grid"], curves["truth"], "k", linewidth=1, label="truth")
            panel.set(title=f"{name}; {base}", ylim=(0, 4))
        for number, name in enumerate(names):
            rows = [figures for figures in result["rows"] if (figures["channel"], figures["base"]) == (name, base)]
            style = {"color": f"C{number}", "linestyle": ":" if "paper" in name else "-", "marker": ".", "label": name}
            panels[COLUMNS].plot(EPSILONS, [figures["hellinger"] for figures in rows], **style)
        panels[COLUMNS].set(xscale="log", xlabel="ε", ylabel="Hellinger distance to the truth", ylim=(0, 0.7))
    axes[0].legend(fontsize="x-small")
    axes[COLUMNS].legend(fontsize="x-small")
