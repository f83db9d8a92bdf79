"""The command line: ``python -m benchmarks.soma NAME [--quick] [--json FILE] [--n N] [--pairs PAIRS] [--cap CAP]``.

``time-use`` alone takes ``--file DATA``.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import machine
from benchmarks.experiments import Experiment, contain, draw_panels, make_parser, report

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
        {"sizes": (2, 5, 10, 20, 40, 60), "pairs": 100, "cap": 20_000, "proposals": 50_000},
        {"sizes": (2, 20), "pairs": 50, "cap": 1_000, "proposals": 2_000},
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
        {"chains": 10, "proposals": 1_000_000, "file": None},
        {"chains": 4, "proposals": 100_000, "file": None},
        panels=(1, 3),
    ),
    "many-pairs": Experiment(
        "many_pairs", {"n": 20, "pairs": 100_000, "cap": 100_000}, {"n": 20, "pairs": 5_000, "cap": 100_000}
    ),
    "table3": Experiment("table3", {"pairs": 300, "cap": 20_000}, {"pairs": 50, "cap": 500}),
    "table3-readings": Experiment("table3_readings", {"chains": 200, "sweeps": 200}, {"chains": 50, "sweeps": 50}),
    "table4": Experiment("table4", {"divisor": 1, "repeats": 5}, {"divisor": 10, "repeats": 1}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = parse(arguments)
    machine.use_one_core()
    experiment = EXPERIMENTS[options.name]
    module = importlib.import_module(f"benchmarks.soma.{experiment.module}")
    settings = choose_settings(options)
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = module.measure(**settings)
    content = contain(settings, result)
    report(options.json, result, content, lambda: draw_panels(module, result, experiment.panels))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; a setting that is not given is None."""
    parser = make_parser("python -m benchmarks.soma", "Experiments of Xiong and Ju (2025).", EXPERIMENTS)
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


if __name__ == "__main__":
    main()
