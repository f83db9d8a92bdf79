"""Probabilities of quotients of two independent noisy whole numbers, by discrete Laplace and Gaussian noise.

The quotient is p / q in lowest terms if the two are m p and m q for some whole m other than 0. Its probability is the
sum over m of the probabilities of both. The log of such a product is a concave function of m, of slopes that change at
m = top / p and m = bottom / q.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isfinite, sqrt

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from dpjax.base import Array

__all__ = ["by_geometric_sums", "by_window", "to_fraction"]

MOST_DENOMINATOR = 10_000_000

AMBIGUOUS = 1e-3
"""The probability, at most about, with which a real number would have so small a denominator by chance."""


def to_fraction(value: float, precision: float) -> Fraction | None:
    """The quotient of whole numbers that is a float of this relative precision; None if there is none."""
    if not isfinite(value):
        return None
    size = max(abs(value), 1e-12)
    most = min(MOST_DENOMINATOR, max(1, int(sqrt(AMBIGUOUS / (precision * size)))))
    found = Fraction(value).limit_denominator(most)
    return found if abs(float(found) - value) <= 2 * precision * size else None


def by_geometric_sums(
    log_terms: Callable[[Array], Array], kinks: tuple[Array, Array], slopes: tuple[Array, Array]
) -> Array:
    """The log of the sum [] over whole m but 0 of terms whose logs fall on both sides of two kinks, by two slopes.

    Between the kinks, and 0, the logs are straight lines, so that each piece is a geometric sum.
    """
    cuts = jnp.sort(jnp.stack([*kinks, jnp.zeros_like(kinks[0])]))
    ceilings = jnp.ceil(cuts)
    first = jnp.where(ceilings == 0, 1.0, ceilings)  # 0 is a cut, and no term
    last = ceilings[1:] - 1
    falling = sum(slopes)
    ends = log_terms(ceilings[0] - 1), log_terms(first[2])
    pieces = [end - jnp.log(-jnp.expm1(-falling)) for end in ends]
    for low, high in zip(first[:2], last, strict=True):
        count = jnp.maximum(high - low + 1, 0)
        middle = (low + high) / 2
        rate = jnp.abs(sum(jnp.sign(middle - kink) * slope for kink, slope in zip(kinks, slopes, strict=True)))
        flat = rate == 0
        safe = jnp.where(flat, 1.0, rate)
        size = jnp.where(flat, count, jnp.expm1(-safe * count) / jnp.expm1(-safe))
        top = jnp.maximum(log_terms(low), log_terms(high))
        pieces.append(jnp.where(count > 0, top + jnp.log(jnp.maximum(size, 1)), -jnp.inf))
    return logsumexp(jnp.stack(pieces))


def by_window(log_terms: Callable[[Array], Array], mode: Array, reach: int) -> Array:
    """The log of the sum [] over whole m but 0 of terms that are negligible further from their mode than `reach`."""
    places = jnp.round(jax.lax.stop_gradient(mode)) + jnp.arange(-reach, reach + 1, dtype=mode.dtype)
    return logsumexp(jnp.where(places == 0, -jnp.inf, log_terms(places)))
