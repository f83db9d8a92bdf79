"""Section 4.3: samplers that integrate the records out, and Neal 5, behind Gaussian noise."""

import sys
from collections.abc import Iterator
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import COLORS, Length, read_clusters, run_chains
from benchmarks.papers.mixture.deconvolution import gaussian_noise
from benchmarks.papers.mixture.densities import (
    kernel_density,
    measure_distances,
    normals_density,
    posterior_density,
    shorten,
    summarize_runs,
)
from benchmarks.papers.mixture.problems import BASE, DIAMETER, pose, three_normals
from dpjax.mixture import TruncatedNormalInverseGamma

DELTAS = (0.01, 0.1, 0.25)
N = 250
CUT_BASE = TruncatedNormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0)
GRID = np.linspace(-12, 12, 121)
SHOWN = (5.0, 25.0, 50.0)
SHOWN_DELTA = 0.1


class Run(NamedTuple):
    """A sampler under one of the two base measures, and the share of the sweeps that it gets for its price."""

    sampler: str
    cut: bool
    share: float

    @property
    def name(self) -> str:
        """What it is called in the result."""
        return f"{self.sampler}, model ({11 if self.cut else 10})"


RUNS = (
    Run("Neal 2", True, 0.5),
    Run("Neal 3", True, 0.25),
    Run("exact", True, 2.0),
    Run("Neal 5, m = 1", False, 2.0),
    Run("Neal 8", False, 0.5),
    Run("exact", False, 2.0),
)


class Noise(NamedTuple):
    """A standard deviation, and what it promises by the analytic calibration or by the paper's formula."""

    calibration: str
    epsilon: float
    delta: float

    @property
    def scale(self) -> float:
        """The standard deviation of the noise."""
        if self.calibration == "analytic":
            return dpjax.mechanisms.gaussian_scale(self.epsilon, self.delta, DIAMETER)
        return sqrt(2 * log(1.25 / self.delta)) * DIAMETER / self.epsilon


def measure(
    repeats: int,
    sweeps: int,
    epsilons: tuple[float, ...],
    deltas: tuple[float, ...],
    calibrations: tuple[str, ...],
    names: tuple[str, ...],
) -> Iterator[dict[str, Any]]:
    """Medians over data sets, each with one chain after a warm-up of a fifth of the sweeps.

    The first calibration is measured at every δ, the others at the δ that is shown. Chains of the first data set are
    timed.
    """
    rows, densities, curves = [], [], []
    for noise in choose_noises(epsilons, deltas, calibrations):
        told = noise._asdict() | {"scale": float(f"{noise.scale:.4g}")}
        data = [simulate(noise.scale, repeat) for repeat in range(repeats)]
        means = {}
        for run in (run for run in RUNS if run.name in names):
            length = Length(sweeps // 5, int(run.share * sweeps))
            drawn = [
                run_chains(run.sampler, pose_run(run, noise, z), seed, length, timed=seed == 0)
                for seed, z in enumerate(data)
            ]
            rows.append({**told, "run": run.name, **summarize([read_clusters(*one, length) for one in drawn])})
            means[run.name] = [posterior_density(posterior, GRID)["mean"] for posterior, _ in drawn]
        rivals = [kernel_density(z, GRID, gaussian_noise(noise.scale), noise.scale**2) for z in data]
        densities.append({**told, **compare(means | {"kernel": rivals})})
        if (noise.calibration, noise.delta) == (calibrations[0], SHOWN_DELTA) and noise.epsilon in SHOWN:
            curves.append({"epsilon": noise.epsilon, **{name: shorten(found[0]) for name, found in means.items()}})
        print(told, file=sys.stderr, flush=True)
        grid, truth = shorten(GRID), shorten(normals_density(GRID))
        yield {"rows": rows, "densities": densities, "curves": {"grid": grid, "truth": truth, "found": curves}}


def choose_noises(epsilons: tuple[float, ...], deltas: tuple[float, ...], calibrations: tuple[str, ...]) -> list[Noise]:
    """What is measured, in the order of calibrations, δ and ε."""
    pairs = [(calibration, delta) for calibration in calibrations for delta in deltas]
    kept = [pair for pair in pairs if pair[0] == calibrations[0] or pair[1] == SHOWN_DELTA]
    return [Noise(calibration, epsilon, delta) for calibration, delta in kept for epsilon in epsilons]


def summarize(found: list[dict[str, float]]) -> dict[str, Any]:
    """Medians over data sets, the effective draws of each, and those of a second at the median's price of a sweep."""
    told: dict[str, Any] = summarize_runs(found)
    if told["effective_per_1000"] is not None:
        a_second = 1_000 * told["effective_per_1000"] / told["microseconds"]
        told["effective_per_second"] = float(f"{a_second:.4g}")
    return told | {"effective_each": shorten([row["effective_per_1000"] for row in found])}


def simulate(scale: float, repeat: int) -> np.ndarray:
    """The released values [n] of a repeat."""
    generator = np.random.default_rng([43, repeat])
    return three_normals(N, generator) + scale * generator.normal(size=N)


def pose_run(run: Run, noise: Noise, values: np.ndarray) -> Any:
    """The values behind Gaussian noise under the base measure of a run."""
    return pose(values, dpjax.Gaussian(noise.scale), CUT_BASE if run.cut else BASE)


def compare(means: dict[str, list[np.ndarray]]) -> dict[str, float]:
    """Median Hellinger distances of the densities [repeat, points] from the truth."""
    truth = normals_density(GRID)
    far = {
        name: np.median([measure_distances(one, truth, GRID)["hellinger"] for one in found])
        for name, found in means.items()
    }
    return {name: float(f"{distance:.4g}") for name, distance in far.items()}


def draw(result: dict[str, Any], axes: Any) -> None:
    """Effective draws by sweep and by second for every δ, and densities."""
    first = result["rows"][0]["calibration"]
    shown = [run for run in RUNS if any(row["run"] == run.name for row in result["rows"])]
    for column, delta in enumerate(DELTAS):
        for run in shown:
            rows = [row for row in result["rows"] if (row["calibration"], row["run"]) == (first, run.name)]
            rows = [row for row in rows if row["delta"] == delta]
            style = {"color": COLORS[run.sampler], "linestyle": "--" if run.cut else "-", "label": run.name}
            places = [row["epsilon"] for row in rows]
            axes[column].plot(places, [row["effective_per_1000"] for row in rows], marker=".", **style)
            axes[3 + column].plot(places, [row["effective_per_second"] for row in rows], marker=".", **style)
        axes[column].set(title=f"δ = {delta:g}", yscale="log", ylabel="effective draws in 1,000 sweeps")
        axes[3 + column].set(xlabel="ε", yscale="log", ylabel="effective draws a second")
    axes[2].legend(fontsize="x-small")
    curves = result["curves"]
    for panel, found in zip(axes[6:], curves["found"], strict=False):
        for run in shown:
            style = {"color": COLORS[run.sampler], "linestyle": "--" if run.cut else "-", "linewidth": 1}
            panel.plot(curves["grid"], found[run.name], **style)
        panel.plot(curves["grid"], curves["truth"], "k", linewidth=1)
        panel.set(title=f"δ = {SHOWN_DELTA:g}, ε = {found['epsilon']:g}", ylim=(0, 0.2))
