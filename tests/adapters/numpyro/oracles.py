"""Laws in SciPy's form, in float64 and without any code of dpjax or NumPyro: what the families are held to."""

from typing import Any

import numpy as np
from scipy import stats


class Truncated:
    """A continuous law cut to [low, high], through whichever tail of it is the smaller."""

    def __init__(self, law: Any, low: float = -np.inf, high: float = np.inf) -> None:
        self.law, self.low, self.high = law, low, high
        self.upper = law.cdf(low) > 0.5
        first, last = (law.logsf(high), law.logsf(low)) if self.upper else (law.logcdf(low), law.logcdf(high))
        self.top, self.log_ratio = last, first - last

    def share(self, x: np.ndarray) -> np.ndarray:
        """The share of the law between x and the end of the smaller tail."""
        tail = self.law.logsf(x) if self.upper else self.law.logcdf(x)
        base = np.exp(self.log_ratio)
        return np.clip((np.exp(tail - self.top) - base) / (1 - base), 0.0, 1.0)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return 1 - self.share(x) if self.upper else self.share(x)

    def sf(self, x: np.ndarray) -> np.ndarray:
        return self.share(x) if self.upper else 1 - self.share(x)

    def logpdf(self, x: np.ndarray) -> np.ndarray:
        return self.law.logpdf(x) - self.top - np.log1p(-np.exp(self.log_ratio))

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        share = np.exp(self.log_ratio) + random_state.random(size) * -np.expm1(self.log_ratio)
        tail = np.exp(self.top) * share
        return np.clip(self.law.isf(tail) if self.upper else self.law.ppf(tail), self.low, self.high)


class Transformed:
    """An increasing or decreasing function of a continuous law; the logarithm of its slope at the law's own value."""

    def __init__(self, law: Any, inverse: Any, forward: Any, log_slope: Any, increasing: bool = True) -> None:
        self.law, self.inverse, self.forward = law, inverse, forward
        self.log_slope, self.increasing = log_slope, increasing

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return self.law.cdf(self.inverse(x)) if self.increasing else self.law.sf(self.inverse(x))

    def sf(self, x: np.ndarray) -> np.ndarray:
        return self.law.sf(self.inverse(x)) if self.increasing else self.law.cdf(self.inverse(x))

    def logpdf(self, x: np.ndarray) -> np.ndarray:
        inner = self.inverse(x)
        return self.law.logpdf(inner) - self.log_slope(inner)

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        return self.forward(self.law.rvs(size=size, random_state=random_state))


class Mixture:
    """A mixture of laws; discrete ones have a pmf."""

    def __init__(self, weights: list[float], laws: list[Any]) -> None:
        self.weights, self.laws = np.asarray(weights), laws

    def total(self, name: str, x: np.ndarray) -> np.ndarray:
        return sum(weight * getattr(law, name)(x) for weight, law in zip(self.weights, self.laws, strict=True))

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return self.total("cdf", x)

    def sf(self, x: np.ndarray) -> np.ndarray:
        return self.total("sf", x)

    def pmf(self, x: np.ndarray) -> np.ndarray:
        return self.total("pmf", x)

    def logpdf(self, x: np.ndarray) -> np.ndarray:
        return np.log(self.total("pdf", x))

    def logpmf(self, x: np.ndarray) -> np.ndarray:
        return np.log(self.pmf(x))

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        which = random_state.choice(len(self.laws), size, p=self.weights / self.weights.sum())
        draws = np.stack([law.rvs(size=size, random_state=random_state) for law in self.laws])
        return draws[which, np.arange(size)]


def levels(probabilities: list[float]) -> Any:
    """A law on 0, 1, 2, ... with these probabilities."""
    return Mixture(probabilities, [stats.randint(k, k + 1) for k in range(len(probabilities))])


def kumaraswamy(a: float, b: float) -> Any:
    """1 - (1 - x^a)^b = P(X < x): minus the logarithm of 1 - x^a is Exponential of rate b."""
    return Transformed(
        stats.expon(scale=1 / b),
        lambda x: -np.log1p(-(np.asarray(x, np.float64) ** a)),
        lambda e: (-np.expm1(-e)) ** (1 / a),
        lambda e: -e + (1 / a - 1) * np.log(-np.expm1(-e)) - np.log(a),
    )
