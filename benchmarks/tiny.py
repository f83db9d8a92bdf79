"""Benchmarks at the smallest sizes that run all of their code: whether they work, and no figure that means anything."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

Change = Callable[[Any], Any]
"""What a constant of a benchmark's module becomes."""


def to(value: Any) -> Change:
    """Whatever it was, this."""
    return lambda _: value


def only(*names: str) -> Change:
    """The entries of these names."""
    return lambda mapping: {name: mapping[name] for name in names}


def first_of(mapping: dict[str, Any]) -> dict[str, Any]:
    """The first entry."""
    return dict(list(mapping.items())[:1])


def small(cases: Any) -> Any:
    """Benchmarked cases of one size or few sweeps."""
    return tuple(replace(case, sizes=(100,)) if hasattr(case, "sizes") else replace(case, sweeps=100) for case in cases)


TINY: dict[str, dict[str, Change]] = {
    "cost": {"CASES": lambda cases: small(cases[:1]), "CHAINS": to(2), "REPEATS": to(1)},
    "scaling": {"KERNELS": first_of, "SIZES": to((20, 40)), "CHAINS": to((2,))},
    "effective": {
        "CHAINS": to(2),
        "REPEATS": to(1),
        "BOUNDS": to({10: 800.0}),
        "SAMPLERS": first_of,
        "QUICK_NUTS_STEPS": to((10, 10)),
        "QUICK_STEPS": to((50, 100)),
        "QUICK_IMPORTANCE_DRAWS": to(1_000),
    },
    "twins": {"CHAINS": to(2), "TWINS": only("categorical")},
    "imputation": {
        "SIZES": to((20,)),
        "EPSILONS": to((1,)),
        "PROBLEMS": first_of,
        "IMPUTATIONS": only("pCN, auto"),
        "WARMUP": to(20),
        "UPDATES": to(20_000),
        "CHAINS": to(2),
    },
    "large": {
        "SIZES": to(()),
        "EXACT_SIZES": to({100: None}),
        "WARMUP": to(50),
        "SAMPLES": to(100),
        "EXACT_WARMUP": to(50),
        "EXACT_SAMPLES": to(100),
    },
    "growth": {"SIZES": to((20_000, 40_000)), "RECORDS": to(80_000)},
    "memory": {"PROBLEMS": first_of, "N": to(2_000), "BOUNDS": lambda bounds: {2_000: min(bounds.values())}},
    "depth": {"CASES": small, "MEASURED": to(200), "EPSILONS": to((1,))},
    "accelerator": {
        "CHILD": to("benchmarks.tiny"),
        "CHAINS": to((4,)),
        "KERNELS": first_of,
        "REPEATS": to(1),
        "RUNS": to({100: (4, 20)}),
        "WAYS": first_of,
        "TABLES": to(2),
    },
    "first_call": {"BOUNDS": only("a table of four cells")},
    "batches": {"NUMBERS": to((20,)), "CALLS": to(1)},
    "coverage": {
        "SETTINGS": lambda settings: (replace(settings[0], n=20, releases=2, steps=(20, 20)),),
    },
    "likelihood_coverage": {"RELEASES": to(1), "N": to(10), "REFITS": to(20)},
    "head_to_head": {
        "RECORDS": to(20),
        "CHAINS": to(2),
        "WARMUP": to(20),
        "SAMPLES": to(20),
        "SWEEPS": to(64),
        "REFITS": to(20),
        "RESAMPLES": to(10),
        "SIMULATIONS": to(1_000),
        "EPOCHS": to(2),
    },
    "comparison": {"SIZES": to({"logistic": 200}), "EPSILONS": to((3.0,)), "FEW": to(1)},
    "noisy_gradients": {
        "LENGTHS": to((0.6, 1.0)),
        "PATHS": to({"logistic": (300, 100.0)}),
        "ITERATIONS": to(60),
        "FEW": to(2),
        "RATES": to((1.0, 0.1)),
        "LANGEVIN": to(("logistic", 200, 10.0)),
    },
    "summed_out": {"CASES": only("unrelated question, 260 answers"), "QUICK_STEPS": to((20, 20)), "CHAINS": to(1)},
    "kernel_choice": {
        "QUICK_NUMBERS": to((3,)),
        "RECORDS": to(6),
        "CHAINS": to(2),
        "QUICK_STEPS": to((20, 20)),
        "KERNELS": first_of,
    },
    "count_records": {
        "SIZES": to((20,)),
        "CASES": only("Poisson"),
        "CHAINS": to(2),
        "WARMUP": to(20),
        "SAMPLES": to(20),
    },
}
"""What is changed before a benchmark runs as with ``--quick``."""


def shrink(name: str) -> None:
    """Replace the constants of a benchmark's module by tiny ones, in this process."""
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, change in TINY[name].items():
        setattr(module, constant, change(getattr(module, constant)))


if __name__ == "__main__":  # the child of the tiny `accelerator`
    shrink("accelerator")
    importlib.import_module("benchmarks.accelerator").main(quick=True)
