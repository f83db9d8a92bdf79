"""The effects of a log-linear model, and where they are in its tables."""

from functools import lru_cache
from itertools import combinations
from math import prod
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Statistic
from dpjax.domain import Domain
from dpjax.numerics.elimination import Elimination
from dpjax.statistics.combinators import Stacked
from dpjax.statistics.tables import Cells

__all__ = ["Columns", "EffectLayout", "contrasts", "layout_of", "order_of", "tables_of"]

Columns = tuple[int, ...]
"""The columns of a table by their places in the domain, increasing."""


class EffectLayout(NamedTuple):
    """The places of the effects in the tables.

    Attributes
    ----------
    terms
        The columns of each term of the model, in the order of the effects.
    num_effects
        How many effects there are.
    shapes
        For each shape of a table: their places among the tables, and the places of effects in each [m, *shape], with
        ``num_effects`` for none.
    """

    terms: tuple[Columns, ...]
    num_effects: int
    shapes: tuple[tuple[tuple[int, ...], np.ndarray], ...]

    def weights(self, effects: Array) -> list[Array]:
        """The log-weights of each table. Tables of one shape are computed side by side, so that they compile once."""
        padded = jnp.append(effects, 0)
        found: dict[int, Array] = {}
        for places, index in self.shapes:
            tables = padded[index]
            for axis, size in enumerate(index.shape[1:], start=1):
                tables = jnp.moveaxis(
                    jnp.tensordot(jnp.asarray(contrasts(size), effects.dtype), tables, (1, axis)), 0, axis
                )
            found |= dict(zip(places, tables, strict=True))
        return [found[place] for place in range(len(found))]


@lru_cache(maxsize=256)
def layout_of(plan: Elimination) -> EffectLayout:
    """The layout of a model of the plan's tables: each term is written into the first table that holds its columns."""
    subsets = {term for table in plan.tables for size in range(1, len(table) + 1) for term in combinations(table, size)}
    terms = sorted(subsets, key=lambda term: (len(term), term))
    sizes = [prod(plan.sizes[column] - 1 for column in term) for term in terms]
    starts = dict(zip(terms, np.cumsum([0, *sizes]), strict=False))
    num_effects, written = sum(sizes), set()
    by_shape: dict[tuple[int, ...], list[tuple[int, np.ndarray]]] = {}
    for place, table in enumerate(plan.tables):
        index = np.full(plan.shape(table), num_effects)
        for term in terms:
            if set(term) <= set(table) and term not in written:
                written.add(term)
                # Level 0 of an axis stands for a column that is not in the term, and the others for its contrasts.
                inside = tuple(slice(1, None) if column in term else 0 for column in table)
                index[inside] = starts[term] + np.arange(index[inside].size).reshape(index[inside].shape)
        by_shape.setdefault(index.shape, []).append((place, index))
    shapes = tuple(
        (tuple(place for place, _ in group), np.stack([index for _, index in group])) for group in by_shape.values()
    )
    return EffectLayout(tuple(terms), num_effects, shapes)


@lru_cache(maxsize=256)
def contrasts(size: int) -> np.ndarray:
    """A column of ones, and size − 1 orthonormal columns that sum to zero (Helmert) [size, size]."""
    matrix = np.ones((size, size))
    for column in range(1, size):
        matrix[:, column] = np.where(np.arange(size) < column, 1.0, 0.0)
        matrix[column, column] = -column
        matrix[:, column] /= np.sqrt(column * (column + 1))
    return matrix


def tables_of(statistic: Statistic, domain: Domain) -> tuple[Columns, ...] | None:
    """The columns of each table that a statistic counts, in its order; None if it counts anything else."""
    if isinstance(statistic, Stacked):
        found = [tables_of(one, domain) for one in statistic.statistics]
        known = [one for one in found if one is not None]
        return tuple(table for one in known for table in one) if len(known) == len(found) else None
    if not isinstance(statistic, Cells) or not set(statistic.field) <= set(domain.fields):
        return None
    columns = tuple(map(domain.fields.index, statistic.field))
    if statistic.num_categories != tuple(domain.sizes[column] for column in columns):
        return None
    return (columns,) if len(set(columns)) == len(columns) else None


def order_of(tables: tuple[Columns, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """The places [d] of the cells of tables with their columns as given, among those with increasing columns."""
    found, start = [], 0
    for table in tables:
        inner = np.arange(prod(sizes[column] for column in table)).reshape([sizes[column] for column in sorted(table)])
        found.append(start + np.transpose(inner, [sorted(table).index(column) for column in table]).ravel())
        start += inner.size
    return np.concatenate(found)
