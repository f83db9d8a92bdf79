"""The command line: ``python -m benchmarks.damcmc NAME [--quick] [--json FILE]``."""

import sys
from collections.abc import Sequence

from benchmarks.experiments import Experiment, contain, draw_panels, make_parser, report

DATA_SETS = {"means": 100, "coverage": 100, "prior": 100}
"""How many each arm has; where parameters are drawn from the prior the paper has none."""


def of(problem: str, arm: str) -> Experiment:
    """An arm of one of the two problems: at the paper's size, and at a smaller one."""
    sizes = ((DATA_SETS[arm], 10_000), (10, 400))
    full, quick = ({"problem": problem, "arm": arm, "data_sets": sets, "iterations": T} for sets, T in sizes)
    return Experiment("study", full, quick, panels=(1, 2))


EXPERIMENTS = {
    "log-linear": of("log-linear", "means"),
    "log-linear-coverage": of("log-linear", "coverage"),
    "log-linear-prior": of("log-linear", "prior"),
    "regression": of("regression", "means"),
    "regression-coverage": of("regression", "coverage"),
    "regression-prior": of("regression", "prior"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    description = "Experiments of Ju, Awan, Gong and Rao (2022)."
    options = make_parser("python -m benchmarks.damcmc", description, EXPERIMENTS).parse_args(arguments)
    experiment = EXPERIMENTS[options.name]
    from benchmarks.damcmc import study

    settings = experiment.quick if options.quick else experiment.full
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = study.measure(**settings)
    content = contain(settings, result)
    report(options.json, result, content, lambda: draw_panels(study, result, experiment.panels))


if __name__ == "__main__":
    main()
