"""Arguments of models as arrays: shapes are always checked, values unless they are traced."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, describe_array, fail, is_traced
from dpjax.base import Array

__all__ = [
    "as_array",
    "as_covariance",
    "as_scalar",
    "as_shape",
    "as_vector",
    "check_definite",
    "check_degrees",
    "check_finite",
    "check_lengths",
    "hold_arrays",
    "is_numeric",
]


def is_numeric(value: Any) -> bool:
    """Whether a value can be read as numbers, concrete or traced."""
    return isinstance(value, (int, float, list, tuple, np.ndarray, np.generic, jax.Array))


def check_finite(argument: str, value: Any) -> None:
    """Raise unless every entry of a concrete `value` is finite."""
    kind = jnp.result_type(float)
    largest = float(jnp.finfo(kind).max)
    expected, remedy = f"finite numbers of {kind}", "Remove the missing or infinite values."
    check_array(argument, value, lambda array: np.abs(array) <= largest, expected, remedy)


def check_definite(argument: str, value: Any, remedy: str) -> None:
    """Raise unless a concrete `value` is a positive number or symmetric positive definite matrices [..., k, k]."""
    check_finite(argument, value)
    if is_traced(value) or not is_numeric(value):
        return
    array = np.asarray(value, np.float64)
    matrix = np.atleast_2d(array)
    if array.ndim == 1 or matrix.shape[-1] != matrix.shape[-2]:
        fail(argument, f"an array of shape {list(array.shape)}", "a square matrix", remedy)
    symmetric = np.allclose(matrix, matrix.swapaxes(-1, -2), rtol=1e-5, atol=1e-8 * np.abs(matrix).max())
    if not (symmetric and np.linalg.eigvalsh(matrix).min() > 0):
        fail(argument, describe_array(array), "a symmetric positive definite matrix", remedy)


def check_degrees(degrees: Any, dim: int) -> None:
    """Raise unless these are degrees of freedom of an inverse Wishart distribution of matrices [dim, dim]."""
    least = dim - 1
    remedy = f"Pass more degrees of freedom than the dimension less 1, {least}."
    check_array("degrees", degrees, lambda array: array > least, f"a number above {least}", remedy)


def check_lengths(argument: str, value: Any, other: str, against: Any) -> None:
    """Raise unless two parameters of independent entries have one shape, or one of them is a single number."""
    given, expected = np.shape(value), np.shape(against)
    if () not in (given, expected) and given != expected:
        remedy = "Pass one number, or one for each entry."
        fail(argument, f"shape {list(given)}", f"shape [] or {list(expected)}, as {other} has", remedy)


def hold_arrays(node: Any) -> None:
    """Convert sequences in the fields of a frozen dataclass to arrays, so that each field is one leaf."""
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, (list, tuple)):
            object.__setattr__(node, field.name, jnp.asarray(value, float))
        elif isinstance(value, Sequence) or (hasattr(value, "__array__") and not is_numeric(value)):
            object.__setattr__(node, field.name, jnp.asarray(np.asarray(value), float))


def as_array(argument: str, value: Any, expected: str, remedy: str) -> Array:
    """`value` as an array of the default float dtype, or an error."""
    if not is_numeric(value):
        fail(argument, f"{value!r} of type {type(value).__name__}", expected, remedy, error=TypeError)
    check_finite(argument, value)
    return jnp.asarray(value, float)


def as_shape(argument: str, value: Any, shape: tuple[int, ...], remedy: str) -> Array:
    """`value` as an array of exactly this shape."""
    expected = f"numbers of shape {list(shape)}" if shape else "one number"
    array = as_array(argument, value, expected, remedy)
    if array.shape != shape:
        fail(argument, f"an array of shape {list(array.shape)}", expected, remedy)
    return array


def as_scalar(argument: str, value: Any, remedy: str) -> Array:
    """`value` as one number []."""
    return as_shape(argument, value, (), remedy)


def as_vector(argument: str, value: Any, remedy: str, *, least: int = 1) -> Array:
    """`value` as a vector [k] with k at least `least`."""
    expected = f"a vector of at least {least} numbers"
    array = as_array(argument, value, expected, remedy)
    if array.ndim != 1 or array.size < least:
        fail(argument, f"an array of shape {list(array.shape)}", expected, remedy)
    return array


def as_covariance(argument: str, value: Any, dim: int) -> Array:
    """`value` as a symmetric positive definite matrix [dim, dim]."""
    remedy = "Pass a covariance matrix; its diagonal holds variances, not standard deviations."
    array = as_shape(argument, value, (dim, dim), remedy)
    check_definite(argument, value, remedy)
    return array
