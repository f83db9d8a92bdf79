"""Posteriors that are known exactly, of records whose contributions no clip bound of the tests reaches."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax import private

RECORDS = np.array([[0.9, -0.3], [-0.5, 0.8], [0.2, 0.1], [0.7, 0.6], [-0.1, -0.9], [0.4, 0.3], [0.8, -0.2]])
BOUND = 1.0
"""No record is longer: neither its gradient, which is the record, nor its log ratio over ‖θ − θ′‖ is ever clipped."""
MEAN = RECORDS.sum(axis=0)


def tilted(chunk_size: int = 3) -> private.Target:
    """Log-likelihood x·θ and prior N(0, I): the posterior is N(Σx, I) whatever the records are."""

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return jnp.dot(record, theta)

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.dot(theta, theta)

    return private.target(log_likelihood, log_prior, jnp.asarray(RECORDS), jnp.zeros(2), chunk_size=chunk_size)


def normal_mean(records: np.ndarray, prior_sd: float = 10.0, chunk_size: int = 16) -> private.Target:
    """Records N(θ, 1) in one dimension, prior N(0, prior_sd²)."""

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * (record - theta[0]) ** 2

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(theta**2) / prior_sd**2

    return private.target(log_likelihood, log_prior, jnp.asarray(records), jnp.zeros(1), chunk_size=chunk_size)


def ledger(epsilon: float = 5.0) -> private.Ledger:
    """A ledger of a budget for the tests."""
    return private.Ledger(private.Budget(epsilon, 1e-6, "replace-one"))


TARGET = tilted()
WALK = private.dp_penalty(TARGET, private.noise.jax, proposal_scale=1.0, ratio_bound=BOUND, tau=1.0)
"""It moves, at a price that only an ample budget pays."""
AMPLE = 1e6
STARTS = jnp.asarray(np.random.default_rng(2).normal(size=(3, 2)) * 0.1 + MEAN)
