"""The experiments, and how large they are."""

from functools import partial

from benchmarks.experiments import Experiment

BOUNDS = {
    "banana": (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0, 10.0),
    "gaussian": (0.1, 0.2, 1.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0),
}
in_float64 = partial(Experiment, panels=None, x64=True)

EXPERIMENTS = {
    # No budget affords ten million iterations.
    "figure1": in_float64(
        "figure1",
        {"repeats": 10, "cap": 10_000_000, "budgets": 7},
        {"repeats": 1, "cap": 1_000, "budgets": 2},
        {"repeats": 1, "cap": 40, "budgets": 2},
    ),
    "figure1-arms": in_float64(
        "figure1_arms",
        {"repeats": 3, "epsilon": 4, "banana": 20_000, "cap": 10_000_000},
        {"repeats": 2, "epsilon": 2, "banana": 4_000, "cap": 2_000},
        {"repeats": 1, "epsilon": 1, "banana": 100, "cap": 100},
    ),
    "figure1-squared": in_float64("figure1_squared", {"repeats": 20}, {"repeats": 5}, {"repeats": 2}),
    "figure2": in_float64(
        "figure2",
        {"repeats": 10, "cap": 100_000, "largest": 10_000_000, "part": 0},
        {"repeats": 2, "cap": 2_000, "largest": 100, "part": 0},
        {"repeats": 1, "cap": 40, "largest": 200, "part": 0},
    ),
    "figure3": in_float64(
        "figure3",
        {"repeats": 10, "divisor": 1, "bounds": BOUNDS, "part": 0},
        {"repeats": 1, "divisor": 50, "bounds": {"banana": (0.01, 0.1, 1.0), "gaussian": (0.1, 5.0, 50.0)}, "part": 0},
        {"repeats": 1, "divisor": 1_000, "bounds": {"banana": (0.1, 1.0), "gaussian": (1.0, 10.0)}, "part": 0},
    ),
    "subsampled-test": Experiment(
        "subsampled_test",
        {"rates": (1.0, 0.5, 0.1, 0.01), "tests": (300, 1_000, 3_000, 10_000, 30_000), "chains": 400, "steps": 5_000},
        {"rates": (1.0, 0.1), "tests": (1_000, 10_000), "chains": 100, "steps": 1_000},
        {"rates": (1.0, 0.5), "tests": (1_000,), "chains": 10, "steps": 20},
        panels=(1, 2),
        x64=True,
    ),
    "reused-gradient": Experiment(
        "reused_gradient",
        {"chains": 16_000, "steps": 400},
        {"chains": 2_000, "steps": 200},
        {"chains": 20, "steps": 40},
    ),
    "speed": in_float64(
        "speed",
        {"repeats": 30, "whole_run": 1},
        {"repeats": 10, "whole_run": 0},
        {"repeats": 1, "whole_run": 0},
        one_core=False,
    ),
}
