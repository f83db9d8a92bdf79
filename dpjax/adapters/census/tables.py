"""Noisy measurements of many areas as one joint release of a table of areas and categories."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_text, fail
from dpjax.adapters.census.measurements import (
    PL94_PERSON,
    Histogram,
    Measurement,
    check_histogram,
    choose_attributes,
    fits,
    groups_of,
    read_measurements,
)
from dpjax.mechanisms import DiscreteGaussian, Exact
from dpjax.release import Release, UnknownCount, joint
from dpjax.statistics import grouped

__all__ = ["NoisyMeasurements", "read_noisy_measurements"]


@dataclass(frozen=True, eq=False)
class NoisyMeasurements:
    """Noisy measurement files as a release of one table of areas and categories.

    Parameters
    ----------
    release
        The joint release of records ``{"cell": [] int}``, cells in C order with the area first. Each part is one query
        of the areas of one level.
    areas
        The geocodes of the table's rows: the areas that contain no other.
    attributes
        The attributes of the table's columns, with their numbers of categories.
    bounds
        Constraints of sign ``<=`` and ``>=``, which the release does not use.
    left_out
        The names of queries of attributes that the table does not have.

    Examples
    --------
    >>> from dpjax.adapters.census import NoisyMeasurements
    >>> import dpjax
    >>> statistic = dpjax.statistics.cells("cell", num_categories=4)
    >>> release = dpjax.Release([9, 12, 3, 5], dpjax.DiscreteGaussian(2.0), statistic, n=30)
    >>> read = NoisyMeasurements(release, areas=("1A", "1B"), attributes={"votingage": 2}, bounds=(), left_out=())
    >>> release.value.reshape(read.shape).tolist()
    [[9.0, 12.0], [3.0, 5.0]]
    """

    release: Release
    areas: tuple[str, ...]
    attributes: dict[str, int]
    bounds: tuple[Measurement, ...]
    left_out: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The table's shape: areas, then the categories of each attribute."""
        return (len(self.areas), *self.attributes.values())


@names_arguments
def read_noisy_measurements(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    histogram: Histogram = PL94_PERSON,
    attributes: Sequence[str] | None = None,
    within: str = "",
    n: Any = None,
) -> NoisyMeasurements:
    """Noisy measurement files of the 2020 Census as a joint release of one table of areas and categories.

    Every query of every area is a sum of cells of that table. It is over areas with the geocode as a prefix, and over
    the attributes that the query does not keep. Noisy values have noise
    `dpjax.DiscreteGaussian(scale=variance ** 0.5)`; constraints of sign ``=`` are `dpjax.Exact()`, and so are upper
    bounds of 0.

    Parameters
    ----------
    path
        One or several Parquet files, or folders with such files at any depth: levels, noisy values and constraints.
    histogram
        The histogram of the files: `PL94_PERSON`, `PL94_UNIT`, or another `Histogram`.
    attributes
        The attributes of the histogram that the table has, by default all. Queries of other attributes are left out:
        with voting age, origin and race a row has 252 cells instead of 2,016.
    within
        The geocode of an area: only the area itself and those within it are read.
    n
        The number of people, or `dpjax.UnknownCount(prior)`. By default it is the exact total of all areas, which the
        files hold for persons of a state or the nation and for all housing units.

    Raises
    ------
    ImportError
        If pyarrow is not installed; it comes with ``pip install pyarrow``.
    TypeError, ValueError
        If columns are missing, a row is not a query of the histogram, an area has a query twice, no query is left, or n
        is not known.

    Notes
    -----
    A geocode of one character is the nation's. The files must contain all parts of an area if they contain any.

    Examples
    --------
    >>> from dpjax.adapters.census import Histogram
    >>> from dpjax.adapters.census import read_noisy_measurements
    >>> import pathlib, tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "noisy.parquet"
    >>> row = {"geocode": "11", "query_name": "sex", "query_shape": [2], "value": [9.0, 12.0], "variance": 2.5}
    >>> pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    >>> table = read_noisy_measurements(path, histogram=Histogram({"sex": 2}, {}), n=20)
    >>> table.areas, table.release.value.tolist()
    (('11',), [9.0, 12.0])
    """
    check_histogram(histogram)
    check_text("within", within, "Pass the geocode of an area, such as '1400000US01'.")
    if not (n is None or isinstance(n, UnknownCount)):
        check_count("n", n, "Pass the number of people, a dpjax.UnknownCount(prior), or nothing.", least=0)
    kept = choose_attributes(histogram, attributes)
    found, left_out = [], set()
    for row in read_measurements(path, histogram, within):
        if fits(row.coding, histogram, kept):
            found.append(row)
        else:
            left_out.add(row.query)
    if not found:
        given = f"no query of {list(kept)} alone within {within!r}"
        fail("path", given, "some noisy measurements", "Name an area in the files, and attributes of their queries.")
    areas = leaves(row.geocode for row in found)
    parts = group_parts(found)
    n = choose_n(n, total_of(parts, areas))
    candidates = (release_of(part, groups_of(part[0].coding, histogram, kept), areas, n) for part in parts)
    releases = [release for release in candidates if release is not None]
    if not releases:
        fail("path", "bounds alone", "some noisy values", "Pass the files of noisy values too.")
    bounds = tuple(row for row in found if row.sign in ("<=", ">=") and np.any(row.value > 0))
    release = joint(*releases) if len(releases) > 1 else releases[0]
    return NoisyMeasurements(release, areas, kept, bounds, tuple(sorted(left_out)))


