"""Section 6's "essentially identical" on many simulated sets of donors, and what it depends on.

Distances between posterior densities: across mechanisms, across samplers, to no noise, and between two releases by one
mechanism, which differ by chance alone. The base measure is taken from the released values, as in the paper, or from
the records. The donors are in three groups, or less clustered.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.papers.mixture.chains import SAMPLERS
from benchmarks.papers.mixture.densities import measure_distances, posterior_density, shorten
from benchmarks.papers.mixture.donors import GRID, GROUPS, HIGH, LOW, SCALES, N, choose_base, mechanism
from benchmarks.papers.mixture.problems import pose
from dpjax import mixture

DONORS = {"three groups": GROUPS, "less clustered": ((0.6, 5.0, 0.45), (0.4, 6.0, 0.6))}
BASES = ("released", "records")
PAPER_SAMPLERS = ("Neal 5, m = 1", "paper's slice")
CHAINS = 2


def measure(repeats: int, sweeps: int) -> dict[str, Any]:
    """Medians and quartiles of Hellinger distances over the data sets, from chains of `sweeps` after half as many."""
    rows, curves = [], []
    for kind, groups in DONORS.items():
        for base in BASES:
            found = [fit_all(groups, base, repeat, sweeps) for repeat in range(repeats)]
            distances = [compare(curves_of_one) for curves_of_one in found]
            for name in distances[0]:
                low, middle, high = shorten(np.quantile([each[name] for each in distances], [0.25, 0.5, 0.75]), 3)
                told = {"donors": kind, "base": base, "between": name}
                rows.append(told | {"median": middle, "lower": low, "upper": high})
            first = {name: shorten(curve, 3) for name, curve in found[0].items()}
            curves.append({"donors": kind, "base": base, **first})
    return {"rows": rows, "grid": shorten(GRID), "curves": curves}


def fit_all(groups: Any, base: str, repeat: int, sweeps: int) -> dict[str, np.ndarray]:
    """Densities of one data set: without noise, and of releases by both mechanisms; two of the Gaussian."""
    generator = np.random.default_rng([60, len(groups), repeat])
    records = simulate(groups, generator)
    noise = {name: generator.normal(size=N) for name in ("Gaussian", "Gaussian, again")}
    noise["Laplace"] = generator.laplace(size=N)
    found = {"no noise": fit(records, "none", records, "exact", repeat, sweeps)}
    for name, drawn in noise.items():
        channel = name.split(",")[0]
        values = records + SCALES[channel] * drawn
        measured = values if base == "released" else records
        samplers = ("exact", *PAPER_SAMPLERS) if name == "Gaussian" else ("exact",)
        for sampler in samplers:
            key = name if sampler == "exact" else f"{name}, {sampler}"
            found[key] = fit(values, channel, measured, sampler, repeat, sweeps)
    return found


def simulate(groups: Any, generator: np.random.Generator) -> np.ndarray:
    """Simulated logs of days [N] within the range."""
    shares, means, spreads = np.array(groups).T
    group = generator.choice(len(shares), 20 * N, p=shares)
    drawn = means[group] + spreads[group] * generator.normal(size=20 * N)
    return drawn[(drawn >= LOW) & (drawn <= HIGH)][:N]


def fit(values: np.ndarray, channel: str, measured: np.ndarray, sampler: str, repeat: int, sweeps: int) -> np.ndarray:
    """The posterior density, with the base measure of what was measured."""
    base = choose_base(measured)
    numbers = (jnp.asarray(number, float) for number in (base.mean, base.precision, base.shape, base.scale))
    problem = pose(values, mechanism(channel), mixture.NormalInverseGamma(*numbers))
    posterior = mixture.sample(
        jax.random.key(repeat),
        *problem.released,
        component=problem.component,
        concentration=problem.concentration,
        sampler=SAMPLERS[sampler],
        num_chains=CHAINS,
        num_warmup=sweeps // 2,
        num_samples=sweeps,
        progress=False,
    )
    return posterior_density(posterior, GRID)["mean"]


def compare(curves: dict[str, np.ndarray]) -> dict[str, float]:
    """Hellinger distances between the densities of one data set."""
    pairs = {
        "Gaussian and no noise": ("Gaussian", "no noise"),
        "Laplace and no noise": ("Laplace", "no noise"),
        "Gaussian and Laplace": ("Gaussian", "Laplace"),
        "two Gaussian releases": ("Gaussian", "Gaussian, again"),
        "exact and Neal 5": ("Gaussian", "Gaussian, Neal 5, m = 1"),
        "exact and slice": ("Gaussian", "Gaussian, paper's slice"),
    }
    return {
        name: measure_distances(curves[one], curves[other], GRID)["hellinger"] for name, (one, other) in pairs.items()
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """The densities of the first data set of each kind and base measure."""
    for panel, found in zip(axes, result["curves"], strict=False):
        for name in ("no noise", "Gaussian", "Gaussian, again", "Laplace"):
            panel.plot(result["grid"], found[name], "k" if name == "no noise" else "-", label=name)
        panel.set(title=f"{found['donors']}; base measure of the {found['base']}", xlim=(4, 8.4), ylim=(0, 1.6))
    axes[0].legend(fontsize="x-small")
