"""Noise that protects: rounded Gaussian noise from an unpredictable source, on a grid."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from dpjax.base import Array, Key
from dpjax.private.noise.chacha import keystream
from dpjax.private.noise.rounded import rounded_normal
from dpjax.private.query import Query
from dpjax.validation import check_count

GRID_BITS = 32  # the grid is 2^-32 to 2^-33 of the standard deviation
LARGEST_STEPS = 2.0**62  # values beyond are moved to it, so that int64 sums cannot overflow
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-900, 2.0**900


@dataclass(frozen=True)
class Secure:
    """Gaussian noise that nobody can predict, on a grid that tells nothing of what it was added to.

    A release is made on the host: (1) the value is rounded to a grid whose step g is a power of two, at most 2^-32 of
    the standard deviation σ; (2) a draw of N(0, σ²), rounded to the same grid, is added in integer arithmetic; (3) the
    sum is converted to the value's float dtype.

    Parameters
    ----------
    keystream
        Where random bytes come from; ChaCha20 under keys of the operating system unless a test says otherwise.

    Notes
    -----
    *The argument.* Let f be the value and f' = g round(f / g). As f' lies on the grid, f' + g round(σZ / g) equals
    g round((f' + σZ) / g): it is computed from f' + σZ, an ideal Gaussian mechanism in real numbers, without further
    use of the records, and so is its conversion to floats. Its sensitivity is that of f', at most Δ + g √d, since each
    of the d coordinates moves by at most g / 2 when it is rounded. `query` accounts for it: with noise multiplier z
    and g <= 2^-32 σ, 1/z becomes 1/z + 2^-32 √d. So rounding costs a known amount and adds nothing to δ.

    Floating-point noise has no such argument: which floats a sum can reach depends on what was added (Mironov 2012),
    and Gaussian samplers can be inverted in the same way (Holohan and Braghin 2021).

    *Its limits.* It needs that the uniform bits are uniform (ChaCha20 and `os.urandom`); that SciPy's normal quantile
    is within 2^-45 of the truth, relative above 1 (seen: 2^-50.5), where decimal arithmetic takes over; and that the
    value has the sensitivity it is said to have. That of a sum computed in floats exceeds Δ by the rounding of its
    partial sums, at most about n² 2^-53 of one record's bound in float64, and n² 2^-24 in float32. Timing is not
    protected: a draw that needs decimal arithmetic (at most one in a thousand) takes longer, and so may the value's own
    computation. Neither are memory, swap and the published output of anything but the release.
    """

    keystream: Callable[[int], bytes] = keystream

    @property
    def grade(self) -> Literal["secure"]:
        """Fit for publication, within the limits stated."""
        return "secure"

    def release(self, key: Key, value: Array, scale: Array) -> Array:
        """A draw of the grid mechanism around `value`; the key is not used.

        The draw is made by a host callback when the program runs, never when it is traced, and anew each time the
        program or a loop comes by. Under `jax.vmap` the lanes are handled in one callback, and their noise is
        independent if they differ in key, value or scale. A value that is not a number counts as 0, as an infinite one
        would tell of a record too; a scale that is no positive number gives NaN. There is no gradient.

        Raises
        ------
        ImportError
            If cryptography is not installed.
        """
        self.keystream(8)
        lane = jax.random.key_data(key)  # which tells lanes apart; its content is ignored
        return self._release(lane, value, jnp.asarray(scale, value.dtype))

    def query(
        self, name: str, noise_multiplier: float, *, dimension: int, count: int = 1, sampling_rate: float = 1.0
    ) -> Query:
        """What the releases cost, with the √d g by which rounding enlarges the sensitivity."""
        rounding = sqrt(check_count("dimension", dimension)) * 2.0**-GRID_BITS
        multiplier = 1 / (1 / noise_multiplier + rounding) if noise_multiplier > 0 else noise_multiplier
        return Query(name, multiplier, self.grade, count, sampling_rate)

    def _release(self, lane: Array, value: Array, scale: Array) -> Array:
        def on_host(_: np.ndarray, values: np.ndarray, scales: np.ndarray) -> np.ndarray:
            return add_noise(self.keystream, np.asarray(values), np.asarray(scales))

        @jax.custom_batching.custom_vmap
        def call(lane: Array, value: Array, scale: Array) -> Array:
            return io_callback(on_host, jax.ShapeDtypeStruct(value.shape, value.dtype), lane, value, scale)

        @call.def_vmap
        def _together(size: int, batched: list[bool], *arguments: Array) -> tuple[Array, bool]:
            full = [
                argument if is_batched else jnp.broadcast_to(argument, (size, *argument.shape))
                for argument, is_batched in zip(arguments, batched, strict=True)
            ]
            return call(*full), True

        return call(lane, value, scale)


def add_noise(keystream: Callable[[int], bytes], value: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """`value` plus Gaussian noise of standard deviation `scale`, both rounded to the grid of that scale.

    Parameters
    ----------
    keystream
        A function that returns so many random bytes, other ones at each call.
    value : [..., *shape]
        What is to be protected.
    scale : [...]
        A standard deviation for each of the leading entries.
    """
    scales = scale.astype(np.float64).reshape(scale.shape + (1,) * (value.ndim - scale.ndim))
    usable = (scales >= SMALLEST_SCALE) & (scales <= LARGEST_SCALE)
    deviation = np.where(usable, scales, 1.0)
    step = np.exp2(np.frexp(deviation)[1] - 1.0 - GRID_BITS)
    with np.errstate(over="ignore"):
        steps = np.rint(value.astype(np.float64) / step)
    steps = np.clip(np.where(np.isnan(steps), 0.0, steps), -LARGEST_STEPS, LARGEST_STEPS).astype(np.int64)
    noisy = steps + rounded_normal(keystream, np.broadcast_to(deviation / step, value.shape))
    with np.errstate(over="ignore"):
        return np.where(usable, noisy * step, np.nan).astype(value.dtype)
