"""More than two hundred entries of which a record can have any: numbers of all types, and much that is none."""

import datetime
import decimal
import fractions
import uuid
from typing import Any

import jax
import numpy as np


class Raising:
    """What raises when it is read as an array, as a number, as a list or as a text."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def fail(self, *given: Any, **options: Any) -> Any:
        raise self.error("read")

    __array__ = __float__ = __int__ = __len__ = __iter__ = __getitem__ = __eq__ = __bool__ = fail
    __hash__ = None  # type: ignore[assignment]


class Silent:
    """What says of itself that it is an array, and is none."""

    shape, dtype, ndim = (), np.dtype(float), 0


class Whole(int):
    """A whole number that is not equal to itself."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


class Text(str):
    """A text that is like any other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def nested(depth: int) -> list[Any]:
    """A list in a list, so many times."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


ERRORS = [ValueError, TypeError, KeyError, IndexError, RuntimeError, RecursionError, MemoryError, OverflowError]
ERRORS += [AttributeError, StopIteration, ZeroDivisionError, NotImplementedError, OSError, Warning, UserWarning]
TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64, np.longdouble]
EXPONENTS = (7, 8, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 62, 63, 64, 65, 127, 128, 1023, 1024, 5_000)
SPECIAL = [0.0, -0.0, 0.5, -1.5, 2.5, 1e-320, 3e38, 1e39, 1e300, np.inf, -np.inf, np.nan]
TEXTS = ["", " ", "n/a", "x", "7", " 7", "7.0", "0x7", "nan", "inf", "1e3", "\0", "\udcff", b"7", b"\xff", "é" * 300]
OTHERS: list[Any] = [None, ..., NotImplemented, True, False, np.True_, 1j, 1 + 0j, np.complex64(2), slice(3), print]
OTHERS += [lambda: 3, object(), Silent(), Whole(3), Text("who"), Exception("read"), iter([1]), range(1), int]
OTHERS += [[], [1], [1.5], [1, 2], [[1]], [None], (), (1,), {}, {1}, {"y": 1}, frozenset(), nested(70), nested(3_000)]
OTHERS += [np.zeros(0), np.ones(1), np.ones((1, 1)), np.array(1), np.array("x"), np.array(None), memoryview(b"7")]
OTHERS += [np.ma.masked, np.ma.masked_array(1.0, True), np.zeros((), [("a", int)]), np.void(b"7"), np.array(7, ">i4")]
OTHERS += [np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64(3), np.str_("x"), np.bytes_(b"x")]
OTHERS += [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), decimal.Decimal("1.5"), decimal.Decimal("sNaN")]
OTHERS += [fractions.Fraction(1, 3), uuid.UUID(int=7), jax.numpy.ones(()), jax.numpy.ones(2), jax.random.key(0)]
OTHERS += [np.array([1, "x"], object)]

ODD = [
    *(Raising(error) for error in ERRORS),
    *(of(value) for of in TYPES for value in (0, 1, np.iinfo(of).max, np.iinfo(of).min)),
    *(of(value) for of in FLOATS for value in (0.5, 3.0, np.nan, np.inf, -65_504.0)),
    *(sign * 2**exponent + step for exponent in EXPONENTS for sign, step in ((1, 0), (1, 1), (-1, -1))),
    *SPECIAL,
    *TEXTS,
    *OTHERS,
]
"""The entries."""
