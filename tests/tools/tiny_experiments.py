"""Experiments and benchmarks at the smallest sizes that say anything, each as its command line runs it.

``python -m tests.tools.tiny_experiments PACKAGE NAME FILE`` runs one and writes its result.
"""

import importlib
import sys
from typing import Any

COUNTY = {
    "tracts": 3,
    "groups": 2,
    "categories": 4,
    "totals": ["known"],
    "num_warmup": 20,
    "num_samples": 20,
    "thin": 1,
}

TINY: dict[str, dict[str, dict[str, Any]]] = {
    "soma": {
        "histogram-meeting": {"n": 4, "pairs": 6, "cap": 200},
        "acceptance": {"points": 2, "chains": 4, "sweeps": 40},
        "coupling-rate": {"points": 2, "pairs": 20, "cap": 60},
        "histogram": {"sizes": (2, 4), "pairs": 6, "cap": 100, "proposals": 100},
        "mixing": {"repeats": 2, "chains": 4, "iterations": 400},
        "distances": {"chains": 20, "iterations": 20, "reference": 60},
        "time-use": {"chains": 2, "proposals": 20_000, "file": None},
        "many-pairs": {"n": 4, "pairs": 20, "cap": 2_000},
        "table3": {"pairs": 4, "cap": 40},
        "table3-readings": {"chains": 4, "sweeps": 3},
        "table4": {"divisor": 500, "repeats": 1},
    },
    "mixture": {
        "speed": {"sweeps": 20, "largest": 200},
        "global": {"num_warmup": 20, "num_samples": 20, "epsilons": [10, 50], "levels": [2]},
        "samplers": {"sizes": (20,), "repeats": 1, "sweeps": 60},
        "wavelet": {"repeats": 1, "sweeps": 60, "neal_sweeps": 20, "resolutions": (2,)},
        "neal": {"repeats": 1, "sweeps": 40, "deltas": (0.1,), "calibrations": ("analytic",)},
        "donors": {"sweeps": 60},
        "real-data": {"repeats": 1, "sweeps": 60},
    },
    "dphmc": {
        "figure1": {"repeats": 1, "cap": 40, "budgets": 2},
        "figure2": {"repeats": 1, "cap": 40, "largest": 200},
        "figure3": {"repeats": 1, "divisor": 1_000},
        "speed": {"repeats": 1, "whole_run": 0},
    },
    "damcmc": {
        problem + suffix: {"problem": problem, "arm": arm, "data_sets": 2, "iterations": 64}
        for problem in ("log-linear", "regression")
        for suffix, arm in (("", "means"), ("-coverage", "coverage"), ("-prior", "prior"))
    },
    "tables": {
        "sizes": {"sizes": [100], "cells": [6], "num_warmup": 20, "num_samples": 40},
        "latent": {"sizes": [100], "budgets": {"100": {"counts": [20, 40], "records": [20, 40]}}},
        "county": COUNTY,
    },
}

CONSTANTS: dict[tuple[str, str], dict[str, Any]] = {
    ("mixture", "speed"): {"VARIANTS": ("exact", "Neal 5, m = 1")},
    ("mixture", "samplers"): {"EPSILONS": (10.0,), "NAMES": ("exact", "metropolis", "paper's slice")},
    ("mixture", "neal"): {"EPSILONS": (5.0, 25.0)},
    ("dphmc", "figure3"): {"BOUNDS": {"banana": (0.1, 1.0), "gaussian": (1.0, 10.0)}},
}
"""What else is made smaller, in the experiment's module."""


def main(package: str, name: str, file: str) -> None:
    """Run one experiment, its quick settings replaced by tiny ones."""
    module = importlib.import_module(f"benchmarks.{package}.__main__")
    for constant, value in CONSTANTS.get((package, name), {}).items():
        setattr(importlib.import_module(f"benchmarks.{package}.{module.EXPERIMENTS[name].module}"), constant, value)
    module.EXPERIMENTS[name] = module.EXPERIMENTS[name]._replace(quick=TINY[package][name])
    module.main([name, "--quick", "--json", file])


if __name__ == "__main__":
    main(*sys.argv[1:])
