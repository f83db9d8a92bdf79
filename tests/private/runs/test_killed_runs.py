"""A run whose process dies at any moment loses nothing that was drawn, and its ledger forgets nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from dpjax import private
from dpjax.private.accounting import ledger_file
from dpjax.private.runs import run as run_module
from tests.private.cases import AMPLE, STARTS, WALK, ledger
from tests.tools.killed_files import Death, dying, left_behind

KEY = jax.random.key(1)
MOMENTS = {"charging": (ledger_file, "write_whole"), "drawing": (run_module, "run_chunk"), "saving": (np, "savez")}


def die(monkeypatch: pytest.MonkeyPatch, place: tuple, at: int, *, before: bool) -> None:
    module, name = place
    real, calls = getattr(module, name), []

    def fatal(*arguments, **options):
        calls.append(1)
        if before and len(calls) == at:
            raise Death
        result = real(*arguments, **options)
        if len(calls) == at:
            raise Death
        return result

    monkeypatch.setattr(module, name, fatal)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
def test_death_at_any_moment_loses_nothing_drawn(tmp_path, monkeypatch, moment, before):
    """Opening the ledger and the first save come before any charge, and the rehearsal before any part."""
    paths = {"ledger": tmp_path / "ledger.json", "checkpoint": tmp_path / "run.npz"}

    def go() -> private.PrivateDraws:
        spent = private.Ledger(ledger(AMPLE).budget, paths["ledger"])
        return private.sample(KEY, WALK, STARTS, spent, num_iterations=40, checkpoint=paths["checkpoint"])

    with monkeypatch.context() as patch:
        die(patch, MOMENTS[moment], at=6 if moment == "charging" else 5, before=before)
        with pytest.raises(Death):
            go()
    paid = private.Ledger(ledger(AMPLE).budget, paths["ledger"]).queries[0].count // 3
    with np.load(paths["checkpoint"]) as saved:
        drawn = saved["leaf2"]
    assert drawn.shape[1] >= 5
    assert drawn.shape[1] <= paid <= drawn.shape[1] + 4  # no more than one part
    result = go()
    whole = private.sample(KEY, WALK, STARTS, ledger(AMPLE), num_iterations=40)
    np.testing.assert_array_equal(result.draws, whole.draws)
    assert result.ledger.queries[0].count // 3 == 40 + paid - drawn.shape[1]


def finish(folder: Path, num_iterations: int) -> private.PrivateDraws:
    """The run, from wherever its files say that it is."""
    spent = private.Ledger(ledger(AMPLE).budget, folder / "ledger.json")
    options = {"num_iterations": num_iterations, "checkpoint": folder / "run.npz"}
    return private.sample(KEY, WALK, STARTS, spent, **options)


@pytest.mark.parametrize("kills", [6, pytest.param(24, marks=pytest.mark.slow)])
def test_death_at_any_call_charges_one_part_twice_at_most(tmp_path, monkeypatch, kills):
    """Each run is killed once, at a call that changes a file of ledger or checkpoint, and started again."""
    monkeypatch.setattr(run_module, "next_part", lambda run, *_: 2 * run.thin)
    whole = private.sample(KEY, WALK, STARTS, ledger(AMPLE), num_iterations=8)
    (tmp_path / "alive").mkdir()
    with dying(100_000) as clock:
        finish(tmp_path / "alive", 8)
    for at in random.Random(5).sample(range(1, clock.count + 1), kills):
        folder = tmp_path / str(at)
        folder.mkdir()
        with dying(at), pytest.raises(Death):
            finish(folder, 8)
        result = finish(folder, 8)
        np.testing.assert_array_equal(result.draws, whole.draws)
        assert 3 * 8 <= sum(query.count for query in result.ledger.queries) <= 3 * (8 + 2)
        assert left_behind(folder) == []


RUN = """
import sys
import jax
from dpjax import private
from dpjax.private.runs import run
from tests.private.cases import STARTS, WALK, ledger
def advance(*arguments, real=run.advance):
    result = real(*arguments)
    print("part", flush=True)
    return result
run.MOST_DRAWS, run.advance = 20, advance
spent = private.Ledger(private.Budget(1e6, 1e-6, "replace-one"), sys.argv[1])
private.sample(jax.random.key(1), WALK, STARTS, spent, num_iterations=20_000, checkpoint=sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.x64
def test_killed_processes_lose_nothing_drawn(tmp_path):
    path, file, rng = tmp_path / "ledger.json", tmp_path / "run.npz", random.Random(3)
    seen = 0
    options = {"env": os.environ | {"PYTHONPATH": str(Path.cwd()), "JAX_ENABLE_X64": "1"}, "text": True}
    for _ in range(10):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", RUN, str(path), str(file)], **pipes, **options) as run:
            assert run.stdout.readline() == "part\n"
            time.sleep(rng.uniform(0.0, 0.5))
            run.send_signal(signal.SIGKILL)
            assert run.communicate()[1] == ""
        with np.load(file) as saved:
            drawn = saved["leaf2"].shape[1]
        assert drawn >= seen
        seen = drawn
        paid = sum(query.count for query in private.Ledger(private.Budget(1e6, 1e-6, "replace-one"), path).queries)
        assert paid >= 3 * drawn
    assert seen > 0
    spent = private.Ledger(private.Budget(1e6, 1e-6, "replace-one"))
    whole = private.sample(KEY, WALK, STARTS, spent, num_iterations=seen)
    with np.load(file) as saved:
        np.testing.assert_allclose(saved["leaf2"], whole.draws, rtol=1e-9)
