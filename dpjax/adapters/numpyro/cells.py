"""Forms of discrete values: a uniform within the cell of x, the interval from P(X < x) to P(X ≤ x)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from dpjax.adapters.numpyro.form import Form, expand_as
from dpjax.adapters.numpyro.shared import count_distribution
from dpjax.adapters.numpyro.trace import unwrap
from dpjax.adapters.numpyro.truncation import in_support
from dpjax.base import Array, Key
from dpjax.numerics.cells import all_edges, cell_edges, uniforms_within
from dpjax.numerics.count_cells import CountCells, binomial_cells, negative_binomial_cells, poisson_cells
from dpjax.numerics.count_tables import CountDistribution, cells_of, counts_at, is_reached
from dpjax.numerics.scores import UNIFORM_SCORES

DESCRIPTION = "a uniform within its cell"

MAX_COUNT = 1_000_000
"""Largest count in the search over one count after another; larger counts have no noise."""


def cells(
    edges: Callable[[Array], tuple[Array, Array]],
    value: Callable[[Array], Array],
    inner: Any,
    reached: Callable[[Array], Array] | None = None,
) -> Form:
    """The form of a discrete distribution whose cells are ``edges(value)``; ``value(noise)`` is the inverse.

    Far in the upper tail a cell may contain no float: the noise of its value is NaN, and impossible. So is noise whose
    cell the search does not reach, which is where ``reached(value)`` is false.
    """
    dtype = dtype_of(inner)

    def noise(key: Key, values: Array) -> Array:
        place = uniforms_within(key, *edges(values))
        return jnp.where(value(place).astype(dtype) == values, place, jnp.nan)

    def possible(noise: Array) -> Array:
        holds = ~jnp.isnan(noise)
        if reached is not None:
            holds = holds & reached(value(noise))
        return jnp.all(holds, axis=tuple(range(1, holds.ndim)))

    return Form(
        DESCRIPTION,
        noise,
        lambda noise: value(noise).astype(dtype),
        scores=UNIFORM_SCORES,
        draw=jax.random.uniform,
        possible=possible,
    )


def dtype_of(inner: Any) -> Any:
    """The dtype of a distribution's values."""
    return jax.eval_shape(inner.sample, jax.random.key(0)).dtype


def binary_form(inner: Any) -> Form:
    """The form of a Bernoulli distribution: the cell of 1 lies above P(X = 0)."""
    edge = 1 - jnp.asarray(inner.probs, float)

    def edges(values: Array) -> tuple[Array, Array]:
        ends = jnp.broadcast_to(edge, values.shape)
        return jnp.where(values == 1, ends, 0.0), jnp.where(values == 1, 1.0, ends)

    return cells(edges, lambda noise: noise >= expand_as(edge, noise), inner)


def category_form(inner: Any) -> Form:
    """The form of a Categorical distribution."""
    inside = cell_edges(inner.probs)

    def edges(values: Array) -> tuple[Array, Array]:
        ends = jnp.broadcast_to(all_edges(inside), (*values.shape, inside.shape[-1] + 2))
        lower, upper = (jnp.take_along_axis(ends, values[..., None] + step, axis=-1)[..., 0] for step in (0, 1))
        return lower, upper

    def value(noise: Array) -> Array:
        ends = jnp.broadcast_to(inside, (*noise.shape, inside.shape[-1]))
        return jnp.sum(ends <= noise[..., None], axis=-1)

    return cells(edges, value, inner)


def level_form(inner: Any) -> Form:
    """The form of a discrete Uniform distribution, with cells of equal width."""

    def span(values: Array) -> tuple[Array, Array]:
        low, high = (jnp.broadcast_to(jnp.asarray(bound), values.shape) for bound in (inner.low, inner.high))
        # The number of levels may be too large for an integer.
        return low, high.astype(float) - low.astype(float) + 1

    def edges(values: Array) -> tuple[Array, Array]:
        low, levels = span(values)
        place = values.astype(float) - low.astype(float)
        return place / levels, (place + 1) / levels

    def value(noise: Array) -> Array:
        low, levels = span(noise)
        return low + jnp.minimum(jnp.floor(noise * levels), levels - 1).astype(low.dtype)

    return cells(edges, value, inner)


def is_counted(inner: Any) -> bool:
    """Whether a distribution is one of single integers from 0 on."""
    if inner.event_shape or not inner.support.is_discrete:
        return False
    parts = inner.component_distributions if isinstance(inner, dist.MixtureGeneral) else [inner]
    return all(starts_at_zero(part.support) for part in parts)


def starts_at_zero(support: Any) -> bool:
    """Whether 0 is known to be the smallest value."""
    least = getattr(support, "lower_bound", None)
    return least is not None and not isinstance(least, jax.core.Tracer) and bool(np.all(np.asarray(least) == 0))


def shared_form(inner: Any, counted: CountDistribution) -> Form:
    """The form of a distribution of counts 0, 1, 2, ... that all records share."""
    form = cells(partial(cells_of, counted), partial(counts_at, counted), inner, reached=is_reached)
    return form._replace(draw=None)  # a uniform of float32 has too few digits for small probabilities


def count_form(inner: Any) -> Form:
    """The form of a distribution of counts 0, 1, 2, ..."""
    counted = count_distribution(inner)
    if counted is not None:
        return shared_form(inner, counted)
    gated = isinstance(inner, dist.ZeroInflatedProbs)
    if family_cells(unwrap(inner.base_dist) if gated else inner, jnp.zeros(inner.batch_shape)) is not None:
        return own_form(inner)
    return searched_form(inner)


