"""The examples and remarks of the paper's first version: densities without privacy, and other ways to sample them."""

from collections.abc import Callable
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.base import SamplingAlgorithm

from dpjax import exchangeable
from dpjax.diagnostics import ess_bulk, mcse_mean

EPSILON = 20.0
SHAPE = 10.0
"""Records are Beta(10, 10), and their mean is released as 0.5 with Laplace noise of scale 1 / ε."""

COMPONENTS, DIMENSION, VECTORS, NOISE = 2, 2, 20, 1.0
SAMPLE_COVARIANCE = np.array([[3.0, 1.0], [1.0, 2.0]])
GROUPS = 10
"""Of chains, whose effective sizes tell the error of that of all."""

SPREAD = 1.5
"""Example 3: of the proposals of its columns, Normal around 0."""


def measure(sizes: list[int], chains: int, steps: int, draws: int) -> dict[str, Any]:
    """What is measured of examples 1 and 3, of Figure 1 and of remark 3.

    Parameters
    ----------
    sizes
        Numbers of records for Figure 1 and remark 3.
    chains, steps
        Chains of each sampler and their steps, of which the first tenth is left out.
    draws
        Weighted draws that stand for the posterior of example 3.
    """
    return {
        "constraint": measure_constraint(6, 3, steps),
        "components": measure_components(chains, steps, draws),
        "ways": {str(n): {name: measure_way(name, n, chains, steps) for name in WAYS} for n in sizes},
    }


def measure_constraint(n: int, ones: int, steps: int) -> dict[str, Any]:
    """Example 1: of the orders of so many ones, how many SOMA reaches if their sum is fixed, and if it may err."""

    def reached(log_density: Callable[[jax.Array], jax.Array]) -> int:
        algorithm = exchangeable.soma(
            log_density,
            lambda key: jax.random.bernoulli(key, 0.5).astype(float),
            lambda record: jnp.log(0.5),
            statistic=lambda record: record[None],
        )
        records = run(algorithm, jnp.repeat(jnp.array([1.0, 0.0]), jnp.array([ones, n - ones])), 1, 20 * steps)[0][0]
        return len({tuple(row) for row in np.asarray(records).astype(int) if row.sum() == ones})

    fixed = reached(lambda total: jnp.where(jnp.abs(total[0] - ones) < 0.5, 0.0, -jnp.inf))
    return {"orders": comb(n, ones), "fixed": fixed, "laplace": reached(lambda total: -jnp.abs(total[0] - ones))}


def run(algorithm: SamplingAlgorithm, start: Any, chains: int, steps: int) -> tuple:
    """Records [chain, step, ...] and acceptance [chain, step] of chains from one start."""

    @jax.jit
    @jax.vmap
    def chain(key: jax.Array) -> tuple:
        def step(state: Any, key: jax.Array) -> tuple:
            state, info = algorithm.step(key, state)
            return state, (state.records, info.acceptance_rate)

        return jax.lax.scan(step, algorithm.init(start), jax.random.split(key, steps))[1]

    return chain(jax.random.split(jax.random.key(9), chains))


def log_components(columns: Any) -> Any:
    """Example 3: the log-density [...] of the columns [..., 2, 2] of Θ, under a flat prior."""
    numbers = jnp if isinstance(columns, jax.Array) else np
    covariance = NOISE * np.eye(DIMENSION) + numbers.einsum("...ij,...ik->...jk", columns, columns)
    a, b, c = covariance[..., 0, 0], covariance[..., 0, 1], covariance[..., 1, 1]
    determinant = a * c - b**2
    (s, t), (_, u) = SAMPLE_COVARIANCE
    return -VECTORS / 2 * (numbers.log(determinant) + (c * s - 2 * b * t + a * u) / determinant)


