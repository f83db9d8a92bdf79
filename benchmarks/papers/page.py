"""The table of each paper for the page of the docs, in Markdown, and what the command line prints besides."""

from collections.abc import Iterator
from typing import Any

from benchmarks.papers.papers import PAPERS
from benchmarks.papers.rows import NONE, ODDS, ORDER, UNDECIDED, UNTESTED, Paper, Row


def page() -> str:
    """A section for each paper: its numbers side by side, and why they differ."""
    return "\n\n".join(section(paper) for paper in PAPERS.values())


def section(paper: Paper) -> str:
    """One table, and below it why numbers are at odds and what is not repeated."""
    parts = [f"## {paper.title}", table(NUMBERS, numbers(paper))]
    parts += [f"*{row.place}.* {row.cause}" for row in paper.rows if row.cause]
    if paper.left_out:
        left = [f"{place}: {reason}." for place, reason in paper.left_out.items()]
        parts.append("Not repeated: " + " ".join(left))
    return "\n\n".join(parts)


def runs(paper: Paper) -> str:
    """The commands with their sizes, and what figures look like."""
    return table(RUNS, (run(row) for row in paper.rows))


NUMBERS = ("", "command", "what", "paper", "dpjax", "error", "verdict")
RUNS = ("", "shows", "command", "size of the run", "paper's size", "CPU s", "looks")


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = (" | ".join(text.replace("|", "\\|") for text in row) for row in (head, *rows))
    first, *others = (f"| {line} |" for line in lines)
    return "\n".join([first, "|---" * len(head) + "|", *others])


def numbers(paper: Paper) -> Iterator[tuple[str, ...]]:
    """A row for each number that the paper states."""
    for row in paper.rows:
        for number, verdict in zip(row.numbers, row.verdicts, strict=True):
            bound = {"at least": "≥ ", "at most": "≤ "}.get(number.kind, "")
            ours, error = show(number.read(row.result)), number.error_in(row.result)
            shown = f"**{verdict}**" if verdict == ODDS else verdict
            yield (
                row.place,
                f"`{row.package} {row.name}`",
                number.what,
                bound + show(number.paper),
                ours,
                "" if error is None else f"{error:.2g}",
                shown,
            )


def run(row: Row) -> tuple[str, ...]:
    """What repeats a row, and how large and long the run was that is kept."""
    place = f"{row.place} ({row.first} of the first version)" if row.first else row.place
    settings = settings_of(row.result.get("settings", {}))
    taken = row.result["environment"].get("cpu_seconds")
    seconds = "not recorded" if taken is None else f"{taken:,}"
    return place, row.shows, f"`{row.command}`", settings, row.paper_size, seconds, row.looks or verdict_of(row)


def verdict_of(row: Row) -> str:
    """The verdict of a row's numbers in words."""
    words = {ODDS: "some numbers are at odds", UNDECIDED: "some numbers are undecided", UNTESTED: "some are not tested"}
    return (words | {ORDER: ORDER, NONE: NONE}).get(row.verdict, "as in the paper")


def settings_of(settings: dict[str, Any]) -> str:
    """The settings of a run in words."""
    return ", ".join(f"{name} {show(value)}" for name, value in settings.items() if value is not None)


def show(value: Any) -> str:
    """A number with three significant digits or all before the point, and lists and texts as they are."""
    if isinstance(value, dict):
        return " ".join(f"{show(each)} ({name})" for name, each in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(show, value))
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 0.9 else f"{value:.3g}"
