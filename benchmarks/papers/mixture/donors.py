"""Section 6 on simulated donors: logs of the days between two donations, behind Gaussian and Laplace noise."""

from typing import Any

import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import COLORS, Length, read_clusters, run_chains
from benchmarks.papers.mixture.deconvolution import gaussian_noise, laplace_noise
from benchmarks.papers.mixture.densities import kernel_density, measure_distances, posterior_density, shorten
from benchmarks.papers.mixture.problems import pose
from dpjax import diagnostics
from dpjax.mixture import NormalInverseGamma, TruncatedNormalInverseGamma

N = 100
LOW, HIGH = 4.49, 7.6
SCALES = {"Gaussian": 0.06, "Laplace": 0.03}
"""The standard deviation and the scale of the authors' code; those of the 17.8-zCDP that the paper states are .52."""

GROUPS = ((0.45, 4.75, 0.15), (0.35, 5.4, 0.3), (0.2, 6.5, 0.4))
"""Shares, means and standard deviations of the simulated logs: back as soon as allowed, within a year, and later."""

CHAINS = 4
NUM_GROUPS = 10
GRID = np.linspace(3.0, 9.6, 133)
FITS = {
    "Gaussian": ("exact", "Neal 5, m = 1", "Neal 3"),
    "Laplace": ("exact", "Neal 5, m = 1"),
    "none": ("exact",),
}


def measure(sweeps: int) -> dict[str, Any]:
    """Four chains of each sampler, the second half of them kept; one data set, as in the paper.

    Neal 3 makes a tenth of the sweeps.
    """
    records = simulate_records(N)
    fits, rows = [], []
    for channel, samplers in FITS.items():
        values, base = release(records, channel), choose_base(release(records, channel))
        for sampler in samplers:
            kept = sweeps // 10 if sampler == "Neal 3" else sweeps
            length = Length(kept, kept)
            posed = pose(values, mechanism(channel), cut(base) if sampler == "Neal 3" else base)
            run = run_chains(sampler, posed, 6, length, num_chains=CHAINS, collect=("labels",))
            fit = {"channel": channel, "sampler": sampler}
            rows.append(fit | read_row(*run, length))
            fits.append(fit | read_fit(run[0], records))
    kernels = {channel: shorten(kernel(release(records, channel), channel)) for channel in ("Gaussian", "Laplace")}
    (target,) = [fit["mean"] for fit in fits if fit["channel"] == "none"]
    distances = {f"{fit['channel']}, {fit['sampler']}": far(fit["mean"], target) for fit in fits}
    distances |= {f"{channel}, kernel": far(curve, target) for channel, curve in kernels.items()}
    return {
        "simulated": True,
        "scales": SCALES,
        "rows": rows,
        "distances_from_non_private": distances,
        "grid": shorten(GRID),
        "records": shorten(np.sort(records)),
        "kernels": kernels,
        "fits": fits,
    }


def simulate_records(n: int) -> np.ndarray:
    """Simulated logs of days [n] within the range."""
    generator = np.random.default_rng(6)
    shares, means, spreads = np.array(GROUPS).T
    group = generator.choice(len(shares), 20 * n, p=shares)
    drawn = means[group] + spreads[group] * generator.normal(size=20 * n)
    return drawn[(drawn >= LOW) & (drawn <= HIGH)][:n]


def release(records: np.ndarray, channel: str) -> np.ndarray:
    """What was released of the records through a channel."""
    generator = np.random.default_rng([6, 1])
    noise = {"Gaussian": generator.normal, "Laplace": generator.laplace, "none": np.zeros}[channel]
    return records + SCALES[channel] * noise(size=len(records)) if channel != "none" else records


def mechanism(channel: str) -> Any:
    """The mechanism of a channel."""
    return {"Gaussian": dpjax.Gaussian(SCALES["Gaussian"]), "Laplace": dpjax.Laplace(SCALES["Laplace"]), "none": None}[
        channel
    ]


def choose_base(values: np.ndarray) -> NormalInverseGamma:
    """The paper's empirical base measure: E[σ²] half the variance of the values, Var[σ²] = 0.5, mean theirs."""
    mean = float(np.var(values, ddof=1)) / 2
    shape = 2 + mean**2 / 0.5
    return NormalInverseGamma(float(np.mean(values)), 0.1, shape, mean * (shape - 1))


