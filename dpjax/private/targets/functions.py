"""Checks of the functions, parameters and fields that make a target."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Model
from dpjax.validation import fail

MANY_RECORDS = 16
"""Of so few, a public table may well have a multiple of entries."""

__all__ = ["check_fields", "check_position", "shape_of"]


def check_position(position: Any) -> None:
    """Raise unless the parameters are arrays, or shapes, of some numbers."""
    leaves = jax.tree.leaves(position)
    kinds = [getattr(leaf, "dtype", None) or np.asarray(leaf).dtype for leaf in leaves]
    if not leaves or not all(jnp.issubdtype(kind, jnp.number) for kind in kinds):
        remedy = "Pass the parameters of one chain, such as jnp.zeros(2)."
        fail("position", f"{position!r}", "a pytree of at least one array of numbers", remedy, error=TypeError)


def check_fields(model: Any, records: Any) -> None:
    """Raise unless there is a model, and the records are a dict of its fields."""
    if not isinstance(model, Model):
        remedy = "Build it with dpjax.models or dpjax.from_numpyro."
        fail("model", f"a {type(model).__name__}", "a dpjax.Model", remedy, error=TypeError)
    if not isinstance(records, Mapping):
        remedy = "Pass {field: values}, by the names of the model's fields."
        fail("records", f"a {type(records).__name__}", "a dict of arrays", remedy, error=TypeError)
    fields = sorted(jax.eval_shape(lambda key: draw(model, key), jax.eval_shape(jax.random.key, 0)))
    if sorted(records) != fields:
        fail("records", f"fields {sorted(records)}", f"the model's, {fields}", "Name them as the model does.")


def draw(model: Model, key: Array) -> Any:
    """One record of the prior, for its fields."""
    return model.sample_records(key, model.sample_prior(key), 1)


def shape_of(name: str, function: Callable[..., Any], target: Any, *arguments: Any) -> Any:
    """The shape and type of what a function of a target returns.

    Raises
    ------
    TypeError, ValueError
        If it fails, or holds an array with one entry for each record: what it knows of records is neither clipped nor
        noised there.
    """
    try:
        traced, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    except Exception as error:
        given = f"a function that fails ({type(error).__name__}: {error})"
        remedy = "It is called with the parameters of one chain, and the likelihood with one record besides."
        raise TypeError(f"{name}: given {given}; expected one that returns a number. {remedy}") from error
    widths = [size for leaf in jax.tree.leaves(arguments) for size in leaf.shape]
    if target.num_records > max(widths, default=0):
        for constant in constants(traced):
            if is_by_record(np.shape(constant), target.num_records):
                remedy = "Pass confidential data as records: what a function holds is neither clipped nor noised."
                fail(name, "a function that holds an array with one entry for each record", "one that does not", remedy)
    return shape


def is_by_record(shape: tuple[int, ...], num_records: int) -> bool:
    """Whether an array may hold records: along some axis, end to end on one axis, or all but one of them.

    An array that was padded, cut or summed up is not told: what a function holds is its author's to promise.
    """
    near = {num_records - 1, num_records, num_records + 1}
    end_to_end = num_records >= MANY_RECORDS and len(shape) == 1 and shape[0] > 0 and shape[0] % num_records == 0
    return bool(near & set(shape)) or end_to_end


def constants(traced: Any) -> Iterator[Any]:
    """The arrays that a traced program holds, those of programs within it included."""
    yield from traced.consts
    for equation in traced.jaxpr.eqns:
        for inner in equation.params.values():
            if hasattr(inner, "consts") and hasattr(inner, "jaxpr"):
                yield from constants(inner)
