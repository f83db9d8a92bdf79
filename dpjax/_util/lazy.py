"""Names that a module imports when they are first used, so that importing the module itself is quick."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


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
            raise AttributeError(text, name=name, obj=sys.modules[module])
        source = source_of[name]
        if source == module:
            return import_module(f"{module}.{name}")
        # As in `from source import name`, the name may be that of a submodule.
        value = getattr(__import__(source, fromlist=[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return import_name, lambda: [*vars(sys.modules[module]), *source_of]
