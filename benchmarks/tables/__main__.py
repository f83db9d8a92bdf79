"""The command line: ``python -m benchmarks.tables NAME [--quick] [--json FILE]``."""

import importlib
import sys
from collections.abc import Sequence

import jax

from benchmarks import machine
from benchmarks.experiments import Experiment, contain, draw_panels, make_parser, report

COUNTY = {"groups": 4, "categories": 63}

EXPERIMENTS = {
    "sizes": Experiment(
        "sizes",
        {"sizes": [10**k for k in range(3, 9)], "cells": [6, 252], "num_warmup": 1_000, "num_samples": 4_000},
        {"sizes": [10**3, 10**6], "cells": [6, 252], "num_warmup": 300, "num_samples": 500},
        panels=(1, 2),
    ),
    "latent": Experiment(
        "latent",
        {
            "sizes": [100, 100_000],
            "budgets": {
                "100": {"counts": [1_000, 20_000], "records": [1_000, 20_000]},
                "100000": {"counts": [1_000, 10_000], "records": [200, 400]},
            },
        },
        {"sizes": [100], "budgets": {"100": {"counts": [200, 500], "records": [200, 500]}}},
        panels=(1, 2),
    ),
    "county": Experiment(
        "county",
        {"tracts": 50, **COUNTY, "totals": ["known", "noisy"], "num_warmup": 500, "num_samples": 1_000, "thin": 6},
        {"tracts": 10, **COUNTY, "totals": ["known"], "num_warmup": 300, "num_samples": 500, "thin": 2},
        panels=(1, 2),
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = make_parser("python -m benchmarks.tables", "Tables of any size.", EXPERIMENTS).parse_args(arguments)
    experiment = EXPERIMENTS[options.name]
    machine.use_one_core()
    # Counts of 10^8 people are beyond float32.
    jax.config.update("jax_enable_x64", True)
    module = importlib.import_module(f"benchmarks.tables.{experiment.module}")
    settings = experiment.quick if options.quick else experiment.full
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = module.measure(**settings)
    content = contain(settings, result)
    report(options.json, result, content, lambda: draw_panels(module, result, experiment.panels))


if __name__ == "__main__":
    main()
