"""Section 4.2: Beta mixtures behind Laplace noise and behind the Haar wavelet with J = 2, 4, 6."""

import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture import fixed
from benchmarks.papers.mixture.chains import Length
from benchmarks.papers.mixture.deconvolution import laplace_noise
from benchmarks.papers.mixture.densities import (
    as_density,
    betas_density,
    kernel_density,
    measure_distances,
    shorten,
    summarize_runs,
)
from benchmarks.papers.mixture.fixed import GRID
from benchmarks.papers.mixture.problems import BETA_BASES, MASS, name_base, pose, three_betas
from benchmarks.papers.parts import repeats_of

EPSILONS = (2.0, 10.0, 50.0, 100.0, 250.0)
CALIBRATIONS = ("tight", "paper")
N = 250
BASES = {name_base(rates): BETA_BASES[rates] for rates in ((3.0, 3.0), (2.0, 0.05))}
PAPER = "Gamma(3, 3)"
"""The authors', under which the true shapes of 50 have next to no weight. The other allows for them."""

GROUPS = 3
"""Clusters at the start, as the authors have."""


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

COLUMNS = 4


def measure(repeats: int, sweeps: int, known: int, resolutions: tuple[int, ...], part: int) -> dict[str, Any]:
    """Medians over data sets, each with a chain of Neal 5 after a third as many sweeps of warm-up.

    The authors' base measure has their calibration of the wavelet alone. Records are known of so many data sets.
    """
    haar = [Channel(resolution, calibration) for calibration in CALIBRATIONS for resolution in resolutions]
    length = Length(sweeps // 3, sweeps)
    rows, curves, direct = [], [], []
    for channel in (NONE, LAPLACE, *haar):
        for epsilon in EPSILONS if channel.calibration else (None,):
            places = repeats_of(part, repeats)[: known if epsilon is None else None]
            released = [release(channel, epsilon, place) for place in places]
            told = {"channel": channel.name, "epsilon": epsilon}
            for name, base in BASES.items():
                if name == PAPER and channel.resolution and channel.calibration == "tight":
                    continue
                found = [fit(channel, epsilon, base, *each, length) for each in zip(released, places, strict=True)]
                figures = summarize_runs([fixed.figures(chain) for chain in found], each=True)
                rows.append({**told, "base": name, **figures})
                curves.append({**told, "base": name, "mean": shorten(found[0].density)})
                print({**told, "base": name, **figures}, file=sys.stderr, flush=True)
            rivals = [direct_distances(channel, epsilon, z) for z in released]
            direct.append({**told, **summarize_runs(rivals, each=True)})
    grid, truth = shorten(GRID), shorten(betas_density(GRID))
    return {"rows": rows, "direct": direct, "curves": {"grid": grid, "truth": truth, "found": curves}}


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
    return np.asarray(jax.jit(jax.vmap(mechanism.coefficients))(jnp.asarray(records, float)))


def fit(
    channel: Channel, epsilon: float | None, base: Any, released: np.ndarray, seed: int, length: Length
) -> fixed.Chain:
    """A chain of one data set."""
    problem = pose(released, channel.at(epsilon), base, MASS)
    (chain,) = fixed.run("Neal 5, m = 1", problem, length, [(seed, GROUPS)])
    return chain


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
    """Densities of the first data set, the authors' base measure above the other; and distances from the truth."""
    curves = result["curves"]
    for row, base in enumerate(BASES):
        panels = axes[(COLUMNS + 1) * row : (COLUMNS + 1) * (row + 1)]
        mine = [each for each in result["rows"] if each["base"] == base and each["epsilon"] is not None]
        names = list(dict.fromkeys(each["channel"] for each in mine))
        found = [curve for curve in curves["found"] if curve["base"] == base]
        (known,) = [curve for curve in found if curve["channel"] == "none"]
        for panel, name in zip(panels[:COLUMNS], [name for name in names if "tight" not in name], strict=False):
            for number, curve in enumerate(curve for curve in found if curve["channel"] == name):
                style = {"color": f"C{number}", "linewidth": 1, "label": f"ε = {curve['epsilon']:g}"}
                panel.plot(curves["grid"], curve["mean"], **style)
            panel.plot(curves["grid"], known["mean"], "k:", linewidth=1, label="records known")
            panel.plot(curves["grid"], curves["truth"], "k", linewidth=1, label="truth")
            panel.set(title=f"{name}; {base}", ylim=(0, 4))
        for number, name in enumerate(names):
            far = [each["hellinger"] for each in mine if each["channel"] == name]
            style = {"color": f"C{number}", "linestyle": "-" if "tight" in name else ":", "marker": ".", "label": name}
            panels[COLUMNS].plot(EPSILONS, far, **style)
        panels[COLUMNS].set(xscale="log", xlabel="ε", ylabel="Hellinger distance to the truth", ylim=(0, 0.7))
    axes[0].legend(fontsize="x-small")
    axes[-1].legend(fontsize="x-small")
