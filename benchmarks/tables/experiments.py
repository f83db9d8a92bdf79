"""The experiments, and how large they are."""

from functools import partial

from benchmarks.experiments import Experiment

COUNTY = {"groups": 4, "categories": 63}

# Counts of 10^8 people are beyond float32.
in_float64 = partial(Experiment, panels=(1, 2), x64=True)

EXPERIMENTS = {
    "sizes": in_float64(
        "sizes",
        {"sizes": [10**k for k in range(3, 9)], "cells": [6, 252], "num_warmup": 1_000, "num_samples": 4_000},
        {"sizes": [10**3, 10**6], "cells": [6, 252], "num_warmup": 300, "num_samples": 500},
        {"sizes": [100], "cells": [6], "num_warmup": 20, "num_samples": 40},
    ),
    "latent": in_float64(
        "latent",
        {
            "sizes": [100, 100_000],
            "budgets": {
                "100": {"counts": [1_000, 20_000], "records": [1_000, 20_000]},
                "100000": {"counts": [1_000, 10_000], "records": [200, 400]},
            },
        },
        {"sizes": [100], "budgets": {"100": {"counts": [200, 500], "records": [200, 500]}}},
        {"sizes": [100], "budgets": {"100": {"counts": [20, 40], "records": [20, 40]}}},
    ),
    "county": in_float64(
        "county",
        {"tracts": 50, **COUNTY, "totals": ["known", "noisy"], "num_warmup": 500, "num_samples": 1_000, "thin": 6},
        {"tracts": 10, **COUNTY, "totals": ["known"], "num_warmup": 300, "num_samples": 500, "thin": 2},
        {
            "tracts": 3,
            "groups": 2,
            "categories": 4,
            "totals": ["known"],
            "num_warmup": 20,
            "num_samples": 20,
            "thin": 1,
        },
    ),
}
