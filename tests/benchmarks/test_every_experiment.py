"""Every experiment of the papers and of the tables runs, at a tiny size, as its command line runs it."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.tiny_experiments import TINY

ROOT = Path(__file__).parents[2]
ALL = [(package, name) for package, experiments in TINY.items() for name in experiments]
QUICK = [("soma", "histogram-meeting")]


def test_no_experiment_is_left_out() -> None:
    packages = {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")} - {"papers"}
    assert set(TINY) == packages
    for package in packages:
        experiments = importlib.import_module(f"benchmarks.{package}.__main__").EXPERIMENTS
        assert set(TINY[package]) == set(experiments)
        assert all(set(TINY[package][name]) == set(experiment.full) for name, experiment in experiments.items())


@pytest.mark.x64
@pytest.mark.parametrize(
    ("package", "name"), [pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow) for each in ALL]
)
def test_it_runs(package: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    command = [sys.executable, "-m", "tests.tools.tiny_experiments", package, name, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "environment" in json.loads(file.read_text())
    assert package == "dphmc" or file.with_suffix(".png").stat().st_size > 1_000
