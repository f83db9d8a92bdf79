"""Sums of a number by group: the cases of each state, say, where the records are its counties."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_count, check_number, describe, fail
from dpjax.base import Array, Records
from dpjax.mechanisms.base import as_floating
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    category_type,
    check_field_name,
    clamped,
    number_type,
    read_categories,
    read_field,
)
from dpjax.statistics.labels import read_levels

__all__ = ["TotalsOfGroups", "group_totals"]

MOST_NAMED = 20
"""Groups whose names are all in the description."""


@dataclass(frozen=True)
class TotalsOfGroups(RecordStatistic):
    """The number of one record, in the place of its group; see `group_totals`.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> by_state = dpjax.statistics.group_totals("cases", "state", ["A", "B"])
    >>> by_state({"cases": jnp.array(4), "state": jnp.array(1)}).tolist()
    [0.0, 4.0]
    """

    json_name: ClassVar[str | None] = "group_totals"

    field: str
    by: str
    num_groups: int
    levels: tuple[str, ...] | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def dimension(self) -> int:
        """The number of groups."""
        return self.num_groups

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the groups, where they have names."""
        return {} if self.levels is None else {self.by: self.levels}

    @property
    def coordinate_names(self) -> tuple[str, ...] | None:
        """The names of the groups."""
        return self.levels

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """A number, and the category that is the group."""
        return {self.field: number_type(), self.by: category_type()}

    def __call__(self, record: Records) -> Array:
        """The number in the place of its group and 0 elsewhere [d]; 0 everywhere if the group is none of them."""
        value = jnp.clip(as_floating(read_field(record, self.field, [()])), self.lower, self.upper)
        group = read_categories(record, self.by)
        return jnp.where(jnp.arange(self.num_groups, dtype=group.dtype) == group, value, jnp.zeros_like(value))

    def words(self) -> str:
        """The fields, and the groups in their order."""
        groups = f"{self.num_groups} groups"
        if self.levels is not None:
            shown = self.levels if self.num_groups <= MOST_NAMED else (*self.levels[:3], "...", self.levels[-1])
            groups += f": {', '.join(shown)}"
        bounds = "" if self.lower is None and self.upper is None else f", {clamped(self.lower, self.upper)},"
        return f"the sums of `{self.field}`{bounds} by `{self.by}` ({groups})"

    def _json_fields(self) -> dict[str, Any]:
        """The arguments."""
        bounds = {"lower": self.lower, "upper": self.upper}
        groups = {"levels": self.num_groups if self.levels is None else self.levels}
        own = {"field": self.field, "by": self.by} | groups
        return own | {name: value for name, value in bounds.items() if value is not None}

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `group_totals` makes of them."""
        return group_totals(**values)  # type: ignore[return-value]

    def diameter(self, norm: Norm) -> float:
        """Two numbers in different groups, the ends of the bounds in one, or a number and no group; exact."""
        largest, low, high = self._bounds()
        return max(high - low, 2 ** (1 / norm) * largest if self.num_groups > 1 else largest)

    def radius(self, norm: Norm) -> float:
        """The larger bound in size, in either norm; exact."""
        del norm
        return self._bounds()[0]

    def _bounds(self) -> tuple[float, float, float]:
        """The larger bound in size, and both."""
        if self.lower is None or self.upper is None:
            given, remedy = f"lower={self.lower}, upper={self.upper}", "An unclamped sum has no sensitivity: pass both."
            return fail("lower, upper", given, "two finite bounds", remedy)
        return max(abs(self.lower), abs(self.upper)), self.lower, self.upper


@names_arguments
def group_totals(
    field: str,
    by: str,
    levels: Sequence[str] | int,
    *,
    lower: float | None = None,
    upper: float | None = None,
) -> TotalsOfGroups:
    """The sums of a number over the records of each group, such as the cases of each state over its counties.

    A released value can be given by the names of the groups, as a dict or as a Series of pandas. A bare array has to be
    in the order of `levels`.

    Parameters
    ----------
    field
        The record field [] that is summed.
    by
        The integer record field [] that holds the number of the record's group.
    levels
        The names of the groups, in the order of their numbers 0, 1, ...; or how many groups there are. Those of a model
        by `dpjax.models.formula` are ``model.level_names[by]``: of text they are in alphabetical order.
    lower
        What smaller numbers are clamped to; None for nothing.
    upper
        The same of larger ones.

    Raises
    ------
    TypeError, ValueError
        If the names are not different, there are none, or the bounds are no numbers in order.

    Examples
    --------
    >>> import dpjax
    >>> by_state = dpjax.statistics.group_totals("cases", by="state", levels=["A", "B"])
    >>> dpjax.Release({"B": 31, "A": 43}, dpjax.Exact(), by_state, n=3).value.tolist()
    [43.0, 31.0]
    """
    for name, value in (("lower", lower), ("upper", upper)):
        if value is not None:
            check_number(name, value)
            check_array(name, value, np.isfinite, "a finite number, or None", "Pass a public bound.")
    if lower is not None and upper is not None and not lower < upper:
        fail("upper", f"{upper:g}", f"a number above lower = {lower:g}", "Swap the bounds or widen the interval.")
    bounds = [None if value is None else float(value) for value in (lower, upper)]
    fields = check_field_name(field), check_field_name(by)
    if isinstance(levels, (int, np.integer)):
        return TotalsOfGroups(*fields, check_count("levels", levels, "Pass the names of the groups."), None, *bounds)
    names = read_levels(levels)
    if names is None or len(names) != 1 or not names[0]:
        remedy = "Pass them in the order of their numbers, such as model.level_names['state']."
        fail("levels", describe(levels), "the names of the groups, or their number", remedy)
    return TotalsOfGroups(*fields, len(names[0]), names[0], *bounds)
