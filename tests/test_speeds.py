"""Speeds that are quoted are those of the stored results, and each of these says how it was measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FACTS = {"commit", "date", "processor", "cores", "dpjax", "jax", "jaxlib", "numpy", "dtype"}
SPEED, WITH_WARMUP, PER_DRAW = "effective per s", "with warm-up", "effective per draw"

GPU = "NVIDIA H100 80GB HBM3"

CASES = {
    "dpjax, default": "IMwG and interweaving (default)",
    "dpjax without refreshes": "without refreshes",
    "dpjax without refreshes and interweaving": "IMwG alone",
    "importance sampling from the prior": "importance sampling",
    "NumPyro NUTS on the augmented model": "NumPyro NUTS, augmented model",
    "IMwG and interweaving, with refreshes (default)": "IMwG and interweaving (default)",
    "the same without refreshes": "without refreshes",
    'SOMA, `attempts="auto"`, with refreshes': 'SOMA, "auto"',
    "SOMA, all n attempts, with refreshes": "SOMA, m = n",
    "IMwG alone": "IMwG alone",
    "NumPyro NUTS, augmented model (303 dimensions)": "NumPyro NUTS, augmented model",
}
"""The rows of the tables, and of `effective.json`."""


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a file of results."""
    return json.loads((RESULTS / f"{name}.json").read_text())["rows"]


def quoted(value: float) -> str:
    """A figure with three digits, as it is quoted."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:#.3g}" if value >= 1 else f"{value:#.2g}"


def effective(case: str, epsilon: int, figure: str) -> str:
    """A figure of the regression with 100 records, as it is quoted."""
    return quoted(
        next(row for row in rows_of("effective") if row["case"] == f"ε = {epsilon}: {case}")["figures"][figure]
    )


def table_below(path: str, heading: str) -> dict[str, list[str]]:
    """The cells of the first table below a heading, by the first cell of their row; remarks in them are left out."""
    section = (ROOT / path).read_text().partition(heading)[2]
    lines = re.search(r"(?:^\|.*\n)+", section, re.M)
    assert lines is not None
    cells = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in lines[0].splitlines()[2:]]
    return {row[0]: [cell.split(", k̂")[0] for cell in row[1:]] for row in cells}


@pytest.mark.parametrize(
    ("path", "heading", "figures"),
    [
        ("README.md", "## Speed", [(1, SPEED), (1, WITH_WARMUP), (10, SPEED), (10, WITH_WARMUP)]),
        ("benchmarks/README.md", "## `effective`", [(1, SPEED), (1, PER_DRAW), (10, SPEED), (10, PER_DRAW)]),
    ],
)
def test_tables_of_effective_draws_are_those_of_the_run(path, heading, figures):
    table = table_below(path, heading)
    assert set(table) <= set(CASES)
    assert len(table) >= 5
    for name, cells in table.items():
        assert cells == [effective(CASES[name], *figure) for figure in figures], name


@pytest.mark.parametrize("path", ["README.md", "docs/benchmarks.md", "paper/paper.md"])
def test_the_regression_has_one_speed(path):
    """Wherever the default is said to be so fast, with the number of chains that it takes."""
    text = (ROOT / path).read_text()
    assert effective(CASES["dpjax, default"], 1, SPEED) in text
    assert "16 chains" in text


def test_the_paper_quotes_the_run():
    text = " ".join((ROOT / "paper/paper.md").read_text().split())
    sampling, both = re.search(r"makes ([\d,]+) .*? model ([\d,]+), .*? interweaving ([\d,]+);", text), None
    both = re.search(r"with warm-up these are ([\d,]+), ([\d,]+) and ([\d,]+) ", text)
    cases = [CASES[name] for name in ("dpjax, default", "NumPyro NUTS on the augmented model", "IMwG alone")]
    for found, figure in ((sampling, SPEED), (both, WITH_WARMUP)):
        assert found is not None
        assert list(found.groups()) == [effective(case, 1, figure) for case in cases]


def test_sample_clt_is_as_fast_as_in_its_run():
    stored = [round(row["figures"][SPEED]) for row in rows_of("large") if row["case"] == "large_sample"]
    for path, heading, name in [
        ("docs/benchmarks.md", "for a regression with nine sums", "`sample_clt`"),
        ("benchmarks/README.md", "## `large`", "per CPU second"),
    ]:
        assert table_below(path, heading)[name] == [f"{speed:,}" for speed in stored]


def test_updates_cost_what_their_run_says():
    stored = {row["case"]: row["figures"]["µs per update"] for row in rows_of("cost")}
    for name, cells in table_below("benchmarks/README.md", "## `cost`").items():
        assert cells[0] == f"{stored[name]:.3f}", name


ON_GPU = [
    *(("IMwG by default, with interweaving", 100, chains) for chains in (4, 1_024, 16_384)),
    *(("IMwG by default, with interweaving", 10_000, chains) for chains in (4, 1_024)),
    ("table of 12 cells, counts", 10_000, 256),
    ("table of 12 cells, randomized responses", 10_000, 256),
    ("mixture, conditional", 10_000, 4),
    ("sample, every default", 100, 1_024),
    ("sample, every default", 10_000, 64),
    *(("summed out, NUTS", 300, chains) for chains in (4, 64)),
]
"""The rows of the table of one GPU, and of `accelerator.json`."""


def on_both(name: str, n: int, chains: int) -> list[str]:
    """What the GPU and the CPU take for a row, as it is quoted."""
    rows = {row["case"]: row["figures"] for row in rows_of("accelerator") if (row["n"], row["chains"]) == (n, chains)}
    figures = [next(rows[case] for case in rows if case == f"{device}: {name}") for device in (GPU, "cpu")]
    seconds = [(one["wall s"], "s") if "wall s" in one else (one["ms per sweep"], "ms") for one in figures]
    return [f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}" for value, unit in seconds]


def test_the_table_of_one_gpu_is_that_of_its_run():
    lines = re.search(r"(?:^\|.*\n)+", (ROOT / "docs/scaling.md").read_text().partition("## One GPU")[2], re.M)
    assert lines is not None
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]
    assert [row[1:] for row in table[2:]] == [
        [f"{n:,}", f"{chains:,}", *on_both(name, n, chains)] for name, n, chains in ON_GPU
    ]


def test_the_readme_quotes_the_gpu():
    gpu, cpu = on_both("sample, every default", 100, 1_024)
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"1,024 chains of the example take {gpu} for 200 + 200 draws each, and {cpu} on the CPU" in text


MEASURED = sorted(path for path in ROOT.glob("benchmarks/**/results/*.json") if path.stem != "weight")
"""All but the weights, which are in units of `import jax` on the same machine."""


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.stem)
def test_results_say_how_they_were_measured(path):
    """Commit, date, versions, processor and float type, once for the file; chains and sizes in the rows or settings."""
    content = json.loads(path.read_text())
    assert set(content["environment"]) >= FACTS
    assert all(content["environment"][fact] for fact in FACTS)
    rows = content.get("rows", [])
    assert "settings" in content or all({"n", "d", "chains"} <= set(row) for row in rows)
