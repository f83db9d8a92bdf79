"""Pytrees whose checks run when a user builds them, and never when a transformation does."""

from collections.abc import Iterable
from typing import Any

import jax
from jax.tree_util import GetAttrKey


def register_unchecked(noun: type, data: tuple[str, ...], static: tuple[str, ...]) -> None:
    """Register a frozen dataclass as a pytree that transformations rebuild without its ``__post_init__``.

    A batch of releases, as `vmap` returns it, or a tree of axes has shapes and types that one release may not have.
    A data field that is no pytree, such as a user's mechanism of plain attributes, is carried as static instead.
    """

    def flatten(instance: Any) -> tuple[tuple[tuple[GetAttrKey, Any], ...], tuple[Any, ...]]:
        opaque = tuple(is_opaque(getattr(instance, name)) for name in data)
        fields = [(GetAttrKey(name), getattr(instance, name)) for name in data]
        children = tuple((key, None if hidden else value) for (key, value), hidden in zip(fields, opaque, strict=True))
        hidden = tuple(value if hidden else None for (_, value), hidden in zip(fields, opaque, strict=True))
        return children, (hidden, *(getattr(instance, name) for name in static))

    def unflatten(auxiliary: tuple[Any, ...], children: Iterable[Any]) -> Any:
        hidden, *fixed = auxiliary
        instance: Any = object.__new__(noun)
        values = [child if kept is None else kept for child, kept in zip(children, hidden, strict=True)]
        for name, value in zip((*data, *static), (*values, *fixed), strict=True):
            object.__setattr__(instance, name, value)
        return instance

    jax.tree_util.register_pytree_with_keys(noun, flatten, unflatten)


def is_opaque(value: Any) -> bool:
    """Whether a value is a mechanism that JAX cannot look into."""
    return hasattr(value, "log_density") and jax.tree_util.all_leaves([value])
