"""The two models of the paper, their data, their exact posteriors and where the chains start."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from dpjax import private

N = 100_000
DELTA = 0.1 / N
NUM_CHAINS = 4
TWIST = 20.0
VARIANCES = np.array([2000.0, 2500.0])
EIGENVALUES = np.array([0.0127, 0.0347, 0.0496, 0.105, 0.327, 0.372, 0.528, 0.835, 0.885, 4.774])
PRIOR = {"banana": 1000.0, "gaussian": 100.0**2}
"""Prior variances."""
TRUTH = {"banana": np.array([0.0, 3.0]), "gaussian": np.array([0.0, 3.0, *np.zeros(8)])}


@dataclass(frozen=True)
class Problem:
    """A posterior whose exact draws are known.

    draw
        ``(rng, count) -> [count, d]``, exact posterior draws.
    mean
        The exact posterior mean [d].
    spread
        The mean posterior standard deviation over coordinates, by which the starts are spread.
    """

    name: str
    target: private.Target
    draw: Callable[[np.random.Generator, int], np.ndarray]
    mean: np.ndarray
    spread: float

    def starts(self, rng: np.random.Generator, num_repeats: int) -> jax.Array:
        """Starts [repeats · chains, d] around the truth."""
        normals = rng.normal(size=(num_repeats * NUM_CHAINS, len(self.mean)))
        return jnp.asarray(TRUTH[self.name] + self.spread * normals)


def make_problem(name: str, n: int = N) -> Problem:
    """One of the two problems, with data of a fixed seed."""
    return {"banana": banana, "gaussian": gaussian}[name](n)


def banana(n: int) -> Problem:
    """x₁ ~ N(θ₁, 2000), x₂ ~ N(θ₂ + 20 θ₁², 2500).

    On y = (θ₁, θ₂ + 20 θ₁²) the model is Normal and conjugate, and the map has Jacobian 1: the posterior is that of y,
    independent Normals, mapped back by θ₂ = y₂ − 20 y₁².
    """
    records = TRUTH["banana"] + np.random.default_rng(101).normal(size=(n, 2)) * np.sqrt(VARIANCES)
    variance = 1 / (n / VARIANCES + 1 / PRIOR["banana"])
    location = variance * records.sum(axis=0) / VARIANCES

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        second = theta[1] + TWIST * theta[0] ** 2
        return -0.5 * ((record[0] - theta[0]) ** 2 / VARIANCES[0] + (record[1] - second) ** 2 / VARIANCES[1])

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * (theta[0] ** 2 + (theta[1] + TWIST * theta[0] ** 2) ** 2) / PRIOR["banana"]

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        straight = location + rng.normal(size=(count, 2)) * np.sqrt(variance)
        return np.stack([straight[:, 0], straight[:, 1] - TWIST * straight[:, 0] ** 2], axis=1)

    mean = np.array([location[0], location[1] - TWIST * (location[0] ** 2 + variance[0])])
    # θ₂ has the variance of y₂ and that of 20 y₁².
    of_square = TWIST**2 * (2 * variance[0] ** 2 + 4 * variance[0] * location[0] ** 2)
    spread = np.sqrt([variance[0], variance[1] + of_square]).mean()
    return Problem("banana", make_target(log_likelihood, log_prior, records, 2), draw, mean, float(spread))


def gaussian(n: int) -> Problem:
    """x ~ N(θ, Σ) with known Σ in 10 dimensions: a Normal posterior."""
    rng = np.random.default_rng(102)
    basis, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    covariance = basis @ np.diag(EIGENVALUES) @ basis.T
    precision = basis @ np.diag(1 / EIGENVALUES) @ basis.T
    records = TRUTH["gaussian"] + rng.normal(size=(n, 10)) @ np.linalg.cholesky(covariance).T
    posterior = np.linalg.inv(n * precision + np.eye(10) / PRIOR["gaussian"])
    mean, factor = posterior @ precision @ records.sum(axis=0), np.linalg.cholesky(posterior)
    matrix = jnp.asarray(precision)

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        residual = record - theta
        return -0.5 * jnp.dot(residual, matrix @ residual)

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(theta**2) / PRIOR["gaussian"]

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        return mean + rng.normal(size=(count, 10)) @ factor.T

    spread = float(np.sqrt(np.diag(posterior)).mean())
    return Problem("gaussian", make_target(log_likelihood, log_prior, records, 10), draw, mean, spread)


def make_target(
    log_likelihood: Callable[[jax.Array, jax.Array], jax.Array],
    log_prior: Callable[[jax.Array], jax.Array],
    records: np.ndarray,
    dimension: int,
) -> private.Target:
    """The target of plain functions of one vector."""
    return private.target(log_likelihood, log_prior, jnp.asarray(records), jnp.zeros(dimension))
