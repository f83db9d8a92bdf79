"""The command line: ``python -m benchmarks.damcmc NAME [--quick] [--json FILE]``."""

import sys
from collections.abc import Sequence

from benchmarks import machine
from benchmarks.experiments import Experiment, contain, draw_panels, make_parser, report

MEANS, SIMULATED = {"means": 100}, {"coverage": 100, "prior": 400}
QUICK_MEANS, QUICK_SIMULATED = {"means": 10}, {"coverage": 10, "prior": 10}


def of(problem: str, arms: dict[str, int], quick: dict[str, int]) -> Experiment:
    """An experiment on one of the two problems: at the paper's size, and at a smaller one."""
    full, small = ({"problem": problem, "arms": each, "iterations": T} for each, T in ((arms, 10_000), (quick, 400)))
    return Experiment("study", full, small, panels=(1, 2))


EXPERIMENTS = {
    "log-linear": of("log-linear", MEANS, QUICK_MEANS),
    "log-linear-coverage": of("log-linear", SIMULATED, QUICK_SIMULATED),
    "regression": of("regression", MEANS, QUICK_MEANS),
    "regression-coverage": of("regression", SIMULATED, QUICK_SIMULATED),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    description = "Experiments of Ju, Awan, Gong and Rao (2022)."
    options = make_parser("python -m benchmarks.damcmc", description, EXPERIMENTS).parse_args(arguments)
    experiment = EXPERIMENTS[options.name]
    machine.use_one_core()
    from benchmarks.damcmc import study

    settings = experiment.quick if options.quick else experiment.full
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = study.measure(**settings)
    content = contain(settings, result)
    report(options.json, result, content, lambda: draw_panels(study, result, experiment.panels))


if __name__ == "__main__":
    main()
