"""Quadrature rules for expectations over independent standard Normal variables."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax.base import Array, Key

__all__ = ["Rule", "make_rule", "pad"]

MAX_GRID_DIM = 3
"""Largest number of dimensions in which the points are a grid; in more they are Sobol points."""

MAX_HERMITE = 32
"""Largest number of Gauss-Hermite nodes. More nodes are equally spaced: as exact for smooth integrands, and closer
together, so that the error at the kink of a clamp decreases with the square of their distance."""

REACH = 10.0
"""Largest equally spaced node: the probability beyond it is 1e-23."""


class Rule(NamedTuple):
    """A rule E f(z) ≈ Σ_q weights[q] f(points[:, q]) for z standard Normal.

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
    """A rule of about `num_points` nodes in `dim` dimensions: a grid up to three, scrambled Sobol points in more.

    Parameters
    ----------
    key
        The key of the scrambling.
    refinement
        The factor for the number of nodes on each side of a grid; its square is the factor for Sobol points.
    """
    if dim <= MAX_GRID_DIM:
        return as_rule(*grid(dim, refinement * max(2, round(num_points ** (1 / dim)))))
    return as_rule(*sobol(key, dim, refinement**2 * num_points))


def as_rule(points: np.ndarray, weights: np.ndarray) -> Rule:
    """The rule with these nodes and normalised weights, in the default float type."""
    return Rule(jnp.asarray(points, float), jnp.asarray(weights / np.sum(weights), float))


def pad(rule: Rule, size: int) -> Rule:
    """The rule with nodes of weight 0 added."""
    more = size - rule.weights.size
    return Rule(jnp.pad(rule.points, ((0, 0), (0, more))), jnp.pad(rule.weights, (0, more)))


def line(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights [size] for one Normal variable."""
    if size <= MAX_HERMITE:
        nodes, weights = scipy.special.roots_hermitenorm(size)
        return nodes, weights
    nodes = np.linspace(-REACH, REACH, size)
    return nodes, np.exp(-np.square(nodes) / 2)


def grid(dim: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The tensor product of a rule of `side` nodes: nodes [dim, side^dim] and weights."""
    nodes, weights = line(side)
    points = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij")).reshape(dim, -1)
    products = np.prod(np.stack(np.meshgrid(*[weights] * dim, indexing="ij")), axis=0).ravel()
    return points, products


def sobol(key: Key, dim: int, num_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Scrambled Sobol points [dim, q] mapped to Normal quantiles, q the next power of two, and equal weights."""
    seed = int(jax.random.randint(key, (), 0, np.iinfo(np.int32).max))
    uniforms = scipy.stats.qmc.Sobol(dim, seed=seed).random_base2(max(1, (num_points - 1).bit_length()))
    # The points are multiples of 2^-30 and may be 0: each is replaced by the middle of its cell.
    return scipy.special.ndtri(uniforms.T + 2.0**-31), np.ones(len(uniforms))
