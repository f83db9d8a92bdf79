"""Section 4.2 under several base measures, and with the paper's step of the shapes.

Under the authors' base measure even known records are far from the truth, while the paper's densities match it. Their
library, BayesMix, leaves the prior out of the ratio by which a step of the shapes is accepted, so that a cluster's
shapes have the flat density of (log a, log b) as their prior: `SteppedShapes` does that too.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from benchmarks.papers.mixture import fixed
from benchmarks.papers.mixture.chains import Length
from benchmarks.papers.mixture.densities import betas_density, shorten
from benchmarks.papers.mixture.fixed import GRID
from benchmarks.papers.mixture.problems import MASS, pose
from benchmarks.papers.mixture.wavelet import Channel, release
from dpjax import diagnostics, mechanisms, mixture

GROUPS = (1, 8, 3, 16)
"""Clusters at the start of each chain."""

EDGE = 1e-6
"""Records are taken to be at least so far from 0 and from 1."""


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


READINGS = {
    "Gamma(3, 3)": mixture.GammaShapes(3.0, 3.0),
    "Gamma(2, 2), as printed": mixture.GammaShapes(2.0, 2.0),
    "Gamma(2, 0.05)": mixture.GammaShapes(2.0, 0.05),
    "Gamma(90, 2)": mixture.GammaShapes(90.0, 2.0),
    "Gamma(3, 3), Langevin, accepted without the prior": SteppedShapes(3.0, 3.0, 0.05, 1.0, 0.0),
    "Gamma(3, 3), random walk, accepted without the prior": SteppedShapes(3.0, 3.0, 0.005, 0.0, 0.0),
    "Gamma(90, 2), random walk, accepted without the prior": SteppedShapes(90.0, 2.0, 0.005, 0.0, 0.0),
}
"""All with the authors' prior of the mass. A random walk of τ = .005 has steps of .1, as in the library by default."""

RELEASED = {
    "none": (Channel(0, None), None),
    "Laplace": (Channel(0, "tight"), 50.0),
    "J = 4": (Channel(4, "paper"), 50.0),
}
"""Channels of single records, with the paper's scales of the wavelet, and ε."""


def measure(
    num_warmup: int, num_samples: int, released: tuple[str, ...], readings: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """A row for each reading and what was released, of four chains from different starts, by Neal 5.

    Known records have Neal 8.
    """
    rows: list[dict[str, Any]] = []
    result = {"grid": shorten(GRID), "truth": shorten(betas_density(GRID)), "rows": rows}
    for name in released:
        channel, epsilon = RELEASED[name]
        values = release(channel, epsilon, 0)
        for reading in readings:
            problem = pose(values, channel.at(epsilon), READINGS[reading], MASS)
            chains = fixed.run("Neal 5, m = 1", problem, Length(num_warmup, num_samples), list(enumerate(GROUPS)))
            rows.append({"reading": reading, "released": name, "epsilon": epsilon, **describe(chains)})
            print({key: value for key, value in rows[-1].items() if key != "density"}, file=sys.stderr, flush=True)
            yield result


def describe(chains: list[fixed.Chain]) -> dict[str, Any]:
    """The figures of a reading: means over chains, the distance of each, and how far they agree."""
    found = [fixed.figures(chain) for chain in chains]
    means = {name: shorten(np.nanmean([figures[name] for figures in found]), 3)[0] for name in found[0]}
    clusters = np.stack([chain.clusters for chain in chains]).astype(float)
    return {
        **means,
        "hellinger_each": shorten([figures["hellinger"] for figures in found]),
        "r_hat": round(float(diagnostics.split_r_hat(clusters)), 2),
        "density": shorten(np.mean([chain.density for chain in chains], axis=0), 3),
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities of the readings, a panel for each thing that was released."""
    released = list(dict.fromkeys((row["released"], row["epsilon"]) for row in result["rows"]))
    for panel, (name, epsilon) in zip(axes, released, strict=False):
        for number, row in enumerate(r for r in result["rows"] if (r["released"], r["epsilon"]) == (name, epsilon)):
            panel.plot(result["grid"], row["density"], f"C{number}", linewidth=1, label=row["reading"])
        panel.plot(result["grid"], result["truth"], "k", linewidth=1)
        panel.set(title=name if epsilon is None else f"{name}, ε = {epsilon:g}", ylim=(0, 5))
    for panel in axes[len(released) :]:
        panel.set_axis_off()
    axes[0].legend(fontsize="xx-small")
