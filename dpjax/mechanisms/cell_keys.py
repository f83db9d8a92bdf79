"""Counts perturbed by a table of transition probabilities, as by the cell-key method of statistical agencies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, describe_array, fail
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import ProtectedSums, Unpromised
from dpjax.mechanisms.random_rounding import NO_PRIVACY

__all__ = ["CellKeys"]

ROW_SUM_TOLERANCE = 1e-5
"""Published tables have few decimals; rows are divided by their sum."""


@frozen_pytree
@dataclass(frozen=True)
class CellKeys(Mechanism):
    """Releases each count i as j with probability ``transition[i, j]``; large counts move as the last row does.

    A count of D or more, D being the number of the last row, is moved by j - D with probability
    ``transition[D, j]``.

    Parameters
    ----------
    transition : [D + 1, k]
        P(published = j | true = i), of counts i from 0 to D and j from 0 to k - 1. It is stored as tuples of numbers.

    Raises
    ------
    TypeError, ValueError
        If the table has not two axes and numbers of at least 0, or a row does not sum to 1.

    Notes
    -----
    The R package ptable designs such tables and writes them as columns i, j and p: `from_columns` reads these. By the
    cell-key method a count of the very same people is perturbed in the same way wherever it is published, so state each
    count once.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> keys = dpjax.mechanisms.CellKeys([[1.0, 0.0, 0.0, 0.0], [0.3, 0.4, 0.3, 0.0], [0.0, 0.3, 0.4, 0.3]])
    >>> [round(float(jnp.exp(keys.log_density(jnp.array([9.0]), jnp.array([count])))), 3) for count in (8, 9, 10, 11)]
    [0.3, 0.4, 0.3, 0.0]
    """

    json_name: ClassVar[str | None] = "cell_keys"
    integer_noise: ClassVar[bool] = True

    transition: tuple[tuple[float, ...], ...] = field(metadata={"static": True})

    def __post_init__(self) -> None:
        remedy = "Row i holds P(published = j | true = i) for j = 0, 1, ...; from_columns reads a list of i, j and p."
        check_array("transition", self.transition, lambda array: array >= 0, "finite numbers of at least 0", remedy)
        table = np.asarray(self.transition, float)
        if table.ndim != 2 or table.size == 0:
            fail("transition", f"shape {list(table.shape)}", "shape [D + 1, k]", remedy)
        sums = table.sum(axis=1)
        if np.any(np.abs(sums - 1) > ROW_SUM_TOLERANCE):
            fail("transition", f"rows that sum to {describe_array(sums)}", "rows that sum to 1", remedy)
        object.__setattr__(self, "transition", tuple(map(tuple, table.tolist())))

    @classmethod
    def from_columns(cls, i: Sequence[int] | Array, j: Sequence[int] | Array, p: Sequence[float] | Array) -> "CellKeys":
        """The mechanism of a table in long form, as the R package ptable writes it; what is not listed is impossible.

        Parameters
        ----------
        i : [m]
            True counts, all from 0 to the largest.
        j : [m]
            Published counts.
        p : [m]
            P(published = j | true = i).

        Raises
        ------
        TypeError, ValueError
            If the columns differ in length, hold anything but whole numbers and probabilities, or repeat a pair of
            counts; or a row does not sum to 1.

        Examples
        --------
        >>> import dpjax
        >>> dpjax.mechanisms.CellKeys.from_columns(i=[0, 1, 1], j=[0, 0, 2], p=[1.0, 0.5, 0.5]).transition
        ((1.0, 0.0, 0.0), (0.5, 0.0, 0.5))
        """
        rows, places, chances = _read_columns(i, j, p)
        table = np.zeros((rows.max() + 1, places.max() + 1))
        table[rows, places] = chances
        missing = np.setdiff1d(np.arange(len(table)), rows)
        if missing.size:
            remedy = "List every true count from 0 to that from which on the distribution of j - i is the same."
            fail("i", f"no {describe_array(missing)}", f"all counts from 0 to {rows.max()}", remedy)
        return cls(table)  # type: ignore[arg-type]

    def _words(self) -> str:
        """Up to which count the table goes."""
        last = len(self.transition) - 1
        return f"a table of transition probabilities, that of {last} for all larger counts (cell keys)"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: a count is moved by a bounded number."""
        del sums
        raise Unpromised(NO_PRIVACY)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each number is one that some count can be published as."""

        def is_possible(array: np.ndarray) -> np.ndarray:
            least, most = (np.asarray(end) for end in self._possible_counts(jnp.asarray(array)))
            return least <= most

        expected = "whole numbers of at least 0 that the table publishes"
        check_array(argument, value, is_possible, expected, "Check the table: no count is published as such a number.")

    @property
    def sums(self) -> PossibleSums:
        """Counts between the least and the greatest that the table publishes so."""
        return PossibleSums(bounds=self._possible_counts, whole=all_whole)

    def _possible_counts(self, value: Array) -> tuple[Array, Array]:
        """The least and the greatest count [d] that can be published as each number; exchanged if none can."""
        value, last, size = as_floating(value), len(self._table) - 1, self._table.shape[1]
        listed, place = (value >= 0) & (value < size), jnp.clip(value, 0, size - 1).astype(int)
        least, most = (jnp.asarray(end, value.dtype)[place] for end in self._small)
        moves = (np.flatnonzero(self._table[-1]) - last).tolist()
        low, high = jnp.maximum(value - moves[-1], last), value - moves[0]
        is_large = low <= high
        return (
            jnp.minimum(jnp.where(listed, least, jnp.inf), jnp.where(is_large, low, jnp.inf)),
            jnp.maximum(jnp.where(listed, most, -jnp.inf), jnp.where(is_large, high, -jnp.inf)),
        )

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each number [..., d] given its count [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        row = jnp.clip(statistic, 0, len(self._table) - 1)
        place = value - statistic + row
        possible = (statistic >= 0) & (place >= 0) & (place < self._table.shape[1])
        with np.errstate(divide="ignore"):
            log_table = jnp.asarray(np.log(self._table), place.dtype)
        chosen = log_table[row.astype(int), jnp.where(possible, place, 0).astype(int)]
        return jnp.where(possible, chosen, -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the numbers [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Published numbers [d] given the counts [d]."""
        counts = as_floating(statistic)
        row = jnp.clip(counts, 0, len(self._table) - 1)
        running = jnp.asarray(self._ends, counts.dtype)[row.astype(int)]
        uniform = jax.random.uniform(key, counts.shape, counts.dtype)
        return jnp.sum(uniform[..., None] >= running, axis=-1).astype(counts.dtype) + counts - row

    @cached_property
    def _table(self) -> np.ndarray:
        """The probabilities [D + 1, k]."""
        table = np.asarray(self.transition, float)
        return table / table.sum(axis=1, keepdims=True)

    @cached_property
    def _ends(self) -> np.ndarray:
        """The probability [D + 1, k - 1] of at most each number but the last; ∞ if no larger one is possible."""
        above = np.flip(np.cumsum(np.flip(self._table, axis=1), axis=1), axis=1)[:, 1:]
        return np.where(above > 0, np.cumsum(self._table, axis=1)[:, :-1], np.inf)

    @cached_property
    def _small(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest count below D [k] that can be published as each number."""
        possible = self._table[:-1] > 0
        count = np.arange(len(possible))[:, None]
        least, most = np.where(possible, count, np.inf), np.where(possible, count, -np.inf)
        return least.min(axis=0, initial=np.inf), most.max(axis=0, initial=-np.inf)


def _read_columns(i: Any, j: Any, p: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns of a table in long form, or an error unless they are counts and probabilities, pair by pair."""
    whole = "whole numbers of at least 0"
    for name, column in {"i": i, "j": j}.items():
        check_array(name, column, lambda array: (array >= 0) & (array == np.round(array)), whole, "Pass counts.")
    remedy = "Pass the probabilities of the pairs of counts, one each."
    check_array("p", p, lambda array: array >= 0, "finite numbers of at least 0", remedy)
    rows, places, chances = np.asarray(i), np.asarray(j), np.asarray(p, float)
    shapes = {rows.shape, places.shape, chances.shape}
    if len(shapes) > 1 or rows.ndim != 1 or rows.size == 0:
        fail("i, j, p", f"shapes {sorted(map(list, shapes))}", "three columns of one length", remedy)
    rows, places = rows.astype(int), places.astype(int)
    if len(np.unique(np.stack([rows, places]), axis=1).T) < len(rows):
        fail("i, j", "a pair of counts more than once", "each pair once", "Leave out what is repeated.")
    return rows, places, chances
