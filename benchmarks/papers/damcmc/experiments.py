"""The experiments, and how large they are."""

from benchmarks.experiments import Experiment

DATA_SETS = {"means": 100, "coverage": 100, "prior": 100}
"""How many each arm has; where parameters are drawn from the prior the paper has none."""


def of(problem: str, arm: str) -> Experiment:
    """An arm of one of the two problems: at the paper's size, and at smaller ones."""
    sizes = ((DATA_SETS[arm], 10_000), (10, 400), (2, 64))
    full, quick, tiny = ({"problem": problem, "arm": arm, "data_sets": sets, "iterations": T} for sets, T in sizes)
    return Experiment("study", full, quick, tiny, panels=(1, 2), one_core=False)


EXPERIMENTS = {
    "log-linear": of("log-linear", "means"),
    "log-linear-coverage": of("log-linear", "coverage"),
    "log-linear-prior": of("log-linear", "prior"),
    "regression": of("regression", "means"),
    "regression-coverage": of("regression", "coverage"),
    "regression-prior": of("regression", "prior"),
}
