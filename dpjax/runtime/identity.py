"""A content hash of functions and objects, equal in every process.

A function is hashed by its own code, its defaults and the variables that it closes over; an object by its type and
state. What an installed library holds under a qualified name is hashed by that name alone. Memory addresses, line
numbers and the order of sets do not enter. Nor do globals: what models compute with them, a run compares by values.
"""

import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np
from jax.extend import core
from jax.tree_util import PyTreeDef, default_registry

from dpjax._util.validation import fail

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
LIBRARIES = tuple(Path(path) for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
DPJAX = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
DIGITS = 12


def identify(name: str, value: Any) -> str:
    """The name of a function or of an object's type, and a short hash of its content.

    Raises
    ------
    TypeError
        If it holds something that cannot be hashed by content, such as an open file, or a traced array.
    """
    return f"{getattr(value, '__qualname__', type(value).__qualname__)} {Reader(name).digest(value)[:DIGITS]}"


class Reader:
    """Hashes a value with all that it refers to; a reference back to a value being hashed counts by its depth."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: dict[int, str] = {}
        self.open: list[int] = []
        self.held: list[Any] = []  # so that no address is used twice

    def digest(self, value: Any) -> str:
        """Type and text of a plain value, the hash of any other."""
        if isinstance(value, PLAIN):
            return f"{type(value).__name__} {value!r}"
        address = id(value)
        if address in self.open:
            return f"back at {self.open.index(address)}"
        if address not in self.known:
            self.held.append(value)
            self.open.append(address)
            content = hashlib.sha256()
            for text in self.read_object(value):
                content.update(f"{len(text)}:{text}".encode())
            self.open.pop()
            self.known[address] = content.hexdigest()
        return self.known[address]

    def read_object(self, value: Any) -> Iterator[str]:
        """The texts that the hash of a value is made of, if it is not plain."""
        if isinstance(value, jax.core.Tracer):
            self.refuse("a traced array, which has no value yet", "Call sample outside jit and vmap.")
        if is_named_in_library(value):
            yield f"library {name_of(value)}"
        elif isinstance(value, (np.ndarray, np.generic, jax.Array)):
            yield from self.read_array(value)
        elif isinstance(value, FunctionType):
            yield from self.read_function(value)
        elif isinstance(value, CodeType):
            yield from self.read_code(value, None)
        elif isinstance(value, type):
            yield from self.read_class(value)
        elif isinstance(value, (set, frozenset)):
            yield from ("set", *sorted(map(self.digest, value)))
        else:
            yield f"{type(value).__name__}"
            yield from map(self.digest, self.parts(value))

    def parts(self, value: Any) -> Iterable[Any]:
        """The parts by which an object is hashed."""
        if isinstance(value, (ModuleType, PyTreeDef, np.dtype)):
            return [ADDRESS.sub("", value.__name__ if isinstance(value, ModuleType) else str(value))]
        if isinstance(value, (core.Jaxpr, core.ClosedJaxpr)):
            return [ADDRESS.sub("", str(value)), *constants_of(value)]
        if isinstance(value, (MethodType, BuiltinFunctionType)):
            return [value.__name__, value.__self__, getattr(value, "__func__", None)]
        if isinstance(value, partial):
            return [value.func, value.args, value.keywords]
        if isinstance(value, CellType):
            return [content_of(value)]
        if isinstance(value, Enum):
            return [type(value), value.name]
        return self.parts_of_container(value)

    def parts_of_container(self, value: Any) -> Iterable[Any]:
        """The type and the content of a container, or of an object with a state."""
        if isinstance(value, dict):
            return [type(value), *(part for item in value.items() for part in item)]
        if isinstance(value, (list, tuple)):
            return [type(value), *value]
        if hasattr(value, "__wrapped__"):  # a compiled or cached function: what it caches is no part of it
            return [type(value), value.__wrapped__]
        if isinstance(value, (property, classmethod, staticmethod, cached_property)):
            return [getattr(value, name, None) for name in ("fget", "fset", "__func__", "func")]
        if is_dataclass(value):
            return [type(value), *(getattr(value, field.name, None) for field in fields(value))]
        node = default_registry.flatten_one_level(value)
        if node is not None:
            return [type(value), list(node[0]), node[1]]
        return [type(value), self.state_of(value)]

    def state_of(self, value: Any) -> Any:
        """The state of an object: its attributes without cached properties, or what would be pickled."""
        held = getattr(value, "__dict__", None)
        if held is not None and is_default(value):
            kept = {name: entry for name, entry in held.items() if not is_cache(type(value), name)}
            slots = [name for kind in type(value).__mro__ for name in np.atleast_1d(getattr(kind, "__slots__", ()))]
            return kept | {name: getattr(value, name) for name in slots if hasattr(value, name) and name not in kept}
        try:
            return value.__reduce_ex__(2)
        except Exception:
            remedy = "Give the function what it needs as plain values or arrays, or run without checkpoint."
            return self.refuse(f"a {type(value).__name__}, whose content cannot be hashed", remedy)

    def read_array(self, array: Any) -> Iterator[str]:
        """Type, shape and digest of an array."""
        if isinstance(array, jax.Array) and jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
            yield str(jax.random.key_impl(array))
            array = jax.random.key_data(array)
        held = np.asarray(array)
        yield f"array {held.dtype}{list(held.shape)}"
        yield from map(self.digest, held.ravel().tolist()) if held.dtype == object else [digest_bytes(held)]

    def read_function(self, function: FunctionType) -> Iterator[str]:
        """Code, defaults and closed-over values."""
        yield "function"
        yield from self.read_code(function.__code__, function.__doc__)
        yield from map(self.digest, (function.__defaults__, function.__kwdefaults__))
        yield from map(self.digest, function.__closure__ or ())

    def read_code(self, code: CodeType, documentation: str | None) -> Iterator[str]:
        """The instructions, constants and names of a code object, without line numbers and docstring."""
        yield from (code.co_code.hex(), code.co_exceptiontable.hex(), str(code.co_flags))
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            yield " ".join(names)
        yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
        for place, constant in enumerate(code.co_consts):
            if place > 0 or constant is None or constant != documentation:
                yield self.digest(constant)

    def read_class(self, kind: type) -> Iterator[str]:
        """The name, bases and methods of a user's class."""
        yield f"class {kind.__qualname__}"
        yield from map(self.digest, kind.__bases__)
        methods = (FunctionType, property, classmethod, staticmethod, cached_property)
        for name, entry in sorted(vars(kind).items()):
            if isinstance(entry, methods) or not (name.startswith(("__", "_abc_")) or hasattr(entry, "__objclass__")):
                yield name
                yield self.digest(entry)

    def refuse(self, given: str, remedy: str) -> Any:
        """Raise for a value that cannot be hashed by content."""
        expected = "functions and values that can be recognised when the run is continued"
        return fail("checkpoint", f"a run whose {self.name} holds {given}", expected, remedy, error=TypeError)


def constants_of(program: Any) -> Iterator[Any]:
    """The constants of a traced program and of those inside it, which its text leaves out."""
    yield from getattr(program, "consts", ())
    for equation in program.eqns:
        yield from (variable.val for variable in equation.invars if isinstance(variable, core.Literal))
        for value in equation.params.values():
            for part in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(part, (core.Jaxpr, core.ClosedJaxpr)):
                    yield from constants_of(part)


def digest_bytes(array: np.ndarray) -> str:
    """A hash of an array's content."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def name_of(value: Any) -> str:
    """Module and name of a function or class."""
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None)}"


def is_named_in_library(value: Any) -> bool:
    """Whether a library's module holds the value under its name."""
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, ModuleType) or not (isinstance(module, str) and isinstance(path, str)):
        return False
    found: Any = sys.modules.get(module)
    if found is None or not is_library_file(getattr(found, "__file__", None) or f"<{module}>"):
        return False
    for name in path.split("."):
        found = getattr(found, name, None)
    return found is value


def is_library_file(name: str) -> bool:
    """Whether a file belongs to an installed library, to Python or to dpjax; what was typed in belongs to the user."""
    if name.startswith("<"):
        return name.startswith("<frozen") or name.strip("<>") in {"built-in", *sys.builtin_module_names}
    path = Path(name)
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(installed) or any(path.is_relative_to(folder) for folder in (*LIBRARIES, DPJAX))


def content_of(cell: CellType) -> Any:
    """What a captured variable stands for; nothing if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_default(value: Any) -> bool:
    """Whether an object leaves it to Python how it is pickled, so that its attributes are its state."""
    kind: Any = type(value)
    return all(getattr(kind, name) is getattr(object, name) for name in ("__reduce__", "__reduce_ex__"))


def is_cache(kind: type, name: str) -> bool:
    """Whether an attribute is a cached property, which may or may not have been computed yet."""
    entry = getattr(kind, name, None)
    return hasattr(entry, "__get__") and not (hasattr(entry, "__set__") or isinstance(entry, FunctionType))
