"""Frozen dataclasses as pytrees: arrays are leaves, fields marked static belong to the structure."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from jax.tree_util import GetAttrKey, all_leaves, register_pytree_with_keys

from dpjax._util.validation import fail

Noun = TypeVar("Noun")


def frozen_pytree(cls: type[Noun]) -> type[Noun]:
    """Register a frozen dataclass as a pytree node; for use as a decorator above ``@dataclass(frozen=True)``.

    A field with ``metadata={"static": True}`` belongs to the structure, and so does a value, alone or in a tuple, that
    is a mechanism of plain attributes, which JAX cannot look into.

    Parameters
    ----------
    cls
        A class decorated with ``@dataclass(frozen=True)``.

    Notes
    -----
    `jax.tree_util.register_dataclass` would not do. With jaxlib 0.10.2 the structures of two classes of equal
    fields compare equal, so that now and then a program compiled for one mechanism answers for another. It also
    rebuilds through the constructor, whose checks would refuse a gradient or an axis in the place of a scale.

    Examples
    --------
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

    def flatten(noun: Noun) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        values = [getattr(noun, name) for name in data]
        hidden = tuple(map(hide, values))
        children = tuple(map(show, values))
        return children, (*hidden, *(getattr(noun, name) for name in static))

    def flatten_with_keys(noun: Noun) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children, structure = flatten(noun)
        return tuple(zip(map(GetAttrKey, data), children, strict=True)), structure

    def unflatten(structure: tuple[Any, ...], children: Iterable[Any]) -> Noun:
        noun = object.__new__(cls)
        hidden = structure[: len(data)]
        values = map(restore, children, hidden)
        for name, value in zip(data + static, (*values, *structure[len(data) :]), strict=True):
            object.__setattr__(noun, name, value)
        return noun

    register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def check_dataclass(kind: Any) -> None:
    """Raise unless a dataclass is given."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        fail("cls", repr(kind), "a dataclass", "Decorate a class, above @dataclass(frozen=True).", error=TypeError)


def hide(value: Any) -> Any:
    """A value that JAX cannot look into, and None in the place of any other; of a tuple, entry by entry."""
    if type(value) is not tuple:
        return value if is_opaque(value) else None
    hidden = tuple(map(hide, value))
    return hidden if any(entry is not None for entry in hidden) else None


def show(value: Any) -> Any:
    """A value that JAX can look into, and None in the place of any other; of a tuple, entry by entry."""
    if type(value) is not tuple:
        return None if is_opaque(value) else value
    return tuple(map(show, value))


def restore(shown: Any, hidden: Any) -> Any:
    """The value that was taken apart."""
    if hidden is None:
        return shown
    return tuple(map(restore, shown, hidden)) if type(hidden) is tuple else hidden


def is_opaque(value: Any) -> bool:
    """Whether a value is a mechanism that is no pytree, so that JAX sees no arrays in it."""
    return hasattr(value, "log_density") and all_leaves([value])
