"""Linear combinations of the coordinates of a statistic."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, fail
from dpjax._util.words import quantity
from dpjax.base import Array, Records, Statistic
from dpjax.mechanisms.base import as_floating
from dpjax.numerics.linear_algebra import product
from dpjax.statistics.base import (
    Norm,
    OneCell,
    RecordStatistic,
    check_function,
    dimension_of,
    field_types_of,
    is_whole,
    rounding_of,
    words_of,
)
from dpjax.statistics.combinators import DOUBLE, bounded

__all__ = ["Linear", "linear"]


@dataclass(frozen=True)
class Linear(RecordStatistic):
    """A matrix times a statistic; see `linear`.

    Examples
    --------
    >>> import dpjax
    >>> tree = dpjax.statistics.linear(dpjax.statistics.cells("hour", 2), [[1, 1], [1, 0], [0, 1]])
    >>> tree.radius(1), round(tree.diameter(2), 3)
    (2.0, 1.414)
    """

    json_name: ClassVar[str | None] = "linear"

    statistic: Statistic
    matrix: tuple[tuple[float, ...], ...]

    @property
    def dimension(self) -> int:
        """The number of rows of the matrix."""
        return len(self.matrix)

    @property
    def is_whole(self) -> bool:
        """Whether the statistic and the matrix are."""
        return is_whole(self.statistic) and all(weight.is_integer() for row in self.matrix for weight in row)

    def __call__(self, record: Records) -> Array:
        """The combinations [m] of one record's contribution."""
        contribution = as_floating(self.statistic(record))
        matrix = jnp.asarray(self.matrix, contribution.dtype)
        return product(matrix, contribution)

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """Those of the statistic."""
        return field_types_of(self.statistic)

    def words(self) -> str:
        """How many combinations, and of what."""
        return f"{quantity(self.dimension, 'linear combination')} of {words_of(self.statistic)}"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `linear` makes of them."""
        return linear(**values)  # type: ignore[return-value]

    def diameter(self, norm: Norm) -> float:
        """The largest distance of two columns, exact, of a table; else the matrix norm times the diameter, a bound."""
        if isinstance(self.statistic, OneCell):
            columns = self._columns()
            return max(float(np.max(_norms(columns - column, norm))) for column in columns)
        return self._norm(norm) * bounded(self.statistic).diameter(norm)

    def radius(self, norm: Norm) -> float:
        """The largest norm of a column, exact, of a table; else the matrix norm times the radius, a bound."""
        if isinstance(self.statistic, OneCell):
            return float(np.max(_norms(self._columns(), norm)))
        return self._norm(norm) * bounded(self.statistic).radius(norm)

    @property
    def leaves(self) -> tuple[RecordStatistic, ...]:
        """Those of the statistic."""
        return bounded(self.statistic).leaves

    def assemble(self, parts: Iterator[np.ndarray]) -> np.ndarray:
        """The combinations [m, k] of the statistic's contributions, the same wherever a record is among the others."""
        rows, columns = bounded(self.statistic).assemble(parts), np.asarray(self.matrix).T
        if isinstance(self.statistic, OneCell):
            return np.where(np.any(rows, axis=1, keepdims=True), columns[rows.argmax(axis=1)], 0.0)
        total = np.zeros((len(rows), self.dimension))
        for numbers, column in zip(rows.T, columns, strict=True):
            total += numbers[:, None] * column  # a product of matrices rounds rows at its edges in another way
        return total

    def rounding(self) -> float:
        """That of the statistic and of the sums, which the matrix may enlarge as it does no contribution."""
        rows, terms = np.shape(self.matrix)
        own = rounding_of(self, terms, DOUBLE)
        return sqrt(min(rows, terms)) * (bounded(self.statistic).rounding() + own)

    def _columns(self) -> np.ndarray:
        """What a record can add [k, m]: nothing too, if it may have no cell."""
        columns = np.asarray(self.matrix).T
        counted = isinstance(self.statistic, RecordStatistic) and self.statistic.counts_each_once
        return columns if counted else np.concatenate([columns, np.zeros((1, self.dimension))])

    def _norm(self, norm: Norm) -> float:
        """The norm of the matrix that belongs to one of vectors."""
        return float(np.linalg.norm(np.asarray(self.matrix), norm))


@names_arguments
def linear(statistic: Statistic, matrix: Any) -> Linear:
    """A matrix times a statistic: sums of the released queries of a matrix mechanism, a tree of ranges, contrasts.

    Parameters
    ----------
    statistic
        A function of one record that returns [d].
    matrix : [m, d]
        One row for each combination. It is stored as tuples of numbers, so that equal statistics share programs.

    Raises
    ------
    TypeError, ValueError
        If the matrix is not made of finite numbers, or has not as many columns as the statistic has coordinates.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> running = dpjax.statistics.linear(dpjax.statistics.cells("hour", 3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> running({"hour": jnp.array(1)}).tolist()
    [0.0, 1.0, 1.0]
    """
    check_function(statistic)
    rows, dimension = read_matrix(matrix), dimension_of(statistic)
    if dimension not in (None, rows.shape[1]):
        remedy = "Give each row one number for each coordinate of the statistic."
        fail("matrix", f"shape {list(rows.shape)}", f"shape [m, {dimension}]", remedy)
    return Linear(statistic, tuple(map(tuple, rows.tolist())))


def read_matrix(matrix: Any) -> np.ndarray:
    """A matrix [m, d] of numbers, or an error."""
    remedy = "Pass one row of numbers for each combination."
    check_array("matrix", matrix, np.isfinite, "finite numbers", remedy)
    rows = np.asarray(matrix, float)
    if rows.ndim != 2 or rows.size == 0:
        fail("matrix", f"shape {list(rows.shape)}", "shape [m, d]", remedy)
    return rows


def _norms(rows: np.ndarray, norm: Norm) -> np.ndarray:
    """The norms of rows."""
    return np.asarray(np.linalg.norm(rows, norm, axis=1))
