"""Records that the paper simulates or that are shipped here, what was released of them, and the priors."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import mixture, models

CENTRES = (-5.0, 0.0, 5.0)
DIAMETER = 20.0
CONCENTRATION = 1.0
"""α, which the paper does not state, of every experiment but those on Beta records."""

MASS = models.GammaPrior(4.0, 2.0)
"""The prior of α with Beta records, from the authors' code."""

BETA_BASES = {rates: mixture.GammaShapes(*rates) for rates in ((3.0, 3.0), (2.0, 0.05), (90.0, 2.0))}
"""Shapes and rates: the authors' of figures 3, 7 and 12; one that allows for the true groups; and that of figure 8."""

BASE = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0)
"""N(μ | 0, 10 σ²) IG(σ² | 3, 3), the base measure of Sections 4.1 and 4.3."""

BETAS = ((5.0, 50.0), (50.0, 50.0), (50.0, 5.0))
"""The three Beta laws of Section 4.2."""


class Problem(NamedTuple):
    """What `dpjax.mixture.sample` is asked: values with their channel or a release of all, and the priors."""

    values: Any
    channel: Any
    component: mixture.Component
    concentration: Any

    @property
    def released(self) -> tuple[Any, ...]:
        """The arguments that say what was released; a release of all knows its mechanism."""
        return (self.values,) if isinstance(self.values, dpjax.Release) else (self.values, self.channel)


def simulate_values(n: int, epsilon: float) -> np.ndarray:
    """Released values [n] of records that are one third each N(-5, 1), N(0, 1) and N(5, 1)."""
    generator = np.random.default_rng(20_250)
    return three_normals(n, generator) + generator.laplace(scale=DIAMETER / epsilon, size=n)


def simulate_normals(n: int, epsilon: float, repeat: int) -> np.ndarray:
    """The released values [n] of a repeat; all ε share its records, and its noise but for the scale."""
    generator = np.random.default_rng([41, n, repeat])
    return three_normals(n, generator) + generator.laplace(size=n) * DIAMETER / epsilon


def normal_groups(n: int, repeat: int) -> np.ndarray:
    """The centre [n] of each record's group."""
    return np.random.default_rng([41, n, repeat]).choice(CENTRES, n)


def make_problem(n: int, epsilon: float) -> Problem:
    """The values with their channel, component and concentration."""
    return pose(simulate_values(n, epsilon), dpjax.Laplace(DIAMETER / epsilon), BASE)


def pose(values: Any, channel: Any, component: mixture.Component, concentration: Any = CONCENTRATION) -> Problem:
    """A problem in which all numbers are arrays, so that those of one size share their programs."""
    if channel is not None:
        channel = replace(channel, scale=jnp.asarray(channel.scale, float))
    component, concentration = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), (component, concentration))
    return Problem(jnp.asarray(values, float), channel, component, concentration)


def name_base(rates: tuple[float, float]) -> str:
    """The distribution of the shapes, by its shape and rate."""
    return f"Gamma({rates[0]:g}, {rates[1]:g})"


def three_normals(n: int, generator: np.random.Generator) -> np.ndarray:
    """Records [n], one third each N(-5, 1), N(0, 1) and N(5, 1); not one in a million is beyond ±10."""
    return generator.choice(CENTRES, n) + generator.normal(size=n)


def three_betas(n: int, generator: np.random.Generator) -> np.ndarray:
    """Records [n], one third each of the three Beta laws."""
    shapes = generator.choice(np.array(BETAS), n)
    return generator.beta(shapes[:, 0], shapes[:, 1])


def read_records(name: str) -> np.ndarray:
    """The records [n] of a file in ``data/``, whose source is stated in its head."""
    path = Path(__file__).parent / "data" / f"{name}.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return np.array(lines[1:], float)
