"""Troubleshooting knows every warning by its text, every error class by name, and every refusal by the index."""

import ast
import re
from pathlib import Path

import pytest

from tests.tools.hooks import load_hook

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/troubleshooting.md").read_text()
SOURCES = {path: path.read_text() for path in sorted((ROOT / "dpjax").rglob("*.py"))}

MESSAGES = load_hook("messages")


def texts(source: str) -> str:
    """All that a module says in strings, but for docstrings."""
    tree = ast.parse(source)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said]
    return "\n".join(str(node.value) for node in constants)


def explained() -> list[str]:
    """The texts in the headings of the section on warnings."""
    section = PAGE.split("## Warnings")[1].split("\n## ")[0]
    return [text for heading in re.findall(r"^### (.+)$", section, re.M) for text in re.findall(r"`([^`]+)`", heading)]


def number_of_warnings(source: str) -> int:
    """How often a module warns."""
    return len(re.findall(r"(?<!def )warn_at_the_call\(", source))


def test_every_warning_is_explained():
    """Of each module as many texts as it gives warnings."""
    warning = {path: texts(source) for path, source in SOURCES.items() if number_of_warnings(source)}
    known = {path: sum(text in said for text in explained()) for path, said in warning.items()}
    assert [path.name for path in warning if known[path] < number_of_warnings(SOURCES[path])] == []
    assert [text for text in explained() if not any(text in said for said in warning.values())] == []


def test_every_warning_points_at_the_call():
    """Decorators and helpers lie between a warning and the user: a level that is counted by hand becomes wrong."""
    assert [path.name for path, source in SOURCES.items() if "warnings.warn(" in source] == ["warn.py"]


def test_every_error_class_is_explained():
    classes = re.findall(r"^class (\w+)\(\w*(?:Exception|Error|Warning)\w*\):", "\n".join(SOURCES.values()), re.M)
    inner = {"EarlyExitError", "Unpromised", "Unsaved"}  # ends a search; become sentences of `describe` and of results
    assert {"BudgetExceeded", "PrecisionWarning"} <= set(classes)
    assert [name for name in classes if name not in inner and f"`{name}`" not in PAGE] == []


@pytest.mark.x64
def test_every_refusal_is_in_the_index():
    calls = sum(len(re.findall(r"(?<!def )\bfail\(", source)) for source in SOURCES.values())
    found = MESSAGES.messages()
    assert len(found) == calls
    index = MESSAGES.index()
    assert all(MESSAGES.cell(message.remedy) in index for message in found if message.argument != "…")
    assert MESSAGES.on_page_markdown((ROOT / "docs/messages.md").read_text()).count("??? note") >= 15


def test_the_index_tells_what_is_filled_in():
    source = 'def f(a):\n    remedy = f"Pass {a} or more."\n    fail("a", a, "a number", remedy)\n'
    function = ast.parse(source).body[0]
    assert list(MESSAGES.messages_of(function, "f.py")) == [("f.py", "a", "a number", "Pass … or more.")]
