"""Tables of counts with gaps for small counts that were suppressed."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import describe, fail
from dpjax.base import Array, Statistic
from dpjax.mechanisms import PrimarySuppression
from dpjax.release.summed import Release

CODE = -1.0
"""What stands for a gap: no count is negative."""


def suppressed(value: Array, statistic: Statistic, limit: int, n: Any, *, least: int = 0) -> Release:
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

    Returns
    -------
    Release
        By `dpjax.mechanisms.PrimarySuppression`, with -1 in place of NaN.

    Raises
    ------
    TypeError, ValueError
        If the value holds anything but counts and NaN, a count that would have been suppressed among them, or
        `dpjax.Release` refuses its part.

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
    except (TypeError, ValueError, OverflowError):
        fail("value", describe(value), "counts and NaN", remedy, error=TypeError)
    if np.any(counts < 0):
        fail("value", "negative numbers", "counts and NaN", remedy)
    mechanism = PrimarySuppression(limit, least, CODE)
    return Release(jnp.asarray(np.where(np.isnan(counts), CODE, counts)), mechanism, statistic, n)
