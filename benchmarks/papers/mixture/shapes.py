"""Section 4.2 and appendix C under several readings of "Gamma(2, 2)" and of the paper's step of the shapes.

Under the printed base measure even known records are far from the truth, while the paper's densities match it. The
authors' library, BayesMix, leaves the prior out of the ratio by which a step of the shapes is accepted, so that a
cluster's shapes have the flat density of (log a, log b) as their prior: `SteppedShapes` does that too.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, gammaln

from benchmarks.papers.mixture.chains import SAMPLERS, Length
from benchmarks.papers.mixture.densities import betas_density, measure_distances, shorten
from benchmarks.papers.mixture.one_release import make_release
from benchmarks.papers.mixture.problems import three_betas
from benchmarks.papers.mixture.wavelet import Channel, release
from dpjax import diagnostics, mechanisms, mixture

N = 250
GROUPS = (1, 8, 3, 16)
"""Clusters at the start of each chain."""

NUM_CHAINS = len(GROUPS)
BORDER = 0.02
"""Mass so near to 0 or to 1 is at the borders."""

EDGE = 1e-6
"""Records are taken to be at least so far from 0 and from 1."""

GRID = (np.arange(200) + 0.5) / 200


@mechanisms.frozen_pytree
@dataclass(frozen=True)
class SteppedShapes(mixture.GammaShapes):
    """The same component, whose shapes make one step on log scale: Langevin's, or a random walk's.

    Parameters
    ----------
    step
        τ of the proposal: a Normal of variance 2 τ about the present point.
    drift
        1 if τ times the gradient of the log-density is added to it, 0 for a random walk.
    prior
        1 if the density by which a proposal is accepted has the prior in it, 0 for the authors'.
    """

    step: Any = 0.05
    drift: Any = 1.0
    prior: Any = 1.0

    def features(self, record: jax.Array) -> jax.Array:
        """log y and log(1 - y) [2]."""
        inside = jnp.clip(record, EDGE, 1 - EDGE)
        return jnp.stack([jnp.log(inside), jnp.log1p(-inside)])

    def update(self, key: Any, theta: Any, counts: jax.Array, totals: jax.Array) -> Any:
        """One step of each cluster; prior draws for empty ones."""
        key_prior, key_noise, key_accept = jax.random.split(key, 3)

        def likelihood(point: jax.Array) -> jax.Array:
            a, b = jnp.exp(point)
            constant = gammaln(a + b) - gammaln(a) - gammaln(b)
            return counts * constant + (a - 1) * totals[:, 0] + (b - 1) * totals[:, 1]

        def log_prior(point: jax.Array) -> jax.Array:
            return self.shape * jnp.sum(point, axis=0) - self.rate * jnp.sum(jnp.exp(point), axis=0)

        gradient = jax.grad(lambda point: jnp.sum(likelihood(point) + log_prior(point)))

        def log_proposal(to: jax.Array, start: jax.Array) -> jax.Array:
            mean = start + self.drift * self.step * gradient(start)
            return -jnp.sum(jnp.square(to - mean), axis=0) / (4 * self.step)

        start = jnp.log(jnp.stack([theta["a"], theta["b"]]))
        noise = jnp.sqrt(2 * self.step) * jax.random.normal(key_noise, start.shape)
        proposal = start + self.drift * self.step * gradient(start) + noise
        ratio = likelihood(proposal) - likelihood(start) + self.prior * (log_prior(proposal) - log_prior(start))
        ratio += log_proposal(start, proposal) - log_proposal(proposal, start)
        accepted = jnp.log1p(-jax.random.uniform(key_accept, counts.shape)) < ratio
        moved = jnp.exp(jnp.where(accepted, proposal, start))
        fresh = self.sample_prior(key_prior, counts.shape[0])
        return {name: jnp.where(counts > 0, moved[place], fresh[name]) for place, name in enumerate(("a", "b"))}


class Reading(NamedTuple):
    """A component and a concentration."""

    component: mixture.Component
    concentration: float = 1.0


READINGS = {
    "printed": Reading(mixture.GammaShapes(2.0, 2.0)),
    "α = 2": Reading(mixture.GammaShapes(2.0, 2.0), 2.0),
    "scale 2": Reading(mixture.GammaShapes(2.0, 0.5)),
    "Langevin": Reading(SteppedShapes(2.0, 2.0, 0.05, 1.0, 1.0)),
    "Langevin, accepted without the prior": Reading(SteppedShapes(2.0, 2.0, 0.05, 1.0, 0.0)),
    "random walk, accepted without the prior": Reading(SteppedShapes(2.0, 2.0, 0.005, 0.0, 0.0)),
    "Gamma(90, 2)": Reading(mixture.GammaShapes(90.0, 2.0)),
    "Gamma(90, scale 2)": Reading(mixture.GammaShapes(90.0, 0.5)),
    "Gamma(90, 2), random walk, accepted without the prior": Reading(SteppedShapes(90.0, 2.0, 0.005, 0.0, 0.0)),
}
"""Rates, unless a scale is named. A random walk of τ = .005 has steps of .1, as in the library by default."""

LOCAL = {
    "none": (Channel(0, None), (None,)),
    "Laplace": (Channel(0, "tight"), (50.0,)),
    "J = 2": (Channel(2, "paper"), (50.0,)),
    "J = 4": (Channel(4, "paper"), (50.0,)),
    "J = 6": (Channel(6, "paper"), (100.0,)),
}
"""Channels of single records, with the paper's scales of the wavelet, and ε."""

