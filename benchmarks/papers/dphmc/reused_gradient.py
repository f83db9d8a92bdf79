"""The last noisy gradient of a trajectory as the first of the next one: how right draws are, and what it gains.

The posterior is N(0, I) in two dimensions, with gradient noise and a penalty as large as those of a private run.
"""

from typing import Any

import numpy as np

DIMENSION, STEP_SIZE = 2, 0.48
NOISE, RATIO_NOISE = 0.87, 0.67
"""The standard deviation of a gradient's noise, and that of a ratio's for a move of 1, in the example of the docs."""
HARD = {"length": 1, "step_size": 1.4, "noise": 1.0}
"""One long step, which is often rejected, with as much noise as there is gradient."""
TAU_G, TAU_L = 117.0, 41.3
"""The multipliers of that example: what a gradient and a ratio cost."""
LENGTHS = (3, 12)
WAYS = ("fresh", "reused", "reused if accepted", "reused from rejected ends")


def measure(chains: int, steps: int) -> dict[str, Any]:
    """The variance of draws, which has to be 1, and effective draws at equal budget, by way and number of steps.

    Ways: all gradients are fresh; the noise at a position stays until a proposal is accepted; a rejection draws fresh
    noise; a rejection keeps the last gradient of the trajectory, which is that of another position.
    """
    result: dict[str, Any] = {"variance": {}, "effective": {}}
    for way in WAYS:
        result["variance"][way] = summarize(run(way, **HARD, chains=chains, steps=steps))
    for length in LENGTHS:
        step_size = STEP_SIZE * 3 / length
        rows = {way: summarize(run(way, length, step_size, NOISE, chains, steps)) for way in WAYS[:2]}
        costs = {way: (length + (way == "fresh")) / TAU_G**2 + 1 / TAU_L**2 for way in rows}
        result["effective"][str(length)] = {
            "iterations": costs["fresh"] / costs["reused"],
            "draws": costs["fresh"] / costs["reused"] * rows["reused"]["effective"] / rows["fresh"]["effective"],
            "standard_error": float(np.sqrt(2 * 2 / (DIMENSION * chains))),
            **rows,
        }
    return result


def run(way: str, length: int, step_size: float, noise: float, chains: int, steps: int) -> np.ndarray:
    """Draws [step, chain, d] of chains that start in the posterior."""
    rng = np.random.default_rng(8)
    at, kept = rng.normal(size=(2, chains, DIMENSION))
    slope = noise * kept - at
    path = np.empty((steps, chains, DIMENSION))
    for step in range(steps):
        if way == "fresh":
            slope = noise * rng.normal(size=at.shape) - at
        momentum = rng.normal(size=at.shape)
        moved, pushed, last = at, momentum + step_size / 2 * slope, slope
        for place in range(length):
            moved = moved + step_size * pushed
            last = noise * rng.normal(size=at.shape) - moved
            pushed = pushed + step_size * (0.5 if place == length - 1 else 1.0) * last
        deviation = RATIO_NOISE * np.linalg.norm(moved - at, axis=1)
        energy = np.sum(at**2 - moved**2 + momentum**2 - pushed**2, axis=1) / 2
        noisy = energy + deviation * rng.normal(size=chains) - deviation**2 / 2
        takes = (np.log(rng.uniform(size=chains)) < noisy)[:, None]
        at = np.where(takes, moved, at)
        others = {"reused if accepted": noise * rng.normal(size=at.shape) - at, "reused from rejected ends": last}
        slope = np.where(takes, last, others.get(way, slope))
        path[step] = at
    return path


def summarize(path: np.ndarray) -> dict[str, float]:
    """The mean square of a coordinate with its standard error, and effective draws of the mean for each iteration."""
    of_chains = np.mean(path[len(path) // 2 :] ** 2, axis=(0, 2))
    means = path.mean(axis=0)
    return {
        "variance": float(of_chains.mean()),
        "standard_error": float(of_chains.std(ddof=1) / np.sqrt(len(of_chains))),
        "effective": float(np.mean(path**2) / np.mean(means**2) / len(path)),
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """The variances beside 1."""
    found = result["variance"]
    errors = [3 * row["standard_error"] for row in found.values()]
    axes.errorbar([row["variance"] for row in found.values()], list(found), xerr=errors, fmt="o")
    axes.axvline(1.0, color="0.7")
    axes.set_xlabel("variance of the draws, ± 3 standard errors; exact: 1")
