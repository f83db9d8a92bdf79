"""Speed and memory: ``python -m benchmarks [NAME ...] [--quick | --tiny] [--json FILE]``."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine

BENCHMARKS = (
    "cost",
    "scaling",
    "effective",
    "twins",
    "imputation",
    "large",
    "growth",
    "memory",
    "depth",
    "first_call",
    "batches",
    "count_records",
    "coverage",
    "likelihood_coverage",
    "head_to_head",
    "comparison",
    "kernel_choice",
    "summed_out",
    "country",
    "unknown_number",
    "many_columns",
    "noisy_cells",
    "margin_coverage",
    "survey_coverage",
    "chains",
    "noisy_gradients",
)


def main(arguments: Sequence[str]) -> None:
    """Run the benchmarks that are named, print a table of each, and write all results as one JSON object."""
    options = parse(arguments)
    machine.use_one_core()
    from benchmarks.rows import format_table, write_json

    environment = machine.describe()
    print("\n".join(f"{name}: {fact}" for name, fact in environment.items()))
    rows, size = [], "tiny" if options.tiny else "quick" if options.quick else "full"
    for name in options.names:
        measured, began = [], machine.cpu_seconds()
        module = importlib.import_module(f"benchmarks.{name}")
        for row in module.measure(module.SIZES[size]):
            measured.append(row)
            print(f"{name}: {row.case}, n = {row.n:,}, {row.chains} chains", file=sys.stderr, flush=True)
            if options.json is not None:
                # After every row, so that nothing measured is lost.
                write_json(options.json, environment, rows + measured)
        print(f"\n## {name}\n\n{format_table(measured)}", flush=True)
        print(f"{name}: {machine.cpu_seconds() - began:.0f} CPU seconds", file=sys.stderr, flush=True)
        rows += measured


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options; every benchmark where none is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory of dpjax on one core.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(BENCHMARKS)} (default: all)")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="less of everything: minutes, and rougher figures")
    sizes.add_argument("--tiny", action="store_true", help="the smallest sizes: whether all runs, figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go as one JSON object")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark is named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    options.names = options.names or list(BENCHMARKS)
    return options
