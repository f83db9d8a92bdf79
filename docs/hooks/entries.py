"""A hook of MkDocs: entries of the reference name what is meant, and show members that have no other place.

An entry is the function, not the module of its name in which it is defined. What a class inherits from another with an
entry is described there; what it inherits from one without, here. One page lists all names.
"""

import re
from collections.abc import Iterator
from functools import cache
from inspect import getdoc, getmembers, isclass, ismodule, isroutine
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

MARKER = "<!-- index of names -->"
ENTRY = re.compile(r"^::: (\S+)\.(\w+)$", re.M)
PAGES = Path(__file__).parents[1] / "reference"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs: the page with the module of each function, the members of each class, and the list of names."""
    markdown = markdown.replace(MARKER, index()) if MARKER in markdown else markdown
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
    return tuple(value for _, _, value in entries() if isclass(value))


def entries() -> Iterator[tuple[str, str, Any]]:
    """The module, the name and the value of each entry; of an entry that is a module, those of what it names."""
    for page in sorted(PAGES.glob("*.md")):
        for parent, name in ENTRY.findall(page.read_text()):
            value = getattr(resolve_name(parent), name)
            if ismodule(value):
                inside = ((f"{parent}.{name}", inner, getattr(value, inner)) for inner in value.__all__)
                yield from (one for one in inside if isclass(one[2]) or isroutine(one[2]))
            else:
                yield parent, name, value


def index() -> str:
    """A table of all names by the alphabet, with the first line of what is said of each."""
    rows = sorted(set(map(row, entries())), key=lambda cells: cells[0].lower())
    lines = [f"| [`{name}`][{target}] | `{parent}` | {line} |" for name, parent, target, line in rows]
    return "\n".join(["| name | in | what it is |", "|---|---|---|", *lines])


def row(entry: tuple[str, str, Any]) -> tuple[str, str, str, str]:
    """A name, its module, its entry, and what it is."""
    parent, name, value = entry
    parts = parent.split(".")
    modules = (".".join(parts[:size]) for size in range(1, len(parts) + 1))
    shortest = next(module for module in modules if getattr(resolve_name(module), name, None) is value)
    line = (getdoc(value) or "").partition("\n")[0]
    return name, shortest, f"{module_of(parent, name)}.{name}", escape(line)


def escape(line: str) -> str:
    """The line as a cell of a table; within code Markdown reads nothing as anything else, backslashes included."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    return "".join(part if part.startswith("`") else part.replace("|", "\\|").replace("[", "\\[") for part in parts)


def module_of(parent: str, name: str) -> str:
    """The module that defines what a name of a module is, if it has that name; else the module itself."""
    home: str = getattr(getattr(resolve_name(parent), name), "__module__", "")
    return home if home.rpartition(".")[2] == name else parent