def cut(base: NormalInverseGamma) -> TruncatedNormalInverseGamma:
    """The base measure of model (11) with the same numbers."""
    return TruncatedNormalInverseGamma(base.mean, base.precision, base.shape, base.scale)


def read_row(posterior: Any, seconds: float, length: Length) -> dict[str, float]:
    """The figures of a fit."""
    row = read_clusters(posterior, seconds, length)
    row["r_hat"] = float(diagnostics.split_r_hat(posterior.draws["num_clusters"].astype(float)))
    return {name: float(f"{figure:.4g}") for name, figure in row.items()}


def read_fit(posterior: Any, records: np.ndarray) -> dict[str, list[float]]:
    """The density, the posterior of the number of clusters from 1 on, and who shares a cluster with whom.

    People are sorted by their confidential record and put into ten groups of ten: [10 · 10] mean probabilities.
    """
    curve = {name: shorten(bound) for name, bound in posterior_density(posterior, GRID).items()}
    number = posterior.draws["num_clusters"].ravel()
    order = np.argsort(records)
    shared = posterior.co_clustering()[np.ix_(order, order)]
    blocks = shared.reshape(NUM_GROUPS, N // NUM_GROUPS, NUM_GROUPS, -1).mean(axis=(1, 3))
    shares = np.bincount(number)[1:] / len(number)
    return curve | {"clusters": shorten(shares), "shared": shorten(blocks, 3)}


def kernel(values: np.ndarray, channel: str) -> np.ndarray:
    """The deconvoluting kernel estimate behind a channel."""
    scale = SCALES[channel]
    if channel == "Gaussian":
        return kernel_density(values, GRID, gaussian_noise(scale), scale**2)
    return kernel_density(values, GRID, laplace_noise(scale), 2 * scale**2)


def far(curve: list[float], target: list[float]) -> dict[str, float]:
    """Distances of a curve from another."""
    distances = measure_distances(np.array(curve), np.array(target), GRID)
    return {name: float(f"{distance:.4g}") for name, distance in distances.items()}


def draw(result: dict[str, Any], axes: Any) -> None:
    """Point estimates; bands beside those without noise; the number of clusters; who shares a cluster."""
    fits = {(fit["channel"], fit["sampler"]): fit for fit in result["fits"]}
    plain = fits["none", "exact"]
    for column, channel in enumerate(("Gaussian", "Laplace")):
        for panel in (axes[column], axes[3 + column]):
            panel.hist(result["records"], 20, density=True, color="0.9")
        for sampler in FITS[channel]:
            label = f"{channel}, {sampler}"
            axes[column].plot(result["grid"], fits[channel, sampler]["mean"], color=COLORS[sampler], label=label)
        axes[column].plot(result["grid"], result["kernels"][channel], "k:", label="deconvoluting kernel")
        axes[column].set(title=f"{channel} noise (simulated donors)", xlim=(4, 8.4), ylim=(0, 1.6))
        axes[column].legend(fontsize="x-small")
        for fit, color, label in ((fits[channel, "exact"], "C0", channel), (plain, "C1", "records known")):
            axes[3 + column].fill_between(result["grid"], fit["lower"], fit["upper"], color=color, alpha=0.2)
            axes[3 + column].plot(result["grid"], fit["mean"], color=color, label=label)
        axes[3 + column].set(xlabel="log of days", xlim=(4, 8.4), ylim=(0, 1.6))
        axes[3 + column].legend(fontsize="x-small")
    for (channel, sampler), fit in fits.items():
        places = np.arange(1, len(fit["clusters"]) + 1)
        style = ":" if channel == "none" else "-" if channel == "Laplace" else "--"
        axes[2].plot(places, fit["clusters"], style, color=COLORS[sampler], label=f"{channel}, {sampler}")
    axes[2].set(xlabel="clusters", ylabel="posterior probability", xlim=(0.5, 15.5))
    axes[2].legend(fontsize="x-small")
    blocks = np.reshape(fits["Laplace", "exact"]["shared"], (NUM_GROUPS, NUM_GROUPS))
    axes[5].imshow(blocks, vmin=0, vmax=1, cmap="Blues", origin="lower")
    axes[5].set(title="probability of one cluster, Laplace", xlabel="tenth of the records", ylabel="tenth")
