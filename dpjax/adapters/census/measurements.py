"""Rows of noisy measurement files, each a query of one area."""

import os
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from dpjax._util.validation import (
    check_array,
    check_count,
    check_instance,
    check_number,
    check_text,
    describe,
    fail,
    read_numbers,
    summarize_error,
)
from dpjax.adapters.arguments import as_names

__all__ = [
    "PL94_PERSON",
    "PL94_UNIT",
    "Histogram",
    "Measurement",
    "check_histogram",
    "choose_attributes",
    "fits",
    "groups_of",
    "read_measurements",
]

COLUMNS = ("geocode", "query_name", "query_shape", "value", "variance")
SIGNS = {None: None, "=": "=", "<=": "<=", "le": "<=", ">=": ">=", "ge": ">="}
"""The signs of constraints by their names in the files."""

ROWS_AT_ONCE = 1_000
"""Number of rows that are read at once."""


class Measurement(NamedTuple):
    """A query of one area.

    Attributes
    ----------
    geocode
        The area.
    query
        The query's name.
    coding
        The coding of each attribute of the histogram.
    sign
        ``"="``, ``"<="`` or ``">="`` for a constraint, None for a noisy value.
    value
        The published value, or the constraint's bound [q].
    variance
        The squared scale of the noise; 0 for a constraint.

    Examples
    --------
    >>> from dpjax.adapters.census import Measurement
    >>> import numpy as np
    >>> row = Measurement("1", "sex * age", ("*", "age"), sign=None, value=np.array([9.0, 12.0]), variance=2.5)
    >>> float(row.value.sum())
    21.0
    """

    geocode: str
    query: str
    coding: tuple[str, ...]
    sign: str | None
    value: np.ndarray
    variance: float


class Histogram(NamedTuple):
    """A full table of categories, of which every query sums cells.

    Attributes
    ----------
    sizes
        The number of categories of each attribute, in C order.
    codings
        Coarser codings of an attribute by name: the attribute, and the group of each of its categories, -1 for none.

    Examples
    --------
    >>> from dpjax.adapters.census import Histogram
    >>> from dpjax.adapters import census
    >>> census.PL94_PERSON.sizes
    {'hhgq': 8, 'votingage': 2, 'hispanic': 2, 'cenrace': 63}
    >>> Histogram({"age": 4, "sex": 2}, {"minors": ("age", (0, -1, -1, -1))}).codings["minors"]
    ('age', (0, -1, -1, -1))
    """

    sizes: dict[str, int]
    codings: dict[str, tuple[str, tuple[int, ...]]]


PL94_PERSON = Histogram(
    {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63},
    {
        "hhinstlevels": ("hhgq", (0, 1, 1, 1, 1, 2, 2, 2)),
        "gqNursingTotal": ("hhgq", (-1, -1, -1, 0, -1, -1, -1, -1)),
        "nonvoting": ("votingage", (0, -1)),
    },
)
"""Persons of the redistricting files: household or kind of group quarters, voting age, Hispanic origin, and race."""

PL94_UNIT = Histogram({"h1": 2}, {})
"""Housing units of the redistricting files: vacant or occupied."""


def read_measurements(path: Any, histogram: Histogram, within: str) -> Iterator[Measurement]:
    """The queries of an area and of all areas within it.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    TypeError, ValueError
        If a file does not have the format's columns, or a row is not a query of the histogram.
    """
    try:
        from pyarrow import ArrowException, compute, parquet
    except ImportError as error:
        text = "pyarrow: not installed; expected to read Parquet files. Run pip install pyarrow."
        raise ImportError(text) from error
    geocode = compute.field("geocode")
    chosen = compute.starts_with(geocode, within) | geocode.is_null()  # a row of no area is refused, not dropped
    for file in list_files(path):
        try:
            check_columns(file.name, parquet.read_schema(file))
            # A folder named State=... would add a column.
            table = parquet.read_table(file, filters=chosen, partitioning=None)
        except (ArrowException, OSError) as error:
            given = f"{file.name}, which cannot be read: {summarize_error(error)}"
            fail("path", given, "whole Parquet files", "Download it again.")
        for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield measurement_of(row, histogram, file.name)


