"""Names and methods that are imported when they are first used, so that importing a module itself is quick."""

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Any, ParamSpec, TypeVar

__all__ = ["implemented_by", "lazy_names"]

P = ParamSpec("P")
R = TypeVar("R")


def lazy_names(module: str, sources: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Build the `__getattr__` and `__dir__` of a module (PEP 562).

    Type checkers are to read the same imports under ``if TYPE_CHECKING:`` instead.

    Parameters
    ----------
    module
        Its `__name__`.
    sources
        From the modules to import from, to the names to import, with spaces between them.
    """
    source_of = {name: source for source, names in sources.items() for name in names.split()}

    def import_name(name: str) -> Any:
        if name not in source_of:
            text = f"module {module!r} has no attribute {name!r}"
            if not name.startswith("_"):
                from dpjax._util.spelling import nearest  # for an error alone

                meant = nearest(name, list(source_of))
                text += f": write {module}.{meant}" if meant else ""
            raise AttributeError(text, name=name, obj=sys.modules[module])
        source = source_of[name]
        if source == module:
            return import_module(f"{module}.{name}")
        # As in `from source import name`, the name may be that of a submodule.
        value = getattr(__import__(source, fromlist=[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return import_name, lambda: [*vars(sys.modules[module]), *source_of]


def implemented_by(path: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Build the decorator of a method that is a function of a module further up, imported when the method is called.

    The method has the signature, the defaults and the docstring, and no body. The function takes the same arguments.

    Parameters
    ----------
    path
        The function, such as ``"dpjax.plot.tables.plot_table"``.
    """
    module, _, name = path.rpartition(".")

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        arguments_of = signature(method).bind

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = arguments_of(*args, **kwargs)
            except TypeError:
                from dpjax._util.spelling import check_names  # for an error alone

                check_names(
                    method.__name__, tuple(signature(method).parameters.values())[1:], len(args) - 1, set(kwargs)
                )
                raise
            bound.apply_defaults()
            result: R = getattr(import_module(module), name)(*bound.args, **bound.kwargs)
            return result

        return call

    return decorate
