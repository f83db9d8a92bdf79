"""The command line: ``python -m benchmarks.soma NAME [--quick] [--json FILE] [--n N] [--pairs PAIRS] [--cap CAP]``.

``time-use`` alone takes ``--file DATA``.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
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


EXPERIMENTS = {
    "histogram-meeting": Experiment(
        "histogram_meeting", {"n": 20, "pairs": 200, "cap": 100_000}, {"n": 20, "pairs": 50, "cap": 2_000}
    ),
    "acceptance": Experiment(
        "acceptance",
        {"points": 12, "chains": 64, "sweeps": 5_000},
        {"points": 4, "chains": 16, "sweeps": 500},
        panels=(2, 3),
    ),
    "coupling-rate": Experiment(
        "coupling_rate",
        {"points": 10, "pairs": 4_000, "cap": 5_000},
        {"points": 3, "pairs": 400, "cap": 1_000},
        panels=(1, 3),
    ),
    "histogram": Experiment(
        "histogram",
        {"sizes": (2, 5, 10, 20, 40, 60), "pairs": 100, "cap": 20_000, "offers": 50_000},
        {"sizes": (2, 20), "pairs": 50, "cap": 1_000, "offers": 2_000},
        panels=(3, 2),
    ),
    "mixing": Experiment(
        "mixing",
        {"repeats": 4, "chains": 20, "iterations": 6_000},
        {"repeats": 2, "chains": 10, "iterations": 1_000},
        panels=(1, 2),
    ),
    "distances": Experiment(
        "distances",
        {"chains": 1_000, "iterations": 300, "reference": 10_000},
        {"chains": 200, "iterations": 100, "reference": 1_000},
        panels=(2, 2),
    ),
    "time-use": Experiment(
        "time_use",
        {"chains": 10, "offers": 1_000_000, "file": None},
        {"chains": 4, "offers": 100_000, "file": None},
        panels=(1, 3),
    ),
    "many-pairs": Experiment(
        "many_pairs", {"n": 20, "pairs": 100_000, "cap": 100_000}, {"n": 20, "pairs": 5_000, "cap": 100_000}
    ),
    "table3": Experiment("table3", {"pairs": 300, "cap": 20_000}, {"pairs": 50, "cap": 500}),
    "table4": Experiment("table4", {"divisor": 1, "repeats": 5}, {"divisor": 10, "repeats": 1}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = parse(arguments)
    machine.use_one_core()
    module = importlib.import_module(f"benchmarks.soma.{EXPERIMENTS[options.name].module}")
    settings = choose_settings(options)
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = module.measure(**settings)
    if options.json is not None and str(options.json) != "-":
        content = {"environment": machine.describe(), "settings": settings, **result}
        options.json.write_text(format_json(content))
        draw_figure(options.name, result, options.json.with_suffix(".png"))
    else:
        print(format_json(result), end="")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; a setting that is not given is None."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soma", description="Experiments of Xiong and Ju (2025)."
    )
    parser.add_argument("name", metavar="NAME", choices=EXPERIMENTS, help=", ".join(EXPERIMENTS))
    parser.add_argument("--quick", action="store_true", help="less of everything: a minute or two, and rougher figures")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="a file for the result, a PNG beside it; - for stdout"
    )
    for name, text in (("n", "records"), ("pairs", "coupled pairs"), ("cap", "most steps of a pair")):
        parser.add_argument(f"--{name}", type=int, metavar=name.upper(), help=text)
    parser.add_argument("--file", metavar="DATA", help="time-use: the activity summary of the 2019 time use survey")
    options = parser.parse_args(arguments)
    for name in ("n", "pairs", "cap", "file"):
        if getattr(options, name) is not None and name not in EXPERIMENTS[options.name].full:
            parser.error(f"{options.name} has no setting --{name}")
    return options


def choose_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of an experiment: its own, unless others are given."""
    experiment = EXPERIMENTS[options.name]
    given = {name: getattr(options, name, None) for name in experiment.full}
    own = experiment.quick if options.quick else experiment.full
    return own | {name: value for name, value in given.items() if value is not None}


def format_json(content: dict[str, Any]) -> str:
    """One JSON object with a line for each entry."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def draw_figure(name: str, result: dict[str, Any], path: Path) -> None:
    """The experiment's figure."""
    from matplotlib.figure import Figure

    experiment = EXPERIMENTS[name]
    rows, columns = experiment.panels
    figure = Figure(figsize=(max(7.0, 4.5 * columns), max(4.0, 3.5 * rows)), layout="constrained")
    axes = figure.subplots(rows, columns)
    draw = importlib.import_module(f"benchmarks.soma.{experiment.module}").draw
    draw(result, axes if experiment.panels == (1, 1) else list(axes.flat))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
