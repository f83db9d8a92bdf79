"""Noise for publication: rounded Gaussian noise from an unpredictable source, on a grid."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.experimental import io_callback

from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_count, check_function, check_key, fail
from dpjax.base import Array, Key
from dpjax.private.accounting.query import Grade, Query
from dpjax.private.arguments import check_real
from dpjax.private.noise.base import Value, at_least, check_release, float_dtype

GRID_BITS = 32  # the grid is 2^-32 to 2^-33 of the standard deviation
LARGEST_STEPS = 2.0**60  # values beyond are moved to it, so that int64 sums cannot overflow
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-900, 2.0**900

Keystream = Callable[[int], bytes]

SIGN = 63  # the bit of a word that holds the sign; the others are the first bits of the tail probability U < 1/2
FLOAT_ERROR = 2.0**-45  # of a double-precision quantile, relative above 1; forty times what has been seen of SciPy's
TRUNCATION_ERROR = 2.0**-64 * np.sqrt(2 * np.pi)  # of U, over the normal density that it is divided by
FURTHER_BITS = 192
DIGITS = 110
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328"
)


def keystream(num_bytes: int) -> bytes:
    """A ChaCha20 keystream of `num_bytes` bytes under a fresh 256-bit key of `os.urandom`.

    Every call has a key of its own and nothing is kept. So no stream can repeat: not after a fork, not between
    threads, not when a program is restored from a snapshot of its memory.

    Raises
    ------
    ImportError
        If cryptography is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    except ImportError as error:
        need = "expected for noise.secure"
        raise ImportError(
            f"cryptography: not installed; {need}. Run pip install cryptography dp-accounting."
        ) from error
    start = bytes(16)  # counter and nonce may be zero under a key that is used once
    return Cipher(ChaCha20(os.urandom(32), start), mode=None).encryptor().update(bytes(num_bytes))


