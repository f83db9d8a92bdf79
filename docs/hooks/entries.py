"""A hook of MkDocs: entries of the reference name what is meant, and show members that have no other place.

An entry is the function, not the module of its name in which it is defined. What a class inherits from another with an
entry is described there; what it inherits from one without, here.
"""

import re
from functools import cache
from inspect import getmembers, isclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

ENTRY = re.compile(r"^::: (\S+)\.(\w+)$", re.M)
PAGES = Path(__file__).parents[1] / "reference"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs: the page with the module of each function, and the members of each class."""
    return ENTRY.sub(lambda found: f"::: {module_of(found[1], found[2])}.{found[2]}{options(found)}", markdown)


def options(found: re.Match[str]) -> str:
    """Which inherited members an entry shows, as its options; nothing if there are none."""
    owner = getattr(resolve_name(found[1]), found[2])
    names = inherited(owner) if isclass(owner) else []
    return f"\n    options:\n      inherited_members: [{', '.join(names)}]" if names else ""


def inherited(owner: type) -> list[str]:
    """The members that a class has from a base of dpjax's without an entry, and that no base with one has."""
    bases = [base for base in owner.__mro__[1:] if base.__module__.startswith("dpjax")]
    described = {name for base in bases if base in classes() for name in dir(base)}
    others = [base for base in bases if base not in classes()]
    names = [name for name, _ in getmembers(owner) if not name.startswith("_") and name not in described]
    return [name for name in names if home_of(owner, name) in others]


def home_of(owner: type, name: str) -> type | None:
    """The class that defines a member."""
    return next((base for base in owner.__mro__ if name in vars(base)), None)


@cache
def classes() -> tuple[type, ...]:
    """The classes with an entry."""
    entries = [entry for page in sorted(PAGES.glob("*.md")) for entry in ENTRY.findall(page.read_text())]
    named = [getattr(resolve_name(module), name) for module, name in entries]
    return tuple(value for value in named if isclass(value))


def module_of(parent: str, name: str) -> str:
    """The module that defines what a name of a module is, if it has that name; else the module itself."""
    home: str = getattr(getattr(resolve_name(parent), name), "__module__", "")
    return home if home.rpartition(".")[2] == name else parent
