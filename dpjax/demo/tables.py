"""What the two contingency tables share: the answer from counts that are taken at their word."""

import numpy as np
from numpy.random import Generator

from dpjax.base import Array

NUM_DRAWS = 20_000


def draw_tables(random: Generator, counts: Array) -> np.ndarray:
    """Cell probabilities [draw, c] given counts [c] under the uniform prior; negative counts are read as 0."""
    return random.dirichlet(1 + np.maximum(np.asarray(counts, float), 0), NUM_DRAWS)
