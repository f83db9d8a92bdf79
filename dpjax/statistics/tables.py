"""Counts of records by category: contingency tables, histograms and class-feature counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field as dataclass_field
from functools import cached_property
from math import inf, isfinite, prod
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_count, describe_array, fail, read_numbers
from dpjax._util.words import SHOWN
from dpjax.base import Array, Records
from dpjax.domain import Domain
from dpjax.numerics.clamped import bin_probabilities
from dpjax.statistics.base import (
    Norm,
    OneCell,
    RecordStatistic,
    as_counts,
    as_sizes,
    category_type,
    check_field_name,
    number_type,
    read_categories,
    read_field,
)
from dpjax.statistics.labels import read_levels


@dataclass(frozen=True)
class Cells(OneCell):
    """The cell of one record in a contingency table; see `cells`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.cells("cell", num_categories=3)({"cell": 1}).tolist()
    [0.0, 1.0, 0.0]
    """

    json_name: ClassVar[str | None] = "cells"

    field: tuple[str, ...]
    num_categories: tuple[int, ...]
    levels: tuple[tuple[str, ...], ...] | None = None

    @property
    def dimension(self) -> int:
        """The number of cells."""
        return prod(self.num_categories)

    @property
    def domain(self) -> Domain:
        """The fields of the table."""
        return Domain(self.field, self.num_categories, self.levels)

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories by field, where they have names."""
        return self.domain.level_names

    @property
    def coordinate_names(self) -> tuple[str, ...] | None:
        """The names of the cells."""
        return self.domain.cell_names

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """A category of each field."""
        return dict.fromkeys(self.field, category_type())

    def words(self) -> str:
        """The fields of the table, with the names of a few categories, or their numbers."""
        named = [", ".join(names) if len(names) <= SHOWN else str(len(names)) for names in self.levels or ()]
        axes = zip(self.field, named or map(str, self.num_categories), strict=True)
        return f"the counts of a table of {' × '.join(f'`{field}` ({levels})' for field, levels in axes)}"

    def _json_fields(self) -> dict[str, Any]:
        """Fields and numbers of categories, with the names of these where they have names."""
        return {name: value for name, value in super()._json_fields().items() if value is not None}

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `cells` makes of them."""
        return cells(**values)  # type: ignore[return-value]

    def cell(self, record: Records) -> Array:
        """The number [] of the record's cell; -1 for a category outside the table."""
        cell, inside = jnp.asarray(0), jnp.asarray(True)
        for name, size in zip(self.field, self.num_categories, strict=True):
            category = read_categories(record, name)
            cell = cell * size + category
            inside = inside & (category >= 0) & (category < size)
        return jnp.where(inside, cell, -1)


