"""Several releases of the same records as one."""

import warnings
from typing import Any, overload

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, name_of
from dpjax.base import Statistic
from dpjax.mechanisms.composite import Independent, Padded
from dpjax.release.checks import PrecisionWarning
from dpjax.release.estimated import EstimatedNoise
from dpjax.release.fields import FieldValues
from dpjax.release.local import LocalRelease
from dpjax.release.microdata import Microdata
from dpjax.release.summed import Release, placed
from dpjax.statistics.combinators import Stacked, stacked


@overload
def joint(*releases: Release) -> Release: ...
@overload
def joint(*releases: Release | LocalRelease | Microdata) -> Release | Microdata: ...
@names_arguments
def joint(*releases: Release | LocalRelease | Microdata) -> Release | Microdata:
    """Several releases of the same records as one, whose log-density given the records is the sum of theirs.

    Parameters
    ----------
    *releases
        Of the same n records. Given the records the mechanisms drew their noise independently of each other. Joint
        releases among them are taken apart. Values of a sum that a mechanism drew given a longer statistic, such as a
        quantile or a fitted model, are filled up with zeros to its length. Local releases and microdata are of other
        fields each.

    Returns
    -------
    Release | Microdata
        Of sums alone a `Release`: the values in one vector, under the statistics in one (`dpjax.statistics.stacked`)
        and the mechanisms side by side (`Independent`). Else `Microdata` of all fields, with the sums beside.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two, one is no release or has more values than its statistic, they differ in n, or a
        field comes twice.

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
    local = [release for release in releases if not isinstance(release, Release)]
    sums = [sum_ for release in releases if (sum_ := release.summed) is not None]
    summed = _joint_sum(sums) if len(sums) > 1 else next(iter(sums), None)
    if not local:
        assert summed is not None
        return summed
    num_others = sum(one.num_others for one in local if isinstance(one, Microdata))
    masks = {name: mask for one in local if isinstance(one, Microdata) for name, mask in one.missing.items()}
    weights = [one.weights for one in local if one.weights is not None]
    if len(weights) > 1:
        fail("releases", "survey weights of two", "those of one, which are of the records", "Leave the others out.")
    return Microdata(_fields_of(releases), masks, summed, num_others, next(iter(weights), None))


def _fields_of(releases: tuple[Any, ...]) -> dict[str, FieldValues]:
    """The fields of all releases by their names, or an error if two have the same."""
    fields: dict[str, FieldValues] = {}
    for place, release in enumerate(releases):
        own = release.fields if isinstance(release, Microdata) else {}
        if isinstance(release, LocalRelease):
            own = {release.field: release}
        for part in own.values():
            if part.field in fields:
                remedy = "Pass both as parts: dpjax.Microdata({field: [(values, channel), (values, channel)]})."
                fail(f"releases[{place}]", f"the field {part.field!r} again", "each field once", remedy)
        fields |= own
    return fields


def _joint_sum(given: list[Release]) -> Release:
    """Several sums over the same records as one."""
    releases = tuple(map(fill_up, given))
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
    """Raise unless it is a release, and has as many values as its statistic, or fewer."""
    if isinstance(release, LocalRelease | Microdata):
        return
    if isinstance(release, EstimatedNoise):
        remedy = (
            "Pass all fields to one dpjax.LocalRelease({field: (values, channel)}). Beside sums noise has to be known."
        )
        fail(argument, "noise that is not known", "known noise", remedy, error=TypeError)
    if not isinstance(release, Release):
        remedy = "Pass instances of dpjax.Release, one after the other."
        fail(argument, name_of(release), "a Release, a LocalRelease or Microdata", remedy, error=TypeError)
    if len(release.value) > len(release.noisy_sum):
        remedy = "More draws than the statistic has coordinates stand alone."
        given = f"{len(release.value)} values drawn by {name_of(release.mechanism)}"
        fail(argument, given, f"at most {len(release.noisy_sum)}, as its statistic has", remedy, error=TypeError)


def fill_up(release: Release) -> Release:
    """The release with as many values as its statistic has coordinates: zeros follow those that a mechanism drew."""
    if release.is_noisy_sum:
        return release
    value = jnp.pad(release.value, (0, len(release.noisy_sum) - len(release.value)))
    with warnings.catch_warnings():
        # The user was warned where the release was made.
        warnings.simplefilter("ignore", PrecisionWarning)
        return Release(value, Padded(release.mechanism), release.statistic, release.n)


def _statistics(release: Release) -> tuple[Statistic, ...]:
    """The statistics of a joint release, else the one of the release."""
    statistic = release.statistic
    if release.mechanism.parts is not None and isinstance(statistic, Stacked):
        return statistic.statistics
    return (statistic,)
