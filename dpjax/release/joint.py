"""Several releases of the same records as one."""

import warnings
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, name_of
from dpjax.base import Statistic
from dpjax.mechanisms.composite import Independent, Padded
from dpjax.release.checks import PrecisionWarning
from dpjax.release.local import LocalRelease
from dpjax.release.summed import Release
from dpjax.statistics.combinators import Stacked, stacked
from dpjax.statistics.losses import FittedDerivatives


def joint(*releases: Release) -> Release:
    """Several releases of the same records as one, whose log-density given the records is the sum of theirs.

    Parameters
    ----------
    *releases
        Of the same n records, each with its own value, mechanism and statistic. Given the records the mechanisms drew
        their noise independently of each other. Joint releases among them are taken apart. A value that a mechanism
        drew given a longer statistic, such as a quantile or a fitted model, is filled up with zeros to its length.

    Returns
    -------
    Release
        The values in one vector, under the statistics in one (`dpjax.statistics.stacked`) and the mechanisms side by
        side (`dpjax.mechanisms.Independent`).

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two, one is no `Release` or has more values than its statistic, or they differ in n.

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
    releases = tuple(map(fill_up, releases))
    for place, release in enumerate(releases):
        if release.n != releases[0].n:
            remedy = "Only releases of the same records can be joined."
            fail(f"releases[{place}]", f"n = {release.n}", f"n = {releases[0].n}, as releases[0]", remedy)
    sizes = tuple(len(release.value) for release in releases)
    mechanism = Independent(tuple(release.mechanism for release in releases), sizes)
    starts = np.cumsum([0, *sizes]).tolist()
    statistics = [
        placed(statistic, start)
        for release, start in zip(releases, starts, strict=False)
        for statistic in _statistics(release)
    ]
    value = jnp.concatenate([release.value for release in releases])
    return Release(value, mechanism, stacked(*statistics), releases[0].n)


def _check_release(argument: str, release: Any) -> None:
    """Raise unless it has as many values as its statistic, or fewer."""
    if not isinstance(release, Release):
        remedy = "Pass instances of dpjax.Release, one after the other."
        if isinstance(release, LocalRelease):
            remedy = "One value for each record is no sum: a LocalRelease stands alone."
        fail(argument, name_of(release), "a Release", remedy, error=TypeError)
    if len(release.value) > len(release.origin):
        remedy = "More draws than the statistic has coordinates stand alone."
        given = f"{len(release.value)} values drawn by {name_of(release.mechanism)}"
        fail(argument, given, f"at most {len(release.origin)}, as its statistic has", remedy, error=TypeError)


def fill_up(release: Release) -> Release:
    """The release with as many values as its statistic has coordinates: zeros follow those that a mechanism drew."""
    if release.is_noisy_sum:
        return release
    value = jnp.pad(release.value, (0, len(release.origin) - len(release.value)))
    with warnings.catch_warnings():
        # The user was warned where the release was made.
        warnings.simplefilter("ignore", PrecisionWarning)
        return Release(value, Padded(release.mechanism), release.statistic, release.n)


def placed(statistic: Statistic, start: int) -> Statistic:
    """The statistic of a release whose value begins so far into that of several."""
    if not isinstance(statistic, FittedDerivatives):
        return statistic
    return replace(statistic, start=statistic.start + start)


def _statistics(release: Release) -> tuple[Statistic, ...]:
    """The statistics of a joint release, else the one of the release."""
    statistic = release.statistic
    if release.mechanism.parts is not None and isinstance(statistic, Stacked):
        return statistic.statistics
    return (statistic,)
