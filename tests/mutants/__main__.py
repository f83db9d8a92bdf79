"""Runs the mutants: ``python -m tests.mutants [NAME ...] [--tier quick|all] [--jobs 1] [--json FILE]``.

Each mutant is planted in a copy of the checkout, and its nearest tests run there until one fails. A mutant that no
test notices has survived: it is equivalent to the library, its tests are not the nearest, or a test is missing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutants import MUTANTS, Mutant
from tests.tools.proofs import KILLED
from tests.tools.weights import ROOT, cpu_seconds

PROGRAMS = Path(tempfile.gettempdir()) / "dpjax-mutant-programs"
"""Compiled programs, which mutants share."""

LIMIT = 1200
"""Seconds after which a mutant's tests are stopped: a run that does not end is a noticed fault."""

FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)(?: - .*)?$", re.M)
OUTCOMES = ("killed", "survived", "not applicable")


@contextmanager
def copied(number: int) -> Iterator[Queue[Path]]:
    """So many copies of the files that git knows, and of new ones that it does not ignore."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    copies: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory(prefix="dpjax-mutants-") as folder:
        for place in range(number):
            copy = Path(folder).resolve() / str(place)
            for name in names:
                if (ROOT / name).is_file():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, copy / name)
            check_imported(copy)
            copies.put(copy)
        yield copies


def check_imported(copy: Path) -> None:
    """Raise unless tests in a copy import it, and not the checkout."""
    asked = [sys.executable, "-c", "import dpjax; print(dpjax.__file__)"]
    found = subprocess.run(asked, cwd=copy, capture_output=True, text=True, check=True, env=environment()).stdout
    if Path(found.strip()) != copy / "dpjax" / "__init__.py":
        raise RuntimeError(f"The tests would import {found.strip()}, which is not the copy.")


def environment() -> dict[str, str]:
    """The environment of a test process, in which compiled programs are kept outside of the copy."""
    own = {"JAX_COMPILATION_CACHE_DIR": str(PROGRAMS), "PYTHONDONTWRITEBYTECODE": "1"}
    return os.environ | own


def failures(copy: Path, tests: list[str], *options: str) -> list[str]:
    """The tests that fail in a copy; raises where they cannot be run."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-n", "0", "--tb=no"]
    command += ["-rfE", *options, *(f"tests/{test}" for test in tests)]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=LIMIT, env=environment())
    except subprocess.TimeoutExpired:
        return ["the time limit"]
    found = [test.removeprefix("tests/") for test in FAILED.findall(done.stdout)]
    # A file that cannot even be collected has noticed the fault, too: pytest then ends with 2, or with 4 for one test.
    if done.returncode not in ((1, 2, 4) if found else (0, 5)):
        raise RuntimeError(f"pytest ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return found


@contextmanager
def planted(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with the fault, and as it was afterwards."""
    path = copy / "dpjax" / mutant.path
    text = path.read_text()
    path.write_text(mutant.applied(text))
    try:
        yield
    finally:
        path.write_text(text)


def judge(copy: Path, mutant: Mutant, tier: str) -> dict[str, Any]:
    """What became of a mutant; slow tests run in the tier ``all`` alone, where no others kill."""
    tests = list(mutant.tests)
    known = [KILLED[mutant.name].removeprefix("tests/")] if mutant.name in KILLED else []
    # The CPU seconds of several jobs are not told apart.
    started, cpu = time.monotonic(), cpu_seconds()
    with planted(copy, mutant):
        by = failures(copy, known, "-m", "", "--tier", tier) if known else []
        by = by or failures(copy, tests, "-x", "-m", "not slow", "--tier", tier)
        if not by and tier == "all":
            by = failures(copy, tests, "-x", "-m", "slow")
    seconds = {"cpu_seconds": round(cpu_seconds() - cpu, 1), "seconds": round(time.monotonic() - started, 1)}
    return {"outcome": "killed" if by else "survived", "by": by[0] if by else ""} | seconds


def judge_all(copies: Queue[Path], mutants: list[Mutant], tier: str, jobs: int) -> Iterator[dict[str, Any]]:
    """What became of each mutant, in their order; one whose place is gone is not applicable."""

    def judge_one(mutant: Mutant) -> dict[str, Any]:
        copy = copies.get()
        try:
            found = judge(copy, mutant, tier)
        except (ValueError, FileNotFoundError) as error:
            found = {"outcome": "not applicable", "by": str(error), "cpu_seconds": 0.0, "seconds": 0.0}
        finally:
            copies.put(copy)
        return {"name": mutant.name, "path": mutant.path} | found

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(judge_one, mutants)


def doubt(copy: Path, results: list[dict[str, Any]]) -> None:
    """Take back kills by tests that fail without a fault, too."""
    kills = [found for found in results if "::" in found["by"]]
    tests = sorted({found["by"] for found in kills})
    failing = failures(copy, tests, "-m", "") if tests else []
    for found in kills:
        if found["by"] in failing:
            found |= {"outcome": "not applicable", "by": f"{found['by']} fails without the fault"}


def main(arguments: list[str]) -> int:
    """Judge the named mutants, or all; 1 if any survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Mutation tests of the library.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="words in a mutant's name, or in its file's path")
    parser.add_argument("--tier", choices=("quick", "all"), default="quick", help="light tests alone, or all")
    parser.add_argument("--jobs", type=int, default=1, help="how many test processes at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the outcomes")
    options = parser.parse_args(arguments)
    chosen = [m for m in MUTANTS if not options.names or any(name in f"{m.path} {m.name}" for name in options.names)]
    results = []
    with copied(options.jobs) as copies:
        for found in judge_all(copies, chosen, options.tier, options.jobs):
            results.append(found)
            told = f"{found['outcome']:14} {found['cpu_seconds']:5.0f} CPU s  {found['path']}: {found['name']}"
            print(f"{told}  {found['by']}", flush=True)
        doubt(copies.get(), results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    for outcome in OUTCOMES:
        some = [found for found in results if found["outcome"] == outcome]
        print(f"{outcome} in the tier {options.tier}: {len(some)}")
        for found in some * (outcome != "killed"):
            print(f"  {found['path']}: {found['name']}  {found['by']}")
    return int(any(found["outcome"] == "survived" for found in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
