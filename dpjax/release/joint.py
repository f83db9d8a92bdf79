"""Several releases of the same records as one."""

from typing import Any

import jax.numpy as jnp

from dpjax._util.validation import fail, name_of
from dpjax.base import Statistic
from dpjax.mechanisms.base import as_mechanism
from dpjax.mechanisms.composite import Independent
from dpjax.release.local import LocalRelease
from dpjax.release.summed import Release
from dpjax.statistics.combinators import Stacked, stacked


def joint(*releases: Release) -> Release:
    """Several releases of the same records as one, whose log-density given the records is the sum of theirs.

    Parameters
    ----------
    *releases
        Noisy sums over the same n records, each with its own value, mechanism and statistic. Given the records the
        mechanisms drew their noise independently of each other. Joint releases among them are taken apart.

    Returns
    -------
    Release
        The values in one vector, under the statistics in one (`dpjax.statistics.stacked`) and the mechanisms side by
        side (`dpjax.Independent`).

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two, one is no `Release` or no noisy sum, or they differ in n.

    Notes
    -----
    What the releases promise together, such as the sum of their ε, is not computed.

    Examples
    --------
    >>> import dpjax
    >>> table = dpjax.statistics.cells(["a", "b"], [2, 2])
    >>> cells = dpjax.Release([7, 2, 3, 9], dpjax.DiscreteLaplace(2.0), table, n=20)
    >>> rows = dpjax.Release([8, 12], dpjax.DiscreteLaplace(1.0), dpjax.statistics.cells("a", 2), n=20)
    >>> both = dpjax.joint(cells, rows)
    >>> both.value.tolist(), both.statistic.dimension
    ([7.0, 2.0, 3.0, 9.0, 8.0, 12.0], 6)
    """
    if len(releases) < 2:
        fail("releases", f"{len(releases)}", "at least two", "Pass the releases one after the other.")
    for place, release in enumerate(releases):
        _check_release(f"releases[{place}]", release)
        if release.n != releases[0].n:
            remedy = "Only releases of the same records can be joined."
            fail(f"releases[{place}]", f"n = {release.n}", f"n = {releases[0].n}, as releases[0]", remedy)
    sizes = tuple(len(release.value) for release in releases)
    mechanism = Independent(tuple(release.mechanism for release in releases), sizes)
    statistics = [statistic for release in releases for statistic in _statistics(release)]
    value = jnp.concatenate([release.value for release in releases])
    return Release(value, mechanism, stacked(*statistics), releases[0].n)


def _check_release(argument: str, release: Any) -> None:
    """Raise unless it is a noisy sum."""
    if not isinstance(release, Release):
        remedy = "Pass instances of dpjax.Release, one after the other."
        if isinstance(release, LocalRelease):
            remedy = "One value for each record is no sum: a LocalRelease stands alone."
        fail(argument, name_of(release), "a Release", remedy, error=TypeError)
    if not release.is_noisy_sum:
        remedy = "Draws that a mechanism makes given a histogram stand alone."
        fail(argument, f"values drawn by {name_of(release.mechanism)}", "a noisy sum", remedy, error=TypeError)


def _statistics(release: Release) -> tuple[Statistic, ...]:
    """The statistics of a joint release, else the one of the release."""
    statistic = release.statistic
    if as_mechanism(release.mechanism).parts is not None and isinstance(statistic, Stacked):
        return statistic.statistics
    return (statistic,)