def leaves(geocodes: Iterable[str]) -> tuple[str, ...]:
    """The areas that contain no other, in order."""
    ordered = sorted(set(geocodes), key=lambda geocode: (not is_nation(geocode), geocode))
    # In this order an area is followed by those within it.
    following = [*ordered[1:], ""]
    pairs = zip(ordered, following, strict=True)
    return tuple(area for area, other in pairs if not other or not (is_nation(area) or other.startswith(area)))


def is_nation(geocode: str) -> bool:
    """Whether a geocode is that of the nation, which contains all areas."""
    return len(geocode) <= 1


def group_parts(found: list[Measurement]) -> list[list[Measurement]]:
    """The rows grouped by level and query; areas of one level do not overlap.

    Raises
    ------
    ValueError
        If an area has a query twice.
    """
    parts: dict[tuple[int, str, str, tuple[str, ...]], dict[str, Measurement]] = defaultdict(dict)
    for row in found:
        part = parts[len(row.geocode), row.query, row.sign or "", row.coding]
        if row.geocode in part:
            fail(
                "path", f"{row.query!r} of area {row.geocode!r} twice", "each query of an area once", "Pass files once."
            )
        part[row.geocode] = row
    return [list(parts[place].values()) for place in sorted(parts)]


def total_of(parts: list[list[Measurement]], areas: tuple[str, ...]) -> int | None:
    """The exact number of people in all areas, if one part states it."""
    for part in parts:
        is_total = part[0].sign == "=" and set(part[0].coding) == {"*"}
        if is_total and np.all(places_in(part, areas) >= 0):
            return int(sum(row.value[0] for row in part))
    return None


def choose_n(n: Any, total: int | None) -> Any:
    """The number of people, or an error if it is not known or differs from that of the files."""
    if n is None and total is None:
        remedy = "Pass n, or n=dpjax.UnknownCount(prior): the files hold no exact total of all their areas."
        fail("n", None, "the number of people", remedy)
    if n is not None and total is not None and n != total:
        fail("n", n, f"{total}, the exact total in the files", "Leave it out.")
    return total if n is None else n


def places_in(part: list[Measurement], areas: tuple[str, ...]) -> np.ndarray:
    """The row of a part whose area contains each area [area], -1 for none."""
    if is_nation(part[0].geocode):
        return np.zeros(len(areas), int)
    place = {row.geocode: number for number, row in enumerate(part)}
    return np.array([place.get(area[: len(part[0].geocode)], -1) for area in areas])


def release_of(part: list[Measurement], groups: np.ndarray, areas: tuple[str, ...], n: Any) -> Release | None:
    """The release of one query of the areas of one level; None for bounds that are not 0."""
    sign = part[0].sign
    value = np.concatenate([row.value for row in part])
    used = (value == 0) if sign == "<=" else np.full(value.size, sign != ">=")
    if not np.any(used):
        return None
    row = places_in(part, areas)[:, None]
    coordinate = np.where((row < 0) | (groups < 0), -1, row * len(part[0].value) + groups).reshape(-1)
    # Used coordinates are renumbered; the last entry is for -1.
    renumbered = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    statistic = grouped("cell", renumbered[coordinate].tolist(), num_groups=int(np.sum(used)))
    mechanism = Exact() if sign else DiscreteGaussian(scale_of(part))
    return Release(value[used], mechanism, statistic, n)


def scale_of(part: list[Measurement]) -> Any:
    """The scale of the noise: one number if all areas have the same, else [d]."""
    scales = np.sqrt([row.variance for row in part])
    return float(scales[0]) if np.all(scales == scales[0]) else np.repeat(scales, len(part[0].value))
