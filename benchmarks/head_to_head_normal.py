"""The Normal mean and standard deviation of repro samples (Awan and Wang 2023, arXiv 2303.05328).

Records are clamped to [0, 3]. Their mean and their variance are published with Gaussian noise.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.stats import norm
from numpyro import distributions as dist

import dpjax

N = 100
EPSILON = 1.0
LOWER, UPPER = 0.0, 3.0
TRUTH = (1.0, 1.0)

SCALES = np.array([UPPER - LOWER, (UPPER - LOWER) ** 2]) / (N * EPSILON)
"""Of the noise on the mean and on the variance."""

WIDE = 5.0
"""The scale of both priors."""


def make_model() -> dpjax.Model:
    """Normal records; priors are wide."""

    def normal(n: int) -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, WIDE))
        sigma = numpyro.sample("sigma", dist.HalfNormal(WIDE))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mu, sigma))

    return dpjax.from_numpyro(normal, records=["y"])


def release_of(published: np.ndarray) -> Any:
    """The mean and the variance [2], of the same people."""
    noise = [dpjax.Gaussian(float(scale)) for scale in SCALES]
    average = dpjax.Release([published[0]], noise[0], dpjax.statistics.mean("y", N, LOWER, UPPER), N)
    bounds = {"field": "y", "lower": LOWER, "upper": UPPER}
    return dpjax.joint(average, dpjax.releases.variance(published[1], noise[1], **bounds, n=N, degrees=N - 1))


def simulate(key: jax.Array, parameters: Any) -> jax.Array:
    """What is published [2] of new records, given a mean and a standard deviation [2]."""
    record_key, noise_key = jax.random.split(key)
    records = jnp.clip(parameters[0] + parameters[1] * jax.random.normal(record_key, (N,)), LOWER, UPPER)
    exact = jnp.stack([jnp.mean(records), jnp.var(records, ddof=1)])
    return exact + SCALES * jax.random.normal(noise_key, (2,))


def expected(parameters: jax.Array) -> jax.Array:
    """The expectations [2] of what is published, given a mean and the log of a standard deviation [2]."""
    mu, sigma = parameters[0], jnp.exp(parameters[1])
    low, high = (LOWER - mu) / sigma, (UPPER - mu) / sigma
    below, above = norm.cdf(low), norm.sf(high)
    inside, drop = 1 - below - above, norm.pdf(low) - norm.pdf(high)
    first = mu * inside + sigma * drop + LOWER * below + UPPER * above
    ends = low * norm.pdf(low) - high * norm.pdf(high)
    square = (mu**2 + sigma**2) * inside + 2 * mu * sigma * drop + sigma**2 * ends
    return jnp.stack([first, square + LOWER**2 * below + UPPER**2 * above - first**2])


def flat_weights(draws: dict[str, np.ndarray]) -> np.ndarray:
    """Weights of posterior draws for another prior: one that is flat in the expectations of what is published."""

    @jax.vmap
    def weigh(mu: jax.Array, sigma: jax.Array) -> jax.Array:
        slopes = jax.jacfwd(expected)(jnp.stack([mu, jnp.log(sigma)]))
        return jnp.abs(jnp.linalg.det(slopes)) / sigma / jnp.exp(-(mu**2 + sigma**2) / (2 * WIDE**2))

    found: np.ndarray = np.asarray(weigh(draws["mu"].ravel(), draws["sigma"].ravel()))
    return found.reshape(draws["mu"].shape)
