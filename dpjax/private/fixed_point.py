"""Sums whose sensitivity is exact in any precision: contributions rounded to a public grid and added as integers."""

from math import inf, sqrt
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail
from dpjax.base import Array

__all__ = [
    "BOUND_BITS",
    "LARGEST_BLOCK",
    "MOST_RECORDS",
    "FixedPoint",
    "FloatingPoint",
    "Limbs",
    "arithmetic",
    "steps_of",
]

BOUND_BITS = {"float32": 22, "float64": 40}
"""Bits of a bound in steps of the grid: in float32 nearly all of a number's, and 511 bounds fit an int32."""
LIMB_BITS = {"float32": 23, "float64": 40}
"""Bits of the lower of two integers; in float32 either converts to a float without loss."""
HALF_BITS = 11
LARGEST_BLOCK = 2**19
"""Largest number of records added at once.

The higher halves of their int32 in `FixedPoint.sum`, of at most 2^11, then sum to 2^30. The lower ones, below 2^11,
with the remainder of the higher, below 2^23, sum to less than 2^31.
"""
MOST_RECORDS = 2**31 - 1
"""Largest number of records: their places are of type int32."""


class Limbs(NamedTuple):
    """A number as the sum of two, for more precision than float32 or int32 have."""

    high: Array
    low: Array


class FixedPoint(NamedTuple):
    """Sums of contributions of at most `bound`, in steps of bound / 2^22 (float32) or bound / 2^40 (float64).

    Integers have the same sum in any order, over any chunks and devices, and replacing one of them changes it by
    exactly the difference. In a sum of floats, one contribution affects the rounding of all partial sums.
    """

    bound: Array | float
    dtype: Any

    @property
    def unit(self) -> Array:
        """The size of a step []."""
        return jnp.asarray(self.bound, self.dtype) / steps_of(self.dtype)

    def limit(self, dimension: int) -> float:
        """The largest length, in steps, of a vector that is within the bound after rounding all its coordinates.

        Rounding to the nearest step lengthens it by √d / 2 at most, and its length was computed in floats.
        """
        rounding = (dimension + 16) * float(jnp.finfo(self.dtype).eps)
        if rounding > 0.1:
            fail("position", f"{dimension} parameters of {self.dtype}", "fewer", "Enable jax_enable_x64.")
        return (steps_of(self.dtype) - sqrt(dimension) / 2) * (1 - rounding)

    def zeros(self, shape: tuple[int, ...]) -> Limbs:
        """The empty sum."""
        nothing = jnp.zeros(shape, self._integer)
        return Limbs(nothing, nothing)

    def sum(self, steps: Array) -> Limbs:
        """The sum over the last axis of at most 2^19 whole numbers of steps, none of them beyond the bound."""
        integers = steps.astype(self._integer)
        if steps.shape[-1] * steps_of(self.dtype) <= jnp.iinfo(self._integer).max:
            return self._carry(jnp.zeros((), self._integer), self._total(integers))
        high, low = self._total(integers >> HALF_BITS), self._total(integers & (2**HALF_BITS - 1))
        further = self._limb - HALF_BITS
        return self._carry(high >> further, ((high & (2**further - 1)) << HALF_BITS) + low)

    def add(self, one: Limbs, other: Limbs) -> Limbs:
        """The sum of two sums."""
        return self._carry(one.high + other.high, one.low + other.low)

    def floats(self, total: Limbs) -> Limbs:
        """A sum as two floats that together are exactly it, or the nearest sum that they can be.

        Float32 holds sums of 2^25 bounds. A sum beyond them is one of so many, which moves no more than it does. An
        error would tell, before any charge, that there are more records.
        """
        most = 2 ** (jnp.finfo(self.dtype).nmant + 1)
        low = jnp.where(total.high < most, total.low, 2**self._limb - 1)
        low = jnp.where(total.high < -most, 0, low)
        high = jnp.clip(total.high, -most, most - 1)
        return Limbs(high.astype(self.dtype) * 2.0**self._limb, low.astype(self.dtype))

    def _total(self, integers: Array) -> Array:
        return jnp.sum(integers, axis=-1, dtype=self._integer)

    def _carry(self, high: Array, low: Array) -> Limbs:
        return Limbs(high + (low >> self._limb), low & (2**self._limb - 1))

    @property
    def _limb(self) -> int:
        return LIMB_BITS[jnp.dtype(self.dtype).name]

    @property
    def _integer(self) -> Any:
        return {"float32": jnp.int32, "float64": jnp.int64}[jnp.dtype(self.dtype).name]


class FloatingPoint(NamedTuple):
    """Plain sums of contributions without a bound, with no guaranteed sensitivity."""

    dtype: Any

    @property
    def unit(self) -> Array:
        """One []."""
        return jnp.ones((), self.dtype)

    def zeros(self, shape: tuple[int, ...]) -> Limbs:
        """The empty sum."""
        nothing = jnp.zeros(shape, self.dtype)
        return Limbs(nothing, nothing)

    def sum(self, values: Array) -> Limbs:
        """The sum over the last axis."""
        total = jnp.sum(values, axis=-1)
        return Limbs(total, jnp.zeros_like(total))

    def add(self, one: Limbs, other: Limbs) -> Limbs:
        """The sum of two sums."""
        return jax.tree.map(jnp.add, one, other)

    def floats(self, total: Limbs) -> Limbs:
        """The sum, unchanged."""
        return total


def arithmetic(bound: Array | float, dtype: Any) -> FixedPoint | FloatingPoint:
    """The arithmetic for sums of contributions of at most `bound`; without a bound there is no grid."""
    return FloatingPoint(dtype) if isinstance(bound, Real) and bound == inf else FixedPoint(bound, dtype)


def steps_of(dtype: Any) -> float:
    """The number of grid steps of a bound, for any bound and number of records."""
    return 2.0 ** BOUND_BITS[jnp.dtype(dtype).name]
