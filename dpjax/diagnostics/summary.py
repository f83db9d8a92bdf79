"""Summary tables of posteriors and importance samples."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NoReturn

import numpy as np

from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_count, fail, read_numbers
from dpjax.diagnostics import convergence
from dpjax.diagnostics.frames import Labels, entry_name, to_frame, write_csv

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
MAX_ROWS = 100

SHOWN = 6
"""Number of names of rows that an error shows."""

DIGITS = 4
"""Significant digits of figures."""


@names_methods
@dataclass(frozen=True, eq=False)
class Summary:
    """A table with one row for each scalar parameter and one column for each statistic.

    ``summary["coef[0]"]["mean"]`` is one entry, ``summary.columns["mean"]`` a whole column, and ``print(summary)``
    shows the table.

    Parameters
    ----------
    rows
        The names of the scalar parameters, such as ``"coef[0]"``.
    columns
        An array [row] for each statistic.
    note
        A remark on the whole table, shown below it.

    Examples
    --------
    >>> from dpjax.diagnostics.summary import Summary
    >>> import numpy as np
    >>> figures = {"mean": np.array([0.5, -1.0]), "sd": np.array([0.1, 0.2])}
    >>> summary = Summary(("coef[0]", "coef[1]"), figures)
    >>> summary["coef[1]"]["mean"]
    -1.0
    >>> print(summary)
               mean      sd
    coef[0]  0.5000  0.1000
    coef[1]  -1.000  0.2000
    """

    rows: tuple[str, ...]
    columns: dict[str, np.ndarray]
    note: str = ""

    def __getitem__(self, row: str) -> dict[str, float]:
        if row not in self.rows:
            inside = [name for name in self.rows if name.startswith(f"{row}[")]
            remedy = (
                f"Those of {row} are summary.take({row!r})." if inside else "Print the summary, which has them all."
            )
            shown = ", ".join((inside or self.rows)[:SHOWN]) or "none"
            fail("summary", f"the row {row!r}", f"the name of a row, such as {shown}", remedy)
        index = self.rows.index(row)
        return {name: float(column[index]) for name, column in self.columns.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: arrays, and data frames made of arrays, would have figures without names."""
        remedy = "Write summary.to_frame() for a DataFrame, or summary.columns['mean'] for an array."
        fail("summary", "a whole table for one array", "one of its columns", remedy, error=TypeError)

    def cells(self, digits: int = DIGITS) -> list[list[str]]:
        """The text of the table, its header first; rows beyond the hundredth are not shown."""
        table = [["", *self.columns]]
        for index, row in enumerate(self.rows[:MAX_ROWS]):
            figures = (format_figure(name, column[index], digits) for name, column in self.columns.items())
            table.append([row, *figures])
        return table

    def __str__(self) -> str:
        table = self.cells()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table]
        return "\n".join(lines + self.remarks())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, *body = self.cells()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        figures = [(escape(row[0]), "".join(f"<td>{cell}</td>" for cell in row[1:])) for row in body]
        rows = "".join(f"<tr><th>{row}</th>{cells}</tr>" for row, cells in figures)
        remarks = "<br>".join(map(escape, self.remarks()))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{remarks}"

    def take(self, names: Sequence[str]) -> "Summary":
        """The rows of some parameters, or of single entries such as ``"coef[1]"``, in the order of the names.

        Raises
        ------
        ValueError
            If there is no such row.
        """
        chosen: list[int] = []
        for name in [names] if isinstance(names, str) else names:
            found = [place for place, row in enumerate(self.rows) if row == name or row.startswith(f"{name}[")]
            if not found:
                known = ", ".join(dict.fromkeys(row.split("[")[0] for row in self.rows))
                fail(
                    "names",
                    repr(name),
                    f"names of parameters, {known}, or entries such as {self.rows[0]!r}",
                    "See the whole summary.",
                )
            chosen += found
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Summary(tuple(self.rows[place] for place in chosen), columns, self.note)

    def choose(self, columns: Sequence[str] | None) -> "Summary":
        """Some of the columns, such as ``["mean", "2.5%", "97.5%"]``, in the order of the names; None for all.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        if columns is None:
            return self
        names = [columns] if isinstance(columns, str) else list(columns)
        if unknown := [name for name in names if name not in self.columns]:
            fail("columns", repr(unknown[0]), f"some of {', '.join(self.columns)}", "Choose among these.")
        return replace(self, columns={name: self.columns[name] for name in names})

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, whose rows are the parameters.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return to_frame(self.columns, index={"parameter": np.array(self.rows)})

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV, each figure with all of its digits: a column of names, and one for each statistic."""
        write_csv(path, {"parameter": np.array(self.rows, object), **self.columns})

    def to_markdown(self) -> str:
        """The table as Markdown, with the figures that are printed."""
        header, *body = ([escape_markdown(cell) for cell in row] for row in self.cells())
        rule = ["---", *["---:"] * (len(header) - 1)]
        return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *body])

    def to_latex(self, *, columns: Sequence[str] | None = None, digits: int = DIGITS) -> str:
        """The table as a LaTeX `tabular` with the rules of the package booktabs.

        Parameters
        ----------
        columns
            Those to show, such as ``["mean", "2.5%", "97.5%"]``; by default all.
        digits
            Significant digits. Effective sizes have no decimals, and R-hat has three.

        Raises
        ------
        TypeError, ValueError
            If there is no such column, or the number of digits is not positive.
        """
        shown = self.choose(columns)
        table = shown.cells(check_count("digits", digits))
        header, *body = (" & ".join(map(escape_latex, row)) + r" \\" for row in table)
        lines = [r"\toprule", header, r"\midrule", *body, r"\bottomrule"]
        return "\n".join([rf"\begin{{tabular}}{{l{'r' * len(shown.columns)}}}", *lines, r"\end{tabular}"])

    def remarks(self) -> list[str]:
        """The lines below the table: the number of rows not shown, and the note."""
        missing = len(self.rows) - MAX_ROWS
        return [f"... and {missing} more rows"] * (missing > 0) + [self.note] * bool(self.note)


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{letter: f"\\{letter}" for letter in "%_&#${}"},
}
"""What LaTeX prints as the characters that it reads as commands, or that its first fonts have others for."""