def list_files(path: Any) -> list[Path]:
    """The Parquet files of one or several paths, or an error if there are none."""
    given = [path] if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, (str, os.PathLike)) for one in given):
        fail("path", describe(path), "a path or a list of paths", "Name files or folders.", error=TypeError)
    several = [Path(one) for one in given]
    files: list[Path] = []
    for one in several:
        if not one.exists():
            fail("path", repr(str(one)), "a file or folder that exists", "Download the files, and name their folder.")
        files += [one] if one.is_file() else sorted(file for file in one.rglob("*.parquet") if file.is_file())
    if not files:
        fail("path", [str(one) for one in several], "Parquet files", "Name the folder that they are in.")
    return files


def check_columns(file: str, schema: Any) -> None:
    """Raise unless a file has the columns of the format."""
    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        fail("path", f"{file} without {missing}", f"columns {list(COLUMNS)}", "Pass noisy measurement files.")
    kind = str(schema.field("geocode").type)
    if not kind.endswith("string"):
        remedy = "Read them as text, with their leading zeros."
        fail("path", f"{file} with geocodes of type {kind}", "texts", remedy, error=TypeError)


def measurement_of(row: dict[str, Any], histogram: Histogram, file: str) -> Measurement:
    """A row as a measurement, or an error unless its numbers fit its query."""
    here = f"{row['query_name']!r} of area {row['geocode']!r} in {file}"
    for name in ("geocode", "query_name"):
        check_text("path", row[name], f"Each row of {file} has a {name}.")
    if not row["geocode"]:
        fail("path", f"{here}, which is empty", "the geocode of an area", f"Each row of {file} has a geocode.")
    sign = row.get("sign")
    if not isinstance(sign, (str, NoneType)) or sign not in SIGNS:
        fail("path", f"{here} with sign {sign!r}", f"one of {list(SIGNS)[1:]}", "Leave such constraints out.")
    coding = coding_of(row, histogram)
    check_shape(here, row, coding, histogram)
    if sign is None:
        remedy = "Only constraints, which have a sign, are without noise."
        check_number(f"variance of {here}", row["variance"])
        check_array(f"variance of {here}", row["variance"], lambda variance: variance > 0, "a number above 0", remedy)
    check_array(f"value of {here}", row["value"], lambda value: value == np.round(value), "whole numbers", "Check it.")
    value = np.asarray(row["value"], float)
    return Measurement(row["geocode"], row["query_name"], coding, SIGNS[sign], value, row["variance"] or 0.0)


def check_shape(here: str, row: dict[str, Any], coding: tuple[str, ...], histogram: Histogram) -> None:
    """Raise unless the shape of a row's value is that of its query."""
    sizes = zip(histogram.sizes, coding, strict=True)
    shape = [int(codes_of(name, level, histogram).max()) + 1 for name, level in sizes]
    for name in ("query_shape", "value"):
        if not isinstance(row[name], (list, NoneType)):
            fail("path", f"{here} with {name} {row[name]!r}", "a list of numbers", "Pass noisy measurement files.")
    given = [list(row["query_shape"] or ()), len(row["value"] or ())]
    if given != [shape, prod(shape)]:
        expected = f"shape {shape} and {prod(shape)} numbers"
        remedy = "Pass the histogram that the files count."
        fail("path", f"{here} with shape {given[0]} and {given[1]} numbers", expected, remedy)


