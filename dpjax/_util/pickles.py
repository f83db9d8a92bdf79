"""Pickling of results with parts that may not be picklable: those are left out, and using them is an error."""

import copy
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Never, Self

from dpjax._util.files import write_whole
from dpjax._util.validation import check_path, fail, summarize_error

__all__ = ["Missing", "Pickled", "is_missing", "load"]

HEAD = b"dpjax result 1\n"
"""The first line of a saved result."""


class Packed(NamedTuple):
    """A part of a result as a pickle of its own, which may fail to load elsewhere."""

    content: bytes


class Missing:
    """A placeholder for a part that was left out of a pickle; any use of it raises an error that names the part."""

    def __init__(self, part: str, why: str) -> None:
        self.__dict__.update(part=part, why=why)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.refuse()

    def refuse(self) -> Never:
        """Raise the error for a result without this part."""
        expected = f"the {self.part} that the draws were made with"
        remedy = (
            f"Put it back: dataclasses.replace(posterior, {self.part}=...). Functions at the top of a module, which "
            "can be imported where the pickle is read, are kept."
        )
        fail(self.part, f"a result that came from a pickle without it ({self.why})", expected, remedy)

    def __repr__(self) -> str:
        return f"no {self.part}, which a pickle left out"


def is_missing(part: Any) -> bool:
    """Whether a part was left out of a pickle."""
    return isinstance(part, Missing)


class Pickled:
    """A frozen dataclass whose `PARTS` hold functions, which a pickle stores by their qualified names."""

    PARTS: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: pack(name, value) if name in self.PARTS else value for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: unpack(name, value) for name, value in state.items()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file, whole or not at all, for `dpjax.load`.

        Parameters
        ----------
        path
            Of the file, which is replaced if it exists. Parts with functions that are not at the top of a module are
            left out, as by a pickle.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        content = HEAD + pickle.dumps(self)

        def write(file: BinaryIO) -> None:
            file.write(content)

        write_whole(Path(path), write)

    def __copy__(self) -> Self:
        return replace(self)  # type: ignore[type-var]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        state = {
            name: value if name in self.PARTS else copy.deepcopy(value, memo) for name, value in vars(self).items()
        }
        return replace(self, **state)  # type: ignore[type-var]


def pack(name: str, part: Any) -> Packed | Missing:
    """A part as a pickle, or its placeholder if it cannot be pickled."""
    if is_missing(part):
        return part
    try:
        return Packed(pickle.dumps(part))
    except Exception as error:  # a user's part may raise anything
        return Missing(name, f"it could not be written: {summarize_error(error)}")


def unpack(name: str, value: Any) -> Any:
    """The part that was packed, or its placeholder if it cannot be read here."""
    if not isinstance(value, Packed):
        return value
    try:
        return pickle.loads(value.content)
    except Exception as error:  # a missing module, or a function that has moved
        return Missing(name, f"it could not be read: {summarize_error(error)}")


def load(path: str | os.PathLike[str]) -> Any:
    """The result that `Posterior.save` wrote.

    Parameters
    ----------
    path
        Of the file. It holds a pickle, which can run any code: load only what comes from someone you trust.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it was not written by `save`, or not whole.

    Examples
    --------
    >>> import dpjax, jax, pathlib, tempfile
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "posterior.dpjax"
    >>> posterior.save(path)
    >>> dpjax.load(path).draws["mean"].shape
    (4, 200)
    """
    content, remedy = (
        check_path("path", path).read_bytes(),
        "Pass a file written by save, from the same version of dpjax.",
    )
    if not content.startswith(HEAD):
        fail("path", f"{os.fspath(path)}, which begins otherwise", "a file that a result's save has written", remedy)
    try:
        return pickle.loads(content[len(HEAD) :])
    except Exception as error:  # of a file that was cut, or whose classes have moved
        fail("path", f"{os.fspath(path)}, which cannot be read: {summarize_error(error)}", "a whole result", remedy)
