"""Continuous laws on floating-point numbers: all that lies in the cell next to an end of the support stands as one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax.numerics.ends import highest, lower_end, upper_gap


class Cells(NamedTuple):
    """The inner edges of the two end cells, the upper one's number, and the width that its mass is divided by."""

    low: float
    high: float
    at_high: float
    width: float


def positive(dtype: Any) -> Cells:
    return Cells(lower_end(dtype), highest(dtype), 2 * highest(dtype), highest(dtype))


def unit(dtype: Any) -> Cells:
    gap = upper_gap(dtype)
    return Cells(lower_end(dtype), 1 - gap, 1 - gap / 2, gap)


def by_exponential(dtype: Any) -> Cells:
    """Of a law through Exponential noise: the upper mass is divided by the inner edge, a constant like any other."""
    return unit(dtype)._replace(width=unit(dtype).high)


def inverse(dtype: Any) -> Cells:
    """Of the inverse of a number whose lower end cell has its mass divided by its width: dy = -dx / x²."""
    low = lower_end(dtype)
    return Cells(low, 1 / low, 2 / low, 4 / low)


class Ended:
    """A law whose ranks in an end cell are drawn within it, and whose density there is the mass of the cell a width."""

    def __init__(self, law: Any, cells: Callable[[Any], Cells]) -> None:
        self.law, self.cells = law, cells(jnp.zeros((), float).dtype)

    @np.errstate(over="ignore")
    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.where(self.below(x), self.share(x) * self.law.cdf(self.cells.low), 1 - self.sf_above(x))

    @np.errstate(over="ignore")
    def sf(self, x: np.ndarray) -> np.ndarray:
        return np.where(self.below(x), 1 - self.share(x) * self.law.cdf(self.cells.low), self.sf_above(x))

    def sf_above(self, x: np.ndarray) -> np.ndarray:
        beyond = self.share(x) * self.law.sf(self.cells.high)
        return np.where(x > self.cells.high, beyond, self.law.sf(np.clip(x, self.cells.low, self.cells.high)))

    def logpdf(self, x: np.ndarray) -> np.ndarray:
        low, high, _, width = self.cells
        with np.errstate(divide="ignore", over="ignore"):
            first, last = np.log(self.law.cdf(low)) - np.log(low), np.log(self.law.sf(high)) - np.log(width)
        inside = self.law.logpdf(np.clip(x, low, high))
        return np.where(self.below(x), first, np.where(x > high, last, inside))

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        drawn = self.law.rvs(size=size, random_state=random_state)
        low, high, at_high, _ = self.cells
        return np.where(drawn < low, low / 2, np.where(drawn > high, at_high, drawn))

    def below(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x) < self.cells.low

    def share(self, x: np.ndarray) -> np.ndarray:
        return np.random.default_rng(1).random(np.shape(x))


ENDS = {
    "Weibull": positive,
    "Pareto": positive,
    "Gamma": positive,
    "Chi2": positive,
    "InverseGamma": inverse,
    "Beta": unit,
    "BetaProportion": unit,
    "Kumaraswamy": by_exponential,
}
"""The families with mass where the number format has no numbers."""
