"""Counts of a distribution that all records share: draws, densities, noise and likelihood by tables."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from dpjax.adapters.numpyro.trace import SiteLayout, unwrap
from dpjax.base import Array, Parameters, Records
from dpjax.numerics.count_tables import CountDistribution, draw_counts, negative_binomial_counts, poisson_counts, unless

TALLIED, BLOCK = 1_024, 64
"""Number of counts whose records are counted, a multiple of how many have their terms computed at once. If counts are
farther apart, each record has its own term."""


def count_distribution(distribution: Any) -> CountDistribution | None:
    """The distribution of single counts, if all records share it and tables can be made of it."""
    inner = unwrap(distribution)
    return None if prod(inner.batch_shape) > 1 else family_counts(inner, number)


def family_counts(inner: Any, read: Callable[[Any], Array]) -> CountDistribution | None:
    """The counts of a Poisson or negative binomial distribution, perhaps with added zeros; None for other families.

    Parameters
    ----------
    read
        What its parameters become.
    """
    base = unwrap(inner.base_dist) if isinstance(inner, dist.ZeroInflatedProbs) else inner
    zeros = jnp.zeros((), float) if base is inner else read(inner.gate)
    if isinstance(base, dist.Poisson):
        return poisson_counts(read(base.rate), zeros)
    if isinstance(base, dist.GammaPoisson):
        size = read(base.concentration)
        return negative_binomial_counts(size / read(base.rate), size, zeros)
    return None


def number(parameter: Any) -> Array:
    """A parameter of one entry as a float []."""
    return jnp.ravel(jnp.asarray(parameter, float))[0]


def count_distribution_at(layout: SiteLayout, parameters: Parameters) -> CountDistribution:
    """The distribution of the only field, which all records share, at some parameters."""
    found: list[CountDistribution | None] = []

    def choose(name: str, distribution: Any) -> Array:
        if name in parameters:
            return parameters[name]
        found.append(count_distribution(distribution))
        return jnp.zeros(distribution.shape(), int)

    layout.run(layout.size, choose)
    (counted,) = found
    assert counted is not None
    return counted


def is_shared(layout: SiteLayout) -> bool:
    """Whether the only field is a single count whose distribution all records share."""
    if len(layout.fields) > 1 or layout.known or layout.fixed:
        return False
    found: list[bool] = []
    layout.trace_fields(lambda name, distribution, value: found.append(count_distribution(distribution) is not None))
    return found[0]


class SharedCounts(dist.Distribution):
    """A distribution of counts by its tables."""

    support = constraints.nonnegative_integer

    def __init__(self, counted: CountDistribution, batch_shape: tuple[int, ...]) -> None:
        self.counted = counted
        super().__init__(batch_shape)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape]."""
        shape = sample_shape + self.batch_shape
        return draw_counts(key, self.counted, prod(shape)).reshape(shape)

    def log_prob(self, value: Any) -> Array:
        """The log-probability of counts."""
        result = self.counted.log_density(jnp.asarray(value))
        return jnp.broadcast_to(result, jnp.broadcast_shapes(result.shape, self.batch_shape))


def share_counts(distribution: Any) -> Any:
    """The distribution by its tables, or itself where there are none."""
    counted = count_distribution(distribution)
    return distribution if counted is None else SharedCounts(counted, distribution.batch_shape)


class Tally(NamedTuple):
    """How often counts occur among records.

    Attributes
    ----------
    first
        The smallest count [].
    times
        How often it and each of those after it occurs [TALLIED].
    span
        By how much the largest exceeds the smallest [].
    records
        The records, which are read only if the span is too large.
    """

    first: Array
    times: Array
    span: Array
    records: Records


def tally(field: str, records: Records) -> Tally:
    """The tally of records whose only field is a count."""
    counts = records[field]
    first = jnp.min(counts)
    place = counts - first
    times = jnp.zeros(TALLIED, float).at[place].add(1.0, mode="drop")
    return Tally(first, times, jnp.max(place), records)


def build_log_likelihood(
    layout: SiteLayout, log_density: Callable[[Parameters, Records], Array]
) -> Callable[[Parameters, Tally], Array]:
    """The log-density [] of all records from their tally, with a gradient in the parameters."""
    (field,) = layout.fields

    def of_block(parameters: Parameters, tally: Tally, start: Array) -> Array:
        counts = (tally.first + start + jnp.arange(BLOCK)).astype(tally.records[field].dtype)
        times = jax.lax.dynamic_slice_in_dim(tally.times, start, BLOCK)
        return jnp.sum(jnp.where(times > 0, times * log_density(parameters, {field: counts}), 0.0))

    def of_records(parameters: Parameters, tally: Tally, turn: Array) -> Array:
        counts = tally.records[field]
        return jnp.sum(log_density(parameters, {field: counts + turn.astype(counts.dtype)}))

    def evaluate(apply: Callable[..., Any], parameters: Parameters, tally: Tally) -> Any:
        """The value, or value and gradient, by the tally if that has all records."""

        def add(carry: tuple[Array, Any]) -> tuple[Array, Any]:
            start, total = carry
            return start + BLOCK, jax.tree.map(jnp.add, total, apply(of_block)(parameters, tally, start))

        shapes = jax.eval_shape(apply(of_block), parameters, tally, jnp.zeros((), int))
        start = jnp.zeros((), int), jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        narrow = tally.span < TALLIED
        total = jax.lax.while_loop(lambda carry: narrow & (carry[0] <= tally.span), add, start)[1]
        return unless(narrow, total, lambda turn: apply(partial(of_records, turn=turn))(parameters, tally))

    @jax.custom_jvp
    def log_likelihood(parameters: Parameters, tally: Tally) -> Array:
        result: Array = evaluate(lambda function: function, parameters, tally)
        return result

    @log_likelihood.defjvp
    def jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
        # A loop that may end at once has no derivative in reverse; its gradient is computed within it.
        value, gradient = evaluate(jax.value_and_grad, *primals)
        terms = jax.tree.map(lambda slope, tangent: jnp.sum(slope * tangent), gradient, tangents[0])
        return value, sum(jax.tree.leaves(terms), start=jnp.zeros_like(value))

    return log_likelihood