def check_histogram(histogram: Any) -> None:
    """Raise unless it has attributes with numbers of categories, and a group for each category in every coding."""
    remedy = "Pass dpjax.adapters.census.PL94_PERSON or a Histogram."
    check_instance("histogram", histogram, Histogram, remedy)
    for part in ("sizes", "codings"):
        if not isinstance(getattr(histogram, part), Mapping) or not all(map(is_text, getattr(histogram, part))):
            fail(f"histogram.{part}", describe(getattr(histogram, part)), "a dict by name", remedy, error=TypeError)
    for name, size in histogram.sizes.items():
        check_count(f"histogram.sizes[{name!r}]", size)
    for name, coding in histogram.codings.items():
        owner, groups = coding if isinstance(coding, tuple) and len(coding) == 2 else (None, ())
        codes = read_numbers(f"histogram.codings[{name!r}]", groups, "groups", remedy)
        size = histogram.sizes.get(owner) if is_text(owner) else None
        if codes.dtype.kind not in "iu" or codes.shape != (size,) or codes.min() < -1 or codes.max() < 0:
            expected = "the name of an attribute, and a group for each of its categories, -1 for none"
            fail(f"histogram.codings[{name!r}]", describe(coding), expected, remedy)


def is_text(name: Any) -> bool:
    """Whether it is a text."""
    return isinstance(name, str)


def choose_attributes(histogram: Histogram, attributes: Any) -> dict[str, int]:
    """The sizes of the chosen attributes, all for None, or an error unless the histogram has them."""
    if attributes is None:
        return histogram.sizes
    wanted = {attributes} if isinstance(attributes, str) else set(as_names("attributes", attributes))
    if not wanted or not wanted <= set(histogram.sizes):
        fail("attributes", sorted(wanted), f"some of {list(histogram.sizes)}", "Name attributes of the histogram.")
    return {name: size for name, size in histogram.sizes.items() if name in wanted}


def coding_of(row: dict[str, Any], histogram: Histogram) -> tuple[str, ...]:
    """The coding of each attribute in a row's query: ``"*"`` if it sums over the attribute.

    Raises
    ------
    ValueError
        If the histogram does not have such a coding.
    """
    named = coding_in_name(row["query_name"], histogram)
    levels = {name: row.get(name) or named.get(name) for name in histogram.sizes}
    for name, level in levels.items():
        known = ["*", "detailed", name, *(coding for coding, (owner, _) in histogram.codings.items() if owner == name)]
        if level not in known:
            given = f"query {row['query_name']!r}, which codes {name} as {level!r}"
            fail("histogram", given, f"one of {known}", "Give the histogram this coding.")
    return tuple(str(level) for level in levels.values())


def coding_in_name(query: str, histogram: Histogram) -> dict[str, str]:
    """The coding of each attribute by a query's name, such as ``hispanic * cenrace_dpq`` or ``total_con``.

    Empty if the name does not state the coding.
    """
    name = query.removesuffix("_dpq").removesuffix("_con")
    if name in ("total", "detailed"):
        return dict.fromkeys(histogram.sizes, {"total": "*"}.get(name, name))
    owners = {name: name for name in histogram.sizes} | {name: owner for name, (owner, _) in histogram.codings.items()}
    words = [word.strip() for word in name.split("*")]
    if not set(words) <= set(owners):
        return {}
    return dict.fromkeys(histogram.sizes, "*") | {owners[word]: word for word in words}


def codes_of(attribute: str, level: str, histogram: Histogram) -> np.ndarray:
    """The group [size] of each category of an attribute, -1 for none; one group if the query sums over it."""
    size = histogram.sizes[attribute]
    if level == "*":
        return np.zeros(size, int)
    return np.arange(size) if level in (attribute, "detailed") else np.asarray(histogram.codings[level][1])


def fits(coding: tuple[str, ...], histogram: Histogram, kept: dict[str, int]) -> bool:
    """Whether a query is a sum of cells of the kept attributes: it sums over all others."""
    return all(level == "*" or name in kept for name, level in zip(histogram.sizes, coding, strict=True))


def groups_of(coding: tuple[str, ...], histogram: Histogram, kept: dict[str, int]) -> np.ndarray:
    """The coordinate [c] of a query to which each cell of the kept attributes adds, -1 for none."""
    groups = np.zeros((), int)
    for name, level in zip(histogram.sizes, coding, strict=True):
        if name in kept:
            codes = codes_of(name, level, histogram)
            outside = (groups[..., None] < 0) | (codes < 0)
            groups = np.where(outside, -1, groups[..., None] * (codes.max() + 1) + codes)
    return groups.reshape(-1)
