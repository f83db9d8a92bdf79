"""How wrong a subsampled acceptance test is: chains on the mean of Normal records, whose posterior is Normal."""

from collections.abc import Callable
from typing import Any

import numpy as np

NUM_RECORDS, RATE, NOISE, STEP = 100, 0.1, 1.0, 0.5
"""Records, the rate of the sample, the standard deviation of the noise, and that of a move in posterior deviations."""

Estimate = Callable[[np.random.Generator, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From ratios [chain, record] and their bounds [chain] to estimates [chain] and the variances that are allowed for."""


def measure_bias(chains: int, steps: int) -> dict[str, Any]:
    """The error of the posterior mean and deviation by test, in exact posterior deviations, with standard errors.

    Records have mean 0 and variance 1, and are Normal or heavy-tailed (Student, 3 degrees of freedom). The model is
    x ~ N(θ, 1), its prior flat. Half of each chain is left out.
    """
    return {
        kind: {name: run(records, estimate, chains, steps) for name, estimate in TESTS.items()}
        for kind, records in make_records().items()
    }


def make_records() -> dict[str, np.ndarray]:
    """Two data sets [n]."""
    rng = np.random.default_rng(5)
    kinds = {"Normal": rng.normal(size=NUM_RECORDS), "heavy tails": rng.standard_t(3, size=NUM_RECORDS)}
    return {name: (records - records.mean()) / records.std() for name, records in kinds.items()}


def all_records(rng: np.random.Generator, ratios: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ratio itself."""
    del rng, bounds
    return ratios.sum(axis=1), np.zeros(len(ratios))


def sampled(allow: str) -> Estimate:
    """A Poisson sample; of its variance nothing, the true one or the estimated one is allowed for."""

    def estimate(rng: np.random.Generator, ratios: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        del bounds
        taken = ratios * (rng.random(ratios.shape, np.float32) < RATE)
        true, estimated = (np.sum(of**2, axis=1) * (1 - RATE) / RATE for of in (ratios, taken / np.sqrt(RATE)))
        return taken.sum(axis=1) / RATE, {"nothing": 0 * true, "true": true, "estimated": estimated}[allow]

    return estimate


def counted(rng: np.random.Generator, ratios: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poisson counts of records, of which bounded ratios make an exact test (Zhang, Cooper and De Sa 2020)."""
    forth, back = (RATE + (bounds[:, None] + sign * ratios) / 2 for sign in (1, -1))
    return np.sum(rng.poisson(back) * np.log(forth / back), axis=1), np.zeros(len(ratios))


TESTS: dict[str, Estimate] = {
    "all records": all_records,
    "sample, its variance ignored": sampled("nothing"),
    "sample, its true variance": sampled("true"),
    "sample, its estimated variance": sampled("estimated"),
    "Poisson counts": counted,
}


def run(records: np.ndarray, estimate: Estimate, chains: int, steps: int) -> dict[str, float]:
    """Random walks whose test has Gaussian noise, allowed for by the penalty."""
    rng, scale = np.random.default_rng(6), 1 / np.sqrt(NUM_RECORDS)
    limit = np.abs(records).max() + 6 * scale
    at = rng.normal(size=chains) * scale
    kept, accepted = [], 0.0
    for step in range(steps):
        moved = at + STEP * scale * rng.normal(size=chains)
        ratios = (moved - at)[:, None] * (records - (at + moved)[:, None] / 2)
        value, variance = estimate(rng, ratios, limit * np.abs(moved - at))
        noisy = value + NOISE * rng.normal(size=chains) - (NOISE**2 + variance) / 2
        takes = np.log(rng.uniform(size=chains)) < noisy
        at = np.where(takes, moved, at)
        accepted += takes.mean() / steps
        if step >= steps // 2:
            kept.append(at / scale)
    means, squares = np.mean(kept, axis=0), np.mean(np.square(kept), axis=0)
    deviation = np.sqrt(squares.mean() - means.mean() ** 2)
    return {
        "mean": float(means.mean()),
        "mean_error": float(means.std() / np.sqrt(chains)),
        "deviation": float(deviation),
        "deviation_error": float(squares.std() / np.sqrt(chains) / (2 * deviation)),
        "accepted": float(accepted),
    }
