"""What the two contingency tables share: the answer from counts that are taken at their word."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key

NUM_DRAWS = 20_000


def draw_tables(key: Key, counts: Array) -> np.ndarray:
    """Cell probabilities [draw, c] given counts [c] under the uniform prior; negative counts are read as 0."""
    return np.asarray(jax.random.dirichlet(key, 1.0 + jnp.maximum(counts, 0.0), (NUM_DRAWS,)))
