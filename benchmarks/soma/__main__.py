"""The command line: ``python -m benchmarks.soma NAME [--quick] [--json FILE] [--n N] [--pairs PAIRS] [--cap CAP]``."""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine


class Experiment(NamedTuple):
    """A module with ``measure(**settings) -> dict`` and ``draw(result, axes)``, and its settings."""

    module: str
    full: dict[str, int]
    quick: dict[str, int]


EXPERIMENTS = {
    "histogram-meeting": Experiment(
        "histogram_meeting", {"n": 20, "pairs": 200, "cap": 100_000}, {"n": 20, "pairs": 50, "cap": 2_000}
    ),
    "acceptance": Experiment(
        "acceptance", {"points": 12, "chains": 64, "sweeps": 5_000}, {"points": 4, "chains": 16, "sweeps": 500}
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
        draw_figure(module, result, options.json.with_suffix(".png"))
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
    options = parser.parse_args(arguments)
    for name in ("n", "pairs", "cap"):
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


def draw_figure(module: Any, result: dict[str, Any], path: Path) -> None:
    """The experiment's figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    module.draw(result, figure.subplots())
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
