"""Statistics made of others: rescaled and joined."""

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot

import jax.numpy as jnp

from dpjax._util.validation import fail
from dpjax.base import Array, Records, Statistic
from dpjax.mechanisms.base import as_floating
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    SparseStatistic,
    as_number,
    check_function,
    dimension_of,
    is_sparse,
)


@dataclass(frozen=True)
class Scaled(RecordStatistic):
    """A statistic times a constant; see `scaled`.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.total("y", -1.0, 1.0)
    >>> round(scaled(statistic, 0.1).sensitivity(1, "replace-one"), 5)
    0.2
    """

    statistic: Statistic
    factor: float

    @property
    def dimension(self) -> int | None:
        """The dimension of the statistic, where it is known."""
        return dimension_of(self.statistic)

    def __call__(self, record: Records) -> Array:
        """The rescaled contribution [d] of one record."""
        return as_floating(self.statistic(record)) * self.factor

    def diameter(self, norm: Norm) -> float:
        """The statistic's diameter times |factor|; exact where that is."""
        return abs(self.factor) * _bounded(self.statistic).diameter(norm)

    def radius(self, norm: Norm) -> float:
        """The statistic's radius times |factor|; exact where that is."""
        return abs(self.factor) * _bounded(self.statistic).radius(norm)


@dataclass(frozen=True)
class Stacked(RecordStatistic):
    """Several statistics in one vector; see `stacked`.

    Examples
    --------
    >>> import dpjax
    >>> total = dpjax.statistics.total
    >>> stacked(total("x", 0.0, 1.0), total("y", 0.0, 1.0)).dimension
    2
    """

    statistics: tuple[Statistic, ...]

    @property
    def dimension(self) -> int | None:
        """The sum of the dimensions, where all are known."""
        known = [size for statistic in self.statistics if (size := dimension_of(statistic)) is not None]
        return sum(known) if len(known) == len(self.statistics) else None

    def __call__(self, record: Records) -> Array:
        """The joined contributions [d] of one record."""
        return jnp.concatenate([as_floating(statistic(record)) for statistic in self.statistics])

    def diameter(self, norm: Norm) -> float:
        """The sum (L1) or root sum of squares (L2) of the diameters: an upper bound, exact for separate fields."""
        return _join(norm, self.statistics, lambda statistic: statistic.diameter(norm))

    def radius(self, norm: Norm) -> float:
        """The sum (L1) or root sum of squares (L2) of the radii: an upper bound, exact for separate fields."""
        return _join(norm, self.statistics, lambda statistic: statistic.radius(norm))


@dataclass(frozen=True)
class SparseScaled(Scaled):
    """The same of a statistic that knows which of its coordinates a record moves.

    Examples
    --------
    >>> import dpjax
    >>> half = scaled(dpjax.statistics.cells("cell", num_categories=3), 0.5)
    >>> half({"cell": 1}).tolist()
    [0.0, 0.5, 0.0]
    """

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The statistic's nonzero coordinates [m, k], their values times the constant."""
        assert isinstance(self.statistic, SparseStatistic)
        index, weight = self.statistic.sparse(records)
        return index, as_floating(weight) * self.factor


@dataclass(frozen=True)
class SparseStacked(Stacked):
    """The same of statistics that all know which of their coordinates a record moves.

    Examples
    --------
    >>> import dpjax
    >>> cells = dpjax.statistics.cells
    >>> stacked(cells("age", num_categories=3), cells("sex", num_categories=2)).dimension
    5
    """

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The nonzero coordinates [m, k] of all statistics."""
        pieces: list[tuple[Array, Array]] = []
        start = 0
        for statistic in self.statistics:
            assert isinstance(statistic, SparseStatistic)
            index, weight = statistic.sparse(records)
            pieces.append((jnp.where(index < 0, -1, index + start), as_floating(weight)))
            start += dimension_of(statistic) or 0
        index, weight = (jnp.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))
        return index, weight


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
    >>> import jax.numpy as jnp
    >>> from dpjax.statistics import total
    >>> scaled(total("y", 0.0, 5.0), 0.1)({"y": jnp.array(9.0)}).tolist()
    [0.5]
    """
    check_function(statistic)
    remedy = "Pass the constant that multiplies the statistic."
    number = as_number("factor", factor, lambda array: array != 0, "a finite number other than 0", remedy)
    return (SparseScaled if is_sparse(statistic) else Scaled)(statistic, number)


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
    >>> import jax.numpy as jnp
    >>> from dpjax.statistics import cells, total
    >>> both = stacked(cells("group", 2), total("y", 0.0, 5.0))
    >>> both({"group": jnp.array(1), "y": jnp.array(3.0)}).tolist()
    [0.0, 1.0, 3.0]
    """
    if not statistics:
        fail("statistics", "none", "at least one statistic", "Pass the statistics to join.")
    for place, statistic in enumerate(statistics):
        check_function(statistic, f"statistics[{place}]")
    return (SparseStacked if all(map(is_sparse, statistics)) else Stacked)(statistics)


def _bounded(statistic: Statistic) -> RecordStatistic:
    if not isinstance(statistic, RecordStatistic):
        remedy = "Only dpjax.statistics know their sensitivity: derive that of a function by hand."
        fail("statistic", repr(statistic), "a statistic with a known sensitivity", remedy, error=TypeError)
    return statistic


def _join(norm: Norm, statistics: tuple[Statistic, ...], length: Callable[[RecordStatistic], float]) -> float:
    lengths = [length(_bounded(statistic)) for statistic in statistics]
    return sum(lengths) if norm == 1 else hypot(*lengths)
