"""The accelerator's plan: few chains first, and what one row does leaves the others."""

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.accelerator import PLANS, Planned, main, measure
from benchmarks.accelerator_row import RUNS
from problems.seven_programs import STEPS

LIMIT = 3.0
"""Seconds that a process of the fake rows can take on a busy machine."""

FAKE = """
import json, subprocess, sys, time
name, chains, pid_file = sys.argv[1:]
if name == "hangs":
    inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    open(pid_file, "w").write(str(inner.pid))
    time.sleep(60)
if name == "fails":
    sys.exit("no memory")
print("a remark of a library")
row = {"case": "fake: " + name, "n": 1, "chains": int(chains), "figures": {"s": time.time()}}
print(json.dumps({"environment": {"device": "fake"}, "row": row}))
"""


def run_plan(folder: Path, names: list[str], seconds: float = 60.0) -> dict:
    """What the file holds after a plan of fake rows of two chains, with a limit each."""

    def command(row: Planned) -> list[str]:
        return [sys.executable, "-S", "-c", FAKE, row.name, str(row.chains), str(folder / "pid")]

    measure([Planned(name, 2) for name in names], command, LIMIT, folder / "rows.json", seconds)
    return json.loads((folder / "rows.json").read_text())


def test_a_row_that_hangs_leaves_the_others(tmp_path):
    """Nothing else ends a row's process, and the compilers that it has started."""
    content = run_plan(tmp_path, ["first", "hangs", "fails", "last"])
    assert [row["case"] for row in content["rows"]] == ["fake: first", "fake: last"]
    reasons = {one["name"]: one["reason"] for one in content["left_out"]}
    assert reasons == {"hangs": "not done within 3 s", "fails": "ended with 1"}
    for _ in range(100):
        if not is_alive(int((tmp_path / "pid").read_text())):
            break
        time.sleep(0.05)
    else:
        pytest.fail("a process that the row has started is alive")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to look."""
    with suppress(OSError):
        os.kill(pid, 0)
        return not Path("/proc").exists() or Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    return False


def test_rows_of_earlier_runs_stay_and_are_replaced_by_their_own(tmp_path):
    before = run_plan(tmp_path, ["first", "second"])
    after = run_plan(tmp_path, ["first"])
    assert after["rows"][0] == before["rows"][1]
    assert after["rows"][1]["case"] == "fake: first"
    assert after["rows"][1]["figures"] != before["rows"][0]["figures"]


def test_rows_that_are_not_reached_are_named(tmp_path):
    content = run_plan(tmp_path, ["first"], seconds=0.0)
    assert content["left_out"] == [{"name": "first", "chains": 2, "reason": "not reached"}]


def test_the_plan_begins_with_few_chains_and_each_of_its_rows_can_be_made():
    chains = [row.chains for row in PLANS["full"]]
    assert chains == sorted(chains)
    assert {64, 256, 1_024, 16_384} <= set(chains)
    assert {row.name for plan in PLANS.values() for row in plan} == set(STEPS) | set(RUNS)


@pytest.mark.x64
@pytest.mark.slow
def test_the_plan_runs_on_a_cpu(tmp_path, monkeypatch):
    """Every row at the smallest size, as its command line runs it."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    cores = os.sched_getaffinity(0)
    main(["--tiny", "--platform", "cpu", "--limit", "600", "--json", str(tmp_path / "rows.json")])
    os.sched_setaffinity(0, cores)
    content = json.loads((tmp_path / "rows.json").read_text())
    assert not content["left_out"]
    assert len(content["rows"]) == len(PLANS["tiny"])
