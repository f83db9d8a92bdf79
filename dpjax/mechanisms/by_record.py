"""Channels with a parameter of their own for each record, such as the standard error of each estimate."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import all_leaves, tree_flatten_with_path

from dpjax.base import Array
from dpjax.mechanisms.base import Mechanism

__all__ = ["channel_of", "over_records", "record_axes"]


def record_axes(channel: Any, ndim: int) -> list[int | None]:
    """For each leaf of a channel 0 if it has a leading axis of records, else None.

    The shapes tell: such a leaf has one axis more than the same parameter of one record. A mechanism's `parameter_axes`
    name those that have axes of their own in one record, such as the 2 of a matrix. Others are one number, or one for
    each coordinate. ``None``, the default but for additive noise, says that all records have the same parameters.

    Parameters
    ----------
    channel
        A `dpjax.mechanisms.Mechanism`.
    ndim
        The number of axes of the value of one record.
    """
    return _axes_below(channel, None, ndim)


def _axes_below(node: Any, own: int | None, ndim: int) -> list[int | None]:
    """The same of a part of a channel; a leaf has `own` axes in one record, or None if it is the same in all."""
    if node is None:
        return []
    if all_leaves([node]):
        return [0 if own is not None and np.ndim(node) > own else None]
    axes = node.parameter_axes if isinstance(node, Mechanism) else None
    found: list[int | None] = []
    for (entry, *_), child in tree_flatten_with_path(node, is_leaf=lambda child: child is not node)[0]:
        found += _axes_below(child, None if axes is None else axes.get(getattr(entry, "name", ""), ndim), ndim)
    return found


def over_records(channel: Any, ndim: int, function: Callable[..., Any], *arrays: Array) -> Any:
    """What a function of the channel of one record and its row of each array [n, ...] returns, for all records [n].

    Parameters
    ----------
    channel
        A `dpjax.mechanisms.Mechanism`.
    ndim
        The number of axes of the value of one record.
    function
        ``(channel, *rows) -> result``.
    *arrays
        With one row for each record.
    """
    leaves, structure = jax.tree.flatten(channel)

    def of_record(own: list[Any], *rows: Array) -> Any:
        return function(jax.tree.unflatten(structure, own), *rows)

    return jax.vmap(of_record, in_axes=(record_axes(channel, ndim), *[0] * len(arrays)))(leaves, *arrays)


def channel_of(channel: Any, ndim: int, index: Any) -> Any:
    """The channel of one record, or of several by an array of indices; itself if all records have the same."""
    leaves, structure = jax.tree.flatten(channel)
    axes = record_axes(channel, ndim)
    chosen = [leaf if axis is None else leaf[index] for leaf, axis in zip(leaves, axes, strict=True)]
    return jax.tree.unflatten(structure, chosen)
