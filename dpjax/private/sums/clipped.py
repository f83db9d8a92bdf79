"""Sums over records of clipped contributions, a chunk of records at a time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_floats, fail, is_traced
from dpjax.base import Array
from dpjax.private.arguments import check_bound, check_target
from dpjax.private.fixed_point import FixedPoint, FloatingPoint, Limbs, arithmetic, steps_of
from dpjax.private.targets.target import Target

__all__ = ["ClippedSum", "clip_rows", "clipped_gradients", "clipped_ratios", "gradients_of"]


class ClippedSum(NamedTuple):
    """A sum over records of bounded contributions, before any noise: **not private**, neither its total nor `clipped`.

    Attributes
    ----------
    total
        The sum [d] or [] in steps, in two floats. With a bound the steps are whole, and one record's are within the
        bound exactly.
    unit
        The size of a step []: public.
    clipped
        How many contributions were clipped [].

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> records = {"y": jnp.array([0.2, -0.4, 1.1, 0.3])}
    >>> target = private.target(
    ...     lambda theta, record: -0.5 * (record["y"] - theta) ** 2,
    ...     lambda theta: -0.5 * theta**2,
    ...     records,
    ...     position=jnp.zeros(()),
    ... )
    >>> total = private.clipped_gradients(target, jnp.zeros(1), bound=0.5)
    >>> round(float(total.value[0]), 3), int(total.clipped)
    (0.6, 1)
    """

    total: Limbs
    unit: Array
    clipped: Array

    @property
    def value(self) -> Array:
        """The sum [d] or [] in floats."""
        return (self.total.high + self.total.low) * self.unit

    def released(self, release: Callable[[Limbs, Array | float], Array], multiplier: Array | float) -> Array:
        """The sum [d] or [] with noise of `multiplier` times the bound, by ``release(parts, scale)``.

        With a source of noise that is ``partial(noise.release, key)``, each key used once. The noise is added to whole
        steps: what follows, the conversion to floats included, reads no record.
        """
        return release(self.total, multiplier * steps_of(self.unit.dtype)) * self.unit


def check_vector(name: str, vector: Any, target: Target) -> None:
    """Raise unless a vector has one float for each parameter of the target."""
    check_floats(name, vector)
    if vector.shape != (target.dimension,):
        given, expected = f"shape {list(vector.shape)}", f"shape [{target.dimension}]"
        fail(name, given, expected, "Pass all parameters on the unconstrained scale, as one vector.")


@names_arguments
def clipped_gradients(target: Target, vector: Array, bound: float) -> ClippedSum:
    """The sum [d] of the records' gradients of the log-likelihood at a vector [d], each clipped to norm `bound`.

    The gradients of one chunk of records are in memory at a time. A record whose gradient or its norm is not finite
    adds nothing: anything else would reveal that it is there.

    Parameters
    ----------
    target
        The target, with its records.
    vector
        Where on the unconstrained scale [d].
    bound
        The largest norm that is not clipped.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> gradients = dpjax.private.clipped_gradients(target, jnp.array([0.0]), bound=2.0)
    >>> int(gradients.clipped)
    1
    """
    check_target("target", target)
    check_vector("vector", vector, target)
    limit = read_clip(bound)

    def contribution(records: object, weights: Array) -> tuple[Array, Array]:
        return clip_rows(gradients_of(target, vector, records), weights, limit)

    return sum_chunks(target, arithmetic(limit, vector.dtype), contribution, vector.shape)


@names_arguments
def clipped_ratios(target: Target, vector: Array, proposal: Array, bound: Array | float) -> ClippedSum:
    """The sum [] of log p(x | proposal) − log p(x | vector) over records, each clipped to ±bound.

    NaN counts as −bound: the proposal is taken to be impossible there.

    Parameters
    ----------
    target
        The target, with its records.
    vector
        Where on the unconstrained scale [d].
    proposal
        Where to [d].
    bound
        The largest absolute value that is not clipped.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> ratios = dpjax.private.clipped_ratios(target, jnp.array([0.0]), jnp.array([1.0]), bound=2.0)
    >>> int(ratios.clipped)
    1
    """
    check_target("target", target)
    for name, value in {"vector": vector, "proposal": proposal}.items():
        check_vector(name, value, target)
    bound = read_clip(bound)

    def contribution(records: object, weights: Array) -> tuple[Array, Array]:
        density = jax.vmap(target.log_likelihood, (None, 0))
        ratios = (density(proposal, records) - density(vector, records)).astype(vector.dtype)
        # A product would turn an infinite ratio of padding into NaN.
        values = jnp.where(weights > 0, clip_numbers(ratios, bound), 0.0)
        return values, jnp.sum(jnp.where(jnp.abs(ratios) > bound, weights, 0.0))

    return sum_chunks(target, arithmetic(bound, vector.dtype), contribution, ())


def read_clip(bound: Any) -> Array | float:
    """The clip bound, which may be infinite, or an error; a kernel's schedule of bounds is traced."""
    is_number = (
        isinstance(bound, (jax.Array, np.ndarray)) and jnp.issubdtype(bound.dtype, np.floating) and not bound.ndim
    )
    if is_traced(bound):
        return bound
    return check_bound("bound", float(bound) if is_number else bound, largest=jnp.inf)


