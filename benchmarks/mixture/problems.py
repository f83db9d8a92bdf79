"""Simulated records of Section 4.1's kind: three Gaussian clusters in [-10, 10] behind Laplace noise."""

import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import mixture
from dpjax.mixture.conditional import Problem

CENTRES = (-5.0, 0.0, 5.0)
DIAMETER = 20.0
CONCENTRATION = 1.0
BASE = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0)


def simulate_values(n: int, epsilon: float) -> np.ndarray:
    """Released values [n] of records that are one third each N(-5, 1), N(0, 1) and N(5, 1)."""
    generator = np.random.default_rng(20_250)
    records = generator.choice(CENTRES, n) + generator.normal(size=n)
    return records + generator.laplace(scale=DIAMETER / epsilon, size=n)


def make_problem(n: int, epsilon: float) -> Problem:
    """The values with their channel, kernel and concentration."""
    values = jnp.asarray(simulate_values(n, epsilon), float)
    return Problem(values, dpjax.Laplace(DIAMETER / epsilon), BASE, jnp.asarray(CONCENTRATION, float))
