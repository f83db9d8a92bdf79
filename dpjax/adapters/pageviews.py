"""CSV tables of noisy counts that reached a threshold, such as the daily page views of Wikipedia.

The Wikimedia Foundation publishes noisy counts of the views of each page from each country that reach a threshold:
columns `country`, `project`, `page_id`, and the count `private_count` or `gbc`. The noise by day is documented
(https://analytics.wikimedia.org/published/datasets/country_project_page/00_README.html, and that of
``country_project_page_historical`` and ``country_project_page_historical_pre_2017``). Up to 8 February 2017 it is
Laplace noise of scale 300, with a threshold of 3,500. Up to 5 February 2023 the scale is 30 and the threshold 450. Then
it is Gaussian noise of standard deviation 10, with a threshold of 90. From 15 February 2024 on it depends on the
country.
"""

import csv
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_array,
    check_count,
    check_text,
    describe,
    fail,
    reading,
    summarize_error,
)
from dpjax.adapters.arguments import as_names
from dpjax.mechanisms.base import Mechanism, as_mechanism
from dpjax.release import Release
from dpjax.release.releases import thresholded

__all__ = ["ThresholdedCounts", "read_thresholded_counts"]

Key = tuple[str, ...]
"""What a cell counts: the texts in the key columns."""


@dataclass(frozen=True, eq=False)
class ThresholdedCounts:
    """A table of counts of which only those that reached a threshold were published.

    Parameters
    ----------
    release
        The release of records ``{"cell": [] int}``.
    keys
        The key of each cell; if only the number of keys is known, those of the published cells, which come first.

    Examples
    --------
    >>> from dpjax.adapters.pageviews import ThresholdedCounts
    >>> import dpjax
    >>> statistic = dpjax.statistics.cells("cell", num_categories=2)
    >>> release = dpjax.Release([120, 95], dpjax.DiscreteLaplace(1.0), statistic, n=215)
    >>> table = ThresholdedCounts(release, keys=(("NO",), ("SE",)))
    >>> dict(zip(table.keys, table.release.value.tolist()))
    {('NO',): 120.0, ('SE',): 95.0}
    """

    release: Release
    keys: tuple[Key, ...]


@names_arguments
def read_thresholded_counts(
    path: str | os.PathLike[str],
    *,
    mechanism: Mechanism | Any,
    threshold: float,
    keys: Collection[str | Sequence[str]] | int,
    n: Any,
    columns: Sequence[str] = ("country", "project", "page_id"),
    count: str = "private_count",
    where: Mapping[str, str] | None = None,
    delimiter: str = ",",
    only_present: bool = False,
) -> ThresholdedCounts:
    r"""Published counts as a release in which the noisy count of every other key is known to be below the threshold.

    Parameters
    ----------
    path
        The file: a header line, then one line for each published count.
    mechanism
        The noise.
    threshold
        The smallest noisy count that is published: above 0, and whole under integer noise.
    keys
        Every possible key, or their number; a text is a key of one column.
    n
        The number of records, or `dpjax.UnknownCount(prior)`.
    columns
        The names of the key columns.
    count
        The name of the column of counts.
    where
        The lines to read, by the texts in other columns: ``{"country": "Iceland"}``.
    delimiter
        The delimiter of the columns.
    only_present
        Whether only keys of some record were considered, as in `dpjax.releases.thresholded`.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError, ValueError
        If a column is missing or there twice, or a line is longer or shorter than the header. If a count is not a
        number or is below the threshold, or a key is duplicated or not possible.

    Examples
    --------
    >>> from dpjax.adapters.pageviews import read_thresholded_counts
    >>> import dpjax, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "counts.csv"
    >>> written = path.write_text("country,private_count\nNO,120\nSE,95\n")
    >>> noise, countries = dpjax.DiscreteLaplace(1.0), ["NO", "SE", "DK"]
    >>> table = read_thresholded_counts(path, mechanism=noise, threshold=90, keys=countries, n=250, columns=["country"])
    >>> table.release.value.tolist()
    [120.0, 95.0, 89.0]
    """
    names, wanted = as_names("columns", columns), {} if where is None else read_where(where)
    check_text("count", count, "Name the column of counts.")
    check_delimiter(delimiter)
    possible = check_count("keys", keys) if isinstance(keys, (int, np.integer)) else read_keys(keys)
    lines = list(read_lines(path, [*names, count, *wanted], wanted, delimiter))
    published = [tuple(row[name] for name in names) for _, row in lines]
    values = [read_count(row[count], number) for number, row in lines]
    release = thresholded(published, values, possible, mechanism, threshold, n=n, only_present=only_present)
    check_threshold(threshold, as_mechanism(mechanism))
    return ThresholdedCounts(release, tuple(possible if isinstance(possible, list) else published))