def gradients_of(target: Target, vector: Array, records: object) -> Array:
    """The gradients of the log-likelihood [d, m] of m records: this layout needs no transpose to be summed."""
    return jax.vmap(jax.grad(target.log_likelihood), (None, 0), -1)(vector, records)


def clip_numbers(numbers: Array, bound: Array | float) -> Array:
    """Numbers [m] clipped to ±bound, in whole steps; unchanged without a bound. NaN counts as −bound."""
    adder = arithmetic(bound, numbers.dtype)
    if isinstance(adder, FloatingPoint):
        return jnp.where(jnp.isnan(numbers), -jnp.inf, numbers)
    parts = numbers / bound
    parts = jnp.where(jnp.isnan(parts), -1.0, jnp.clip(parts, -1.0, 1.0))
    return jnp.round(parts * steps_of(numbers.dtype))


def clip_rows(gradients: Array, weights: Array, bound: Array | float) -> tuple[Array, Array]:
    """Vectors [d, m] of weight 0 or 1, scaled down to norm `bound` if longer, in whole steps; how many were longer.

    Without a bound finite vectors do not change.
    """
    # What is clipped must be what was measured: computed a second time, a gradient may be rounded in another way.
    gradients = jax.lax.optimization_barrier(gradients)
    adder = arithmetic(bound, gradients.dtype)
    parts = gradients if isinstance(adder, FloatingPoint) else gradients * (1 / bound)
    norms = jnp.sqrt(jnp.sum(parts * parts, axis=0))
    finite = jnp.isfinite(norms)
    parts = jnp.where(finite[None, :], parts, 0.0)
    if isinstance(adder, FloatingPoint):
        return parts * weights[None, :], jnp.sum(jnp.where(finite, 0.0, weights))
    scales = jnp.minimum(steps_of(adder.dtype), adder.limit(len(gradients)) / jnp.maximum(norms, 0.5))
    longer = jnp.sum(jnp.where((norms > 1) | ~finite, weights, 0.0))
    return jnp.round(parts * jnp.where(finite, weights * scales, 0.0)[None, :]), longer


def sum_chunks(
    target: Target,
    adder: FixedPoint | FloatingPoint,
    contribution: Callable[[object, Array], tuple[Array, Array]],
    shape: tuple[int, ...],
) -> ClippedSum:
    """The sum of contributions [*shape, m] over the chunks of records, one after the other."""
    first = jax.tree.leaves(target.records)[0]
    places = jnp.arange(first.shape[1], dtype=jnp.int32)

    def add(carry: tuple[Limbs, Array], chunk: tuple[object, Array]) -> tuple[tuple[Limbs, Array], None]:
        records, number = chunk
        is_record = places < target.count - number * len(places)  # other rows of the last chunk are filling
        values, longer = contribution(records, is_record.astype(adder.dtype))
        return (adder.add(carry[0], adder.sum(values)), carry[1] + longer), None

    start = (adder.zeros(shape), jnp.zeros((), adder.dtype))
    (total, clipped), _ = jax.lax.scan(add, start, (target.records, jnp.arange(len(first), dtype=jnp.int32)))
    return ClippedSum(adder.floats(total), adder.unit, clipped)
