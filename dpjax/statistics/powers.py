"""The first two powers of a clamped field, of which a variance is made."""

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax.base import Array, Records
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    as_number,
    check_field_name,
    check_interval,
    clamped,
    number_type,
    read_field,
)

__all__ = ["Powers", "powers"]


@dataclass(frozen=True)
class Powers(RecordStatistic):
    """The distance of one clamped field from the middle of its bounds, and its square; see `powers`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.powers("y", 0.0, 4.0).sensitivity(1, "replace-one")
    6.25
    """

    json_name: ClassVar[str | None] = "powers"

    field: str
    lower: float
    upper: float

    @property
    def dimension(self) -> int:
        """Two."""
        return 2

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """One real number."""
        return {self.field: number_type()}

    @property
    def fixed_values(self) -> dict[str, Any]:
        """The middle of its bounds."""
        return {self.field: self.lower / 2 + self.upper / 2}

    def __call__(self, record: Records) -> Array:
        """The distance and its square [2] of one record."""
        value = read_field(record, self.field, [()]).astype(jnp.result_type(float))
        middle, half = self.lower / 2 + self.upper / 2, self.upper / 2 - self.lower / 2
        # Clipped again: far from 0 the rounding of the bounds is large against their distance.
        distance = jnp.clip(jnp.clip(value, self.lower, self.upper) - middle, -half, half)
        return jnp.stack([distance, distance**2])

    def words(self) -> str:
        """The field, and how it was clamped."""
        bounds = clamped((self.lower,), (self.upper,))
        return f"the sums of the first two powers of `{self.field}` less {(self.lower + self.upper) / 2:g}, {bounds}"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `powers` makes of them."""
        return powers(**values)  # type: ignore[return-value]

    def diameter(self, norm: Norm) -> float:
        """The largest distance between (a, a²) and (b, b²) within ± h; exact.

        Notes
        -----
        With a = h and b = -t its norm is (h + t) |(1, h - t)|, which has its maximum at t = h, or inside at 1/2 in L1
        and where 2 u² - 2 h u + 1 = 0 for u = h - t in L2.
        """
        half = self.upper / 2 - self.lower / 2
        if norm == 1:
            return half + 0.5 + half * half - 0.25 if half > 0.5 else 2 * half
        inside = (half + sqrt(half * half - 2)) / 2 if half * half > 2 else 0.0
        return max((2 * half - u) * hypot(1.0, u) for u in (0.0, inside))

    def radius(self, norm: Norm) -> float:
        """The norm at a bound; exact."""
        half = self.upper / 2 - self.lower / 2
        return half + half * half if norm == 1 else hypot(half, half * half)


@names_arguments
def powers(field: str, lower: float, upper: float) -> Powers:
    """The sums over records of one clamped field less the middle of its bounds, and of the squares of that.

    Parameters
    ----------
    field
        The record field [].
    lower
        The lower bound in the field's units.
    upper
        The upper bound.

    Raises
    ------
    TypeError, ValueError
        If the bounds are not two finite numbers in order.

    Notes
    -----
    The variance of n clamped values is Σ d² / n − (Σ d / n)², whatever point the distances d are taken from.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> dpjax.statistics.powers("y", 0.0, 4.0)({"y": jnp.array(5.0)}).tolist()
    [2.0, 4.0]
    """
    remedy = "Pass the bounds that values were clamped to."
    low, high = (
        as_number(name, bound, np.isfinite, "a finite number", remedy)
        for name, bound in {"lower": lower, "upper": upper}.items()
    )
    check_interval((low,), (high,))
    return Powers(check_field_name(field), low, high)
