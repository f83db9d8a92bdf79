"""Gaussian draws rounded to integers, as exact as if the real number behind each had been known to its last digit.

A draw is round(r Z) for a real Z ~ N(0, 1). Z is the normal quantile of a uniform number U of which ever more bits can
be had. 64 bits and double precision locate r Z within a known error, which nearly always settles the rounding; where a
half-integer is too close, 192 further bits and decimal arithmetic settle it.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
from scipy.special import ndtri

Keystream = Callable[[int], bytes]

SIGN = 63  # the bit of a word that holds the sign; the others are the first bits of the tail probability U < 1/2
FLOAT_ERROR = 2.0**-45  # of a double-precision quantile, relative above 1; forty times what has been seen of SciPy's
TRUNCATION_ERROR = 2.0**-64 * np.sqrt(2 * np.pi)  # of U, over the normal density that it is divided by
FURTHER_BITS = 192
DIGITS = 110
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328"
)


def rounded_normal(keystream: Keystream, ratio: np.ndarray) -> np.ndarray:
    """Independent draws of round(r Z), Z ~ N(0, 1), as int64, one for each entry r of `ratio`.

    Parameters
    ----------
    keystream
        A function that returns so many random bytes, other ones at each call.
    ratio : [...]
        Positive numbers below 2^50.
    """
    if ratio.ndim == 0:
        return rounded_normal(keystream, ratio[None])[0]
    words = np.frombuffer(keystream(8 * ratio.size), "<u8").reshape(ratio.shape)
    tail = words & np.uint64(2**SIGN - 1)
    quantile = -ndtri((tail.astype(np.float64) + 0.5) * 2.0**-64)
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
