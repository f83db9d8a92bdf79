"""What the command lines of the papers' experiments share: their options, and what becomes of a result."""

import argparse
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine


class Experiment(NamedTuple):
    """A module with ``measure(**settings) -> dict`` and ``draw(result, axes)``, its settings, and its figure's shape.

    Where a figure has several panels, in rows and columns, ``axes`` is the list of them, row by row.
    """

    module: str
    full: dict[str, Any]
    quick: dict[str, Any]
    panels: tuple[int, int] = (1, 1)


def make_parser(program: str, description: str, names: Iterable[str]) -> argparse.ArgumentParser:
    """A parser of the name of an experiment, ``--quick`` and ``--json``."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("name", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="less of everything: a minute or two, and rougher figures")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="a file for the result, a PNG beside it; - for stdout"
    )
    return parser


def contain(settings: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """What the file of a run holds: the machine and the CPU seconds of the process, the settings, and the result."""
    environment = machine.describe() | {"cpu_seconds": round(sum(os.times()[:4]))}
    return {"environment": environment, "settings": settings, **result}


def report(path: Path | None, shown: dict[str, Any], content: dict[str, Any], draw: Callable[[], Any]) -> None:
    """Write the content to a file and the drawn figure beside it; without a file print what is shown."""
    if path is None or str(path) == "-":
        print(format_json(shown), end="")
        return
    path.write_text(format_json(content))
    draw().savefig(path.with_suffix(".png"), dpi=120)


def format_json(content: dict[str, Any]) -> str:
    """One JSON object with a line for each entry."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def draw_panels(module: Any, result: dict[str, Any], panels: tuple[int, int]) -> Any:
    """The figure of an experiment, with axes for each panel."""
    from matplotlib.figure import Figure

    rows, columns = panels
    figure = Figure(figsize=(max(7.0, 4.5 * columns), max(4.0, 3.5 * rows)), layout="constrained")
    axes = figure.subplots(rows, columns)
    module.draw(result, axes if panels == (1, 1) else list(axes.flat))
    return figure
