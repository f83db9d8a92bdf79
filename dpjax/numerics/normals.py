"""Standard Normal draws that are cheap in double precision, where inverting the distribution function takes a CPU long.

The transformation of Box and Muller (1958): from uniform u and v the pair √(−2 log u) (cos 2πv, sin 2πv).
"""

from math import factorial, pi, prod

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key

__all__ = ["points_on_circle", "standard_normals"]

COSINE = tuple((-1) ** k / factorial(2 * k) for k in range(9))
SINE = tuple((-1) ** k / factorial(2 * k + 1) for k in range(9))
"""Series in the square of an angle below π / 4, of which the next terms are below 1e-17."""


def standard_normals(key: Key, shape: tuple[int, ...], dtype: type = float) -> Array:
    """Independent standard Normal draws; in single precision they are those of `jax.random.normal`."""
    if jax.dtypes.canonicalize_dtype(dtype) != jnp.float64:
        return jax.random.normal(key, shape, dtype)
    size = prod(shape)
    for_radius, for_angle = jax.random.bits(key, (2, (size + 1) // 2), jnp.uint64)
    radius = jnp.sqrt(-2 * jnp.log(2 - one_to_two(for_radius)))
    return jnp.concatenate([radius * place for place in points_on_circle(for_angle)])[:size].reshape(shape)


def one_to_two(bits: Array) -> Array:
    """Numbers in [1, 2) whose fractions are the upper 52 of 64 random bits."""
    return jax.lax.bitcast_convert_type((bits >> 12) | jnp.uint64(0x3FF0000000000000), jnp.float64)


def points_on_circle(bits: Array) -> tuple[Array, Array]:
    """Uniform points on the unit circle, by 64 random bits each.

    The upper bits are an angle between −π / 4 and π / 4; the lowest three exchange the coordinates and set their signs.
    """
    angle = (one_to_two(bits) - 1.5) * (pi / 2)
    cosine, sine = series(angle**2, COSINE), angle * series(angle**2, SINE)
    exchanged = (bits & 1) == 1
    first, second = jnp.where(exchanged, sine, cosine), jnp.where(exchanged, cosine, sine)
    return with_sign(first, bits >> 1), with_sign(second, bits >> 2)


def with_sign(numbers: Array, bits: Array) -> Array:
    """Numbers whose sign is flipped if the lowest bit is 1."""
    flipped = jax.lax.bitcast_convert_type(numbers, jnp.uint64) ^ (bits << 63)
    return jax.lax.bitcast_convert_type(flipped, jnp.float64)


def series(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Σ cₖ xᵏ."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
