"""The experiments of papers and with tables: their settings, their options, and what becomes of a result."""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine
from benchmarks.papers import authors, parts

FOLDERS = {
    "damcmc": "benchmarks.papers.damcmc",
    "soma": "benchmarks.papers.soma",
    "dphmc": "benchmarks.papers.dphmc",
    "mixture": "benchmarks.papers.mixture",
    "tables": "benchmarks.tables",
}
"""The packages that have a module `experiments`, whose docstring describes them."""


class Experiment(NamedTuple):
    """A module with ``measure(**settings) -> dict`` and ``draw(result, axes)``, its settings, and its figure's shape.

    A long `measure` may give ever fuller results, each of which replaces the file of the one before.
    Where a figure has several panels, in rows and columns, ``axes`` is the list of them, row by row; where `panels` is
    None, it is the figure. Tiny settings are the smallest that run all of the code: their figures mean nothing.
    An experiment that reads `files` of a paper's authors has the setting `data`, the folder that has them, or None.
    One of many repeats has the setting `part`, which of several runs it is: see `parts`.
    """

    module: str
    full: dict[str, Any]
    quick: dict[str, Any]
    tiny: dict[str, Any]
    panels: tuple[int, int] | None = (1, 1)
    one_core: bool = True
    x64: bool = False
    files: tuple[str, ...] = ()


def read(folder: str) -> dict[str, Experiment]:
    """The experiments of a folder by their names."""
    found: dict[str, Experiment] = importlib.import_module(f"{FOLDERS[folder]}.experiments").EXPERIMENTS
    return found


def main(folder: str, arguments: Sequence[str]) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = parse(folder, arguments)
    experiment = read(folder)[options.name]
    if experiment.one_core:
        machine.use_one_core()
    if experiment.x64:
        os.environ["JAX_ENABLE_X64"] = "1"
    module = importlib.import_module(f"{FOLDERS[folder]}.{experiment.module}")
    settings = choose_settings(experiment, options)
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    given = authors.describe(settings.get("data"), experiment.files)
    before = None if options.part is None else parts.read(options.json, settings)
    measured = module.measure(**settings)
    to_file = options.json is not None and str(options.json) != "-"
    for result in [measured] if isinstance(measured, dict) else measured:
        content = parts.add(before, contain(settings, given, result))
        if to_file:
            options.json.write_text(format_json(content))
    if not to_file:
        print(format_json(content), end="")
        return
    draw_figure(module, content, experiment.panels).savefig(options.json.with_suffix(".png"), dpi=120)


def parse(folder: str, arguments: Sequence[str]) -> argparse.Namespace:
    """The options of an experiment."""
    names = read(folder)
    described = importlib.import_module(FOLDERS[folder]).__doc__
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {folder}", description=described)
    parser.add_argument("name", metavar="NAME", choices=names, help=", ".join(names))
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="less of everything: a minute or two, and rougher figures")
    sizes.add_argument("--tiny", action="store_true", help="the smallest sizes: whether all runs, figures mean nothing")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="a file for the result, a PNG beside it; - for stdout"
    )
    parser.add_argument(
        "--set", type=parse_setting, action="append", default=[], metavar="NAME=VALUE", help="a setting of your own"
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="the files of the paper's authors, where an experiment reads any"
    )
    parser.add_argument("--part", type=int, metavar="K", help="join part K, from 0 on, to the file: for long runs")
    options = parser.parse_args(arguments)
    if options.part is not None and ("part" not in names[options.name].full or options.json is None):
        parser.error(f"--part is for an experiment that has parts, and takes a file; given {options.name}")
    unknown = [name for name, _ in options.set if name not in names[options.name].full]
    if unknown:
        parser.error(f"{options.name} has no setting {unknown[0]}")
    return options


def parse_setting(text: str) -> tuple[str, Any]:
    """A name, and a number, a text, or several of them with commas between them."""
    name, value = text.split("=", 1)
    several = tuple(parse_value(part) for part in value.split(",") if part)
    return name, several if "," in value else parse_value(value)


def parse_value(text: str) -> int | float | str:
    """A number if it is one, else the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def choose_settings(experiment: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    """The settings of an experiment: its own, unless others are given."""
    own = experiment.tiny if options.tiny else experiment.quick if options.quick else experiment.full
    part = {} if options.part is None else {"part": options.part}
    return own | dict(options.set) | part | ({"data": options.data} if experiment.files else {})


def contain(settings: dict[str, Any], files: dict[str, str], result: dict[str, Any]) -> dict[str, Any]:
    """What the file of a run holds: machine and CPU seconds of the process, settings, files read, and the result."""
    environment = machine.describe() | {"cpu_seconds": round(machine.cpu_seconds())}
    kept = {name: value for name, value in settings.items() if name not in ("data", "part")}
    more = {"files": files} if files else {}
    more |= {"parts": [settings["part"]]} if "part" in settings else {}
    return {"environment": environment, "settings": kept, **more, **result}


def format_json(content: dict[str, Any]) -> str:
    """One JSON object with a line for each entry."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def draw_figure(module: Any, result: dict[str, Any], panels: tuple[int, int] | None) -> Any:
    """The figure of an experiment, with axes for each panel."""
    from matplotlib.figure import Figure

    rows, columns = panels or (2, 2)
    figure = Figure(figsize=(max(7.0, 4.5 * columns), max(4.0, 3.5 * rows)), layout="constrained")
    if panels is None:
        module.draw(result, figure)
    else:
        axes = figure.subplots(rows, columns)
        module.draw(result, axes if panels == (1, 1) else list(axes.flat))
    return figure
