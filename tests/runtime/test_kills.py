"""A run that is killed at twenty random moments, and continued each time, ends with the very draws of a whole one."""

import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import chex
import jax
import pytest

from tests.runtime.killed_runs import RUNS

KILLS = 20
LONGEST = 2.0
"""Seconds after which a run is killed at the latest, counted from where it begins; the first programs it reads then."""


def start(name: str, path: Path, programs: Path) -> subprocess.Popen:
    """A process that makes the run, with the programs of those before it at hand."""
    root = Path(__file__).parents[2]
    caching = {"JAX_COMPILATION_CACHE_DIR": str(programs), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, "-m", "tests.runtime.killed_runs", name, str(path), str(jax.config.jax_enable_x64)]
    environment = {**os.environ, **caching, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True)


def kill_after(process: subprocess.Popen, seconds: float, ready: Path | None) -> bool:
    """Kill a process so many seconds after it began, and has written a file; whether it had ended before."""
    try:
        assert process.stdout.readline() == "begins\n"
        while ready is not None and not ready.exists():
            assert process.poll() is None, "the run ended before it was saved"
            time.sleep(0.01)
        time.sleep(seconds)
        return process.poll() is not None
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_killed_at_random_moments_is_the_whole_run(tmp_path, name):
    moments, path, programs = random.Random(1), tmp_path / "run.npz", tmp_path / "programs"
    killed = 0
    for number in range(KILLS):
        # The first one compiles: it is given the time to come to its first save.
        ended = kill_after(start(name, path, programs), moments.uniform(0, LONGEST), path if number == 0 else None)
        if ended:
            break
        killed += 1
        assert zipfile.is_zipfile(path)
    assert killed >= KILLS // 2
    chex.assert_trees_all_equal(RUNS[name](path), RUNS[name](None))
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".lock"] in (
        ["run.npz", "programs"],
        ["programs", "run.npz"],
    )