@dataclass(frozen=True)
class Secure(NamesArguments):
    """Unpredictable Gaussian noise on a grid that does not depend on the value.

    A release is made on the host. (1) The value is rounded to a grid whose step g is a power of two, at most 2^-32 of
    the standard deviation σ. (2) A draw of N(0, σ²), rounded to the same grid, is added in integer arithmetic. (3) The
    sum is converted to a float dtype.

    Parameters
    ----------
    keystream
        Where random bytes come from: ChaCha20 under keys of the operating system. With any other, such as a seeded
        generator in a test, the noise is simulation-grade.

    Notes
    -----
    *The argument.* Let f be the value and f' = g round(f / g). As f' lies on the grid, f' + g round(σZ / g) equals g
    round((f' + σZ) / g). It is computed from f' + σZ, an ideal Gaussian mechanism in real numbers, without further use
    of the records, and so is its conversion to floats. Its sensitivity is that of f', at most Δ + g √d, since each of
    the d coordinates moves by at most g / 2 when it is rounded. `query` accounts for it: with noise multiplier z and g
    <= 2^-32 σ, 1/z becomes 1/z + 2^-32 √d. So rounding costs a known amount and adds nothing to δ.

    Floating-point noise has no such argument. Which floats a sum can reach depends on what was added (Mironov 2012),
    and Gaussian samplers can be inverted in the same way (Holohan and Braghin 2021).

    *Its limits.* It needs that the uniform bits are uniform (ChaCha20 and `os.urandom`). It needs that SciPy's normal
    quantile is within 2^-45 of the truth, relative above 1 (seen: 2^-50.5), where decimal arithmetic takes over. And it
    needs that the value has the sensitivity it is said to have. The sums of the private kernels do, as they are sums of
    integers. A sum of floats exceeds Δ by the rounding of its partial sums, up to n² 2^-24 of one record's bound in
    float32. Timing is not protected: a draw that needs decimal arithmetic (at most one in a thousand) takes longer, and
    so may the value's own computation. Neither are memory, swap and the published output of anything but the release.

    Examples
    --------
    >>> from dpjax.private import noise
    >>> query = noise.secure.query("mean", noise_multiplier=20.0, dimension=3)
    >>> query.grade, query.noise_multiplier < 20.0
    ('secure', True)
    """

    keystream: Callable[[int], bytes] = keystream

    def __post_init__(self) -> None:
        check_function("keystream", self.keystream, "number of bytes -> bytes")

    @property
    def grade(self) -> Grade:
        """Fit for publication within the limits stated, unless the random bytes come from elsewhere."""
        return "secure" if self.keystream is keystream else "simulation-grade"

    def random_bytes(self, number: int) -> bytes:
        """That many bytes of the keystream, or an error if it gives others."""
        drawn = self.keystream(number)
        if not isinstance(drawn, (bytes, bytearray)) or len(drawn) != number:
            given = f"{len(drawn)} bytes" if isinstance(drawn, (bytes, bytearray)) else f"a {type(drawn).__name__}"
            fail("keystream", f"a function that returns {given}", f"{number} bytes", "Return as many as are asked for.")
        return bytes(drawn)

    def release(self, key: Key, value: Value, scale: Array | float) -> Array:
        """A draw of the grid mechanism around `value`; the key is not used.

        The draw is made by a host callback when the program runs, never when it is traced, and anew each time the
        program or a loop comes by. Under `jax.vmap` the lanes are handled in one callback, and their noise is
        independent if they differ in key, value or scale. NaN counts as 0, since a NaN or infinite release would reveal
        a record; a scale that is not positive gives NaN. There is no gradient.

        Raises
        ------
        ImportError
            If cryptography is not installed.
        """
        check_release(key, value, scale)
        self.random_bytes(8)
        lane = jax.random.key_data(key)  # distinguishes lanes; its content is ignored
        dtype = float_dtype(value)
        precision = dtype if dtype == jnp.float64 else jnp.float32  # half of it would change a scale
        return self._release(dtype, lane, at_least(scale, precision), *jax.tree.leaves(value))

    def sampling_key(self, key: Key) -> Key:
        """A key of fresh random bytes, drawn by the host when the program runs: no two samples share one.

        Under `jax.vmap` lanes have separate keys if they differ in `key`, which is otherwise ignored.
        """
        check_key("key", key)
        self.random_bytes(8)
        return jax.random.wrap_key_data(self._random_words(jax.random.key_data(key)), impl="threefry2x32")

    def _random_words(self, lane: Array) -> Array:
        def on_host(lanes: np.ndarray) -> np.ndarray:
            shape = (*np.shape(lanes)[:-1], 2)
            return np.frombuffer(self.random_bytes(4 * int(np.prod(shape))), "<u4").reshape(shape).astype(np.uint32)

        @jax.custom_batching.custom_vmap
        def call(lane: Array) -> Array:
            return io_callback(on_host, jax.ShapeDtypeStruct((*lane.shape[:-1], 2), jnp.uint32), lane)

        @call.def_vmap
        def _together(size: int, batched: list[bool], lanes: Array) -> tuple[Array, bool]:
            return call(lanes), True

        return call(lane)

    def query(
        self, name: str, noise_multiplier: float, *, dimension: int, count: int = 1, sampling_rate: float = 1.0
    ) -> Query:
        """What the releases cost, with the √d g by which rounding enlarges the sensitivity.

        Raises
        ------
        ValueError
            If JAX has no CPU, on which the draws are made.
        """
        check_host()
        rounding = sqrt(check_count("dimension", dimension)) * 2.0**-GRID_BITS
        given = check_real("noise_multiplier", noise_multiplier)
        multiplier = 1 / (1 / given + rounding) if given > 0 else given
        return Query(name, multiplier, self.grade, count, sampling_rate)

    def _release(self, dtype: Any, lane: Array, scale: Array, *parts: Array) -> Array:
        def on_host(_: np.ndarray, scales: np.ndarray, *values: np.ndarray) -> np.ndarray:
            return add_noise(self.random_bytes, tuple(map(np.asarray, values)), np.asarray(scales), dtype)

        @jax.custom_batching.custom_vmap
        def call(lane: Array, scale: Array, *parts: Array) -> Array:
            return io_callback(on_host, jax.ShapeDtypeStruct(parts[0].shape, dtype), lane, scale, *parts)

        @call.def_vmap
        def _together(size: int, batched: list[bool], *arguments: Array) -> tuple[Array, bool]:
            full = [
                argument if is_batched else jnp.broadcast_to(argument, (size, *argument.shape))
                for argument, is_batched in zip(arguments, batched, strict=True)
            ]
            return call(*full), True

        return call(lane, scale, *parts)


def check_host() -> None:
    """Raise, before anything is charged, unless JAX has the host's CPU: callbacks would fail while a program runs."""
    try:
        jax.local_devices(backend="cpu")
    except RuntimeError:
        given, expected = "noise.secure without a CPU for JAX", "a CPU beside the accelerator, to make the draws on"
        fail("noise", given, expected, "Name both in JAX_PLATFORMS, such as cuda,cpu.")


def add_noise(
    keystream: Callable[[int], bytes], parts: tuple[np.ndarray, ...], scale: np.ndarray, dtype: Any
) -> np.ndarray:
    """A value plus Gaussian noise of standard deviation `scale`, both rounded to the grid of that scale.

    Parameters
    ----------
    keystream
        A function that returns a given number of random bytes, different at each call.
    parts : each [..., *shape]
        What is to be protected: their exact sum.
    scale : [...]
        A standard deviation for each of the leading entries.
    dtype
        That of the result.
    """
    shape = np.shape(parts[0])
    scales = scale.astype(np.float64).reshape(scale.shape + (1,) * (len(shape) - scale.ndim))
    usable = (scales >= SMALLEST_SCALE) & (scales <= LARGEST_SCALE)
    deviation = np.where(usable, scales, 1.0)
    step = grid_of(deviation)
    noisy = in_steps(parts, step) + rounded_normal(keystream, np.broadcast_to(deviation / step, shape))
    with np.errstate(over="ignore"):
        return np.where(usable, noisy * step, np.nan).astype(dtype)


