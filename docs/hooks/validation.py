"""The tables of the page on validation, made of what the harnesses and the test suite left in JSON files."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "benchmarks" / "results" / "validation"

SUITE, HARNESSES = "<!-- test suite -->", "<!-- harnesses -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What MkDocs calls with each page."""
    for marker, make in ((SUITE, suite), (HARNESSES, harnesses)):
        if marker in markdown:
            markdown = markdown.replace(marker, make())
    return markdown


def results() -> dict[str, dict[str, Any]]:
    """The figures of each harness by its name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json")) if path.stem != "suite"}


def harnesses() -> str:
    """A section for each harness."""
    return "\n\n".join(map(section, results().values()))


def section(figures: dict[str, Any]) -> str:
    """The heading, what was compared, how many cases there were, what came out, and how to repeat it."""
    rows = {
        "compared": figures["what"],
        "with": figures["against"],
        "cases": f"{figures['cases']:,}".replace(",", " "),
        "precision": " and ".join(figures["precisions"]),
        "result": figures["result"],
    }
    lines = [f"| {name} | {cell(str(text))} |" for name, text in rows.items()]
    return "\n".join(
        [f"### {figures['title']}", "", "| | |", "|---|---|", *lines, "", f"```bash\n{figures['command']}\n```"]
    )


def suite() -> str:
    """The table of the test suite: one row for each kind of test."""
    groups = json.loads((FOLDER / "suite.json").read_text())
    head = ["| | compared | with | float32 | float64 |"]
    return "\n".join([*head, "|---" * 5 + "|", *map(row, groups)])


def row(group: dict[str, Any]) -> str:
    """The tests of one kind."""
    passed = (ended(group[precision]) for precision in ("float32", "float64"))
    cells = (f"**{group['title']}**", group["what"], group["against"], *passed)
    return f"| {' | '.join(map(cell, cells))} |"


def ended(outcomes: dict[str, int]) -> str:
    """How many tests passed, and failed where some did."""
    failed = f", {outcomes['failed']} failed" if outcomes["failed"] else ""
    return f"{outcomes['passed']} passed{failed}"


def cell(text: str) -> str:
    """A text as one cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
