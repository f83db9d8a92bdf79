"""Results in files that hold data alone: whoever reads one runs no code that is in it."""

import importlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial, reduce
from textwrap import shorten
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.archives import read_archive, write_archive
from dpjax._util.files import write_whole
from dpjax._util.pickles import Missing, Pickled, content_of, is_missing
from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import check_destination, describe, fail, name_of, reading, summarize_error
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Model
from dpjax.release.checks import PrecisionWarning

__all__ = ["FileForm", "HasFileForm", "Saved", "Unsaved", "load"]

FORMAT = "dpjax result 2"
BEGINNING = b"PK"  # of a zip archive
FOLDERS = (
    *(
        "adapters.formula",
        "base",
        "clt",
        "data_augmentation",
        "diagnostics",
        "domain",
        "mechanisms",
        "models",
        "posterior",
        "release",
        "releases",
    ),
    "statistics",
)
"""Parts of dpjax of which a file may name classes: those that hold values, and do nothing when they are made."""


SHOWN = 200
"""Characters that say what a model is of which a file holds no code."""


class Unsaved(Exception):
    """Why a value cannot be in a file, as a sentence."""


class FileForm:
    """What stands in a file for a value that holds functions: a dataclass from which it is made again."""

    def remake(self) -> Any:
        """The value."""
        raise NotImplementedError


class HasFileForm:
    """A value that has another form in files."""

    def file_form(self) -> FileForm:
        """That form."""
        raise NotImplementedError


@names_methods
class Saved(Pickled):
    """A result that can be saved in a file, for `dpjax.load`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file, whole or not at all, for `dpjax.load`.

        The file holds arrays and the names and arguments of what dpjax makes: models of `dpjax.models`, releases,
        mechanisms, statistics. A formula is kept with its columns, levels and priors. The file holds no code. Functions
        and classes of your own are left out, and so are NumPyro models: a warning names what is. A pickle keeps them.

        Parameters
        ----------
        path
            The name of the file, which is replaced if it exists.

        Raises
        ------
        OSError
            If the file cannot be written.
        TypeError, ValueError
            If the path is none, or that of something else than a file, such as a folder, a device or a pipe.

        Warns
        -----
        UserWarning
            If a part of the result is not in the file.
        """
        destination = check_destination("path", path, "Pass the path of a file in a folder that exists.")
        writer = Writer()
        parts = {name: writer.part(name, value) for name, value in content_of(self).items()}
        text = json.dumps({"format": FORMAT, "class": class_name(type(self)), "parts": parts})
        write_whole(destination, partial(write_archive, writer.arrays | {"result": np.array(text)}))
        if left_out := writer.left_out:
            why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            remedy = "What needs it raises an error after load, until dataclasses.replace puts it back"
            warn_at_the_call(f"The file is without the {' and the '.join(left_out)}. {remedy}. {why}")


class Writer:
    """Values as JSON has them, with their arrays apart."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.left_out: dict[str, str] = {}

    def part(self, name: str, value: Any) -> Any:
        """A part of a result, or why it is left out."""
        if is_missing(value):
            return {"missing": vars(value)["why"]}
        try:
            return self.value(value)
        except Unsaved as error:
            self.left_out[name] = f"it could not be written: {error}"
            return {"missing": self.left_out[name]}

    def value(self, value: Any) -> Any:
        """Any value: texts and numbers are themselves, and all else is an object with one name that tells its kind."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, (np.ndarray, np.generic, jax.Array)):
            return self.array(value)
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.value(entry) for entry in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.value(name), self.value(entry)] for name, entry in value.items()]}
        return self.instance(value)

    def array(self, value: Any) -> dict[str, Any]:
        """An array by the name of its entry, and whose it was."""
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            raise Unsaved("a key of JAX")
        array = np.asarray(value)
        if array.dtype.kind not in "biufcSU":
            raise Unsaved(f"an array of {array.dtype}")
        name = f"array{len(self.arrays)}"
        self.arrays[name] = array
        kind = "jax" if isinstance(value, jax.Array) else "scalar" if isinstance(value, np.generic) else "numpy"
        return {"array": [kind, name]}

    def instance(self, value: Any) -> dict[str, Any]:
        """A dataclass or named tuple of dpjax by its name and fields."""
        if isinstance(value, HasFileForm):
            value = value.file_form()
        kind = type(value)
        name = class_name(kind)
        if class_of(name) is not kind:
            if isinstance(value, Model):
                numbers = ", ".join(f"{part.name}={describe(getattr(value, part.name))}" for part in fields(value))
                shown = shorten(f"{kind.__name__}({numbers})", SHOWN, placeholder=" ...")
                raise Unsaved(f"{shown}, whose code no file holds")
            raise Unsaved(f"{name_of(value)}, which is not of dpjax")
        return {"class": [name, {field: self.value(getattr(value, field)) for field in field_names(kind)}]}