def check_threshold(threshold: float, mechanism: Any) -> None:
    """Raise unless it can be the least count of a table: above 0, and whole if all noisy counts are."""
    remedy = "Pass the threshold of the file; dpjax.releases.thresholded also has others."
    check_array("threshold", threshold, lambda number: number > 0, "a number above 0", remedy)
    if mechanism.integer_noise:
        remedy = "Round it up: no noisy count lies between."
        check_array("threshold", threshold, lambda number: number == np.round(number), "a whole number", remedy)


def read_where(where: Any) -> dict[str, str]:
    """The wanted texts by column, or an error."""
    if not isinstance(where, Mapping) or not all(isinstance(text, str) for pair in where.items() for text in pair):
        remedy = "Pass such as {'country': 'Iceland'}."
        fail("where", describe(where), "a dict from columns to texts", remedy, error=TypeError)
    return dict(where)


def check_delimiter(delimiter: Any) -> None:
    """Raise unless it is one character that can stand between columns."""
    check_text("delimiter", delimiter, "Pass one character, such as ',' or '\\t'.")
    if len(delimiter) != 1 or delimiter in '\r\n" ':
        fail("delimiter", repr(delimiter), "one character", "Pass the one between columns, such as ',' or '\\t'.")


def read_keys(keys: Any) -> list[Key]:
    """The possible keys, or an error."""
    is_text = isinstance(keys, (str, bytes, Mapping, jax.Array))
    if is_text or not isinstance(keys, Collection) or getattr(keys, "ndim", 1) != 1:
        fail("keys", describe(keys), "every possible key, or their number", "Pass a list of keys.", error=TypeError)
    return [as_key(key) for key in keys]


def as_key(key: Any) -> Key:
    """A possible key as a tuple of texts, or an error."""
    texts = (key,) if isinstance(key, str) or not isinstance(key, Sequence) else tuple(key)
    if not all(isinstance(text, str) for text in texts):
        remedy = "Write numbers as the file does: page 736 is '736'."
        fail("keys", repr(key), "texts, as in the columns of the file", remedy, error=TypeError)
    return texts


def read_lines(
    path: Any, names: Sequence[str], where: Mapping[str, str], delimiter: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """The selected lines with their numbers, as dicts; an error unless the file has columns of these names."""
    with reading("path", path, "Pass the path of a CSV file.") as content:
        try:
            reader = csv.reader(TextIOWrapper(content, encoding="utf-8", newline=""), delimiter=delimiter, strict=True)
            header = next(reader, [])
            check_header(Path(path).name, header, names)
            for row in filter(None, reader):
                if len(row) != len(header):
                    given, expected = (
                        f"{len(row)} entries in line {reader.line_num}",
                        f"{len(header)}, as in the header",
                    )
                    fail("path", given, expected, "Quote entries that hold the delimiter, and name it.")
                entries = dict(zip(header, row, strict=True))
                if all(entries[name] == wanted for name, wanted in where.items()):
                    yield reader.line_num, entries
        except (csv.Error, UnicodeDecodeError) as error:
            given = f"{Path(path).name}, which cannot be read: {summarize_error(error)}"
            fail("path", given, "a CSV file in UTF-8", "Convert it, and name its delimiter.")


def check_header(file: str, header: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless each of the columns is there once."""
    given, remedy = f"{file} with columns {header}", "Name the columns as the file does, and its delimiter."
    if missing := [name for name in names if name not in header]:
        fail("path", given, f"also {missing}", remedy)
    if twice := [name for name in names if header.count(name) > 1]:
        fail("path", given, f"{twice} once", "Give each column a name of its own.")


def read_count(text: str, line: int) -> float:
    """A published count, or an error unless it is a number."""
    try:
        if "_" not in text:  # Python reads 1_000 as 1000
            return float(text)
    except ValueError:
        pass
    return fail("path", f"{text!r} in line {line}", "a number", "Name the column of counts, and the delimiter.")
