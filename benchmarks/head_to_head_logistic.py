"""The logistic regression of repro samples (Awan and Wang 2023, arXiv 2303.05328), and releases of its kind.

The covariate is x = 2 z - 1 with z from a Beta distribution. Objective perturbation with noise of the maximum norm
takes nine tenths of ε, and noisy moments of z the rest. The noise on the moments is that of Awan and Slavkovic (2021):
the unit ball of its norm is the hull of what one record can change. Settings are those of the authors' script.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.coverage import chances, fit_perturbed

EPSILON, SHARE_OF_FIT, Q = 1.0, 0.9, 0.85
COEFFICIENTS, SHAPES = np.array([0.5, 2.0]), (0.5, 0.5)

FIT_SCALE = 2 / (Q * SHARE_OF_FIT * EPSILON)
"""Each number of the gradient of one record differs by at most 2 from that of another."""

MOMENTS_SCALE = 1 / ((1 - SHARE_OF_FIT) * EPSILON)

PENALTY = 0.5 / np.expm1((1 - Q) * SHARE_OF_FIT * EPSILON)
"""A Hessian of one record has no eigenvalue above 1/2."""

AREA = 5 / 6
"""Of the hull: the integral of its upper less its lower end."""


class Published(NamedTuple):
    """The published coefficients [2] and noisy sums [2] of z and z²."""

    coefficients: np.ndarray
    moments: np.ndarray


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class HullNoise:
    """Adds a vector [2] of density ∝ exp(-gauge / scale)."""

    scale: float

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        """The log-density [] of the value [2]; the integral of exp(-gauge) is twice the area."""
        return -gauge(value - statistic) / self.scale - jnp.log(2 * AREA * self.scale**2)


def gauge(noise: jax.Array) -> jax.Array:
    """The least t [] such that t times the hull of the differences of (z, z²) holds the vector [2].

    The upper end of the hull at u is -u² up to -1/2, then u + 1/4, and 1 - (u - 1)² from 1/2 on. The lower end is its
    mirror image in the origin.
    """
    u, v = jnp.where(noise[1] >= noise[0], noise, -noise)
    right, left = (u > 0) & (3 * u > 2 * v), (u < 0) & (u > 2 * v)
    curved = jnp.where(right, 2 * u - v, jnp.where(left, -v, 1.0))
    return jnp.where(right | left, u**2 / curved, 4 * (v - u))


def make_model() -> dpjax.Model:
    """A response of 0 and 1 given a covariate from a Beta distribution; priors are wide against the release."""

    def logistic(n: int) -> None:
        coef = numpyro.sample("coef", dist.Normal(0.0, 3.0).expand([2]).to_event(1))
        shapes = numpyro.sample("shapes", dist.LogNormal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("records", n):
            z = numpyro.sample("z", dist.Beta(shapes[0], shapes[1]))
            numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * (2 * z - 1)))

    return dpjax.from_numpyro(logistic, records=["z", "y"])


def loss(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    """Of logistic regression on x = 2 z - 1."""
    predictor = coefficients[0] + coefficients[1] * (2 * record["z"] - 1)
    return jnp.logaddexp(0.0, predictor) - record["y"] * predictor


def moments(record: dict[str, jax.Array]) -> jax.Array:
    """z and z²."""
    return jnp.stack([record["z"], record["z"] ** 2])


def release_of(published: Published, n: int) -> Any:
    """The coefficients and the moments, of the same people."""
    fitted = dpjax.releases.objective_perturbation(
        published.coefficients, loss, noise=dpjax.mechanisms.KNormLinf(FIT_SCALE), regularization=PENALTY, n=n
    )
    return dpjax.joint(fitted, dpjax.Release(published.moments, HullNoise(MOMENTS_SCALE), moments, n))


def simulate(rng: np.random.Generator, n: int) -> Published:
    """What is published of n new records at the true parameters."""
    z = rng.beta(*SHAPES, size=n)
    design = np.column_stack([np.ones(n), 2 * z - 1])
    response = (rng.uniform(size=n) < chances(design, COEFFICIENTS)).astype(float)
    fitted = fit_perturbed(design, response, np.full(2, PENALTY), draw_square(rng, FIT_SCALE))
    return Published(fitted, np.array([z.sum(), (z**2).sum()]) + draw_hull(rng, MOMENTS_SCALE))


def draw_square(rng: np.random.Generator, scale: float) -> np.ndarray:
    """A vector [2] of density ∝ exp(-max |b| / scale): a Gamma radius times a uniform point of the square."""
    return rng.gamma(3, scale) * rng.uniform(-1, 1, size=2)


def draw_hull(rng: np.random.Generator, scale: float) -> np.ndarray:
    """A vector [2] of density ∝ exp(-gauge / scale): likewise, with a point of the square that the hull holds."""
    point = rng.uniform(-1, 1, size=2)
    while gauge(jnp.asarray(point)) > 1:
        point = rng.uniform(-1, 1, size=2)
    return rng.gamma(3, scale) * point
