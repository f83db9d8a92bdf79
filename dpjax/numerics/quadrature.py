"""Points and weights for expectations over independent standard Normal numbers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax.base import Array, Key

__all__ = ["Rule", "make_rule", "pad"]

MOST_TENSOR = 3
"""Up to this many dimensions the points are a grid; beyond, a grid has too few on each side."""

MOST_HERMITE = 32
"""Gauss-Hermite up to this many nodes. From there on equally spaced ones are as exact where the integrand is smooth,
and closer to each other: where a clamp bends it, the error falls with the square of the distance."""

REACH = 10.0
"""Equally spaced nodes end here: beyond lies a probability of 1e-23."""


class Rule(NamedTuple):
    """E f(z) ≈ Σ_q weights[q] f(points[:, q]), for z standard Normal.

    Attributes
    ----------
    points
        The nodes [k, q].
    weights
        Their weights [q], which sum to 1.
    """

    points: Array
    weights: Array


def make_rule(key: Key, dim: int, num_points: int, refinement: int = 1) -> Rule:
    """About so many nodes in so many dimensions: a grid up to three, scrambled Sobol points beyond.

    Parameters
    ----------
    key
        For the scrambling.
    refinement
        How many times as many nodes to take on each side of a grid; of Sobol points, its square times as many.
    """
    if dim <= MOST_TENSOR:
        return as_rule(*grid(dim, refinement * max(2, round(num_points ** (1 / dim)))))
    return as_rule(*sobol(key, dim, refinement**2 * num_points))


def as_rule(points: np.ndarray, weights: np.ndarray) -> Rule:
    """Nodes and weights in the default type of floats."""
    return Rule(jnp.asarray(points, float), jnp.asarray(weights / np.sum(weights), float))


def pad(rule: Rule, size: int) -> Rule:
    """The rule with nodes of weight 0 added."""
    more = size - rule.weights.size
    return Rule(jnp.pad(rule.points, ((0, 0), (0, more))), jnp.pad(rule.weights, (0, more)))


def line(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights [size] for one Normal number."""
    if size <= MOST_HERMITE:
        nodes, weights = scipy.special.roots_hermitenorm(size)
        return nodes, weights
    nodes = np.linspace(-REACH, REACH, size)
    return nodes, np.exp(-np.square(nodes) / 2)


def grid(dim: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes [dim, side^dim] of all combinations, and the products of their weights."""
    nodes, weights = line(side)
    points = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij")).reshape(dim, -1)
    products = np.prod(np.stack(np.meshgrid(*[weights] * dim, indexing="ij")), axis=0).ravel()
    return points, products


def sobol(key: Key, dim: int, num_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Scrambled Sobol points [dim, q] as Normal numbers, q the next power of two, and equal weights."""
    seed = int(jax.random.randint(key, (), 0, np.iinfo(np.int32).max))
    uniforms = scipy.stats.qmc.Sobol(dim, seed=seed).random_base2(max(1, (num_points - 1).bit_length()))
    # The points are whole multiples of 2^-30, of which one may be 0: each is read as the middle of its cell.
    return scipy.special.ndtri(uniforms.T + 2.0**-31), np.ones(len(uniforms))
