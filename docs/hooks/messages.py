"""The index of error messages on a page of its own, read off the source when the site is built."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

MARKER = "<!-- index of messages -->"

PACKAGE = Path(__file__).parents[2] / "dpjax"

TITLES = {
    "adapters/numpyro": "NumPyro models",
    "adapters": "Files, tables and pictures",
    "clt": "Normal approximation of the sum",
    "coupling": "Coupled chains",
    "data_augmentation/counts": "Counts",
    "data_augmentation/parameters": "Parameter kernels",
    "data_augmentation/records": "Imputation",
    "exchangeable": "Exchangeable targets",
    "mcmc": "Runs and checkpoints",
    "mechanisms": "Mechanisms",
    "mixture": "Mixtures",
    "models": "Models",
    "private": "The data holder's side",
    "release": "Releases",
    "runtime": "Runs and checkpoints",
    "sampler_tests": "Tests of samplers",
    "smc": "Sequential Monte Carlo",
    "statistics": "Statistics",
}


class Message(NamedTuple):
    """One call of `dpjax._util.validation.fail`; what is known only when it is raised is an ellipsis."""

    place: str
    argument: str
    expected: str
    remedy: str


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What MkDocs calls with each page."""
    return markdown.replace(MARKER, index()) if MARKER in markdown else markdown


@cache
def messages() -> tuple[Message, ...]:
    """All messages in the source."""
    return tuple(message for path in sorted(PACKAGE.rglob("*.py")) for message in messages_in(path))


def messages_in(path: Path) -> Iterator[Message]:
    """Those of a file."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            yield from messages_of(function, path.relative_to(PACKAGE).as_posix())


def messages_of(function: ast.FunctionDef | ast.Lambda, place: str) -> Iterator[Message]:
    """Those that a function raises itself."""
    local = texts_of(function)
    for node in own_nodes(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail":
            argument, _, expected, remedy = (in_words(one, local) for one in node.args)
            yield Message(place, argument, expected, remedy)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from own_nodes(child)


def texts_of(function: ast.AST) -> dict[str, str]:
    """The texts that a function gives names to: the first of each name."""
    found: dict[str, str] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            names, values = ([part] for part in (node.targets[0], node.value))
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                names, values = node.targets[0].elts, node.value.elts
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, in_words(value, {}))
    return found


def in_words(node: ast.expr, local: dict[str, str]) -> str:
    """A text as it is written, with an ellipsis for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(in_words(part, local) for part in node.values)
    if isinstance(node, ast.IfExp):
        return f"{in_words(node.body, local)}, or {in_words(node.orelse, local)}"
    if isinstance(node, ast.BinOp):
        return in_words(node.left, local) + in_words(node.right, local)
    return local.get(node.id, "…") if isinstance(node, ast.Name) else "…"


def title_of(place: str) -> str:
    """The heading under which messages of a file stand."""
    fitting = [folder for folder in TITLES if place.startswith(f"{folder}/")]
    return TITLES[max(fitting, key=len)] if fitting else "Everywhere"


def cell(text: str) -> str:
    """A text as one cell of a table."""
    return text.translate(str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;", "*": "\\*", "[": "\\[", "`": ""}))


def index() -> str:
    """All messages as tables, one for each part of dpjax, sorted by argument."""
    groups: dict[str, set[tuple[str, str, str]]] = {}
    for message in messages():
        groups.setdefault(title_of(message.place), set()).add(message[1:])
    return "\n\n".join(table(title, rows) for title, rows in sorted(groups.items()))


def table(title: str, rows: set[tuple[str, str, str]]) -> str:
    """One table, folded."""
    lines = [f"| {' | '.join(map(cell, row))} |" for row in sorted(rows) if row[0] != "…" or row[1] != "…"]
    head = [f'??? note "{title}"', "", "| argument | expected | remedy |", "|---|---|---|"]
    return "\n".join([head[0], *(f"    {line}" for line in [*head[1:], *lines])])