@dataclass(frozen=True)
class Histogram(OneCell):
    """The bin of one record; see `histogram`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.histogram("y", edges=(0.0, 1.0, 2.0)).dimension
    2
    """

    json_name: ClassVar[str | None] = "histogram"
    counts_each_once: ClassVar[bool] = True

    field: str
    edges: tuple[float, ...]

    @property
    def dimension(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """One real number."""
        return {self.field: number_type()}

    @property
    def fixed_values(self) -> dict[str, Any]:
        """The edge in the middle."""
        return {self.field: self.edges[len(self.edges) // 2]}

    def words(self) -> str:
        """The field, and the bins."""
        low, high = self.edges[0], self.edges[-1]
        return f"the counts of `{self.field}` in {self.dimension} bins from {low:g} to {high:g}"

    def _json_fields(self) -> dict[str, Any]:
        """The field and the edges, with null for one that is infinite."""
        return {"field": self.field, "edges": tuple(edge if isfinite(edge) else None for edge in self.edges)}

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `histogram` makes of them."""
        if isinstance(edges := values.get("edges"), list) and edges:
            first, last = (-inf if edges[0] is None else edges[0]), (inf if edges[-1] is None else edges[-1])
            values["edges"] = [first, *edges[1:-1], last]
        return histogram(**values)  # type: ignore[return-value]

    def cell(self, record: Records) -> Array:
        """The number [] of the record's bin."""
        return self.bin(read_field(record, self.field, [()]))

    def normal_moments(
        self, columns: dict[str, slice], mean: Array, factor: Array
    ) -> tuple[Array, Array | None] | None:
        """The probabilities [d] of the bins of the only field, and the covariance [d, d] of one record's indicators."""
        if self.field not in columns or mean.size > 1:
            return None
        found = bin_probabilities(mean[0], jnp.abs(factor[0, 0]), self.edges)
        return found, jnp.diag(found) - found[:, None] * found[None]

    def bin(self, value: Array) -> Array:
        """The number of the bin of each value, elementwise."""
        inner = jnp.asarray(self.edges[1:-1], value.dtype)
        return jnp.sum(value[..., None] >= inner.reshape((1,) * value.ndim + (-1,)), axis=-1)


@dataclass(frozen=True)
class ClassFeatures(RecordStatistic):
    """The class-feature cells of one record; see `class_features`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.class_features(num_classes=2, num_features=3, num_levels=4).dimension
    24
    """

    json_name: ClassVar[str | None] = "class_features"

    num_classes: int
    num_features: int
    num_levels: int

    @property
    def dimension(self) -> int:
        """d = K J I."""
        return self.num_classes * self.num_features * self.num_levels

    @property
    def is_whole(self) -> bool:
        """Counts are."""
        return True

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """A class, and a level of each feature."""
        return {"class": category_type(), "features": category_type(self.num_features)}

    def __call__(self, record: Records) -> Array:
        """1 in each cell (feature, its level, class) of the record and 0 elsewhere [K J I]."""
        label, features = self._read(record)
        levels = features[:, None] == jnp.arange(self.num_levels)[None, :]
        classes = label == jnp.arange(self.num_classes)
        return as_counts(jnp.reshape(levels[:, :, None] & classes[None, None, :], (-1,)))

    def words(self) -> str:
        """The numbers of features, levels and classes."""
        return (
            f"the counts of {self.num_features} `features` of {self.num_levels} levels in each of "
            f"{self.num_classes} categories of `class`"
        )

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `class_features` makes of them."""
        return class_features(**values)  # type: ignore[return-value]

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The cell of each feature of each record, and 1: both [m, K]."""
        cells = jax.vmap(self._cells)(records)
        return cells, jnp.ones(cells.shape)

    def _cells(self, record: Records) -> Array:
        """The numbers [K] of the record's cells; -1 for a level or a class outside the table."""
        label, levels = self._read(record)
        inside = (levels >= 0) & (levels < self.num_levels) & (label >= 0) & (label < self.num_classes)
        cells = (jnp.arange(self.num_features) * self.num_levels + levels) * self.num_classes + label
        return jnp.where(inside, cells, -1)

    def _read(self, record: Records) -> tuple[Array, Array]:
        return read_categories(record, "class"), read_categories(record, "features", (self.num_features,))

    def diameter(self, norm: Norm) -> float:
        """Every feature may move from one cell to another; exact."""
        return (2 * self.num_features) ** (1 / norm)

    def radius(self, norm: Norm) -> float:
        """One cell per feature; exact."""
        return self.num_features ** (1 / norm)


@names_arguments
def cells(
    field: str | Sequence[str],
    num_categories: int | Sequence[int] | None = None,
    levels: Sequence[Sequence[str]] | None = None,
) -> Cells:
    """The counts of records in each cell of a contingency table.

    Parameters
    ----------
    field
        An integer record field [], or several for a table of several dimensions.
    num_categories
        The number of categories of each field; None where `levels` shows it. The cells are in C order: the last field
        varies fastest.
    levels
        The names of the categories of each field, if they have names; of a single field, also those names alone.
        `dpjax.private.release` then reads these names as well as codes.

    Raises
    ------
    ValueError
        If fields and numbers of categories do not pair up, or there are fewer than two cells. Also if the names of the
        categories of a field are not as many as these, or not different.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> dpjax.statistics.cells(["sex", "age"], [2, 2])({"sex": jnp.array(1), "age": jnp.array(0)}).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    fields = tuple(field) if isinstance(field, Sequence) and not isinstance(field, str) else (field,)
    for name in fields:
        check_field_name(name)
    if len(set(fields)) != len(fields):
        fail("field", list(fields), "names that differ", "Name each variable of the table once.")
    names = read_levels(levels)
    if num_categories is None and names is not None:
        num_categories = tuple(map(len, names))
    sizes = as_sizes("num_categories", num_categories)
    if len(sizes) != len(fields):
        fail("num_categories", sizes, f"one number for each of {fields}", "Give each field its number of categories.")
    if prod(sizes) < 2:
        fail("num_categories", sizes, "at least two cells", "One cell holds all records: leave it out.")
    return Cells(fields, sizes, read_levels(names, sizes))


@names_arguments
def histogram(field: str, edges: Sequence[float]) -> Histogram:
    """The counts of records in each bin of a continuous field.

    Bin k holds edges[k] <= value < edges[k + 1]. Every record is counted: values below the first edge fall into
    the first bin, values at or above the last edge into the last.

    Parameters
    ----------
    field
        The record field [].
    edges : [d + 1]
        Increasing edges, in the field's units. The first and the last may be infinite: where they are does not matter.

    Raises
    ------
    ValueError
        If there are fewer than three edges (two bins), or they do not increase.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> dpjax.statistics.histogram("age", [0, 18, 65, 100])({"age": jnp.array(40.0)}).tolist()
    [0.0, 1.0, 0.0]
    """
    remedy = "Sort the edges and drop repeated ones."
    expected = "increasing numbers, at least 3, of which the first may be -∞ and the last ∞"
    numbers = read_numbers("edges", edges, expected, remedy).astype(float)
    is_list = numbers.ndim == 1 and numbers.size >= 3
    if not (is_list and np.all(np.isfinite(numbers[1:-1])) and np.all(numbers[:-1] < numbers[1:])):
        fail("edges", describe_array(numbers), expected, remedy)
    return Histogram(check_field_name(field), tuple(numbers.tolist()))


@names_arguments
def class_features(num_classes: int, num_features: int, num_levels: int) -> ClassFeatures:
    """The counts m[k, j, i] of records of class i whose feature k has level j, flattened in C order of [K, J, I].

    The record is ``{"class": [] int, "features": [K] int}``, both counted from 0.

    Parameters
    ----------
    num_classes
        I.
    num_features
        K.
    num_levels
        J.

    Raises
    ------
    ValueError
        If a number is below 1, or each feature has fewer than two cells.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> counts = dpjax.statistics.class_features(num_classes=2, num_features=1, num_levels=3)
    >>> counts.dimension
    6
    """
    sizes = {"num_classes": num_classes, "num_features": num_features, "num_levels": num_levels}
    statistic = ClassFeatures(**{name: check_count(name, size) for name, size in sizes.items()})
    if statistic.dimension == statistic.num_features:
        fail("num_classes, num_levels", "1 and 1", "at least two cells for each feature", "Raise one of them.")
    return statistic


@dataclass(frozen=True)
class Grouped(OneCell):
    """The group of one record's category; see `grouped`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.grouped("cell", groups=[0, 0, 1])({"cell": 2}).tolist()
    [0.0, 1.0]
    """

    json_name: ClassVar[str | None] = "grouped"

    field: str
    groups: tuple[int, ...] = dataclass_field(repr=False)
    num_groups: int

    def __hash__(self) -> int:
        """A hash of the content, taken once: groups may be many, and programs are looked up by it."""
        return self._hash

    @property
    def dimension(self) -> int:
        """The number of groups."""
        return self.num_groups

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """One category."""
        return {self.field: category_type()}

    def words(self) -> str:
        """The categories of each of a few groups, or the number of groups."""
        if self.num_groups > SHOWN:
            return f"the counts of {self.num_groups} groups of `{self.field}`"
        if self.num_groups > 1:
            members = [np.flatnonzero(self._array == group).tolist() for group in range(self.num_groups)]
            return f"the counts of {self.num_groups} groups of `{self.field}`, {'; '.join(map(_categories, members))}"
        return f"the count of {_categories(np.flatnonzero(self._array == 0).tolist())} of `{self.field}`"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `grouped` makes of them."""
        return grouped(**values)  # type: ignore[return-value]

    def cell(self, record: Records) -> Array:
        """The group [] of the record's category; -1 if it has none."""
        category = read_categories(record, self.field)
        inside = (category >= 0) & (category < len(self.groups))
        groups = jnp.asarray(self._array, jnp.result_type(int))
        return jnp.where(inside, groups[jnp.where(inside, category, 0)], -1)

    def diameter(self, norm: Norm) -> float:
        """Two groups differ by 1 each, or one alone; exact if records may be in no group."""
        return 2 ** (1 / norm) if len(np.unique(self._array[self._array >= 0])) > 1 else 1.0

    @cached_property
    def _array(self) -> np.ndarray:
        return np.asarray(self.groups)

    @cached_property
    def _hash(self) -> int:
        return hash((self.field, self.groups, self.num_groups))


@names_arguments
def grouped(field: str, groups: Sequence[int], num_groups: int | None = None) -> Grouped:
    """The counts of records in each group of the categories of a field.

    A margin of a table, the tracts of a county and the cells known to be empty are all of this kind.

    Parameters
    ----------
    field
        An integer record field [], with categories 0, ..., C - 1.
    groups : [C]
        The group 0, 1, ... of each category; -1 for a category that is counted in none.
    num_groups
        The number of groups, if it is not the largest group and one; groups without a category count 0.

    Raises
    ------
    TypeError, ValueError
        If groups are not whole numbers from -1 to below their number, or every category is in none.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> margin = dpjax.statistics.grouped("cell", [0, 0, 1, -1])
    >>> margin({"cell": jnp.array(1)}).tolist(), margin({"cell": jnp.array(3)}).tolist()
    ([1.0, 0.0], [0.0, 0.0])
    """
    expected, remedy = "whole numbers of at least -1, one for each category", "Number the groups 0, 1, ...; -1 is none."
    array = read_numbers("groups", groups, expected, remedy)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        fail("groups", f"{array.dtype}{list(array.shape)}", expected, remedy)
    most = int(array.max()) + 1
    if most < 1:
        fail("groups", "-1 for every category", "at least one category in a group", "Leave the statistic out.")
    size = most if num_groups is None else check_count("num_groups", num_groups)
    expected = f"whole numbers from -1 to {size - 1}"
    check_array("groups", array, lambda array: (array >= -1) & (array < size), expected, remedy)
    return Grouped(check_field_name(field), tuple(array.tolist()), size)


def _categories(codes: list[int]) -> str:
    """A few category codes as they are, many by their number and ends."""
    if not codes:
        return "no category"
    if len(codes) <= SHOWN:
        return f"{'category' if len(codes) == 1 else 'categories'} {', '.join(map(str, codes))}"
    return f"{len(codes)} categories from {codes[0]} to {codes[-1]}"
