"""Statistics made of others: rescaled and joined."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail
from dpjax.base import Array, Records, Statistic
from dpjax.mechanisms.base import as_floating
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    TakenAtValue,
    as_number,
    check_function,
    coordinate_names_of,
    dimension_of,
    field_types_of,
    is_sparse,
    is_whole,
    level_names_of,
    normal_mean,
    rounding_of,
    statistic_at,
    words_of,
)

DOUBLE = float(np.finfo(float).eps)
"""The unit in the last place of numbers near 1 on the host."""


@dataclass(frozen=True)
class Scaled(RecordStatistic):
    """A statistic times a constant; see `scaled`.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.total("y", -1.0, 1.0)
    >>> round(dpjax.statistics.scaled(statistic, 0.1).sensitivity(1, "replace-one"), 5)
    0.2
    """

    json_name: ClassVar[str | None] = "scaled"

    statistic: Statistic
    factor: float

    @property
    def dimension(self) -> int | None:
        """The dimension of the statistic, if it is known."""
        return dimension_of(self.statistic)

    def __call__(self, record: Records) -> Array:
        """The rescaled contribution [d] of one record."""
        return as_floating(self.statistic(record)) * self.factor

    @property
    def is_whole(self) -> bool:
        """Whether the statistic and the factor are."""
        return is_whole(self.statistic) and self.factor.is_integer()

    @property
    def is_sparse(self) -> bool:
        """Whether the statistic is so."""
        return is_sparse_table(self.statistic)

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The statistic's nonzero coordinates [m, k], their values times the constant."""
        index, weight = self.statistic.sparse(records)  # type: ignore[attr-defined]
        return index, as_floating(weight) * self.factor

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """Those of the statistic."""
        return field_types_of(self.statistic)

    def words(self) -> str:
        """Those of the statistic, and the factor."""
        return f"{words_of(self.statistic)}, times {self.factor:.4g}"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `scaled` makes of them."""
        return scaled(**values)  # type: ignore[return-value]

    def normal_mean(self, columns: dict[str, slice], mean: Array, factor: Array) -> Array | None:
        """The statistic's mean times the factor."""
        inner = normal_mean(self.statistic, columns, mean, factor)
        return None if inner is None else inner * self.factor

    def diameter(self, norm: Norm) -> float:
        """The statistic's diameter times |factor|; exact if that is."""
        return abs(self.factor) * bounded(self.statistic).diameter(norm)

    def radius(self, norm: Norm) -> float:
        """The statistic's radius times |factor|; exact if that is."""
        return abs(self.factor) * bounded(self.statistic).radius(norm)

    @property
    def leaves(self) -> tuple[RecordStatistic, ...]:
        """Those of the statistic."""
        return bounded(self.statistic).leaves

    def assemble(self, parts: Iterator[np.ndarray]) -> np.ndarray:
        """The statistic's contributions [m, d] times the constant."""
        return bounded(self.statistic).assemble(parts) * self.factor

    def assemble_listed(self, parts: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """The places of the statistic's contributions, and their values times the constant."""
        places, values = bounded(self.statistic).assemble_listed(parts)
        return places, values * self.factor

    def rounding(self) -> float:
        """That of the statistic, and of one product."""
        return bounded(self.statistic).rounding() + rounding_of(self, 1, DOUBLE)

    def covers(self, contributions: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether the statistic covers them, unscaled."""
        return bounded(self.statistic).covers(contributions / self.factor, tolerance)


@dataclass(frozen=True)
class Stacked(RecordStatistic, TakenAtValue):
    """Several statistics in one vector; see `stacked`.

    Examples
    --------
    >>> import dpjax
    >>> total = dpjax.statistics.total
    >>> dpjax.statistics.stacked(total("x", 0.0, 1.0), total("y", 0.0, 1.0)).dimension
    2
    """

    json_name: ClassVar[str | None] = "stacked"

    statistics: tuple[Statistic, ...]

    @property
    def dimension(self) -> int | None:
        """The sum of the dimensions, if all are known."""
        known = [size for statistic in self.statistics if (size := dimension_of(statistic)) is not None]
        return sum(known) if len(known) == len(self.statistics) else None

    @property
    def is_whole(self) -> bool:
        """Whether all of them are."""
        return all(is_whole(statistic) for statistic in self.statistics)

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """Those of all of them."""
        return {name: levels for one in self.statistics for name, levels in level_names_of(one).items()}

    @property
    def coordinate_names(self) -> tuple[str, ...] | None:
        """Those of all of them; numbers where some have none."""
        sizes = [(one, dimension_of(one)) for one in self.statistics]
        return tuple(name for one, size in sizes for name in coordinate_names_of(one, size or 0))

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """Those of all of them; whole numbers of a field that one of them counts."""
        stated = [pair for one in self.statistics for pair in field_types_of(one).items()]
        return dict(sorted(stated, key=lambda pair: pair[1].base.kind == "i"))

    def __call__(self, record: Records) -> Array:
        """The joined contributions [d] of one record."""
        return jnp.concatenate([as_floating(statistic(record)) for statistic in self.statistics])

    def at(self, value: Array) -> "Stacked":
        """The statistics if this value, of all of them, was released."""
        return Stacked(tuple(statistic_at(statistic, value) for statistic in self.statistics))

    @property
    def is_sparse(self) -> bool:
        """Whether all statistics are so."""
        return all(map(is_sparse_table, self.statistics))

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The nonzero coordinates [m, k] of all statistics."""
        pieces: list[tuple[Array, Array]] = []
        start = 0
        for statistic in self.statistics:
            index, weight = statistic.sparse(records)  # type: ignore[attr-defined]
            pieces.append((jnp.where(index < 0, -1, index + start), as_floating(weight)))
            start += dimension_of(statistic) or 0
        index, weight = (jnp.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))
        return index, weight

    def words(self) -> str:
        """Those of all statistics."""
        return "; ".join(map(words_of, self.statistics))

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `stacked` makes of them."""
        return _stacked_of(**values)  # type: ignore[return-value]

    def normal_mean(self, columns: dict[str, slice], mean: Array, factor: Array) -> Array | None:
        """The joined means, where all are known."""
        found = [normal_mean(statistic, columns, mean, factor) for statistic in self.statistics]
        known = [part for part in found if part is not None]
        return jnp.concatenate(known) if len(known) == len(found) else None

    def diameter(self, norm: Norm) -> float:
        """The sum (L1) or root sum of squares (L2) of the diameters: an upper bound, exact for separate fields."""
        return _join(norm, self.statistics, lambda statistic: statistic.diameter(norm))

    def radius(self, norm: Norm) -> float:
        """The sum (L1) or root sum of squares (L2) of the radii: an upper bound, exact for separate fields."""
        return _join(norm, self.statistics, lambda statistic: statistic.radius(norm))

    @property
    def leaves(self) -> tuple[RecordStatistic, ...]:
        """Those of all statistics."""
        return tuple(leaf for statistic in self.statistics for leaf in bounded(statistic).leaves)

    def assemble(self, parts: Iterator[np.ndarray]) -> np.ndarray:
        """The joined contributions [m, d]."""
        return np.concatenate([bounded(statistic).assemble(parts) for statistic in self.statistics], axis=1)

    def assemble_listed(self, parts: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """The places and values [m, k] of all statistics."""
        listed = [bounded(statistic).assemble_listed(parts) for statistic in self.statistics]
        starts = np.cumsum([0, *(dimension_of(statistic) or 0 for statistic in self.statistics)])
        places = [np.where(place < 0, -1, place + start) for (place, _), start in zip(listed, starts, strict=False)]
        return np.concatenate(places, axis=1), np.concatenate([values for _, values in listed], axis=1)

    def rounding(self) -> float:
        """The largest of those of the statistics, each relative to its own radius."""
        return max(bounded(statistic).rounding() for statistic in self.statistics)

    def covers(self, contributions: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether each statistic covers its part of them."""
        ends = np.cumsum([dimension_of(statistic) or 0 for statistic in self.statistics])
        pieces = zip(self.statistics, np.split(contributions, ends[:-1], axis=1), strict=True)
        return np.all([bounded(statistic).covers(piece, tolerance) for statistic, piece in pieces], axis=0)


def is_sparse_table(statistic: Statistic) -> bool:
    """Whether it is known which of how many coordinates of a statistic a record moves."""
    return is_sparse(statistic) and dimension_of(statistic) is not None


@names_arguments
def scaled(statistic: Statistic, factor: float) -> Scaled:
    """A statistic times a constant, such as 1 / n for means in place of sums.

    Parameters
    ----------
    statistic
        A function of one record that returns [d].
    factor
        The constant, finite and not 0.

    Raises
    ------
    ValueError
        If the factor is zero or not finite.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax.statistics import total
    >>> dpjax.statistics.scaled(total("y", 0.0, 5.0), 0.1)({"y": jnp.array(9.0)}).tolist()
    [0.5]
    """
    check_function(statistic)
    remedy = "Pass the constant that multiplies the statistic."
    number = as_number("factor", factor, lambda array: array != 0, "a finite number other than 0", remedy)
    return Scaled(statistic, number)


@names_arguments
def stacked(*statistics: Statistic) -> Stacked:
    """Several statistics of the same record, joined in the order given.

    Parameters
    ----------
    *statistics
        Functions of one record.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax.statistics import cells, total
    >>> both = dpjax.statistics.stacked(cells("group", 2), total("y", 0.0, 5.0))
    >>> both({"group": jnp.array(1), "y": jnp.array(3.0)}).tolist()
    [0.0, 1.0, 3.0]
    """
    if not statistics:
        fail("statistics", "none", "at least one statistic", "Pass the statistics to join.")
    for place, statistic in enumerate(statistics):
        check_function(statistic, f"statistics[{place}]")
    return Stacked(statistics)


def _stacked_of(statistics: Sequence[Statistic]) -> Stacked:
    return stacked(*statistics)


def bounded(statistic: Statistic) -> RecordStatistic:
    """The statistic, or an error if it does not say how far one record moves it."""
    if not isinstance(statistic, RecordStatistic):
        remedy = "Only dpjax.statistics know their sensitivity: derive that of a function by hand."
        fail("statistic", repr(statistic), "a statistic with a known sensitivity", remedy, error=TypeError)
    return statistic


def _join(norm: Norm, statistics: tuple[Statistic, ...], length: Callable[[RecordStatistic], float]) -> float:
    lengths = [length(bounded(statistic)) for statistic in statistics]
    return sum(lengths) if norm == 1 else hypot(*lengths)
