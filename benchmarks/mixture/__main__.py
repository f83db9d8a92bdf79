"""The command line: ``python -m benchmarks.mixture NAME [--quick] [--json FILE]``."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.soma.__main__ import Experiment, draw_figure, format_json

EXPERIMENTS = {
    "speed": Experiment("speed", {"sweeps": 4_000, "largest": 100_000}, {"sweeps": 500, "largest": 10_000}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = parse(arguments)
    machine.use_one_core()
    module = importlib.import_module(f"benchmarks.mixture.{EXPERIMENTS[options.name].module}")
    settings = EXPERIMENTS[options.name].quick if options.quick else EXPERIMENTS[options.name].full
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = module.measure(**settings)
    if options.json is not None and str(options.json) != "-":
        content = {"environment": machine.describe(), "settings": settings, **result}
        options.json.write_text(format_json(content))
        draw_figure(module, result, options.json.with_suffix(".png"))
    else:
        print(format_json(result), end="")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixture", description="Mixtures behind a channel.")
    parser.add_argument("name", metavar="NAME", choices=EXPERIMENTS, help=", ".join(EXPERIMENTS))
    parser.add_argument("--quick", action="store_true", help="less of everything: a minute or two, and rougher figures")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="a file for the result, a PNG beside it; - for stdout"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
