"""Arrays by name as tables with a column for each number."""

import csv
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Labels = Mapping[str, Sequence[Sequence[str]]]
"""The names of the entries of arrays by name, one sequence for each axis."""


def entry_name(name: str, index: tuple[int, ...], labels: Labels | None) -> str:
    """The name of one entry of an array, such as ``coef[0]``; a scalar keeps its name."""
    axes = (labels or {}).get(name, ())
    is_named = len(axes) == len(index) and all(place < len(axis) for axis, place in zip(axes, index, strict=True))
    places = [axis[place] for axis, place in zip(axes, index, strict=True)] if is_named else map(str, index)
    return f"{name}[{','.join(places)}]" if index else name


def flatten(arrays: dict[str, np.ndarray], num_axes: int = 1, labels: Labels | None = None) -> dict[str, np.ndarray]:
    """Columns of all entries by name, such as ``coef[0]``, whose leading axes are the rows in order."""
    columns = {}
    for name, leaf in arrays.items():
        shape = np.shape(leaf)
        rows = np.reshape(leaf, (int(np.prod(shape[:num_axes])), *shape[num_axes:]))
        for index in np.ndindex(shape[num_axes:]):
            columns[entry_name(name, index, labels)] = rows[(slice(None), *index)]
    return columns


def to_frame(
    arrays: dict[str, np.ndarray],
    num_axes: int = 1,
    index: dict[str, np.ndarray] | None = None,
    labels: Labels | None = None,
) -> Any:
    """A pandas DataFrame with those columns.

    Parameters
    ----------
    arrays
        Arrays by name with the same leading axes.
    num_axes
        How many leading axes are rows.
    index
        Columns that name the rows, if not their numbers.
    labels
        The names of entries, where they have names.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("pandas: not installed; expected for a DataFrame. Run pip install pandas.") from error
    frame = pandas.DataFrame(flatten(arrays, num_axes, labels))
    return frame if index is None else frame.set_index([pandas.Index(leaf, name=name) for name, leaf in index.items()])


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray]) -> None:
    """Write columns [row] of equal length as CSV, numbers with all of their digits."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
