"""Counts of records below, at and between given points: what quantiles depend on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.words import quantity
from dpjax.base import Array, Records
from dpjax.statistics.base import OneCell, as_increasing, check_field_name, number_type, read_field

__all__ = ["Around", "around"]


@dataclass(frozen=True)
class Around(OneCell):
    """Where one record lies among points; see `around`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.around("y", points=[0.0, 1.0]).dimension
    5
    """

    json_name: ClassVar[str | None] = "around"
    counts_each_once: ClassVar[bool] = True

    field: str
    points: tuple[float, ...]

    @property
    def dimension(self) -> int:
        """One cell at each of k points, and k + 1 beside them."""
        return 2 * len(self.points) + 1

    def words(self) -> str:
        """The field, and the points."""
        number = quantity(len(self.points), "point")
        return f"the counts of `{self.field}` at and between {number} from {self.points[0]:g} to {self.points[-1]:g}"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `around` makes of them."""
        return around(**values)  # type: ignore[return-value]

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """One real number."""
        return {self.field: number_type()}

    @property
    def fixed_values(self) -> dict[str, Any]:
        """The point in the middle."""
        return {self.field: self.points[len(self.points) // 2]}

    def cell(self, record: Records) -> Array:
        """The number [] of the record's cell: 2j + 1 at point j, 2j below it and above the one before."""
        value = read_field(record, self.field, [()])
        points = jnp.asarray(self.points, value.dtype)
        return jnp.sum(value >= points) + jnp.sum(value > points)


@names_arguments
def around(field: str, points: Sequence[float]) -> Around:
    """The counts [2k + 1] of records below the first of k points, at it, between it and the next, and so on.

    Parameters
    ----------
    field
        The record field [], of real numbers or of ordered categories.
    points : [k]
        Increasing points, in the field's units.

    Raises
    ------
    ValueError
        If the points do not increase.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> dpjax.statistics.around("y", [0.0, 1.0])({"y": jnp.array(0.0)}).tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0]
    """
    numbers = as_increasing("points", points, "Sort the points and drop repeated ones.", least=1)
    return Around(check_field_name(field), numbers)
