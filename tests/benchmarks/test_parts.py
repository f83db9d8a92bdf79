"""Runs in parts: what they join, and what they refuse."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.experiments import main, parse
from benchmarks.papers.dphmc import figure3
from benchmarks.papers.dphmc.problems import make_problem
from benchmarks.papers.parts import join, pool, repeats_of


def measure(repeats: int, sweeps: int, known: int, resolutions: tuple[int, ...], part: int) -> dict[str, Any]:
    """Two cells whose figures depend on the repeat alone."""
    draws = [np.random.default_rng(place).normal(size=2) for place in repeats_of(part, repeats)]
    rows = [pool({"cell": cell, "far_each": [float(draw[cell]) for draw in draws]}) for cell in (0, 1)]
    return {"grid": [0.1, 0.2], "rows": rows, "curve": part}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The wavelet's command with this measurement; it returns what the file holds then."""
    module = import_module("benchmarks.papers.mixture.wavelet")
    monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr("benchmarks.machine.use_one_core", lambda: None)
    monkeypatch.setattr("benchmarks.experiments.draw_figure", lambda *_: type("", (), {"savefig": lambda *a, **b: 0})())

    def take(file: str, *options: str) -> dict[str, Any]:
        path = tmp_path / file
        main("mixture", ["wavelet", "--json", str(path), *options])
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    return take


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_parts_are_the_run_of_all_repeats(run: Any, order: tuple[int, ...]) -> None:
    """In every order, with medians over all; a run without ``--part`` is part 0."""
    for part in order:
        joined = run("parts.json", "--set", "repeats=5", "--part", str(part))
    whole = run("whole.json", "--set", "repeats=15")
    rows = [{name: row[name] for name in row if name != "far_each"} for row in joined["rows"]]
    assert rows == [{name: row[name] for name in row if name != "far_each"} for row in whole["rows"]]
    assert [sorted(row["far_each"]) for row in joined["rows"]] == [sorted(row["far_each"]) for row in whole["rows"]]
    assert (joined["parts"], whole["parts"], joined["grid"]) == ([0, 1, 2], [0], [0.1, 0.2])
    assert joined["settings"] == whole["settings"] | {"repeats": 5}


def test_a_part_twice_or_of_other_settings_is_refused(run: Any) -> None:
    """Before anything is measured, and the file stays as it is."""
    before = run("parts.json", "--set", "repeats=5", "--part", "1")
    with pytest.raises(ValueError, match=r"--part: given 1, which .* has"):
        run("parts.json", "--set", "repeats=5", "--part", "1")
    with pytest.raises(ValueError, match=r"--json: given .* of other settings"):
        run("parts.json", "--set", "repeats=6", "--part", "2")
    after = run("parts.json", "--set", "repeats=5", "--part", "0")
    assert after["rows"][0]["far_each"][5:] == before["rows"][0]["far_each"]


def test_an_experiment_without_parts_or_a_part_without_a_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["speed", "--part", "1", "--json", "x.json"], ["wavelet", "--part", "1"]):
        with pytest.raises(SystemExit):
            parse("mixture", arguments)
        assert "--part is for an experiment" in capsys.readouterr().err


@pytest.mark.x64
def test_a_part_has_the_keys_and_starts_that_its_repeats_have_among_all() -> None:
    """The clipping experiment at a tiny size: two parts of a repeat are a run of two."""
    problem = make_problem("banana", 40)
    cells = [figure3.measure_bound(problem, "RWMH", 0.1, places, 1_000) for places in (range(1), range(1, 2), range(2))]
    assert join(*cells[:2]) == cells[2]
    assert cells[0]["mmd_each"] != cells[1]["mmd_each"]
