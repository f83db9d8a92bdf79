"""Tables of counts with gaps for small counts that were suppressed."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import describe, fail
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Statistic
from dpjax.mechanisms import PrimarySuppression, Suppressed
from dpjax.mechanisms.base import as_mechanism
from dpjax.mechanisms.suppressed import check_by
from dpjax.release.summed import Release

CODE = -1.0
"""What stands for a gap: no count is negative."""

CODE_BESIDE_NOISE = -0.5
"""The same beside noise, by which counts may be negative."""

BY_CHANCE = 1e-6
"""The probability at which counts are no longer all multiples of a number by chance."""


@names_arguments
def suppressed(
    value: Array,
    statistic: Statistic,
    limit: int,
    n: Any,
    *,
    least: int = 0,
    mechanism: Any = None,
    by: str = "value",
) -> Release:
    """The release of counts with NaN in place of small ones, as a file with gaps is read.

    Parameters
    ----------
    value : [d]
        The published counts; NaN if a count was suppressed.
    statistic
        The function ``record -> [d]`` of one record, such as `dpjax.statistics.cells`.
    limit
        The smallest count, above 0, that is always published.
    n
        The public number of records, as in `dpjax.Release`.
    least
        The smallest count that is suppressed: 0, or 1 if zeros are published.
    mechanism
        What else was done to each count, such as `dpjax.mechanisms.RandomRounding`; by default nothing.
    by
        Whether its ``"value"`` or the true ``"count"`` is compared with the limit.

    Returns
    -------
    Release
        By `dpjax.mechanisms.PrimarySuppression`, or `dpjax.mechanisms.Suppressed` around the mechanism, with -1 in
        place of NaN; -0.5 beside whole noise, which may be negative.

    Raises
    ------
    TypeError, ValueError
        If the value holds anything but counts and NaN, a count that would have been suppressed among them, or
        `dpjax.Release` refuses its part.

    Warns
    -----
    UserWarning
        If so many of the counts are multiples of 3, say, that they were rounded, of which the release says nothing.

    Examples
    --------
    >>> import dpjax
    >>> table = dpjax.statistics.cells("cell", 4)
    >>> dpjax.releases.suppressed([12.0, float("nan"), 7.0, float("nan")], table, limit=5, n=24).value.tolist()
    [12.0, -1.0, 7.0, -1.0]
    """
    remedy = "Pass the published counts, NaN where one was suppressed."
    try:
        counts = np.asarray(value, float)
    except Exception:  # whatever the array of another library may raise
        fail("value", describe(value), "counts and NaN", remedy, error=TypeError)
    if mechanism is None and np.any(counts < 0):
        fail("value", "negative numbers", "counts and NaN", remedy)
    rule = make_rule("value", counts, limit, least, mechanism, by)
    return Release(jnp.asarray(np.where(np.isnan(counts), rule.code, counts)), rule, statistic, n)


def make_rule(argument: str, counts: np.ndarray, limit: int, least: int, mechanism: Any, by: str) -> Any:
    """The mechanism of counts of which small ones are NaN, beside what else was done to them."""
    check_by(by)
    if mechanism is None:
        warn_of_rounding(argument, counts)
        return PrimarySuppression(limit, least, CODE)
    noise = as_mechanism(mechanism).noise
    return Suppressed(mechanism, limit, least, by, CODE if noise is None else CODE_BESIDE_NOISE)  # type: ignore[arg-type]


def warn_of_rounding(argument: str, counts: np.ndarray) -> None:
    """Warn if all counts, NaN among them, are multiples of one number, and so many that this is no chance."""
    known = counts[np.isfinite(counts) & (counts != 0) & (counts == np.round(counts)) & (np.abs(counts) < 2**53)]
    base = int(np.gcd.reduce(known.astype(np.int64))) if known.size else 1
    if base > 1 and float(base) ** -known.size < BY_CHANCE:
        warn_at_the_call(
            f"{argument}: all {known.size} published counts are multiples of {base}. If they were rounded before small "
            "ones were withheld, this release says too much: they are taken to be exact. "
            f"Pass what was done to them, such as mechanism=dpjax.mechanisms.RandomRounding({base})."
        )
