"""Arrays by name as tables with a column for each number."""

from typing import Any

import numpy as np


def entry_name(name: str, index: tuple[int, ...]) -> str:
    """The name of one entry of an array, such as ``coef[0]``; a scalar keeps its name."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def flatten(arrays: dict[str, np.ndarray], num_axes: int = 1) -> dict[str, np.ndarray]:
    """Columns of all entries by name, such as ``coef[0]``, whose leading axes are the rows in order."""
    columns = {}
    for name, leaf in arrays.items():
        shape = np.shape(leaf)
        rows = np.reshape(leaf, (int(np.prod(shape[:num_axes])), *shape[num_axes:]))
        for index in np.ndindex(shape[num_axes:]):
            columns[entry_name(name, index)] = rows[(slice(None), *index)]
    return columns


def to_frame(arrays: dict[str, np.ndarray], num_axes: int = 1, index: dict[str, np.ndarray] | None = None) -> Any:
    """A pandas DataFrame with those columns.

    Parameters
    ----------
    arrays
        Arrays by name with the same leading axes.
    num_axes
        How many leading axes are rows.
    index
        Columns that name the rows, if not their numbers.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("pandas: not installed; expected for a DataFrame. Run pip install pandas.") from error
    frame = pandas.DataFrame(flatten(arrays, num_axes))
    return frame if index is None else frame.set_index([pandas.Index(leaf, name=name) for name, leaf in index.items()])
