"""What the code of a page prints, shown in a block below it.

``python -m tests.tools.printed [PAGE ...]`` writes the blocks.
Tests run the pages and compare. Words have to be the same, and numbers nearly so: draws differ between machines and
float types by Monte Carlo errors.
"""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import jax

ROOT = Path(__file__).parents[2]

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S)
"""A block of code, and one of text right below it."""

CELL = re.compile(r"-?(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?)")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d*)?(?:e[+-]?\d+)?")
TYPE = re.compile(r"\b(float|int)(?:32|64)\b")
PLURAL = re.compile(r"(?<=\w)(?:es|s)\b")
RELATIVE, ABSOLUTE = 0.75, 0.05
"""How far numbers may be apart beside the words of a text."""

CHOSEN = ("imputation:", "refreshes:")
"""Lines whose numbers the warm-up chose, by draws of its own."""

MAX_DEVIATION = 5.0
"""How far medians and means may be apart, in their Monte Carlo standard errors."""


class Block(NamedTuple):
    """Code of a page, what is shown below it, and what it printed."""

    code: str
    shown: str
    printed: str


def run_page(path: Path) -> tuple[dict[str, Any], list[Block]]:
    """What the code of a page defines, and its blocks."""
    names: dict[str, Any] = {"__name__": path.name}
    blocks = []
    for found in BLOCK.finditer(path.read_text()):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(found["code"], path.name, "exec"), names)
        blocks.append(Block(found["code"], found["shown"] or "", printed.getvalue()))
    return names, blocks


def run_checked(path: Path, error: str | None = None) -> dict[str, Any]:
    """What the code of a page defines, after a comparison of what it prints with what is shown.

    Rows of summaries are compared by their Monte Carlo errors, or by this column: ``"sd"`` if other noise was released.
    """
    names, blocks = run_page(path)
    found = [line for block in blocks for line in differences(block.shown, block.printed, error)]
    assert found == [], f"{path.name}: run python -m tests.tools.printed {path.name}"
    print("".join(block.printed for block in blocks))
    return names


def differences(shown: str, printed: str, error: str | None = None) -> list[str]:
    """The lines that differ by more than draws do, or by more than a column of errors says."""
    heads: list[list[str]] = [[], []]
    found = []
    for lines in zip_longest(shown.rstrip().splitlines(), printed.rstrip().splitlines(), fillvalue=""):
        cells = [line.split() for line in lines]
        heads = cells if {"mcse_mean", "se_mean"} & set(cells[0]) else heads
        are_rows = all(is_row(head, row) for head, row in zip(heads, cells, strict=True))
        if not (rows_agree(heads, cells, error) if are_rows else texts_agree(*lines)):
            found.append(f"shown {lines[0]!r}, printed {lines[1]!r}")
    return found


def is_row(head: list[str], row: list[str]) -> bool:
    """Whether these cells are a row of a summary with this head: a name and a number below each."""
    return bool(head) and len(row) == len(head) + 1 and all(CELL.fullmatch(cell) for cell in row[1:])


def rows_agree(heads: list[list[str]], rows: list[list[str]], column: str | None = None) -> bool:
    """Whether two rows of a summary have one name, and centres as near as their errors say, or as this column says.

    Of chains these are medians, as a mean may be infinite, of an odds ratio for instance. The error of a Normal median
    is 1.25 times that of the mean.
    """
    one, other = (dict(zip(head, map(float, row[1:]), strict=True)) for head, row in zip(heads, rows, strict=True))
    centre, error, factor = ("50%", "mcse_mean", 1.25) if "mcse_mean" in one else ("mean", "se_mean", 1.0)
    error = column or error
    tolerance = MAX_DEVIATION * factor * (one[error] ** 2 + other[error] ** 2) ** 0.5
    return rows[0][0] == rows[1][0] and heads[0] == heads[1] and abs(one[centre] - other[centre]) <= tolerance


def texts_agree(one: str, other: str) -> bool:
    """Whether two lines have the same words, and numbers that are nearly the same."""
    numbers = [[float(text.replace(",", "")) for text in NUMBER.findall(line)] for line in (one, other)]
    words = [words_of(line) for line in (one, other)]
    return words[0] == words[1] and all(
        one.startswith(CHOSEN) or abs(a - b) <= RELATIVE * max(abs(a), abs(b)) + ABSOLUTE
        for a, b in zip(*numbers, strict=True)
    )


def words_of(line: str) -> str:
    """A line without its numbers, types of numbers, plurals and the widths of spaces."""
    text = NUMBER.sub("#", PLURAL.sub("", TYPE.sub(r"\1", line)))
    return " ".join(text.replace("[", " [ ").replace("]", " ] ").split())


def write_page(path: Path) -> None:
    """Show below each block of code what it prints."""
    _, blocks = run_page(path)
    outputs = iter(block.printed for block in blocks)
    path.write_text(BLOCK.sub(lambda found: with_output(found["code"], next(outputs)), path.read_text()))


def with_output(code: str, printed: str) -> str:
    """A block of code, and one of what it printed if it printed anything."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    text = "\n```text\n" + "\n".join(lines) + "\n```\n" if lines else ""
    return f"```python\n{code}```\n{text}"


def pages() -> Iterator[Path]:
    """The pages whose code prints."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if any("print(" in found["code"] for found in BLOCK.finditer(path.read_text())):
            yield path


if __name__ == "__main__":
    jax.config.update("jax_numpy_rank_promotion", "allow")
    for page in [path for path in pages() if not sys.argv[1:] or path.name in sys.argv[1:]]:
        print(page.relative_to(ROOT), flush=True)
        write_page(page)
