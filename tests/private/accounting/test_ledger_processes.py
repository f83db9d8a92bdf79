"""A ledger's file shared by processes that charge at the same time, or are killed while they do."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.private.accounting.ledgers import charged

CHARGING = """
import sys
from dpjax.private import Budget, Ledger, Query
ledger = Ledger(Budget(6.0, 1e-6, "replace-one"), sys.argv[1])
query = Query(sys.argv[2], 2_000.0, "secure")
print("ready", flush=True)
sys.stdin.readline()
for charge in range(int(sys.argv[3])):
    ledger.charge([query])
    print(charge + 1, flush=True)
"""

RACING = """
import sys
from dpjax.private import Budget, Ledger, Query
print("ready", flush=True)
for path in sys.stdin:
    Ledger(Budget(6.0, 1e-6, "replace-one"), path.strip()).charge([Query(sys.argv[1], 2_000.0, "secure")])
    print("charged", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


def start(path: Path, name: str, charges: int) -> subprocess.Popen:
    """A process that charges a ledger, once it reads a line, and says after each charge how many there were."""
    return run_python(CHARGING, str(path), name, str(charges))


def run_python(program: str, *arguments: str) -> subprocess.Popen:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, **pipes, text=True, env=os.environ | {"PYTHONPATH": str(Path.cwd())})


def race(path: Path, charges: int) -> None:
    """Two processes that charge at the same time: nothing that was acknowledged is lost, and nothing is raised."""
    runs = {name: start(path, name, charges) for name in ("one", "other")}
    for run in runs.values():
        assert run.stdout.readline() == "ready\n"
    for run in runs.values():
        run.stdin.write("go\n")
        run.stdin.flush()
    for run in runs.values():
        output, errors = run.communicate()
        assert (errors, run.returncode, output.split()[-1]) == ("", 0, str(charges))
    assert charged(path) == dict.fromkeys(runs, charges)


@pytest.mark.slow
def test_a_thousand_charges_of_two_processes_at_once_all_count(path):
    race(path, 500)


@pytest.mark.slow
def test_a_thousand_races_for_a_ledger_are_won_by_both(tmp_path):
    """Two processes make and charge the same new ledger at once, again and again: the first charge is the hardest."""
    runs = {name: run_python(RACING, name) for name in ("one", "other")}
    for run in runs.values():
        assert run.stdout.readline() == "ready\n"
    for number in range(1_000):
        path = tmp_path / f"{number}.json"
        for run in runs.values():
            run.stdin.write(f"{path}\n")
            run.stdin.flush()
        assert [run.stdout.readline() for run in runs.values()] == ["charged\n"] * 2
        assert charged(path) == dict.fromkeys(runs, 1)
    for run in runs.values():
        assert run.communicate() == ("", "")


def kill(path: Path, times: int, rng: random.Random) -> int:
    """Kill a charging process again and again; how many charges were acknowledged in all."""
    acknowledged = 0
    for _ in range(times):
        run = start(path, "gradient", 10_000)
        assert run.stdout.readline() == "ready\n"
        run.stdin.write("go\n")
        run.stdin.flush()
        time.sleep(rng.uniform(0.0, 0.1))
        run.send_signal(signal.SIGKILL)
        output, errors = run.communicate()
        assert errors == ""
        acknowledged += int((output.split() or ["0"])[-1])
        assert charged(path).get("gradient", 0) >= acknowledged
    return acknowledged


@pytest.mark.slow
def test_fifty_kills_lose_nothing(path):
    acknowledged = kill(path, 50, random.Random(1))
    assert acknowledged >= 50
    assert charged(path)["gradient"] <= acknowledged + 50  # what was on its way when the process died counts, too