def grid_of(deviation: np.ndarray) -> np.ndarray:
    """The steps [...] of the grids for noise of standard deviations [...]: powers of two, at most 2^-32 of them."""
    return np.asarray(np.exp2(np.frexp(deviation)[1] - 1.0 - GRID_BITS))


def in_steps(parts: tuple[np.ndarray, ...], step: np.ndarray) -> np.ndarray:
    """The sum of the parts rounded to a whole number of steps, which are powers of two: int64."""
    whole, fraction = np.int64(0), np.float64(0.0)
    with np.errstate(over="ignore"):
        for part in (doubles for one in parts for doubles in as_doubles(one)):
            count = np.nan_to_num(part / step, nan=0.0)
            nearest = np.rint(np.clip(count, -LARGEST_STEPS, LARGEST_STEPS))
            whole, fraction = whole + nearest.astype(np.int64), fraction + np.clip(count - nearest, -0.5, 0.5)
    limit = np.int64(LARGEST_STEPS)
    return np.clip(whole + np.rint(fraction).astype(np.int64), -limit, limit)


def as_doubles(part: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arrays of doubles whose sum is exactly an array of floats or integers."""
    if part.dtype.kind not in "iu":
        return (part.astype(np.float64),)
    integers = part.astype(np.int64)
    return (integers >> 32) * 2.0**32, (integers & (2**32 - 1)).astype(np.float64)


def rounded_normal(keystream: Keystream, ratio: np.ndarray) -> np.ndarray:
    """Independent draws of round(r Z), Z ~ N(0, 1), as int64, one for each entry r of `ratio`.

    Parameters
    ----------
    keystream
        A function that returns a given number of random bytes, different at each call.
    ratio : [...]
        Positive numbers below 2^50.
    """
    if ratio.ndim == 0:
        return rounded_normal(keystream, ratio[None])[0]
    words = np.frombuffer(keystream(8 * ratio.size), "<u8").reshape(ratio.shape)
    tail = words & np.uint64(2**SIGN - 1)
    quantile = -scipy.special.ndtri((tail.astype(np.float64) + 0.5) * 2.0**-64)
    steps = ratio * quantile
    magnitude = np.rint(steps)
    error = FLOAT_ERROR * np.maximum(quantile, 1) + TRUNCATION_ERROR * np.exp(quantile**2 / 2)
    for place in zip(*np.nonzero(np.abs(steps - magnitude) + ratio * error >= 0.5), strict=True):
        uniform = extended(int(tail[place]), keystream)
        magnitude[place] = settle(uniform, float(ratio[place]), int(magnitude[place]))
    return np.where(words >> np.uint64(SIGN), -magnitude, magnitude).astype(np.int64)


def extended(tail: int, keystream: Keystream) -> Decimal:
    """The tail probability U = tail / 2^64 with further bits, exactly."""
    bits = tail << FURTHER_BITS | int.from_bytes(keystream(FURTHER_BITS // 8), "little")
    with localcontext(prec=DIGITS):
        return (Decimal(bits) + Decimal("0.5")) / Decimal(2) ** (64 + FURTHER_BITS)


def settle(uniform: Decimal, ratio: float, guess: int) -> int:
    """The integer k >= 0 with r z in [k - 1/2, k + 1/2), where P(Z > z) = `uniform`, from a guess near it."""

    def below(count: int) -> bool:
        """Whether r z < count + 1/2."""
        with localcontext(prec=DIGITS):
            return upper_tail((Decimal(count) + Decimal("0.5")) / Decimal(ratio)) < uniform

    low, high, reach = max(guess - 1, -1), guess, 1
    while not below(high):
        low, high, reach = high, high + reach, 2 * reach
    while low >= 0 and below(low):
        low, high, reach = max(low - reach, -1), low, 2 * reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return high


def upper_tail(threshold: Decimal) -> Decimal:
    """P(Z > x), Z ~ N(0, 1), x >= 0, to the working precision: 1/2 - φ(x) Σ x^(2n+1) / (1 · 3 · ... · (2n + 1))."""
    square = threshold * threshold
    term = series = threshold
    order = 1
    while term > series * Decimal(10) ** -DIGITS:
        order += 2
        term = term * square / order
        series += term
    density = (-square / 2).exp() / (2 * PI).sqrt()
    return Decimal("0.5") - density * series
