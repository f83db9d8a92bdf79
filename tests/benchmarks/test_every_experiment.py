"""Every experiment of the papers and with tables: its settings, and that it runs at the smallest sizes."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.experiments import FOLDERS, draw_figure, main, parse, read

ROOT = Path(__file__).parents[2]
ALL = [(folder, name) for folder in FOLDERS for name in read(folder)]
QUICK = [("soma", "histogram-meeting")]
KEPT = [each for each in ALL if (ROOT / FOLDERS[each[0]].replace(".", "/") / f"results/{each[1]}.json").exists()]


def test_no_folder_with_experiments_is_left_out() -> None:
    names = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "benchmarks").rglob("experiments.py")}
    assert set(FOLDERS.values()) == names - {"benchmarks"}


@pytest.mark.parametrize(("folder", "name"), ALL)
def test_every_experiment_takes_its_settings(folder: str, name: str) -> None:
    experiment = read(folder)[name]
    module = import_module(f"{FOLDERS[folder]}.{experiment.module}")
    taken = set(inspect.signature(module.measure).parameters)
    assert set(experiment.full) == set(experiment.quick) == set(experiment.tiny) == taken
    assert callable(module.draw)


def test_settings_can_be_one_s_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--json -`` the result is all that standard output holds."""
    module = import_module("benchmarks.papers.soma.time_use")
    monkeypatch.setattr(module, "measure", lambda **settings: {"given": settings})
    monkeypatch.setattr("benchmarks.machine.use_one_core", lambda: None)
    several = ["--set", "chains=3", "--set", "sexes=male,", "--set", "proposals=50,0.5,a"]
    main("soma", ["time-use", "--quick", *several, "--json", "-"])
    own = read("soma")["time-use"].quick | {"chains": 3, "sexes": ["male"], "proposals": [50, 0.5, "a"]}
    assert json.loads(capsys.readouterr().out)["given"] == own


def test_a_long_experiment_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It may be killed: each result replaces the file of the one before."""
    module, file = import_module("benchmarks.papers.mixture.samplers"), tmp_path / "result.json"

    def measure(**settings: object) -> Iterator[dict[str, object]]:
        yield {"given": settings}
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        main("mixture", ["samplers", "--tiny", "--json", str(file)])
    assert json.loads(file.read_text())["given"]["repeats"] == 2


@pytest.mark.x64
@pytest.mark.parametrize(("folder", "name"), KEPT)
def test_the_run_that_is_kept_can_be_drawn(folder: str, name: str) -> None:
    """Its file has the environment and the settings as well, and the names that the experiment has now."""
    pytest.importorskip("matplotlib")
    experiment, module = read(folder)[name], import_module(f"{FOLDERS[folder]}.{read(folder)[name].module}")
    file = Path(module.__file__ or "").parent / "results" / f"{name}.json"
    content = json.loads(file.read_text())
    assert set(content["settings"]) <= set(experiment.full)
    assert draw_figure(module, content, experiment.panels).axes


@pytest.mark.parametrize(
    ("folder", "arguments"), [("soma", ["table5"]), ("soma", ["table4", "--set", "n=3"]), ("mixture", ["accuracy"])]
)
def test_what_an_experiment_does_not_know_is_refused(
    folder: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(folder, arguments)
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.x64
@pytest.mark.parametrize(
    ("folder", "name"), [pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow) for each in ALL]
)
def test_it_runs(folder: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    command = [sys.executable, "-m", "benchmarks", folder, name, "--tiny", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "environment" in json.loads(file.read_text())
    assert file.with_suffix(".png").stat().st_size > 1_000
