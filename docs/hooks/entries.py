"""A hook of MkDocs: an entry of the reference is the function, not the module of its name in which it is defined."""

import re
from pkgutil import resolve_name
from typing import Any

ENTRY = re.compile(r"^::: (\S+)\.(\w+)$", re.M)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs: the page with the module of each function whose name its module has, too."""
    return ENTRY.sub(lambda found: f"::: {module_of(found[1], found[2])}.{found[2]}", markdown)


def module_of(parent: str, name: str) -> str:
    """The module that defines what a name of a module is, if it has that name; else the module itself."""
    home: str = getattr(getattr(resolve_name(parent), name), "__module__", "")
    return home if home.rpartition(".")[2] == name else parent
