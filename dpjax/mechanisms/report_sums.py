"""Column sums of randomized bits: how many of n persons reported each category."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, describe, fail, is_traced
from dpjax._util.words import amount, quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating, at_coordinates
from dpjax.mechanisms.largest_density import overlaps
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised, pure
from dpjax.numerics.binomial_sums import log_binomial_sum
from dpjax.numerics.counts import draw_binomial

__all__ = ["ReportSums"]

MOST_PERSONS = 1_024
"""Largest number of persons with permanent bits."""

MOST_TABULATED = 10_000
"""Largest number of persons for which a kernel has the log-probabilities in a table."""


@frozen_pytree
@dataclass(frozen=True)
class ReportSums(Mechanism):
    """Releases of each count c of n persons Binomial(c, keep) + Binomial(n - c, flip), each column by itself.

    The sums of the bits that n persons reported, as of RAPPOR and other unary encodings. Each bit is 1 with probability
    `keep` where the person counts, and with probability `flip` where not.

    Parameters
    ----------
    keep : [] or [d]
        The probability of a 1 of a person who counts.
    flip : [] or [d]
        The probability of a 1 of any other person.
    n : [] or [n]
        The number of persons who reported: that of the release. In a `dpjax.LocalRelease` of a count for each unit,
        such as a school, it is the number of persons in the unit: one for all, or one for each unit.
    reports
        How many reports of each person were added up.
    permanent
        If each person's bit was randomized once and kept: the probabilities of a permanent 1 of a person who counts,
        and of any other. `keep` and `flip` are then those of a 1 where the permanent bit is 1, and where it is 0. None
        if every report has noise of its own on the truth.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If a probability is not strictly between 0 and 1, both are the same, or n is no whole number of at least 1. If
        there are permanent bits of more than 1,024 persons. A model of which units have other numbers of persons is
        refused where both meet.

    Notes
    -----
    The log-probability is an exact convolution at any n. The columns are independent given the counts, as the bits of a
    person are given what is true of the person. For permanent bits it is a sum over all numbers of them that are 1, for
    which there may be 1,024 persons at most.

    A count that is Binomial given the parameters, of the same n persons, has sums of one report each that are Binomial,
    too. Then nothing is summed over, whatever n is.

    Examples
    --------
    >>> from dpjax.mechanisms.report_sums import ReportSums
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> sums = ReportSums(keep=0.75, flip=0.25, n=12)
    >>> round(float(jnp.exp(sums.log_density(jnp.array([9.0]), jnp.array([12.0])))), 4)
    0.2581
    """

    json_name: ClassVar[str | None] = "report_sums"
    integer_noise: ClassVar[bool] = True
    parameter_axes: ClassVar[dict[str, int] | None] = {"n": 0}

    keep: Array | float
    flip: Array | float
    n: Array | int
    reports: int = field(default=1, metadata={"static": True}, kw_only=True)
    permanent: tuple[float, float] | None = field(default=None, metadata={"static": True}, kw_only=True)
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)
    most: int = field(init=False, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass the probability of a 1."
        for name in ("keep", "flip"):
            check_array(name, getattr(self, name), lambda array: (array > 0) & (array < 1), "numbers in (0, 1)", remedy)
            object.__setattr__(self, name, as_floating(getattr(self, name)))
        if not is_traced(self.keep, self.flip) and np.any(np.asarray(self.keep) == np.asarray(self.flip)):
            fail("flip", f"{amount(self.flip)}, as keep", "another probability than keep", "Such bits tell nothing.")
        object.__setattr__(self, "n", read_persons(self.n))
        object.__setattr__(self, "most", int(np.max(self.n)))
        object.__setattr__(self, "reports", check_count("reports", self.reports))
        if self.permanent is not None:
            object.__setattr__(self, "permanent", read_permanent_bits(self.permanent))
            if self.most > MOST_PERSONS:
                remedy = "Pass the reports themselves to dpjax.releases.unary_encoding, or sums of one report each."
                fail("n", self.most, f"at most {MOST_PERSONS:,} persons with permanent bits", remedy)

    @property
    def sums(self) -> PossibleSums:
        """Counts of n persons, which are near their unbiased estimates."""
        own = self._probabilities if self.reports == 1 else None
        near, largest = self._estimates, self._largest
        return PossibleSums(near=near, largest=largest, whole=all_whole, num_records=self.n, report_probabilities=own)

    def _words(self) -> str:
        """Both probabilities."""
        least = int(np.min(self.n))
        persons = quantity(self.most, "person") if least == self.most else f"{least:,} to {self.most:,} persons"
        kept = f"each of {persons} reported a bit, 1 with probability {amount(self.keep)}"
        words = f"{kept} where they count and {amount(self.flip)} where not"
        if self.reports > 1:
            words += f", in each of {self.reports:,} reports that were added up"
        if self.permanent is not None:
            ones = " and ".join(amount(one) for one in self.permanent)
            words += f"; what counts is a permanent bit, 1 with probability {ones}"
        return words

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the bits: of two columns that one person moves between, or of all that they can move."""
        if sums.neighbours != "replace-one":
            raise Unpromised("The number of reports is public.")
        own = self.reports * promised(self.keep, self.flip, sums)
        return pure(own if self.permanent is None else min(promised(*self.permanent, sums), own))

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each sum is at most n for each report."""
        if is_traced(self.n):
            return
        remedy, most = "Pass how many persons reported a 1 in each column.", np.asarray(self.n) * self.reports
        most = most.reshape(-1, *[1] * (value.ndim - 1)) if most.ndim else most
        expected = f"counts up to {most}" if not most.ndim else "counts up to the number of reports of each unit"
        check_array(argument, value, lambda array: (array >= 0) & (array <= most), expected, remedy)

    def _json_fields(self) -> dict[str, Any]:
        """The arguments."""
        return {name: value for name, value in super()._json_fields().items() if name != "most"}

    def _estimates(self, value: Array) -> Array:
        """The unbiased estimates of the counts [d], within 0 and n."""
        ones, (keep, flip) = value / self.reports, self._probabilities
        return jnp.clip((ones - self.n * flip) / (keep - flip), 0, self.n)

    @property
    def _probabilities(self) -> tuple[Any, Any]:
        """The probabilities of a 1 of a person who counts, and of any other."""
        keep, flip = (self.flip + one * (self.keep - self.flip) for one in self.permanent or (1.0, 0.0))
        return keep, flip

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """The bound of Hoeffding (1963, theorem 1) for sums of independent numbers in [0, 1], with the mean of a count.

        These are the reports; with permanent bits the mean reports of the persons, as theirs are not independent.
        """
        value, (keep, flip) = as_floating(value), self._probabilities
        number = self.n * (self.reports if self.permanent is None else 1)
        ends = [flip + (keep - flip) * jnp.clip(end, 0, self.n) / self.n for end in (low, high)]
        share = value / (self.n * self.reports)
        mean = jnp.clip(share, jnp.minimum(*ends), jnp.maximum(*ends))
        divergence = xlogy(share, share / mean) + xlogy(1 - share, (1 - share) / (1 - mean))
        return jnp.where(overlaps(low, high, 0, self.n), -number * jnp.maximum(divergence, 0.0), -jnp.inf)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each sum [..., d] given its count [..., d]."""
        value, count = as_floating(value), as_floating(statistic)
        possible = (count >= 0) & (count <= self._persons(value))
        inside = jnp.where(possible, count, 0)
        keep, flip = (jnp.asarray(one, value.dtype) for one in (self.keep, self.flip))
        log_density = self._log_reported if self.permanent is None else self._log_kept
        return jnp.where(possible, log_density(value, inside, keep, flip), -jnp.inf)

    def _persons(self, value: Array) -> Array:
        """The number of persons in the type of a value."""
        return jnp.asarray(self.n, value.dtype)

    def _log_reported(self, total: Array, ones: Array, p: Array, q: Array) -> Array:
        """The log-probability of sums given how many persons report by `keep`."""
        first, second = (self.reports * one for one in (ones, self._persons(total) - ones))
        return log_binomial_sum(total, first, second, p, q, self.reports * self.most)

    def _log_kept(self, total: Array, count: Array, p: Array, q: Array) -> Array:
        """The same given how many count, by a sum over all numbers of permanent ones.

        Neither factor is broadcast to the shape of both: a table of all counts needs few of each.
        """
        assert self.permanent is not None
        kept, flipped = (jnp.asarray(one, total.dtype) for one in self.permanent)
        persons = self._persons(total)

        def add(ones: Array | int, logs: Array) -> Array:
            number = jnp.asarray(ones, total.dtype)
            permanent = log_binomial_sum(number, count, persons - count, kept, flipped, self.most)
            return jnp.logaddexp(logs, permanent + self._log_reported(total, jnp.minimum(number, persons), p, q))

        shape = jnp.broadcast_shapes(total.shape, count.shape, p.shape, q.shape)
        return jax.lax.fori_loop(0, self.most + 1, add, jnp.full(shape, -jnp.inf, total.dtype))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the sums [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def _tabulated(self, value: Array) -> Mechanism:
        """A table of the log-probabilities of the sums [d] given all counts; itself if the table were large."""
        if self.most > MOST_TABULATED:
            return self
        counts, columns = jnp.arange(self.most + 1, dtype=value.dtype), at_coordinates(self, slice(None))
        return Tabulated(jnp.arange(len(value)), columns.log_density_terms(value[:, None], counts[None]))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The sums [d] of the bits given the counts [d]."""
        counts = as_floating(statistic)
        persons = jnp.asarray(self.n, jnp.result_type(int))
        whole = jnp.clip(jnp.round(counts).astype(int), 0, persons)
        report_key, permanent_key = (key, key) if self.permanent is None else jax.random.split(key)
        if self.permanent is not None:
            whole = self._draw(permanent_key, whole, persons, *self.permanent)
        ones = self._draw(report_key, self.reports * whole, self.reports * persons, self.keep, self.flip)
        return ones.astype(counts.dtype)

    def _draw(self, key: Key, first: Array, number: Array, p: Any, q: Any) -> Array:
        """How many of a number are 1, of which the first are so with probability p and the others with q."""
        key_kept, key_flipped = jax.random.split(key)
        kept = draw_binomial(key_kept, first, jnp.broadcast_to(p, first.shape))
        return kept + draw_binomial(key_flipped, number - first, jnp.broadcast_to(q, first.shape))


@frozen_pytree
@dataclass(frozen=True)
class Tabulated(Mechanism):
    """A mechanism as a kernel needs it: the log-probability of the one value that was released, given whole sums.

    Parameters
    ----------
    rows : [d]
        The row of the table for each coordinate.
    table : [r, m + 1]
        The log-probability of a coordinate's value if its sum is 0, ..., m. Other sums are impossible.
    """

    rows: Array
    table: Array

    @property
    def integer_noise(self) -> bool:
        """Yes: the table is of whole sums."""
        return True

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each coordinate of the value, which is in the table [..., d]."""
        del value
        # Sums are whole up to rounding: a coordinate of a float32 residual may be off by as much.
        count = jnp.round(statistic).astype(int)
        most = self.table.shape[1] - 1
        terms = self.table[self.rows, jnp.clip(count, 0, most)]
        return jnp.where((count >= 0) & (count <= most), terms, -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The sum of the terms []."""
        return jnp.sum(self.log_density_terms(value, statistic))


def promised(keep: Any, flip: Any, sums: ProtectedSums) -> float:
    """The ε of one report: of two columns that one person moves between, or of all that they can move."""
    keep, flip = np.asarray(keep, float), np.asarray(flip, float)
    ones, zeros = np.abs(np.log(keep / flip)), np.abs(np.log((1 - keep) / (1 - flip)))
    if sums.num_bins is not None:
        return float(np.max(ones) + np.max(zeros))
    return float(np.max(np.maximum(ones, zeros))) * sums.sensitivity(1)


def read_persons(n: Any) -> Array | int:
    """How many persons reported, in all or in each unit [n], or an error."""
    if is_traced(n) or np.ndim(n) == 0:
        return check_count("n", n, "Pass the number of persons who reported.")
    expected, remedy = "whole numbers of at least 1, one for each unit", "Pass the number of persons in each unit."
    check_array("n", n, lambda array: (array >= 1) & (array == np.round(array)), expected, remedy)
    if np.ndim(n) != 1:
        fail("n", f"shape {list(np.shape(n))}", expected, remedy)
    return jnp.asarray(np.asarray(n).astype(int))


def read_permanent_bits(permanent: Any) -> tuple[float, float]:
    """The probabilities of a permanent 1 of a person who counts and of any other, or an error."""
    remedy = "Pass two different probabilities: of a permanent 1 of a person who counts, and of any other."
    if not isinstance(permanent, (list, tuple)) or len(permanent) != 2:
        fail("permanent", describe(permanent), "two probabilities", remedy, error=TypeError)
    check_array("permanent", permanent, lambda array: (array > 0) & (array < 1), "numbers in (0, 1)", remedy)
    if permanent[0] == permanent[1]:
        fail("permanent", describe(permanent), "two different probabilities", remedy)
    return float(permanent[0]), float(permanent[1])
