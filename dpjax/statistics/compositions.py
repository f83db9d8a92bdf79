"""Sums of the logarithms of shares."""

from dataclasses import dataclass
from math import e, log, sqrt
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail
from dpjax.base import Array, Records
from dpjax.statistics.base import Norm, RecordStatistic, as_number, check_field_name, number_type, read_field

__all__ = ["LogComposition", "log_composition"]


@dataclass(frozen=True)
class LogComposition(RecordStatistic):
    """The clamped log-shares of one record; see `log_composition`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.log_composition("share", lower=0.01, dimension=3).dimension
    3
    """

    json_name: ClassVar[str | None] = "log_composition"

    field: str
    lower: float
    dimension: int | None

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """The shares."""
        return {} if self.dimension is None else {self.field: number_type(self.dimension)}

    @property
    def fixed_values(self) -> dict[str, Any]:
        """Equal shares."""
        return {} if self.dimension is None else {self.field: [1 / self.dimension] * self.dimension}

    def __call__(self, record: Records) -> Array:
        """log(clamp(share, lower, 1)) [d] of one record."""
        share = read_field(record, self.field, None if self.dimension is None else [(self.dimension,)])
        return jnp.maximum(jnp.log(jnp.clip(share, self.lower, 1.0)), log(self.lower))

    def words(self) -> str:
        """The field, and the least share."""
        return f"the sums of the logarithms of the shares `{self.field}`, at least {self.lower:g} each"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `log_composition` makes of them."""
        return log_composition(**values)  # type: ignore[return-value]

    def diameter(self, norm: Norm) -> float:
        """The largest distance between the log-shares of two compositions.

        Notes
        -----
        The best pair shares no coordinate. One composition lives on k coordinates and the other on d - k, and on each
        side the distance is that of the shares from `lower`. Exact in L1, and in L2 if (d - 1) e² lower <= 1; beyond
        that the concave envelope of the squared logarithm gives an upper bound.
        """
        sides = [_side(k, self.lower, norm) for k in range(self._size())]
        return max(near + far for near, far in zip(sides[1:], sides[:0:-1], strict=True)) ** (1 / norm)

    def radius(self, norm: Norm) -> float:
        """The norm if all shares but one are `lower`; exact."""
        size = self._size()
        small, large = -log(self.lower), -log(max(1 - (size - 1) * self.lower, self.lower))
        return (size - 1) * small + large if norm == 1 else sqrt((size - 1) * small**2 + large**2)

    def rounding(self) -> float:
        """Six times that of others: logarithms move as far if a share, or their sum, is off by a sixth of it."""
        return 6 * super().rounding()

    def covers(self, contributions: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether they are those of shares that sum to 1: those above `lower` do not exceed it, and all reach it."""
        shares, room = np.exp(np.minimum(contributions, 1.0)), tolerance / 6
        # In logarithms, which tell a share from a `lower` near 1.
        above = np.sum(np.where(contributions > log(self.lower) * (1 - room), shares, 0.0), axis=1)
        is_composition = (above <= 1 + room) & (np.sum(shares, axis=1) >= 1 - room)
        return super().covers(contributions, tolerance) & is_composition

    def _size(self) -> int:
        if self.dimension is None:
            fail("dimension", "None", "the number of shares", "Pass dimension= to log_composition.")
        return self.dimension


@names_arguments
def log_composition(field: str, lower: float, *, dimension: int | None = None) -> LogComposition:
    """The sum over records of log(clamp(share, lower, 1)), for records whose shares are positive and sum to 1.

    Parameters
    ----------
    field
        The record field [d].
    lower
        The least share that is distinguished, between 0 and 1.
    dimension
        The number of shares d >= 2; needed for sensitivities only.

    Raises
    ------
    ValueError
        If `lower` is not between 0 and 1, or d is below 2.

    References
    ----------
    Xiong and Ju, SOMA: a novel sampler for Bayesian inference from privatized data, Example 3. Its noise scale
    rests on the simpler bound -d log(lower), which is exact for d = 2.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> shares = dpjax.statistics.log_composition("share", lower=0.01, dimension=2)
    >>> shares({"share": jnp.array([0.75, 0.25])}).tolist()
    [-0.288, -1.386]
    """
    remedy = "Clamp shares at a small positive number, such as 0.01."
    bound = as_number("lower", lower, lambda array: (array > 0) & (array < 1), "a number between 0 and 1", remedy)
    if dimension is not None:
        check_count("dimension", dimension, "A composition has at least two shares.", least=2)
    return LogComposition(check_field_name(field), bound, dimension)


def _side(size: int, lower: float, norm: Norm) -> float:
    """The largest sum of log(share / lower)^norm over compositions of `size` shares, zero shares allowed."""
    if size == 0:
        return 0.0
    if norm == 1:
        return max(k * max(-log(k * lower), 0.0) for k in range(1, size + 1))
    # Equal shares, unless they lie if the squared logarithm is below its concave envelope.
    share = max(1 / size, min(lower * e**2, 1.0))
    return log(share / lower) ** 2 / share
