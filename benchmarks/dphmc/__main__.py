"""The command line: ``python -m benchmarks.dphmc NAME [--quick] [--json FILE] [--set NAME=NUMBER]``."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import machine
from benchmarks.experiments import Experiment, contain, make_parser, report

EXPERIMENTS = {
    # No budget affords ten million iterations.
    "figure1": Experiment(
        "figure1", {"repeats": 10, "cap": 10_000_000, "budgets": 7}, {"repeats": 5, "cap": 2_000, "budgets": 2}
    ),
    "figure2": Experiment(
        "figure2",
        {"repeats": 10, "cap": 100_000, "largest": 10_000_000},
        {"repeats": 3, "cap": 2_000, "largest": 10_000_000},
    ),
    "figure3": Experiment("figure3", {"repeats": 10, "divisor": 1}, {"repeats": 1, "divisor": 20}),
    "speed": Experiment("speed", {"repeats": 30, "whole_run": 1}, {"repeats": 10, "whole_run": 0}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = parse(arguments)
    if options.name != "speed":
        machine.use_one_core()
    os.environ["JAX_ENABLE_X64"] = "1"
    experiment = EXPERIMENTS[options.name]
    settings = (experiment.quick if options.quick else experiment.full) | dict(options.set)
    module = importlib.import_module(f"benchmarks.dphmc.{experiment.module}")
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    content = contain(settings, module.measure(**settings))
    report(options.json, content, content, lambda: draw_figure(module, content))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    description = "Experiments of Räisä, Koskela and Honkela (2021)."
    parser = make_parser("python -m benchmarks.dphmc", description, EXPERIMENTS)
    parser.add_argument(
        "--set", type=parse_setting, action="append", default=[], metavar="NAME=NUMBER", help="a setting of your own"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name, _ in options.set if name not in EXPERIMENTS[options.name].full]
    if unknown:
        parser.error(f"{options.name} has no setting {unknown[0]}")
    return options


def parse_setting(text: str) -> tuple[str, int]:
    """A name and a whole number."""
    name, number = text.split("=")
    return name, int(number)


def draw_figure(module: Any, result: dict[str, Any]) -> Any:
    """The experiment's figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    module.draw(result, figure)
    return figure


if __name__ == "__main__":
    main()