OF_ALL = 100.0
"""ε of one release of all."""


def measure(
    num_warmup: int, num_samples: int, released: tuple[str, ...], levels: tuple[int, ...], readings: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """A row for each reading and what was released, of four chains from different starts, by Neal 5.

    Known records have the conditional sampler. A release of all has L ⌊n^(1/5) + 1⌋ bins for each L of `levels`.
    """
    length = Length(num_warmup, num_samples)
    rows: list[dict[str, Any]] = []
    result = {"grid": shorten(GRID), "truth": shorten(betas_density(GRID)), "rows": rows}
    for name in released:
        channel, epsilons = LOCAL[name]
        for epsilon in epsilons:
            posed = (jnp.asarray(release(channel, epsilon, 0), float), channel.at(epsilon))
            rows += rows_of(readings, name, epsilon, posed, length)
            yield result
    records = three_betas(N, np.random.default_rng(20_250))
    for level in levels:
        posed = (make_release(records, level * floor(N ** (1 / 5) + 1), OF_ALL, "draws"),)
        rows += rows_of(readings, f"L = {level}", OF_ALL, posed, length)
        yield result


def rows_of(
    readings: tuple[str, ...], name: str, epsilon: float | None, posed: tuple[Any, ...], length: Length
) -> list[dict[str, Any]]:
    """A row for each reading: how far the density is from the truth, and its mass at the borders."""
    rows = []
    for kind in (mixture.GammaShapes, SteppedShapes):
        names = [reading for reading in readings if type(READINGS[reading].component) is kind]
        if names:
            found = run([READINGS[reading] for reading in names], posed, length)
            rows += [describe(name, epsilon, reading, *one) for reading, *one in zip(names, *found, strict=True)]
    return rows


def run(readings: list[Reading], posed: tuple[Any, ...], length: Length) -> tuple[np.ndarray, ...]:
    """Readings of one kind side by side: densities [reading, points], borders and clusters [reading, chain, ...]."""
    known = len(posed) == 2 and posed[1] is None
    options = {"sampler": SAMPLERS["exact" if known else "Neal 5, m = 1"], "capacity": 32}
    values = posed[0] if len(posed) == 2 and posed[0].ndim == 1 else jnp.arange(N)
    ranks = jnp.argsort(jnp.argsort(values))

    def pose(reading: Reading) -> Any:
        return mixture.gibbs(*posed, component=reading.component, concentration=reading.concentration, **options)

    def chain(algorithm: Any, component: mixture.Component, groups: jax.Array, key: Any) -> Any:
        def sweep(state: Any, number: jax.Array) -> Any:
            state, info = algorithm.step(jax.random.fold_in(key, number), state)
            weights, theta = state.mixing.weights / jnp.sum(state.mixing.weights), state.mixing.theta
            densities = jax.vmap(lambda y: jnp.exp(component.log_density(y, theta)))(jnp.asarray(GRID, float))
            kept = densities @ weights, mass_at_borders(weights, theta), jnp.sum(state.counts > 0)
            return state, (*kept, info.acceptance_rate, info.overflow)

        state = algorithm.init(ranks * groups // N, jax.random.fold_in(key, 0))
        made = jax.lax.scan(sweep, state, jnp.arange(1, length.warmup + length.draws + 1))[1]
        density, *others = (leaf[length.warmup :] for leaf in made)
        return jnp.mean(density, axis=0), *others

    keys = jax.random.split(jax.random.key(3), NUM_CHAINS)

    def chains(algorithm: Any, component: mixture.Component) -> Any:
        return jax.vmap(partial(chain, algorithm, component))(jnp.array(GROUPS), keys)

    if known:  # gibbs() looks at their density under the component, which it must have for that
        one_by_one = [jax.jit(partial(chains, pose(reading), reading.component))() for reading in readings]
        return tuple(np.stack(leaves) for leaves in zip(*one_by_one, strict=True))
    together = jax.tree.map(lambda *leaves: jnp.asarray(leaves, float), *readings)
    found = jax.jit(jax.vmap(lambda reading: chains(pose(reading), reading.component)))(together)
    return tuple(np.asarray(leaf) for leaf in found)


def describe(
    name: str,
    epsilon: float | None,
    reading: str,
    density: np.ndarray,
    borders: np.ndarray,
    clusters: np.ndarray,
    acceptance: np.ndarray,
    overflows: np.ndarray,
) -> dict[str, Any]:
    """The figures of a reading's chains."""
    curve = density.mean(axis=0)
    figures = {
        "hellinger": measure_distances(curve, betas_density(GRID), GRID)["hellinger"],
        "borders": borders.mean(),
        "borders_by_chain": np.ptp(borders.mean(axis=1)),
        "clusters": clusters.mean(),
        "r_hat": float(diagnostics.split_r_hat(clusters.astype(float))) if np.ptp(clusters) else 1.0,
        "acceptance": acceptance.mean(),
        "overflows": overflows.mean(),
    }
    told: dict[str, Any] = {"reading": reading, "released": name, "epsilon": epsilon}
    told |= {figure: float(f"{value:.3g}") for figure, value in figures.items()}
    print(told, file=sys.stderr, flush=True)
    return told | {"density": shorten(curve, 3)}


def mass_at_borders(weights: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
    """The mass of a mixture near 0 and 1."""
    a, b = theta["a"], theta["b"]
    return weights @ (betainc(a, b, BORDER) + betainc(b, a, BORDER))


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities of the readings, a panel for each thing that was released."""
    released = list(dict.fromkeys((row["released"], row["epsilon"]) for row in result["rows"]))
    for panel, (name, epsilon) in zip(axes, released, strict=False):
        for number, row in enumerate(r for r in result["rows"] if (r["released"], r["epsilon"]) == (name, epsilon)):
            panel.plot(result["grid"], row["density"], f"C{number}", linewidth=1, label=row["reading"])
        panel.plot(result["grid"], result["truth"], "k", linewidth=1)
        panel.set(title=name if epsilon is None else f"{name}, ε = {epsilon:g}", ylim=(0, 5))
    axes[0].legend(fontsize="xx-small")
