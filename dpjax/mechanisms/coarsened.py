"""Counts that are published coarsened by a fixed rule: rounded, redacted, or as the bin that they are in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, check_function, describe_array, fail, read_numbers
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.largest_density import by_bounds
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import ProtectedSums, Unpromised
from dpjax.mechanisms.random_rounding import NO_PRIVACY
from dpjax.numerics.next_floats import where_near

__all__ = ["Coarsened"]

FAR_PERIODS = 4
"""How often the period is written out after the table, so that no published number is cut at its end."""


NEAR = 1e-6
"""Published numbers that are as near are the same."""


class Labels(NamedTuple):
    """The numbers [m] that can be published, in increasing order, and the least and the greatest count of each."""

    numbers: np.ndarray
    least: np.ndarray
    most: np.ndarray


@frozen_pytree
@dataclass(frozen=True)
class Coarsened(Mechanism):
    """Releases each count i as ``published[i]``, a fixed number: rounded, redacted, or the number of a bin.

    Parameters
    ----------
    published : [D + 1]
        What the counts 0, 1, ..., D are published as. It is stored as a tuple of numbers.
    period
        How larger counts are published. A whole number p of at least 1: as the last p entries go on, higher by p each
        time. 0: all as the last entry, as "100 or more". ``None``: no larger count is possible, as where D is the
        number of records.

    Raises
    ------
    TypeError, ValueError
        If the entries are no finite numbers, the period is no whole number up to D + 1, or two counts are published as
        one number while one between them is not.

    Notes
    -----
    The likelihood is 1 where the count is published as the number, and 0 elsewhere. `from_function` tabulates any
    rule; `midpoints`, `multiples` and `bins` are the usual ones. A redacted count is a number of its own, such as -1.
    Rules that differ between cells, such as rates of known denominators, are joined by `dpjax.mechanisms.Independent`.

    Examples
    --------
    >>> from dpjax.mechanisms.coarsened import Coarsened
    >>> import dpjax, jax
    >>> rule = Coarsened.midpoints(6)
    >>> rule.sample(jax.random.key(1), jax.numpy.array([0, 1, 6, 7, 25])).tolist()
    [0.0, 3.0, 3.0, 9.0, 27.0]
    >>> Coarsened([0, -1, -1, -1, -1, 5], period=1) == Coarsened.from_function(
    ...     lambda count: -1 if 1 <= count <= 4 else count, largest=5, period=1
    ... )
    True
    """

    json_name: ClassVar[str | None] = "coarsened"

    published: Sequence[float] = field(metadata={"static": True})
    period: int | None = field(default=None, metadata={"static": True})

    def __post_init__(self) -> None:
        remedy = "Pass what the counts 0, 1, 2, ... are published as; Coarsened.from_function tabulates a rule."
        check_array("published", self.published, np.isfinite, "finite numbers", remedy)
        table = np.asarray(self.published, float)
        if table.ndim != 1 or not table.size:
            fail("published", f"shape {list(table.shape)}", "shape [D + 1]", remedy)
        object.__setattr__(self, "published", tuple(table.tolist()))
        if self.period is not None:
            remedy = "Pass after how many counts the rule repeats, 0 for a last bin without end, or None."
            period = check_count("period", self.period, remedy, least=0, most=len(table))
            object.__setattr__(self, "period", period)
        self._check_together()

    @classmethod
    def from_function(cls, function: Callable[[int], float], largest: int, *, period: int | None = None) -> "Coarsened":
        """The mechanism of any rule, tabulated for the counts 0, ..., `largest`.

        Parameters
        ----------
        function
            The rule: the published number of a count, which is an `int`.
        largest
            The last count of the table; the number of records where no period is given.
        period
            As in `Coarsened`.

        Raises
        ------
        TypeError, ValueError
            If the rule is no function, does not return numbers, or does not go on with that period.

        Examples
        --------
        >>> from dpjax.mechanisms.coarsened import Coarsened
        >>> below_ten = Coarsened.from_function(lambda count: count if count == 0 or count > 9 else -1, 10, period=1)
        """
        check_function("function", function, "a function count -> number")
        last = check_count("largest", largest, "Pass the last count of the table.", least=0)
        rule = cls([function(count) for count in range(last + 1)], period)
        if period is not None:
            ahead = np.arange(last + 1, last + 2 + 2 * period)
            goes_on = np.asarray(rule._published(jnp.asarray(ahead, float)), float)
            check_array(
                "function",
                [function(int(count)) for count in ahead],
                lambda array: np.abs(array - goes_on) < rule._tolerance,
                f"a rule that goes on after {last} with period {period}",
                "Increase `largest` until the rule repeats, or leave out the period.",
            )
        return rule

    @classmethod
    def midpoints(cls, base: int = 6) -> "Coarsened":
        """0 as it is, and every other count as the midpoint of its class of b counts: b ⌈i / b⌉ - ⌊b / 2⌋.

        Parameters
        ----------
        base
            The size b of a class. OpenSAFELY publishes midpoints of 6: 1 to 6 as 3, 7 to 12 as 9.

        Raises
        ------
        TypeError, ValueError
            If it is no whole number of at least 1.

        Examples
        --------
        >>> from dpjax.mechanisms.coarsened import Coarsened
        >>> Coarsened.midpoints(6).published
        (0.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0)
        """
        size = check_count("base", base, "Pass the size of a class, such as 6.")
        return cls([0.0, *[size - size // 2] * size], period=size)

    @classmethod
    def multiples(cls, base: int, *, redacted: tuple[int, int] | None = None, code: float = -1.0) -> "Coarsened":
        """The nearest multiple of a base, the higher one of two that are as near; small counts may be redacted first.

        Parameters
        ----------
        base
            The base: 5 for counts rounded to the nearest 5.
        redacted
            The least and the greatest count that is redacted, such as (1, 7); by default none is.
        code
            What is published in place of these.

        Raises
        ------
        TypeError, ValueError
            If they are no such numbers.

        Examples
        --------
        >>> from dpjax.mechanisms.coarsened import Coarsened
        >>> Coarsened.multiples(5, redacted=(1, 7)).published[:13]
        (0.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 10.0, 10.0, 10.0, 10.0, 10.0)
        """
        size = check_count("base", base, "Pass the base, such as 5.")
        least, most = (0, -1) if redacted is None else check_range("redacted", redacted)

        def rule(count: int) -> float:
            return code if least <= count <= most else size * ((2 * count + size) // (2 * size))

        return cls([rule(count) for count in range(most + 1 + 2 * size)], period=size)

    @classmethod
    def bins(cls, starts: Sequence[int]) -> "Coarsened":
        """The number 0, 1, ... of the bin that a count is in; the last bin has no end.

        Parameters
        ----------
        starts : [m]
            The least count of each bin, from 0: [0, 1, 5, 10] are the bins 0, 1 to 4, 5 to 9, and 10 or more. The first
            may be -∞, and an ∞ after the last says the same as none.

        Raises
        ------
        TypeError, ValueError
            If they are not increasing whole numbers from 0.

        Examples
        --------
        >>> from dpjax.mechanisms.coarsened import Coarsened
        >>> Coarsened.bins([0, 1, 5]).published
        (0.0, 1.0, 1.0, 1.0, 1.0, 2.0)
        """
        remedy = "Pass the least count of each bin."
        numbers = read_numbers("starts", starts, "whole numbers", remedy).astype(float)
        if numbers.ndim == 1 and len(numbers) > 1:
            numbers[0] = 0 if numbers[0] == -np.inf else numbers[0]
            numbers = numbers[: -1 if numbers[-1] == np.inf else None]
        check_array(
            "starts", numbers, lambda array: np.isfinite(array) & (array == np.round(array)), "whole numbers", remedy
        )
        edges = numbers.astype(int)
        if edges.ndim != 1 or not len(edges) or edges[0] != 0 or np.any(np.diff(edges) <= 0):
            fail("starts", describe_array(np.asarray(starts)), "increasing whole numbers from 0", remedy)
        return cls(np.searchsorted(edges, np.arange(edges[-1] + 1), side="right") - 1.0, period=0)  # type: ignore[arg-type]

    def _words(self) -> str:
        """How many numbers can be published, and how larger counts are."""
        last = len(self.published) - 1
        beyond = {None: f"no count is above {last}", 0: f"all counts from {last} on are one"}
        reach = beyond.get(self.period, f"the rule repeats every {self.period} counts")
        return f"none, but counts are coarsened by a rule; {reach}"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: a count is known to lie in a set."""
        del sums
        raise Unpromised(NO_PRIVACY)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each number is one that some count is published as."""

        def is_possible(array: np.ndarray) -> np.ndarray:
            least, most = (np.asarray(end) for end in self._possible_counts(jnp.asarray(array, float)))
            return least <= most

        remedy = "Check the rule, and that a redacted count has the number that stands for it."
        check_array(argument, value, is_possible, "numbers that the rule publishes", remedy)

    def _to_atoms(self, value: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The value [d] moved to a number that the rule publishes if that is within its error [d]."""
        numbers = np.unique(np.asarray(self.published, float))
        beyond = self.period * np.maximum(np.ceil((value - numbers[-1]) / self.period), 0) if self.period else 0.0
        nearest = numbers[np.abs((value - beyond)[..., None] - numbers).argmin(axis=-1)]
        return where_near(value, nearest + beyond, error)

    @property
    def sums(self) -> PossibleSums:
        """The counts that are published as a number; a single one is known."""
        single = self._labels.least == self._labels.most
        return PossibleSums(
            bounds=self._possible_counts,
            largest=partial(by_bounds, self._possible_counts),
            near=self._middle_counts,
            reveals=bool(np.any(single)),
            tells=bool(np.any(single & (self._labels.least > 0))),
            whole=all_whole,
        )

    def _middle_counts(self, value: Array) -> Array:
        """The middle of the counts [d] that each number can stand for."""
        least, most = self._possible_counts(value)
        return jnp.where(jnp.isfinite(most), (least + most) / 2, least)

    def _possible_counts(self, value: Array) -> tuple[Array, Array]:
        """The least and the greatest count [d] that is published as each number; exchanged if none is."""
        value, shift = as_floating(value), jnp.zeros_like(value)
        if self.period:
            # All numbers above the second last period belong to counts there or beyond it.
            highest = max(self._written[len(self.published) + self.period :][: self.period])
            shift = self.period * jnp.maximum(jnp.ceil((value - highest) / self.period - self._tolerance), 0)
            # A number of the table may be above these, too, if it stands for redacted counts.
            own = np.unique(np.asarray(self.published)).reshape(-1, *[1] * value.ndim)
            is_own = jnp.any(jnp.abs(jnp.asarray(own, value.dtype) - value[None]) < self._tolerance, axis=0)
            shift = jnp.where(is_own, 0.0, shift)
        labels, place = self._labels, self._place(value - shift)
        near = jnp.abs(jnp.asarray(labels.numbers, value.dtype)[place] - (value - shift)) < self._tolerance
        least, most = (jnp.asarray(end, value.dtype)[place] + shift for end in (labels.least, labels.most))
        return jnp.where(near, least, jnp.inf), jnp.where(near, most, -jnp.inf)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability, 0 or ``-inf``, of each number [..., d] given its count [..., d]."""
        # Where numbers are fractions, a count that was computed from one is whole but for rounding.
        value, count = as_floating(value), jnp.round(as_floating(statistic))
        is_same = jnp.abs(self._published(count) - value) < self._tolerance
        possible = (count >= 0) & ((count < len(self.published)) if self.period is None else True)
        return jnp.where(is_same & possible, jnp.zeros_like(value - count), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the numbers [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The numbers [d] that are published of counts [d]."""
        del key
        return self._published(jnp.round(as_floating(statistic)))

    def _published(self, count: Array) -> Array:
        """The number of each count, of those beyond the table as the rule goes on."""
        last, shift = len(self.published) - 1, jnp.zeros_like(count)
        if self.period:
            shift = self.period * jnp.maximum(jnp.ceil((count - last) / self.period), 0)
        place = jnp.clip(count - shift, 0, last).astype(int)
        return jnp.asarray(self.published, count.dtype)[place] + shift

    def _place(self, value: Array) -> Array:
        """The label nearest to each number."""
        numbers = self._labels.numbers
        middles = jnp.asarray((numbers[1:] + numbers[:-1]) / 2, value.dtype)
        return jnp.searchsorted(middles, value)

    def _check_together(self) -> None:
        """Raise unless the counts of each published number follow one another.

        Counts beyond the table are published as none of its numbers, or as it ends. If they do not mix with each other
        in one period, they never do.
        """
        table, last = np.asarray(self.published, float), len(self.published) - 1
        numbers, counts = table, np.arange(len(table))
        if self.period:
            # Each number with those counts beyond the table that are published as it; and two periods of these.
            ends, places = table[-self.period :], np.arange(last - self.period + 1, last + 1)
            turns = np.round((np.unique(table)[:, None] - ends) / self.period)
            again = np.abs(ends + turns * self.period - np.unique(table)[:, None]) < NEAR
            rows, columns = np.nonzero(again & (turns >= 1))
            far = (np.unique(table)[rows], places[columns] + turns[rows, columns] * self.period)
            spread = int(np.ceil((ends.max() - ends.min()) / self.period)) + 2
            ahead = np.arange(1, 2 * spread + 1)[:, None] * self.period
            numbers, counts = (
                np.concatenate([first, other, (one + ahead).ravel()])
                for first, other, one in zip((table, counts), far, (ends, places), strict=True)
            )
        numbers = np.round(numbers / NEAR) * NEAR
        for number in np.unique(numbers):
            own = np.unique(counts[numbers == number])
            if own[-1] - own[0] >= len(own):
                given = f"counts published as {number:g} with others between them"
                expected = "counts of one published number that follow one another"
                fail(
                    "published", given, expected, "Give the parts numbers of their own, if readers can tell them apart."
                )

    @cached_property
    def _written(self) -> np.ndarray:
        """The table [L], with a few periods after it."""
        table = np.asarray(self.published, float)
        if not self.period:
            return table
        ahead = [table[-self.period :] + self.period * turn for turn in range(1, FAR_PERIODS + 1)]
        return np.concatenate([table, *ahead])

    @cached_property
    def _labels(self) -> Labels:
        """The numbers of the table and a few periods, with their counts."""
        numbers, first, sizes = np.unique(self._written, return_index=True, return_counts=True)
        most = (first + sizes - 1).astype(float)
        most[(most == len(self.published) - 1) & (self.period == 0)] = np.inf
        return Labels(numbers, first.astype(float), most)

    @cached_property
    def _tolerance(self) -> float:
        """How far a published number may be from that of the rule: a quarter of the smallest distance between two."""
        gaps = np.diff(self._labels.numbers)
        return float(np.min(gaps, initial=1.0)) / 4


def check_range(argument: str, ends: Any) -> tuple[int, int]:
    """Two counts in order, or an error."""
    remedy = "Pass the least and the greatest count that is redacted, such as (1, 7)."
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        fail(argument, describe_array(np.asarray(ends, object)), "two whole numbers", remedy, error=TypeError)
    least = check_count(argument, ends[0], remedy, least=0)
    return least, check_count(argument, ends[1], remedy, least=least)