def escape_latex(text: str) -> str:
    """The text as LaTeX prints it; a bracket or star at its start would be read as an argument of the line before."""
    escaped = "".join(LATEX.get(letter, letter) for letter in text)
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped[:1] in ("[", "*") else escaped


def escape_markdown(text: str) -> str:
    """The text with the characters escaped that Markdown reads as ends of cells, emphasis, code or tags."""
    return "".join(f"\\{letter}" if letter in "\\|*`<" else letter for letter in text)


def tabulate(figures: dict[str, dict[str, np.ndarray]], note: str = "", labels: Labels | None = None) -> Summary:
    """The table of ``{parameter: {statistic: array [...]}}``: a row for each entry of each parameter."""
    rows = tuple(name for parameter, columns in figures.items() for name in entry_names(parameter, columns, labels))
    names = next(iter(figures.values()), {})
    columns = {name: np.concatenate([np.ravel(figure[name]) for figure in figures.values()]) for name in names}
    return Summary(rows, columns, note)


def entry_names(parameter: str, columns: dict[str, np.ndarray], labels: Labels | None = None) -> Iterator[str]:
    """The names of a parameter's scalar entries, such as ``coef[0]``; a scalar keeps its name."""
    for index in np.ndindex(np.shape(next(iter(columns.values())))):
        yield entry_name(parameter, index, labels)


def summarize(draws: np.ndarray, quantiles: Sequence[float] = QUANTILES) -> dict[str, np.ndarray]:
    """Summary statistics of one parameter's draws [chain, draw, ...], each [...]; no errors if all draws are equal."""
    draws, levels = convergence.check_draws(draws), check_quantiles(quantiles)
    with np.errstate(over="ignore", invalid="ignore"):  # of squares of draws near the largest float
        return summarize_checked(draws, levels)


def summarize_checked(draws: np.ndarray, levels: tuple[float, ...]) -> dict[str, np.ndarray]:
    """The same of draws and probabilities that are sound."""
    found = np.quantile(draws, levels, axis=(0, 1))
    constant = np.ptp(draws, axis=(0, 1)) == 0  # the mean of equal numbers is rounded
    return {
        "mean": np.where(constant, draws[0, 0], np.mean(draws, axis=(0, 1))),
        "sd": np.where(constant, 0.0, np.std(draws, axis=(0, 1), ddof=1)),
        **{quantile_name(level): quantile for level, quantile in zip(levels, found, strict=True)},
        "mcse_mean": np.where(constant, np.nan, convergence.mcse_mean(draws)),
        "mcse_sd": np.where(constant, np.nan, convergence.mcse_sd(draws)),
        "ess_bulk": convergence.ess_bulk(draws),
        "ess_tail": convergence.ess_tail(draws),
        "r_hat": convergence.split_r_hat(draws),
    }


def check_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    """The probabilities of quantiles, or an error unless they are numbers between 0 and 1 in rising order."""
    expected, remedy = "numbers in (0, 1), in rising order", "Pass probabilities, such as (0.05, 0.5, 0.95)."
    levels = read_numbers("quantiles", quantiles, expected, remedy)
    inside = levels.ndim == 1 and np.all((levels > 0) & (levels < 1))
    if not inside or not np.all(np.diff(levels) > 0):
        fail("quantiles", repr(quantiles), expected, remedy)
    return tuple(levels.tolist())


def quantile_name(probability: float) -> str:
    """The column name of a quantile, such as ``2.5%``."""
    return f"{100 * probability:g}%"


def format_figure(name: str, value: float, digits: int = DIGITS) -> str:
    """Sizes without decimals, R-hat with three, everything else with so many significant digits."""
    if name.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if name == "r_hat" else f"{value:#.{digits}g}"
