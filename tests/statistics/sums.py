"""Sums of statistics over made-up records, and how near they have to be."""

import jax
import jax.numpy as jnp
import numpy as np

TOLERANCE = 1e-5 if jnp.result_type(float) == jnp.float32 else 1e-12
GENERATOR = np.random.default_rng(20)
N = 50


def total_of(statistic, records):
    """The sum over records [d]."""
    return np.asarray(jax.vmap(statistic, out_axes=1)(jax.tree.map(jnp.asarray, records)).sum(axis=1))


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE * N)
