"""How far the draws of a run are from the exact posterior: the paper's two measures."""

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.papers.dphmc.problems import Problem
from dpjax.coupling import squared_mmd

NUM_REFERENCE = 1_000
NUM_FOR_WIDTH = 500


def measure(problem: Problem, draws: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """MMD and mean error of draws [chains, iterations, d], whose first halves are discarded."""
    kept = draws[:, draws.shape[1] // 2 :].reshape(-1, draws.shape[-1])
    error = float(np.linalg.norm(kept.mean(axis=0) - problem.mean))
    return {"mmd": mmd(kept, problem.draw(rng, NUM_REFERENCE), rng), "mean_error": error}


def mmd(draws: np.ndarray, reference: np.ndarray, rng: np.random.Generator) -> float:
    """The root of the unbiased estimate of MMD², 0 where that is negative, at the paper's kernel width.

    That is the median distance between 500 draws and 500 reference draws, both resampled. Of more than 1,000 draws
    every so many are taken.
    """
    if len(draws) > NUM_REFERENCE:
        draws = draws[np.linspace(0, len(draws) - 1, NUM_REFERENCE).astype(int)]
    one, other = (sample[rng.integers(len(sample), size=NUM_FOR_WIDTH)] for sample in (draws, reference))
    width = float(np.median(cdist(one, other)))
    return float(np.sqrt(max(squared_mmd(draws, reference, width).value, 0.0)))


def floor(problem: Problem, rng: np.random.Generator, repeats: int = 20) -> float:
    """The mean MMD of 1,000 exact draws: what a perfect sampler reaches."""
    pairs = [(problem.draw(rng, NUM_REFERENCE), problem.draw(rng, NUM_REFERENCE)) for _ in range(repeats)]
    return float(np.mean([mmd(one, other, rng) for one, other in pairs]))
