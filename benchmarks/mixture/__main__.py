"""The command line: ``python -m benchmarks.mixture NAME [--quick] [--json FILE]``."""

import importlib
import sys
from collections.abc import Sequence

from benchmarks import machine
from benchmarks.experiments import Experiment, contain, draw_panels, make_parser, report

EPSILONS = [2, 10, 50, 100, 250]
EXPERIMENTS = {
    "speed": Experiment("speed", {"sweeps": 4_000, "largest": 100_000}, {"sweeps": 500, "largest": 10_000}),
    "global": Experiment(
        "one_release",
        {"num_warmup": 1_000, "num_samples": 2_000, "epsilons": EPSILONS, "levels": [2, 4, 6]},
        {"num_warmup": 200, "num_samples": 300, "epsilons": [10, 50], "levels": [4]},
        (3, 3),
    ),
    "samplers": Experiment(
        "samplers",
        {"sizes": (50, 200, 1_000), "repeats": 3, "sweeps": 5_000},
        {"sizes": (200,), "repeats": 1, "sweeps": 500},
        panels=(4, 3),
    ),
    "wavelet": Experiment(
        "wavelet",
        {"repeats": 3, "sweeps": 1_500, "neal_sweeps": 900, "resolutions": (2, 4, 6)},
        {"repeats": 1, "sweeps": 500, "neal_sweeps": 200, "resolutions": (6,)},
        panels=(2, 5),
    ),
    "neal": Experiment(
        "neal",
        {"repeats": 2, "sweeps": 2_000, "deltas": (0.01, 0.1, 0.25), "calibrations": ("analytic", "paper")},
        {"repeats": 1, "sweeps": 1_000, "deltas": (0.1,), "calibrations": ("analytic",)},
        panels=(3, 3),
    ),
    "donors": Experiment("donors", {"sweeps": 3_000}, {"sweeps": 400}, panels=(2, 3)),
    "real-data": Experiment("real_data", {"repeats": 5, "sweeps": 3_000}, {"repeats": 2, "sweeps": 400}, panels=(2, 4)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment and write its result; with ``--json -`` it is all that standard output holds."""
    options = make_parser("python -m benchmarks.mixture", "Mixtures behind a channel.", EXPERIMENTS).parse_args(
        arguments
    )
    experiment = EXPERIMENTS[options.name]
    machine.use_one_core()
    module = importlib.import_module(f"benchmarks.mixture.{experiment.module}")
    settings = experiment.quick if options.quick else experiment.full
    print(f"{options.name}: {settings}", file=sys.stderr, flush=True)
    result = module.measure(**settings)
    content = contain(settings, result)
    report(options.json, result, content, lambda: draw_panels(module, result, experiment.panels))


if __name__ == "__main__":
    main()
