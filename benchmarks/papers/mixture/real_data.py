"""Velocities of galaxies and eruptions of a geyser behind Laplace noise, against the density without noise."""

from typing import Any, NamedTuple

import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import Length, read_clusters, run_chains
from benchmarks.papers.mixture.deconvolution import estimate_density, laplace_noise, no_noise
from benchmarks.papers.mixture.densities import (
    as_density,
    kernel_density,
    measure_distances,
    posterior_density,
    shorten,
    summarize_runs,
)
from benchmarks.papers.mixture.problems import pose, read_records
from dpjax.mixture import NormalInverseGamma

EPSILONS = (5.0, 10.0, 20.0, 50.0, 100.0)
SHOWN = (5.0, 20.0, 50.0)


class Data(NamedTuple):
    """Records, the range that everybody knows of, and the base measure, chosen by the range alone."""

    name: str
    unit: float
    low: float
    high: float
    base: NormalInverseGamma

    @property
    def records(self) -> np.ndarray:
        """The records [n] in the unit."""
        return read_records(self.name) / self.unit

    @property
    def grid(self) -> np.ndarray:
        """Points over the range and an eighth of it more on either side."""
        margin = (self.high - self.low) / 8
        return np.linspace(self.low - margin, self.high + margin, 151)


DATA = (
    Data("galaxies", 1_000.0, 5.0, 40.0, NormalInverseGamma(mean=22.5, precision=0.05, shape=3.0, scale=3.0)),
    Data("faithful", 1.0, 1.0, 6.0, NormalInverseGamma(mean=3.5, precision=0.05, shape=3.0, scale=0.3)),
)


def measure(repeats: int, sweeps: int) -> dict[str, Any]:
    """Medians over privatizations of distances from two densities of the records: the model's and a kernel's."""
    rows, curves = [], []
    for data in DATA:
        length = Length(sweeps // 4, sweeps)
        plain, _ = run_chains("exact", pose(data.records, None, data.base), 0, length)
        kernel = kernel_density(data.records, data.grid, no_noise, 0.0)
        targets = {"model": posterior_density(plain, data.grid)["mean"], "kernel": kernel}
        curves.append({"data": data.name, "grid": shorten(data.grid), **{k: shorten(v) for k, v in targets.items()}})
        for epsilon in EPSILONS:
            found = [fit(data, epsilon, repeat, length, targets) for repeat in range(repeats)]
            rows.append({"data": data.name, "epsilon": epsilon, **summarize_runs([row for row, _ in found])})
            if epsilon in SHOWN:
                curves.append({"data": data.name, "epsilon": epsilon, **found[0][1]})
    return {"rows": rows, "curves": curves}


def fit(
    data: Data, epsilon: float, repeat: int, length: Length, targets: dict[str, np.ndarray]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Distances of posterior and kernel estimates of one privatization from both targets; and the curves."""
    scale = (data.high - data.low) / epsilon
    generator = np.random.default_rng([8, len(data.name), repeat])
    values = data.records + scale * generator.laplace(size=len(data.records))
    drawn = run_chains("exact", pose(values, dpjax.Laplace(scale), data.base), repeat, length)
    density = posterior_density(drawn[0], data.grid)
    noise = laplace_noise(scale)
    kernel = kernel_density(values, data.grid, noise, 2 * scale**2)
    figures = {name: read_clusters(*drawn, length)[name] for name in ("clusters", "effective_per_1000")}
    tried = try_bandwidths(data, values, noise)
    for name, target in targets.items():
        best = min(tried, key=lambda curve: measure_distances(curve, target, data.grid)["hellinger"])
        for estimate, curve in {"posterior": density["mean"], "kernel": kernel, "best kernel": best}.items():
            distances = measure_distances(curve, target, data.grid)
            figures |= {f"{estimate} to {name}, {kind}": far for kind, far in distances.items()}
    return figures, {name: shorten(curve) for name, curve in (density | {"kernel": kernel}).items()}


def try_bandwidths(data: Data, values: np.ndarray, noise: Any) -> list[np.ndarray]:
    """Kernel estimates of many bandwidths: the closest of them to a target is what no rule can better."""
    bandwidths = np.std(values) * np.geomspace(0.03, 1.5, 20)
    return [as_density(estimate_density(values, data.grid, noise, h), data.grid) for h in bandwidths]


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities at three ε and distances against ε, a row for each data set."""
    for row, data in enumerate(DATA):
        panels = axes[4 * row : 4 * row + 4]
        (plain,) = [c for c in result["curves"] if c["data"] == data.name and "epsilon" not in c]
        for panel, epsilon in zip(panels, SHOWN, strict=False):
            (found,) = [c for c in result["curves"] if (c["data"], c.get("epsilon")) == (data.name, epsilon)]
            panel.fill_between(plain["grid"], found["lower"], found["upper"], color="C0", alpha=0.2)
            panel.plot(plain["grid"], found["mean"], "C0", label="posterior")
            panel.plot(plain["grid"], found["kernel"], "C3--", linewidth=1, label="deconvoluting kernel")
            panel.plot(plain["grid"], plain["model"], "k", linewidth=1, label="without noise, model")
            panel.plot(plain["grid"], plain["kernel"], "k:", linewidth=1, label="without noise, kernel")
            panel.set(title=f"{data.name}, ε = {epsilon:g}", ylim=(0, 1.6 * max(plain["model"])))
        panels[0].legend(fontsize="x-small")
        rows = [figures for figures in result["rows"] if figures["data"] == data.name]
        for estimate, color in (("posterior", "C0"), ("kernel", "C3"), ("best kernel", "C1")):
            for target, style in (("model", "-"), ("kernel", ":")):
                distances = [figures[f"{estimate} to {target}, hellinger"] for figures in rows]
                panels[3].plot(EPSILONS, distances, f"{color}.{style}", label=f"{estimate} to {target}")
        panels[3].set(xscale="log", xlabel="ε", ylabel="Hellinger distance", ylim=(0, 0.8))
        panels[3].legend(fontsize="x-small")
