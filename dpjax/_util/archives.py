"""Archives of numpy arrays, which hold data alone and take no more memory than their file is long."""

import os
from collections.abc import Mapping
from typing import BinaryIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np

__all__ = ["read_archive", "write_archive"]


def write_archive(arrays: Mapping[str, np.ndarray], file: BinaryIO) -> None:
    """Write arrays by name, as they are: nothing is compressed."""
    np.savez(file, allow_pickle=False, **arrays)


def read_archive(file: BinaryIO) -> dict[str, np.ndarray]:
    """The arrays that `write_archive` wrote.

    A file of a stranger may unpack to any size, by compression or by entries that overlap. Those of `write_archive` are
    as long as what is in them.

    Raises
    ------
    Exception
        An error of any type, if it is no archive. A ValueError, if it unpacks to more than its own length.
    """
    with ZipFile(file) as archive:
        entries = archive.infolist()
    length = file.seek(0, os.SEEK_END)
    if any(one.compress_type != ZIP_STORED for one in entries) or sum(one.file_size for one in entries) > length:
        raise ValueError("its arrays are longer than the file")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)
