"""The benchmarks' command line and result rows; what they measure is not tested."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command, experiments, machine, speed
from benchmarks.papers import command as papers
from benchmarks.rows import Row, format_table, write_json
from benchmarks.speed import BENCHMARKS, parse
from benchmarks.timing import Timing
from tests.tools.public_api import MODULES

FACTS = {"device", "processor", "cores", "dpjax", "jax", "numpyro", "blackjax", "dtype", "xla_flags"}
FIELDS = {"benchmark", "case", "n", "d", "chains", "compile_seconds", "best_seconds", "median_seconds", "repeats"}


def make_row(**changes: object) -> Row:
    """A row with a target."""
    fields = {"benchmark": "cost", "case": "kernel", "n": 1_000, "d": 9, "chains": 4, "figures": {"µs": 0.1234}}
    return Row(**fields | changes, timing=Timing(1.0, 0.25, 0.5, 3), target=("µs", "<=", 0.2))


TAKEN_APART = {"subsets.py"}
"""Experiments that change one step of a kernel, and import the others."""


def test_benchmarks_are_written_as_users_write():
    """Of dpjax they import public names alone."""
    root = Path(__file__).parents[2] / "benchmarks"
    trees = {path.relative_to(root): ast.parse(path.read_text()) for path in root.rglob("*.py")}
    taken = [
        (path, node.module, alias.name)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dpjax"
        for alias in node.names
    ]
    assert len(taken) > 20
    own = [entry for entry in taken if entry[0].name not in TAKEN_APART]
    private = [entry for entry in own if entry[1] not in MODULES or not hasattr(MODULES[entry[1]], entry[2])]
    assert private == []


def test_benchmarks_and_tests_do_not_import_each_other():
    """What both need is in `problems`; the tests of benchmarks alone import them."""
    root, imported = Path(__file__).parents[2], re.compile(r"^\s*(?:from|import) (benchmarks|tests)\b", re.M)
    own = [path for folder in ("benchmarks", "problems") for path in (root / folder).rglob("*.py")]
    assert not [path for path in own if "tests" in imported.findall(path.read_text())]
    others = [path for path in (root / "tests").rglob("*.py") if path.parent.name != "benchmarks"]
    assert not [path for path in others if "benchmarks" in imported.findall(path.read_text())]


def test_every_benchmark_is_run_by_default():
    options = parse([])
    assert options.names == list(BENCHMARKS)
    assert not options.quick
    assert options.json is None


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (["soma", "table3"], ("soma", ["table3"])),
        (["tables", "county", "--quick"], ("tables", ["county", "--quick"])),
        (["papers", "soma"], (["soma"],)),
        (["cost", "--quick"], (["cost", "--quick"],)),
        ([], ([],)),
    ],
)
def test_one_command_line_leads_to_all(arguments, taken, monkeypatch):
    """A folder of experiments, the list of the papers, and all else, which is speed."""
    called = []
    for owner in (experiments, papers, speed):
        monkeypatch.setattr(owner, "main", lambda *given, owner=owner: called.append((owner, given)))
    command.main(arguments)
    owners = {"soma": experiments, "tables": experiments, "papers": papers}
    assert called == [(owners.get(arguments[0] if arguments else "", speed), taken)]


def test_options_are_read(tmp_path):
    options = parse(["memory", "cost", "--quick", "--json", str(tmp_path / "results.json")])
    assert options.names == ["memory", "cost"]
    assert options.quick
    assert options.json == tmp_path / "results.json"


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["cost", "speed"])
    assert "no benchmark is named speed" in capsys.readouterr().err


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_loaded(name):
    module = importlib.import_module(f"benchmarks.{name}")
    assert callable(module.measure)
    assert list(module.SIZES) == ["full", "quick", "tiny"]


def test_rows_say_what_they_depend_on(tmp_path):
    environment = machine.describe()
    write_json(tmp_path / "results.json", environment, [make_row()])
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["environment"] == environment
    (row,) = content["rows"]
    assert set(row) >= FACTS | FIELDS
    assert row["best_seconds"] == 0.25
    assert row["figures"] == {"µs": 0.1234}
    assert row["met"]


def test_the_table_has_a_column_for_every_figure():
    table = format_table([make_row(), make_row(case="other", figures={"µs": 1234.5, "times C": 2.0})]).splitlines()
    header, _, first, second = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    assert header == ["case", "n", "d", "chains", "compile s", "µs", "times C", "target"]
    assert first == ["kernel", "1,000", "9", "4", "1", "0.123", "", "<= 0.2: met"]
    assert second == ["other", "1,000", "9", "4", "1", "1,234", "2", "<= 0.2: missed"]


@pytest.mark.x64
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "scaling" else pytest.mark.slow) for name in BENCHMARKS]
)
def test_every_benchmark_runs(name, tmp_path):
    """At a tiny size, as its command line runs it."""
    file = tmp_path / "rows.json"
    command = [sys.executable, "-m", "benchmarks", name, "--tiny", "--json", str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    rows = json.loads(file.read_text())["rows"]
    assert rows
    assert all(row["benchmark"] == name and row["figures"] for row in rows)
