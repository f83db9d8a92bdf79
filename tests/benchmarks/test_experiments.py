"""Every experiment of every paper: its settings are those that its module measures with."""

import importlib
import inspect

import pytest

from benchmarks.damcmc.__main__ import EXPERIMENTS as DAMCMC
from benchmarks.dphmc.__main__ import EXPERIMENTS as DPHMC
from benchmarks.experiments import Experiment
from benchmarks.mixture.__main__ import EXPERIMENTS as MIXTURE
from benchmarks.soma.__main__ import EXPERIMENTS as SOMA

ALL = [
    pytest.param(package, experiment, id=f"{package} {name}")
    for package, experiments in (("damcmc", DAMCMC), ("dphmc", DPHMC), ("mixture", MIXTURE), ("soma", SOMA))
    for name, experiment in experiments.items()
]


@pytest.mark.parametrize(("package", "experiment"), ALL)
def test_every_experiment_takes_its_settings(package: str, experiment: Experiment) -> None:
    module = importlib.import_module(f"benchmarks.{package}.{experiment.module}")
    assert set(experiment.full) == set(experiment.quick) == set(inspect.signature(module.measure).parameters)
    assert callable(module.draw)
