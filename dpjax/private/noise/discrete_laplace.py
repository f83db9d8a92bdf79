"""Exact discrete Laplace noise from random bytes, by whole numbers alone."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

__all__ = ["discrete_laplace"]

BYTES_AT_ONCE = 4_096


class Bits:
    """Uniform whole numbers from a stream of random bytes."""

    def __init__(self, keystream: Callable[[int], bytes]) -> None:
        self.keystream = keystream
        self.bytes, self.place = b"", 0

    def take(self, count: int) -> bytes:
        """So many further bytes."""
        if self.place + count > len(self.bytes):
            self.bytes, self.place = self.keystream(max(count, BYTES_AT_ONCE)), 0
        taken = self.bytes[self.place : self.place + count]
        self.place += count
        return taken

    def below(self, end: int) -> int:
        """A uniform draw from 0, ..., end - 1: numbers of as many bits, until one is small enough."""
        bits = (end - 1).bit_length()
        while True:
            number = int.from_bytes(self.take(-(-bits // 8)), "little") & ((1 << bits) - 1)
            if number < end:
                return number


def discrete_laplace(keystream: Callable[[int], bytes], scales: list[Fraction]) -> np.ndarray:
    """Independent draws [d] of whole numbers with probabilities proportional to exp(-|k| / scale), one for each scale.

    The probabilities are exact: no floating-point number is involved.

    Parameters
    ----------
    keystream
        A function that returns a given number of random bytes, different at each call.
    scales
        Positive fractions.

    Notes
    -----
    Algorithm 2 of Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".
    """
    bits = Bits(keystream)
    return np.array([draw_one(bits, scale.numerator, scale.denominator) for scale in scales], object)


def draw_one(bits: Bits, over: int, under: int) -> int:
    """One draw with scale over / under: the sign of a geometric number, of which 0 has no sign."""
    while True:
        magnitude = geometric(bits, over) // under
        is_negative = bits.below(2) == 1
        if magnitude or not is_negative:
            return -magnitude if is_negative else magnitude


def geometric(bits: Bits, over: int) -> int:
    """A draw of k >= 0 with probability proportional to exp(-k / over): its remainder and its quotient by `over`."""
    remainder = bits.below(over)
    while not happens(bits, remainder, over):
        remainder = bits.below(over)
    quotient = 0
    while happens(bits, 1, 1):
        quotient += 1
    return remainder + over * quotient


def happens(bits: Bits, part: int, whole: int) -> bool:
    """Whether an event of probability exp(-part / whole), part <= whole, happens (Algorithm 1, first case).

    With x = part / whole the k-th of the trials of probabilities x / 1, x / 2, ... is the first to fail with
    probability x^(k - 1) / (k - 1)! - x^k / k!; these alternate to exp(-x) over odd k.
    """
    trial = 1
    while bits.below(whole * trial) < part:
        trial += 1
    return trial % 2 == 1