def measure_components(chains: int, steps: int, draws: int) -> dict[str, Any]:
    """Example 3: the mean of log |C| by SOMA and IMwG beside that of weighted draws, and how often they accept."""

    def log_proposal(column: jax.Array) -> jax.Array:
        return -jnp.sum(column**2) / (2 * SPREAD**2)

    def propose(key: jax.Array) -> jax.Array:
        return SPREAD * jax.random.normal(key, (DIMENSION,))

    columns = SPREAD * np.random.default_rng(3).normal(size=(draws, COMPONENTS, DIMENSION))
    log_weights = log_components(columns) + np.sum(columns**2, axis=(1, 2)) / (2 * SPREAD**2)
    weights = np.exp(log_weights - log_weights.max())
    exact = float(np.average(log_determinant(columns), weights=weights))
    spread = float(np.sqrt(np.average((log_determinant(columns) - exact) ** 2, weights=weights)))
    error = spread * float(np.sqrt(np.sum(weights**2)) / np.sum(weights))
    rows: dict[str, Any] = {"exact": exact, "error_of_exact": error}
    for name, algorithm in (
        ("soma", exchangeable.soma(log_components, propose, log_proposal)),
        ("imwg", exchangeable.imwg(log_components, propose, log_proposal)),
    ):
        records, accepted = run(algorithm, jnp.zeros((COMPONENTS, DIMENSION)), chains, steps)
        values = log_determinant(np.asarray(records)[:, steps // 10 :])
        rows[name] = {
            "mean": float(values.mean()),
            "standard_error": float(mcse_mean(values)),
            "acceptance": float(np.asarray(accepted)[:, steps // 10 :].mean()),
            "error_of_acceptance": error_of_mean(np.asarray(accepted)[:, steps // 10 :].mean(axis=1)),
        }
    return rows


def error_of_mean(numbers: np.ndarray) -> float:
    """The standard error of a mean over chains, or over groups of them."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


def log_determinant(columns: np.ndarray) -> np.ndarray:
    """log |C| [...]."""
    covariance = NOISE * np.eye(DIMENSION) + np.einsum("...ij,...ik->...jk", columns, columns)
    return np.linalg.slogdet(covariance)[1]


def soma(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One draw at all records: places [chain, attempt], draws [chain, attempt], and log-weights [chain, attempt]."""
    y = np.broadcast_to(rng.beta(SHAPE, SHAPE, size=(len(x), 1)), x.shape)
    return (
        np.broadcast_to(np.arange(x.shape[1]), x.shape),
        y,
        log_release(x.mean(axis=1)[:, None] + (y - x) / x.shape[1]),
    )


def imwg(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One draw at a random record."""
    return try_several(rng, x, 1)


def multiple_try(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n draws at one random record, weighted by importance: the independent multiple-try Metropolis of remark 3."""
    return try_several(rng, x, x.shape[1])


def try_several(rng: np.random.Generator, x: np.ndarray, tries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """So many draws at one random record."""
    places = np.broadcast_to(rng.integers(x.shape[1], size=(len(x), 1)), (len(x), tries))
    y = rng.beta(SHAPE, SHAPE, size=(len(x), tries))
    replaced = np.take_along_axis(x, places, axis=1)
    return places, y, log_release(x.mean(axis=1)[:, None] + (y - replaced) / x.shape[1])


def ordered(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One draw at a random record of the ordered space of Figure 1, where it must not pass its neighbours."""
    places, y, log_weights = try_several(rng, x, 1)
    ends = np.pad(x, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
    below, above = (np.take_along_axis(ends, places + shift, axis=1) for shift in (0, 2))
    return places, y, np.where((below < y) & (y < above), log_weights, -np.inf)


WAYS = {"soma": soma, "imwg": imwg, "multiple_try": multiple_try, "ordered": ordered}


def log_release(mean: np.ndarray) -> np.ndarray:
    """The log-density of the release at means."""
    return -EPSILON * np.abs(0.5 - mean)


def decide(rng: np.random.Generator, log_weights: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The attempt that each chain selects by its weights [chain, attempt], and whether it is made: equation (8)."""
    chosen = np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)
    top = np.maximum(log_weights.max(axis=1), now)
    weights = np.exp(log_weights - top[:, None])
    total = weights.sum(axis=1)
    rest = total - weights[np.arange(len(now)), chosen] + np.exp(now - top)
    return chosen, rng.random(len(now)) < total / np.maximum(rest, np.finfo(float).tiny)


def measure_way(name: str, n: int, chains: int, steps: int) -> dict[str, float]:
    """The acceptance, and effective draws of Σ x² per thousand steps, draws of records, and evaluations of the release.

    Its mean is the same for all ways: Σ x² does not depend on the order.
    """
    rng = np.random.default_rng(4)
    x = np.sort(rng.beta(SHAPE, SHAPE, size=(chains, n)), axis=1)
    squares, accepted, rows = np.empty((chains, steps)), np.zeros(chains), np.arange(chains)
    for step in range(steps):
        places, y, log_weights = WAYS[name](rng, x)
        chosen, moves = decide(rng, log_weights, log_release(x.mean(axis=1)))
        x[rows[moves], places[rows, chosen][moves]] = y[rows, chosen][moves]
        accepted += moves / steps
        squares[:, step] = np.sum(x**2, axis=1)
    kept = squares[:, steps // 10 :]
    per_thousand = 1e3 * float(ess_bulk(kept)) / kept.size
    groups = [1e3 * float(ess_bulk(each)) / each.size for each in np.array_split(kept, min(GROUPS, chains))]
    proposals, evaluations = {"multiple_try": (n, n), "soma": (1, n)}.get(name, (1, 1))
    return {
        "acceptance": float(accepted.mean()),
        "error_of_acceptance": error_of_mean(accepted),
        "mean": float(kept.mean()),
        "standard_error": float(mcse_mean(kept)),
        "effective_per_1000_steps": per_thousand,
        "relative_error_of_effective": error_of_mean(np.array(groups)) / per_thousand,
        "effective_per_1000_draws": per_thousand / proposals,
        "effective_per_1000_evaluations": per_thousand / evaluations,
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Effective draws per step and acceptance against n."""
    for panel, column in zip(axes, ("acceptance", "effective_per_1000_steps", "effective_per_1000_draws"), strict=True):
        for name in WAYS:
            rows = {int(n): row[name][column] for n, row in result["ways"].items()}
            panel.plot(list(rows), list(rows.values()), ".-", label=name)
        panel.set(xscale="log", xlabel="n", ylabel=column.replace("_", " "))
    axes[0].legend(fontsize="small")
