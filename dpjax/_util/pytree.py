"""Frozen dataclasses as pytrees: arrays are leaves, fields marked static belong to the structure."""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.dtypes import canonicalize_dtype
from jax.tree_util import GetAttrKey, register_pytree_with_keys

from dpjax._util.printing import MOST_SHOWN
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import fail

__all__ = ["Given", "PyTree", "frozen_pytree", "shapes_of", "signature", "static"]

Node = TypeVar("Node")


def static(default: Any = MISSING) -> Any:
    """A field of a `PyTree`, such as a model, that is hashable and decides what is compiled.

    Parameters
    ----------
    default
        The value of the field if none is given.

    Examples
    --------
    >>> import dpjax, jax
    >>> class Rolls(dpjax.Model):
    ...     sides: int = dpjax.base.static(default=6)
    >>> jax.tree.leaves(Rolls())
    []
    """
    return field(metadata={"static": True}, default=default)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static,))
class PyTree(NamesArguments):
    """A base class whose final subclasses are frozen dataclasses and pytrees; ``abstract=True`` marks the others."""

    def __init_subclass__(cls, abstract: bool = False) -> None:
        super().__init_subclass__()
        if not abstract:
            has_own = cls.__repr__ is not object.__repr__
            frozen_pytree(dataclass(frozen=True, init="__init__" not in vars(cls), repr=not has_own)(cls))


class Given:
    """A member of a class whose instances hold functions in a field: as it was given there, else that of its base."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, kind: type) -> Any:
        if node is None:
            return self
        given = getattr(node.functions, self.name)
        return getattr(super(kind, node), self.name) if given is None else given


def signature(tree: Any, axis: int = 0) -> Any:
    """The structure of a tree, and the types and shapes of its arrays from an axis on."""
    arrays = [leaf if hasattr(leaf, "shape") else np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return jax.tree.structure(tree), [(leaf.dtype, leaf.shape[axis:]) for leaf in arrays]


def shapes_of(tree: Any) -> Any:
    """The shapes of a pytree's leaves, in its structure."""
    return jax.tree.map(lambda leaf: list(np.shape(leaf)), tree)


def are_equal(one: Any, other: object) -> bool:
    """Whether two pytrees of one class have equal structures, and leaves of the same types and values."""
    if one is other or type(one) is not type(other):
        return one is other
    leaves, structure = jax.tree.flatten(one)
    others, of_other = jax.tree.flatten(other)
    same: bool = structure == of_other  # type: ignore[operator]
    return same and all(map(same_leaf, leaves, others))


def hash_of(node: Any) -> int:
    """The hash of a pytree's structure; its leaves may be arrays."""
    return hash(jax.tree.structure(node))


def same_leaf(one: Any, other: Any) -> bool:
    """Whether two leaves are the same number to JAX, in type too; traced ones only if they are the same object."""
    if one is other or any(isinstance(leaf, jax.core.Tracer) for leaf in (one, other)):
        return one is other
    first, second = as_jax_reads(one), as_jax_reads(other)
    return first.dtype == second.dtype and np.array_equal(first, second)


def as_jax_reads(leaf: Any) -> np.ndarray:
    """A leaf as an array; numbers have the precision in which JAX computes with them."""
    array = np.asarray(leaf)
    return array.astype(canonicalize_dtype(array.dtype)) if array.dtype.kind in "biufc" else array


def frozen_pytree(cls: type[Node]) -> type[Node]:
    """Register a frozen dataclass as a pytree node; for use as a decorator above ``@dataclass(frozen=True)``.

    A field with ``metadata={"static": True}`` belongs to the structure. Two of them are equal if their static fields
    and the values of their arrays are, unless the dataclass says ``eq=False``.

    Parameters
    ----------
    cls
        A class decorated with ``@dataclass(frozen=True)``.

    Notes
    -----
    `jax.tree_util.register_dataclass` does not suffice. With jaxlib 0.10.2 the structures of two classes of equal
    fields may compare equal, so that a program compiled for one mechanism is reused for another. It also rebuilds
    through the constructor, whose checks would refuse a gradient or an axis in place of a scale.

    Examples
    --------
    >>> from dpjax._util.pytree import frozen_pytree
    >>> from dataclasses import dataclass
    >>> import jax
    >>> @frozen_pytree
    ... @dataclass(frozen=True)
    ... class Offset:
    ...     by: float
    >>> jax.tree.leaves(Offset(2.0))
    [2.0]
    """
    check_dataclass(cls)
    static = tuple(field.name for field in fields(cls) if field.metadata.get("static", False))  # type: ignore[arg-type]
    data = tuple(field.name for field in fields(cls) if field.name not in static)  # type: ignore[arg-type]

    def flatten(node: Node) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(node, name) for name in data), tuple(getattr(node, name) for name in static)

    def flatten_with_keys(node: Node) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children, structure = flatten(node)
        return tuple(zip(map(GetAttrKey, data), children, strict=True)), structure

    def unflatten(structure: tuple[Any, ...], children: Iterable[Any]) -> Node:
        node = object.__new__(cls)
        for name, value in zip(data + static, (*children, *structure), strict=True):
            object.__setattr__(node, name, value)
        return node

    register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    if cls.__dataclass_params__.repr:  # type: ignore[attr-defined]
        cls.__repr__ = with_few_numbers(cls.__repr__)  # type: ignore[method-assign]
    if cls.__dataclass_params__.eq:  # type: ignore[attr-defined]
        cls.__eq__, cls.__hash__ = are_equal, hash_of  # type: ignore[assignment]
    return cls


def with_few_numbers(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """The `repr` with the first and the last entries of long arrays."""

    @wraps(show)
    def shown(node: Any) -> str:
        with np.printoptions(threshold=MOST_SHOWN, edgeitems=2):
            return show(node)

    return shown


def check_dataclass(kind: Any) -> None:
    """Raise unless a dataclass is given."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        fail("cls", repr(kind), "a dataclass", "Decorate a class, above @dataclass(frozen=True).", error=TypeError)
