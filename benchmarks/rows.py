"""A row of results, the table on the terminal, and the JSON object."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.timing import Timing


@dataclass(frozen=True)
class Row:
    """One measurement.

    benchmark, case
        What was measured.
    n, d, chains
        Records, coordinates of the statistic, chains.
    timing
        CPU seconds of one run.
    figures
        Results by name and unit.
    target
        What is wanted of one of the figures: ``(name, "<=" or ">=", bound)``.
    """

    benchmark: str
    case: str
    n: int
    d: int
    chains: int
    timing: Timing
    figures: dict[str, float]
    target: tuple[str, str, float] | None = field(default=None, kw_only=True)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        name, relation, bound = self.target
        return self.figures[name] <= bound if relation == "<=" else self.figures[name] >= bound

    def as_dict(self, environment: dict[str, object]) -> dict[str, object]:
        """Everything needed to read the row by itself."""
        fields = asdict(self)
        timing = fields.pop("timing")
        return {**fields, "met": self.met, **timing, **environment}


def write_json(path: Path, environment: dict[str, object], rows: list[Row]) -> None:
    """Write the results as one object."""
    content = {"environment": environment, "rows": [row.as_dict(environment) for row in rows]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def format_table(rows: list[Row]) -> str:
    """The rows of one benchmark as a table in Markdown, with a column for each figure that any row has."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    targets = any(row.target for row in rows)
    header = ["case", "n", "d", "chains", "compile s", *names, *["target"] * targets]
    lines = [header, *([*describe(row), *format_figures(row, names), *[format_target(row)] * targets] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def describe(row: Row) -> list[str]:
    """The cells before the figures."""
    return [row.case, f"{row.n:,}", str(row.d), str(row.chains), format_number(row.timing.compile_seconds)]


def format_figures(row: Row, names: list[str]) -> list[str]:
    """The cells of the figures, empty where a row has none of that name."""
    return [format_number(row.figures.get(name)) for name in names]


def format_number(number: float | None) -> str:
    """Three significant digits, and all digits before the point."""
    if number is None:
        return ""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def format_target(row: Row) -> str:
    """The bound, and whether it is met."""
    if row.target is None:
        return ""
    return f"{row.target[1]} {format_number(row.target[2])}: {'met' if row.met else 'missed'}"