def own_form(inner: Any) -> Form:
    """The form of Poisson, binomial or negative binomial counts, each with its own parameters; zeros may be added."""
    gated = isinstance(inner, dist.ZeroInflatedProbs)
    base = unwrap(inner.base_dist) if gated else inner

    def zeros_and_cells(like: Array) -> tuple[Array, CountCells]:
        own = family_cells(base, like)
        assert own is not None
        return expand_as(inner.gate if gated else 0.0, like), own

    def edges(values: Array) -> tuple[Array, Array]:
        zeros, own = zeros_and_cells(values.astype(float))
        lower, upper = (zeros + (1 - zeros) * edge for edge in own.edges(values.astype(int)))
        return jnp.where(values == 0, 0.0, lower), upper

    def value(noise: Array) -> Array:
        zeros, own = zeros_and_cells(noise)
        return own.counts_at(jnp.maximum(noise - zeros, 0.0) / jnp.where(zeros < 1, 1 - zeros, 1.0))

    return cells(edges, value, inner, reached=is_reached)._replace(draw=None)


def family_cells(inner: Any, like: Array) -> CountCells | None:
    """The cells of a Poisson, binomial or negative binomial distribution, in the shape [...] of an array of floats.

    None for other families.
    """
    if isinstance(inner, dist.Poisson):
        return poisson_cells(expand_as(inner.rate, like))
    if isinstance(inner, dist.GammaPoisson):
        size = expand_as(inner.concentration, like)
        return negative_binomial_cells(size / expand_as(inner.rate, like), size)
    if isinstance(inner, (dist.GeometricProbs, dist.GeometricLogits)):
        return negative_binomial_cells(expand_as(inner.mean, like), jnp.ones_like(like))
    if isinstance(inner, (dist.BinomialProbs, dist.BinomialLogits)):
        number = jnp.broadcast_to(jnp.asarray(inner.total_count, int), like.shape)
        return binomial_cells(number, expand_as(inner.probs, like))
    return None


def searched_form(inner: Any) -> Form:
    """The form of counts 0, 1, 2, ... of other families, by a search over one count after another."""
    probability = find_probability(inner)

    def edges(values: Array) -> tuple[Array, Array]:
        def add(count: Array, below: Array) -> Array:
            return below + jnp.where(count < values, probability(jnp.full(values.shape, count)), 0.0)

        last = jnp.clip(jnp.max(values), 0, MAX_COUNT).astype(int)
        lower = jax.lax.fori_loop(jnp.zeros((), int), last, add, jnp.zeros(values.shape, float))
        return lower, jnp.minimum(lower + probability(values), 1.0)

    def value(noise: Array) -> Array:
        return jnp.minimum(search(probability, inner, noise), upper_bound(inner, noise))

    form = cells(edges, value, inner, reached=lambda values: values < MAX_COUNT - 1)
    # NumPyro's samplers need no search, but that of a hurdle repeats until no draw is zero.
    return form if isinstance(inner, dist.HurdleProbs) else form._replace(draw=None)


def find_probability(inner: Any) -> Callable[[Array], Array]:
    """The probability of counts, 0 outside the support, where some of NumPyro's formulas are NaN."""
    dtype = dtype_of(inner)

    def probability(counts: Array) -> Array:
        counts = counts.astype(dtype)
        return jnp.where(in_support(inner, counts), jnp.exp(inner.log_prob(counts)), 0.0).astype(float)

    return probability


def upper_bound(inner: Any, noise: Array) -> Array:
    """The largest value of the support, which bounds the search if rounded probabilities sum to less than 1."""
    end = getattr(inner.support, "upper_bound", MAX_COUNT)
    return jnp.broadcast_to(jnp.asarray(end, int), noise.shape)


def search(probability: Callable[[Array], Array], inner: Any, noise: Array) -> Array:
    """The count whose cell contains each uniform; `MAX_COUNT` if the mean is larger.

    The search does not stop in a gap between two modes. It stops where the remaining probability is that of rounding
    and the count is many standard deviations above the mean; a uniform above the sum belongs to its last count.
    """
    mean, end = expand_as(inner.mean, noise), expand_as(far_above_mean(inner), noise)
    known = mean < MAX_COUNT
    rounding = jnp.finfo(noise.dtype).eps

    def add(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        count, below, found, _ = carry
        reached = below + probability(jnp.full(noise.shape, count))
        grows, place = reached > below, count.astype(noise.dtype)
        found = jnp.where((below <= noise) & grows, count, found)
        left = 1 - reached > rounding * (16 + 4 * place * jnp.log1p(place))
        return count + 1, reached, found, jnp.any((reached <= noise) & (grows | left | (place < end)) & known)

    def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
        return carry[3] & (carry[0] < MAX_COUNT)

    zeros = jnp.zeros(noise.shape, int)
    start = (jnp.zeros((), int), jnp.zeros_like(noise), zeros, jnp.array(True))
    found = jax.lax.while_loop(unfinished, add, start)[2]
    return jnp.where(known, found, MAX_COUNT)


def far_above_mean(inner: Any) -> Array:
    """A hundred standard deviations above the mean; or the mean, if that is infinite or not known."""
    mean = jnp.asarray(inner.mean, float)
    try:
        end = mean + 100 * jnp.sqrt(jnp.asarray(inner.variance, float))
    except NotImplementedError:
        return mean
    return jnp.where(jnp.isfinite(end), end, mean)
