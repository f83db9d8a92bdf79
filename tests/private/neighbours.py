"""Data sets that differ in one record and that a sum of floats drives apart."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax import private

CHUNK = 256
FULL = 2048
"""Chunks of ones, which sum to 2^19, where the spacing of float32 doubles."""


def numbers(first: float, num_chunks: int = 3900) -> np.ndarray:
    """Records in [−1, 1], float32: 2^19 in all with a first record of 1, and then pairs of chunks of 0.0375 and −0.05.

    Above 2^19 float32 rounds such a pair of additions to nothing, and below to −1/32: two sums that start 2 apart are
    30 apart in the end.
    """
    chunks = np.zeros((num_chunks, CHUNK), np.float32)
    chunks[:FULL] = 1
    chunks[FULL::2, 0], chunks[FULL + 1 :: 2, 0] = 0.0375, -0.05
    chunks[0, 0] = first
    return chunks.ravel()


def linear(records: np.ndarray, chunk_size: int = CHUNK) -> private.Target:
    """Log-likelihood xθ: the gradient is the record, and so is the log ratio of θ′ = 1 and θ = 0. Float32."""
    return private.target(
        lambda theta, record: theta * record,
        lambda theta: -0.5 * theta**2,
        jnp.asarray(records, jnp.float32),
        jnp.zeros((), jnp.float32),
        chunk_size=chunk_size,
    )


def sum_of_floats(records: jax.Array) -> jax.Array:
    """The faulty sum: chunk by chunk, in float32."""
    return jax.lax.scan(
        lambda total, chunk: (total + jnp.sum(chunk), None), jnp.zeros((), jnp.float32), records.reshape(-1, CHUNK)
    )[0]
