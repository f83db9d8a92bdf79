"""Counts of records by group of categories: margins, areas of a tree, empty cells and single queries of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Records
from dpjax.statistics.base import Norm, OneCell, check_field_name, read_categories
from dpjax.validation import check_array, check_count, fail, read_numbers


@dataclass(frozen=True)
class Grouped(OneCell):
    """The group of one record's category; see `grouped`.

    Examples
    --------
    >>> grouped("cell", groups=[0, 0, 1])({"cell": 2}).tolist()
    [0.0, 1.0]
    """

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

    def cell(self, record: Records) -> Array:
        """The group [] of the record's category; -1 where it has none."""
        category = read_categories(record, self.field)
        inside = (category >= 0) & (category < len(self.groups))
        groups = jnp.asarray(self._array, jnp.result_type(int))
        return jnp.where(inside, groups[jnp.where(inside, category, 0)], -1)

    def diameter(self, norm: Norm) -> float:
        """Two groups differ by 1 each, or one alone; exact where records may be in no group."""
        return 2 ** (1 / norm) if len(np.unique(self._array[self._array >= 0])) > 1 else 1.0

    @cached_property
    def _array(self) -> np.ndarray:
        return np.asarray(self.groups)

    @cached_property
    def _hash(self) -> int:
        return hash((self.field, self.groups, self.num_groups))


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
        The number of groups, where it is not the largest group and one; groups without a category count 0.

    Raises
    ------
    TypeError, ValueError
        If groups are not whole numbers from -1 to below their number, or every category is in none.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> margin = grouped("cell", [0, 0, 1, -1])
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
