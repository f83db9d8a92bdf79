"""The page on validation says what was run: its figures come from the harnesses, and each harness has left some."""

import ast
import json
import re
from pathlib import Path

import pytest

from tests.tools.hooks import load_hook
from tests.tools.validation import LINES, leave_line, read_lines, record, summarise

ROOT = Path(__file__).parents[1]
PAGE = load_hook("validation")
RESULTS = PAGE.results()


def recorded() -> set[str]:
    """Patterns of the names under which tests record figures."""
    calls = (
        node
        for path in ROOT.joinpath("tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if path.name != "test_validation.py" and isinstance(node, ast.Call)
    )
    named = (call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "record")
    return {pattern(name) for name in named}


def pattern(name: ast.expr) -> str:
    """A name as a regular expression; what is filled in may be a precision."""
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "float(32|64)" for part in parts)


def test_each_harness_has_left_its_figures_and_no_figures_are_without_a_harness() -> None:
    patterns = recorded()
    assert all(any(re.fullmatch(one, name) for one in patterns) for name in RESULTS)
    assert all(any(re.fullmatch(one, name) for name in RESULTS) for one in patterns)


@pytest.mark.parametrize("name", RESULTS)
def test_the_command_of_a_harness_names_files_that_there_are(name):
    figures = RESULTS[name]
    assert {"title", "what", "against", "cases", "precisions", "result", "command"} <= set(figures)
    paths = re.findall(r"[\w/]+\.py", figures["command"])
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_the_page_has_its_tables():
    page = PAGE.on_page_markdown((ROOT / "docs" / "validation.md").read_text())
    assert PAGE.SUITE not in page
    assert PAGE.HARNESSES not in page
    assert all(f"### {figures['title']}" in page for figures in RESULTS.values())
    for group in json.loads((PAGE.FOLDER / "suite.json").read_text()):
        assert group["title"] in page
        assert sum(group[precision]["passed"] for precision in ("float32", "float64")) > 0


def test_lines_are_summed_up_by_the_last_of_each_test(tmp_path, monkeypatch):
    monkeypatch.setenv("DPJAX_VALIDATION", str(tmp_path))
    for outcome in ("failed", "passed"):
        leave_line("tests/coupling/test_x.py::test_a", outcome, "float32", 1.0)
    leave_line("tests/coupling/test_x.py::test_a_planted_fault_is_rejected", "passed", "float64", 1.0)
    assert len(list((tmp_path / LINES).iterdir())) == 1
    lines = read_lines(tmp_path)
    coupled = next(group for group in summarise(lines) if group["title"] == "Coupled chains")
    assert coupled["float32"] == {"passed": 1, "failed": 0}
    assert coupled["float64"] == {"passed": 1, "failed": 0}


def test_figures_are_kept_where_they_are_asked_for_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("DPJAX_VALIDATION", raising=False)
    record("none", cases=1)
    monkeypatch.setenv("DPJAX_VALIDATION", str(tmp_path))
    record("one", cases=2)
    assert [path.name for path in tmp_path.iterdir()] == ["one.json"]
