"""The means of clamped statistics of Normal fields, and the law of their histogram, in closed form or next to it."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from dpjax.base import Array, Statistic
from dpjax.numerics.clamped import clamped_mean, clamped_moments
from dpjax.numerics.linear_algebra import product
from dpjax.statistics.combinators import Scaled, Stacked
from dpjax.statistics.moments import Gram, Total
from dpjax.statistics.tables import Histogram

__all__ = ["normal_moments"]


def normal_moments(
    columns: dict[str, slice], mean: Array, factor: Array, statistic: Statistic
) -> tuple[Array, Array | None] | None:
    """`Model.statistic_moments` of records whose columns are jointly Normal, for totals, Gram matrices and histograms.

    Parameters
    ----------
    columns
        The columns of each field.
    mean
        The mean [k] of the columns.
    factor
        A lower factor [k, k] of their covariance.
    """
    if isinstance(statistic, Histogram) and statistic.field in columns:
        place = columns[statistic.field].start
        return histogram_moments(mean[place], jnp.abs(factor[place, 0]), statistic) if mean.size == 1 else None
    found = statistic_mean(columns, mean, factor, statistic)
    return None if found is None else (found, None)


def statistic_mean(columns: dict[str, slice], mean: Array, factor: Array, statistic: Statistic) -> Array | None:
    """The mean [d] of a statistic; None where it is not known."""
    if isinstance(statistic, Scaled):
        inner = statistic_mean(columns, mean, factor, statistic.statistic)
        return None if inner is None else inner * statistic.factor
    if isinstance(statistic, Stacked):
        parts = [statistic_mean(columns, mean, factor, part) for part in statistic.statistics]
        known = [part for part in parts if part is not None]
        return jnp.concatenate(known) if len(known) == len(parts) else None
    if isinstance(statistic, Total) and statistic.field in columns:
        return total_mean(mean[columns[statistic.field]], scales_of(factor)[columns[statistic.field]], statistic)
    if isinstance(statistic, Gram) and {"x", "y"} <= set(columns):
        return gram_mean(mean, factor, statistic)
    return None


def scales_of(factor: Array) -> Array:
    """The standard deviations [k] of the columns."""
    return jnp.sqrt(jnp.sum(jnp.square(factor), axis=1))


def total_mean(mean: Array, scale: Array, statistic: Total) -> Array:
    """The means [d] of the clamped columns of one field."""
    lower = -jnp.inf if statistic.lower is None else jnp.asarray(statistic.lower, mean.dtype)
    upper = jnp.inf if statistic.upper is None else jnp.asarray(statistic.upper, mean.dtype)
    return clamped_mean(mean, scale, jnp.broadcast_to(lower, mean.shape), jnp.broadcast_to(upper, mean.shape))


def gram_mean(mean: Array, factor: Array, statistic: Gram) -> Array:
    """The mean of `Gram`: those of all products of two columns, of covariates and the response behind them."""
    bounds = [*zip(statistic.lower, statistic.upper, strict=True), statistic.response or (-1.0, 1.0)]
    lower, upper = jnp.asarray(bounds, mean.dtype).T
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    mean, factor = (mean - middle) / half, factor / half[:, None]
    size, last = mean.size, mean.size - 1
    second, first = np.tril_indices(size, -1)  # the earlier column is the one that is integrated over
    one = jnp.ones_like(mean)
    moments = clamped_moments(mean, factor, -one, one, (first, second))

    def row(j: int) -> list[int]:
        """The places of column j's products with the columns before it, which follow all means and all squares."""
        return [2 * size + j * (j - 1) // 2 + k for k in range(j)]

    triangle = [place for j in range(last) for place in (j, *row(j), size + j)]
    response = [last, *row(last), size + last] if statistic.response else []
    order = np.eye(size * (size + 3) // 2)[[*response, *triangle]]
    return product(jnp.asarray(order, mean.dtype), jnp.concatenate(moments))


def histogram_moments(mean: Array, scale: Array, statistic: Histogram) -> tuple[Array, Array]:
    """The probabilities [d] of the bins, and the covariance of one draw from them."""
    bounds = (jnp.asarray(statistic.edges[1:-1], mean.dtype) - mean) / scale
    left, right = jnp.append(-jnp.inf, bounds), jnp.append(bounds, jnp.inf)
    low = jnp.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))  # by the smaller tail
    return low, jnp.diag(low) - low[:, None] * low[None]
