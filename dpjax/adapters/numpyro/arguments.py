"""Arguments of NumPyro models as data: floats and arrays are leaves, and all else decides what is compiled."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["as_data", "hold_constants", "values_of"]


@jax.tree_util.register_static
class Constant:
    """A value that belongs to the structure of a model. It is compared by type and content, or else by identity."""

    def __init__(self, value: Any) -> None:
        self.value, self.content = value, content_of(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)

    def __repr__(self) -> str:
        return repr(self.value)


def content_of(value: Any) -> tuple[Any, ...]:
    """The type of a value, and what it is compared by."""
    if isinstance(value, (np.ndarray, jax.Array)) and value.dtype != object:
        array = np.asarray(value)
        return type(value), array.dtype.str, array.shape, array.tobytes()
    return type(value), value if is_hashable(value) else id(value)


def is_hashable(value: Any) -> bool:
    """Whether a value has a hash, which a tuple may lack because of its content."""
    try:
        return isinstance(hash(value), int)
    except TypeError:
        return False


def as_data(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with `Constant` for what is no number."""
    return {name: as_leaves(value) for name, value in arguments.items()}


def as_leaves(value: Any) -> Any:
    """An argument with floats in the default type as leaves."""
    if not is_hashable(jax.tree.structure(value)):
        return Constant(value)
    return jax.tree.map(lambda leaf: as_float(leaf) if is_number(leaf) else Constant(leaf), value)


def is_number(leaf: Any) -> bool:
    """Whether an argument is a float or an array. A whole number may be a size, which decides what is compiled."""
    if isinstance(leaf, float):
        return True
    if not isinstance(leaf, (np.ndarray, np.floating, jax.Array)):
        return False
    return bool(jnp.issubdtype(leaf.dtype, jnp.floating)) or (leaf.dtype.kind in "biu" and leaf.ndim > 0)


def as_float(leaf: Any) -> Any:
    """An array of floats in the default type, in which compiled programs have it; other numbers as they are."""
    if isinstance(leaf, (float, np.floating)):
        return float(leaf)
    return leaf.astype(jnp.result_type(float)) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def values_of(arguments: Any) -> Any:
    """The arguments that `as_data` was given."""
    return jax.tree.map(
        lambda leaf: leaf.value if isinstance(leaf, Constant) else leaf,
        arguments,
        is_leaf=lambda leaf: isinstance(leaf, Constant),
    )


def hold_constants(run: Callable[[dict[str, Any]], Any], data: dict[str, Any]) -> dict[str, Any]:
    """The data of a model with `Constant` for each argument whose numbers its function reads in Python.

    Parameters
    ----------
    run
        Runs the model; it raises where it cannot be traced.
    data
        What `as_data` returned.
    """
    abstract = {name: value for name, value in data.items() if jax.tree.leaves(value)}
    fixed = data | {name: as_constants(value) for name, value in abstract.items()}
    if is_traceable(run, data):
        return data
    for name, value in abstract.items():
        if is_traceable(run, fixed | {name: value}):
            fixed[name] = value
    return fixed


def as_constants(value: Any) -> Any:
    """An argument whose numbers belong to the structure, too."""
    return jax.tree.map(Constant, value)


def is_traceable(run: Callable[[dict[str, Any]], Any], data: dict[str, Any]) -> bool:
    """Whether a model runs with the numbers among its arguments unknown."""
    try:
        jax.eval_shape(run, data)
    except Exception:  # the model's own code may raise anything
        return False
    return True
