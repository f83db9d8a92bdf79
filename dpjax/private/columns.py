"""Tables and their columns, of whatever library: their names, what their types allow, and their entries.

The names are public, and so are the types that whoever makes an array or a table has to choose. Nothing is known of
lists and of columns of objects before they are read.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

import jax
import numpy as np

__all__ = ["Sort", "column_names", "entries_of", "is_computed", "is_table", "sort_of", "type_name"]

Sort = Literal["numbers", "floats", "texts", "bytes", "lists", "unknown", "others"]
"""What the entries of a column can be: whole numbers or flags, numbers, ..., whatever there is, or of no use."""

SORTS: dict[str, Sort] = {
    r"u?int(8|16|32|64)\b|bool(ean)?\b": "numbers",
    r"float(16|32|64)?\b(?!\d)|double|halffloat": "floats",
    r"str(?!uct)|large_string|utf8|enum|categorical|dictionary<values=(large_)?string": "texts",
    r"bytes|(large_|fixed_size_)?binary": "bytes",
    r"(large_|fixed_size_)?list|array": "lists",
    r"object|unknown|null|category|dictionary": "unknown",
}
"""By the name of a type in NumPy, JAX, pandas, polars or pyarrow. Categories of pandas may be of any type."""


def is_computed(records: Any) -> bool:
    """Whether a table is in memory; others are plans by which to compute one."""
    return not any(hasattr(type(records), name) for name in ("collect", "compute"))


def is_table(records: Any) -> bool:
    """Whether these are records, rather than several batches of them."""
    return isinstance(records, Mapping) or hasattr(records, "columns")


def column_names(table: Any) -> list[Any]:
    """The names of the columns of a dict or a table."""
    return list(table if isinstance(table, Mapping) else getattr(table, "column_names", table.columns))


def type_name(column: Any) -> str:
    """The name of the type of a column; that of a list or of objects is no more than ``"object"``."""
    dtype = getattr(column, "dtype", None)
    if dtype is None and hasattr(column, "to_pylist"):
        dtype = column.type
    return "object" if dtype is None else str(getattr(dtype, "name", dtype))


def sort_of(column: Any) -> Sort:
    """What the entries of a column can be, by its type alone."""
    name = type_name(column).lower().removeprefix("sparse[")
    return next((sort for pattern, sort in SORTS.items() if re.match(pattern, name)), "others")


def entries_of(column: Any) -> Any:
    """The entries [m] of a column in an array or a list, each as it stands."""
    if hasattr(column, "to_pylist"):  # pyarrow makes other entries of the gaps among its categories
        return column.to_numpy(zero_copy_only=False) if sort_of(column) in ("numbers", "floats") else column.to_pylist()
    if hasattr(column, "to_numpy"):
        return column.to_numpy()
    return np.asarray(column) if isinstance(column, jax.Array) else column
