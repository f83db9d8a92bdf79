"""One report for each person out of several possible ones, given a category: any channel that can be listed."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_flag, check_number, describe_array, fail, is_traced, read_numbers
from dpjax._util.warn import warn_at_the_call
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, Unpromised, pure

__all__ = ["LocalChannel"]

SUM_TOLERANCE = 1e-5
ROUNDED_TOLERANCE = 0.02
"""How far the sum of a published row of few decimals may be from 1: the row is divided by it, with a warning."""

IMPOSSIBLE = float(np.finfo(np.float64).min)
"""What JSON text, which has no infinity, holds for the logarithm of 0."""


@frozen_pytree
@dataclass(frozen=True)
class LocalChannel(Mechanism):
    """Releases one report 0, ..., m - 1 of each person, whose category j has report r with probability P(r | j).

    Parameters
    ----------
    log_probabilities : [c, m] or [n, c, m]
        log P(r | j) of each of c categories and m reports; -∞ where a report cannot be. With a leading axis each of n
        people has a matrix of their own.
    complete
        Whether these are all possible reports, so that the probabilities of each category sum to 1. Rows of sums within
        0.02 of 1, as published in few decimals, are divided by these, with a warning. False if only those that
        occurred are listed: each column then counts up to a factor of its own, and reports cannot be drawn.
    largest_ratio
        The largest log ratio of the probabilities of any report in two categories, if not all reports are listed.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If they are no matrix of at least two categories and reports, or one is NaN or ∞. If a listed report has
        probability 0 in every category, or the probabilities of a category do not sum to 1 although all reports are
        listed.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import dpjax
    >>> channel = dpjax.mechanisms.LocalChannel(jnp.log(jnp.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])))
    >>> release = dpjax.LocalRelease([0, 2, 2, 1], channel)
    >>> round(float(channel.log_density(jnp.array(2), jnp.array(1))), 3)
    -0.511
    """

    json_name: ClassVar[str | None] = "local_channel"
    parameter_axes: ClassVar[dict[str, int] | None] = {"log_probabilities": 2}

    log_probabilities: Array
    complete: bool = field(default=True, metadata={"static": True})
    largest_ratio: float | None = field(default=None, metadata={"static": True}, kw_only=True)
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        check_flag("complete", self.complete, "Say whether all possible reports are listed.")
        if self.largest_ratio is not None:
            remedy = "Pass the largest log ratio between two categories, or leave it out."
            check_number("largest_ratio", self.largest_ratio)
            check_array("largest_ratio", self.largest_ratio, lambda array: array >= 0, "a number of at least 0", remedy)
            object.__setattr__(self, "largest_ratio", float(self.largest_ratio))
        if not is_traced(self.log_probabilities):
            sums = check_log_probabilities(self.log_probabilities, self.complete)
            object.__setattr__(self, "log_probabilities", divided_by_sums(self.log_probabilities, sums))
        object.__setattr__(self, "log_probabilities", jnp.asarray(self.log_probabilities, jnp.result_type(float)))

    @property
    def num_categories(self) -> int:
        """The number m of reports."""
        return int(self.log_probabilities.shape[-1])

    @property
    def sums(self) -> PossibleSums:
        """A record has one of c categories."""
        return PossibleSums(categories=int(self.log_probabilities.shape[-2]))

    @property
    def _can_sample(self) -> bool:
        """Whether all possible reports are listed."""
        return self.complete

    def _words(self) -> str:
        """The numbers of reports and categories."""
        categories = quantity(int(self.log_probabilities.shape[-2]), "category").replace("categorys", "categories")
        listed = "possible reports" if self.complete else "reports that occurred"
        own = "" if self.log_probabilities.ndim == 2 else ", which each record has of its own"
        return f"one of {self.num_categories:,} {listed}, by its probability in each of {categories}{own}"

    def _local_promise(self, num_coordinates: int) -> Promise:
        """ε-DP of each report, by the largest log ratio of the probabilities of one report in two categories."""
        if self.largest_ratio is not None:
            return pure(self.largest_ratio, num_coordinates)
        if not self.complete:
            raise Unpromised("Reports that did not occur are not listed, and may tell more.")
        return pure(largest_log_ratio(self.log_probabilities), num_coordinates)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the reports are integers in 0, ..., m - 1."""
        check_codes(argument, value, self.num_categories, "Number the reports by the columns of log_probabilities.")
        if self.log_probabilities.ndim == 3 and not is_traced(self, value):
            self._check_own_reports(argument, np.asarray(value))

    def _check_own_reports(self, argument: str, reports: np.ndarray) -> None:
        """Raise unless each report [n] or [n, K] is possible by the matrix of its own person."""
        possible = np.asarray(self.log_probabilities).max(axis=1) > -np.inf
        rows = reports.reshape(len(reports), -1)
        if len(rows) == len(possible) and not np.all(np.take_along_axis(possible, rows, axis=1)):
            person = int(np.flatnonzero(~np.take_along_axis(possible, rows, axis=1).all(axis=1))[0])
            expected = "reports that are possible by the matrix of their own record"
            remedy = "Check that matrices and reports are in the same order."
            fail(argument, f"the report {reports[person]} of record {person}", expected, remedy)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each report [...] given each category [...]; −∞ outside the matrix."""
        c, m = self.log_probabilities.shape
        report, category = (as_integers(name, one) for name, one in (("value", value), ("statistic", statistic)))
        inside = (report >= 0) & (report < m) & (category >= 0) & (category < c)
        return jnp.where(inside, self.log_probabilities[category, report], -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the reports ([] or [K]) given the categories of the same shape."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Reports given the categories, of the same shape and integer dtype."""
        category = as_integers("statistic", statistic)
        return jax.random.categorical(key, self.log_probabilities[category]).astype(category.dtype)

    def _json_fields(self) -> dict[str, Any]:
        """The fields, with a number in place of the logarithm of 0."""
        finite = jnp.where(self.log_probabilities > -jnp.inf, self.log_probabilities, 0.0)
        text = np.where(np.isneginf(self.log_probabilities), IMPOSSIBLE, np.asarray(finite, np.float64))
        return super()._json_fields() | {"log_probabilities": text}

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The channel of these fields."""
        given = np.asarray(values.pop("log_probabilities"), np.float64)
        return cls(jnp.asarray(np.where(given <= IMPOSSIBLE, -np.inf, given)), **values)


def check_log_probabilities(given: Any, complete: bool) -> np.ndarray:
    """The sums [..., c] of rows, or an error unless [..., c, m] are log-probabilities, in complete rows of about 1."""
    remedy = "Row j holds log P(report | category = j)."
    expected = "a matrix [c, m] of at least two categories and two reports, or one for each record [n, c, m]"
    array = read_numbers("log_probabilities", given, expected, remedy)
    if array.ndim not in (2, 3) or array.shape[-1] < (2 if complete else 1) or array.shape[-2] < 2 or not array.size:
        fail("log_probabilities", f"shape {list(array.shape)}", expected, remedy)
    array = np.asarray(array, np.float64)
    if np.any(np.isnan(array)) or np.any(array == np.inf):
        fail("log_probabilities", describe_array(array), "numbers below ∞, -∞ where a report cannot be", remedy)
    impossible = np.all(np.isneginf(array), axis=tuple(range(array.ndim - 1)))
    if np.any(impossible):
        never = int(np.flatnonzero(impossible)[0])
        fail("log_probabilities", f"report {never} impossible in every category", "possible reports", "Leave it out.")
    sums = np.exp(array).sum(axis=-1) if complete else np.ones(1)
    if np.any(np.abs(sums - 1) > ROUNDED_TOLERANCE):
        remedy = "Transpose the matrix if its columns sum to 1; complete=False if reports are left out."
        if np.all(array >= 0):
            remedy = "Pass the logarithms of the probabilities: jax.numpy.log(matrix)."
        given = f"rows of probabilities that sum to {describe_array(sums)}"
        fail("log_probabilities", given, "rows that sum to 1", remedy)
    return sums


def divided_by_sums(log_probabilities: Any, sums: np.ndarray) -> Any:
    """The matrix [..., c, m], with rows divided by sums [..., c] that are 1 but for the decimals of a publication."""
    if np.all(np.abs(sums - 1) <= SUM_TOLERANCE):
        return log_probabilities
    text = f"log_probabilities: rows of probabilities that sum to {describe_array(sums)} were divided by their sums."
    warn_at_the_call(text)
    return np.asarray(log_probabilities, np.float64) - np.log(sums)[..., None]


def largest_log_ratio(log_probabilities: Any) -> float:
    """The largest log ratio within a column of matrices [..., c, m]; ∞ if a report is possible in some rows only."""
    rows = np.asarray(log_probabilities, float)
    most, least = rows.max(axis=-2), rows.min(axis=-2)
    return float(np.max(np.subtract(most, least, out=np.zeros_like(most), where=most > -np.inf)))


def check_codes(argument: str, codes: Array, size: int, remedy: str) -> None:
    """Raise unless codes are integers in 0, ..., size - 1."""
    if not jnp.issubdtype(codes.dtype, jnp.integer):
        fail(argument, f"an array of {codes.dtype}", "integers", remedy, error=TypeError)
    expected = f"integers from 0 to {size - 1}"
    check_array(argument, codes, lambda array: (array >= 0) & (array < size), expected, remedy)


def as_integers(argument: str, codes: Array) -> Array:
    """The codes as an array, or an error unless they are integers."""
    array = jnp.asarray(codes)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        remedy = "Code categories and reports as integers from 0, for example with .astype(int)."
        fail(argument, f"an array of {array.dtype}", "an array of integers", remedy, error=TypeError)
    return array
