"""Standard Normal columns as their mean, their scatter, and what is left of them.

Of n independent standard Normal columns u_i [k], the mean ū, the lower factor B of the scatter Σ (u_i − ū)(u_i − ū)ᵀ
and the standardised columns B⁻¹ (u_i − ū) are independent. √n ū is standard Normal; so are the entries of B below the
diagonal, and the square of the j-th one on it is chi-squared with n − j degrees of freedom, j = 1, ..., k (Bartlett
1933).
"""

from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.numerics.linear_algebra import factorize, product, solve_lower

__all__ = ["Frame", "find_frame", "log_density", "num_coordinates", "to_coordinates", "to_frame"]


class Frame(NamedTuple):
    """Where columns lie: their mean [k], and the lower factor [k, k] of their scatter over n."""

    mean: Array
    factor: Array

    def standardise(self, columns: Array) -> Array:
        """The columns [k, n] less the mean, by the inverse factor."""
        return solve_lower(self.factor, columns - self.mean[:, None])

    def place(self, standardised: Array) -> Array:
        """The columns [k, n] with this frame, of standardised ones."""
        return self.mean[:, None] + product(self.factor, standardised)


def num_coordinates(k: int) -> int:
    """How many numbers a frame of k rows has."""
    return k * (k + 3) // 2


def find_frame(columns: Array) -> Frame:
    """The frame of columns [k, n]; not a number unless n > k."""
    mean = jnp.mean(columns, axis=1)
    spread = columns - mean[:, None]
    return Frame(mean, factorize(product(spread, spread.T) / columns.shape[1]))


def to_coordinates(frame: Frame, n: int) -> Array:
    """The frame of n standard Normal columns as numbers [m] that are nearly standard Normal, and free of each other."""
    k = frame.mean.size
    roots = jnp.diagonal(frame.factor) * jnp.sqrt(n / freedom(k, n))
    below = frame.factor[jnp.tril_indices(k, -1)]
    scale = jnp.sqrt(jnp.asarray(n, below.dtype))
    return jnp.concatenate([scale * frame.mean, scale * below, jnp.sqrt(2 * freedom(k, n)) * jnp.log(roots)])


def to_frame(coordinates: Array, k: int, n: int) -> Frame:
    """The frame [k, k] at coordinates [m]."""
    mean, below, logarithms = jnp.split(coordinates, [k, num_coordinates(k) - k])
    diagonal = jnp.sqrt(freedom(k, n) / n) * jnp.exp(logarithms / jnp.sqrt(2 * freedom(k, n)))
    scale = jnp.sqrt(jnp.asarray(n, below.dtype))
    return Frame(mean / scale, jnp.diag(diagonal).at[jnp.tril_indices(k, -1)].set(below / scale))


def log_density(coordinates: Array, k: int, n: int) -> Array:
    """The log-density [] of the coordinates [m] of n standard Normal columns [k], less its value at 0."""
    normal, logarithms = jnp.split(coordinates, [num_coordinates(k) - k])
    ratios = logarithms / jnp.sqrt(2 * freedom(k, n))
    return -jnp.sum(normal**2) / 2 + jnp.sum(freedom(k, n) * (ratios - jnp.expm1(2 * ratios) / 2))


def freedom(k: int, n: int) -> Array:
    """The degrees of freedom [k] of the squared diagonal."""
    return n - 1.0 - jnp.arange(k, dtype=float)