@names_arguments
def load(path: str | os.PathLike[str]) -> Any:
    """The result that `Posterior.save` wrote.

    Parameters
    ----------
    path
        Of the file. Nothing in it is run, whoever made it.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError, ValueError
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
    remedy = "Pass a file written by save, from the same version of dpjax."
    with reading("path", path, remedy) as file:
        if file.read(len(BEGINNING)) != BEGINNING:
            given = f"{os.fspath(path)}, which begins otherwise"
            text = "The JSON of a release is read by dpjax.from_json."
            fail("path", given, "a file that a result's save has written", f"{remedy} {text}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrecisionWarning)
                return read_result(read_archive(file))
        except Exception as error:  # of a file that was cut, or forged, or whose classes have moved
            given = f"{os.fspath(path)}, which cannot be read: {summarize_error(error)}"
            return fail("path", given, "a whole result", remedy)


def read_result(arrays: dict[str, np.ndarray]) -> Saved:
    """The result in an archive."""
    text = json.loads(str(arrays["result"]))
    kind = class_of(text["class"])
    if text["format"] != FORMAT or kind is None or not issubclass(kind, Saved):
        raise ValueError("it is no result")
    return kind(**{name: read_part(name, part, arrays) for name, part in text["parts"].items()})


def read_part(name: str, part: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A part of a result, or its placeholder."""
    if isinstance(part, dict) and "missing" in part:
        return Missing(name, str(part["missing"]))
    return read(arrays, part)


def read(arrays: dict[str, np.ndarray], node: Any) -> Any:
    """The value that `Writer.value` wrote."""
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise ValueError("a list without a kind")
        return node
    ((kind, content),) = node.items()
    return READERS[kind](arrays, content)


def read_array(arrays: dict[str, np.ndarray], content: list[str]) -> Any:
    """An array, of JAX or numpy, or a number of numpy's."""
    kind, name = content
    if kind not in ("jax", "numpy", "scalar"):
        raise ValueError(f"an array of {kind!r}")
    array = arrays[name]
    return jnp.asarray(array) if kind == "jax" else array[()] if kind == "scalar" else array


def read_instance(arrays: dict[str, np.ndarray], content: list[Any]) -> Any:
    """A dataclass or named tuple, made again."""
    name, values = content
    kind = class_of(name)
    if kind is None:
        raise ValueError(f"{name!r} is no class of results")
    made = kind(**{field: read(arrays, value) for field, value in values.items()})
    return made.remake() if isinstance(made, FileForm) else made


READERS: dict[str, Callable[[dict[str, np.ndarray], Any], Any]] = {
    "array": read_array,
    "class": read_instance,
    "dict": lambda arrays, pairs: {read(arrays, name): read(arrays, entry) for name, entry in pairs},
    "list": lambda arrays, entries: list(map(partial(read, arrays), entries)),
    "tuple": lambda arrays, entries: tuple(map(partial(read, arrays), entries)),
}


def class_name(kind: type) -> str:
    """The module and the qualified name of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_of(name: Any) -> type[Any] | None:
    """The class of values of this name; None if it is none that a file may name."""
    module, _, qualified = str(name).partition(":")
    first, *rest = module.split(".")
    is_listed = any(f"{'.'.join(rest)}.".startswith(f"{folder}.") for folder in FOLDERS)
    if first != "dpjax" or not is_listed or not all(part.isidentifier() for part in rest):
        return None
    kind: Any = reduce(getattr, qualified.split("."), importlib.import_module(module))
    is_value = isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))
    return kind if is_value and class_name(kind) == name else None


def field_names(kind: Any) -> tuple[str, ...]:
    """The names of what a dataclass or named tuple is made from."""
    return tuple(entry.name for entry in fields(kind) if entry.init) if is_dataclass(kind) else kind._fields
