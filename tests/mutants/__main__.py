"""Runs the mutants: ``python -m tests.mutants [NAME ...] [--tier quick|all] [--jobs 1] [--json FILE]``.

Each mutant is planted in a copy of the checkout, and its nearest tests run there until one fails. A mutant that no
test notices has survived: it is equivalent to the library, its tests are not the nearest, or a test is missing.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(tempfile.gettempdir()) / "dpjax-mutant-programs"
"""Compiled programs, which mutants share."""

LIMIT = 1200
"""Seconds after which a mutant's tests are stopped: a run that does not end is a noticed fault."""


def copy_checkout(target: Path) -> None:
    """Copy the files that git knows, and new ones that it does not ignore; raises unless the copy is imported."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    asked = [sys.executable, "-c", "import dpjax; print(dpjax.__file__)"]
    found = subprocess.run(asked, cwd=target, capture_output=True, text=True, check=True, env=environment()).stdout
    if Path(found.strip()) != target / "dpjax" / "__init__.py":
        raise RuntimeError(f"The tests would import {found.strip()}, which is not the copy.")


def environment(keys: bool = False) -> dict[str, str]:
    """The environment of a test process, in which compiled programs are kept outside of the copy."""
    own = {"JAX_COMPILATION_CACHE_DIR": str(PROGRAMS), "PYTHONDONTWRITEBYTECODE": "1"}
    return os.environ | own | ({"JAX_DEBUG_KEY_REUSE": "1"} if keys else {})


@cache
def tier_options(tier: str) -> tuple[str, ...]:
    """What tells pytest to run the light tests alone; nothing where it has no such option."""
    if tier == "all":
        return ()
    told = subprocess.run([sys.executable, "-m", "pytest", "--help"], cwd=ROOT, capture_output=True, text=True)
    return ("--tier", tier) if "--tier" in told.stdout else ()


def run_tests(copy: Path, mutant: Mutant, marks: str, options: tuple[str, ...]) -> tuple[str, str]:
    """Whether the mutant was killed, and by which test."""
    files = [f"tests/{name}" for name in mutant.tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-n", "0"]
    command += ["--tb=no", "-rfE", "-m", marks, *options, *files]
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=LIMIT, env=environment(mutant.keys)
        )
    except subprocess.TimeoutExpired:
        return "killed", "the time limit"
    if done.returncode in (0, 5):
        return "survived", ""
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.M)
    if found is None or done.returncode != 1:
        raise RuntimeError(f"{mutant.name}: pytest ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return "killed", found[1].removeprefix("tests/")


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
    kept = "keys and not slow" if mutant.keys else "not slow"
    started, cpu = time.monotonic(), children_seconds()
    with planted(copy, mutant):
        outcome, by = run_tests(copy, mutant, kept, tier_options(tier))
        if outcome == "survived" and tier == "all":
            outcome, by = run_tests(copy, mutant, "slow", ())
    seconds = {"cpu_seconds": round(children_seconds() - cpu, 1), "seconds": round(time.monotonic() - started, 1)}
    return {"name": mutant.name, "path": mutant.path, "outcome": outcome, "by": by} | seconds


def children_seconds() -> float:
    """The CPU seconds of the test processes that have ended; those of several jobs are not told apart."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judge_all(mutants: list[Mutant], tier: str, jobs: int) -> Iterator[dict[str, Any]]:
    """What became of each mutant, in their order; one whose place is gone is not applicable."""
    copies: Queue[Path] = Queue()

    def judge_one(mutant: Mutant) -> dict[str, Any]:
        copy = copies.get()
        try:
            return judge(copy, mutant, tier)
        except (ValueError, FileNotFoundError) as error:
            return {"name": mutant.name, "path": mutant.path, "outcome": "not applicable", "by": str(error)}
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory(prefix="dpjax-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            copy = Path(folder).resolve() / str(number)
            copy_checkout(copy)
            copies.put(copy)
        yield from pool.map(judge_one, mutants)


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
    for result in judge_all(chosen, options.tier, options.jobs):
        results.append(result)
        spent = f"{result.get('cpu_seconds', 0):5.0f} CPU s"
        print(f"{result['outcome']:14} {spent}  {result['path']}: {result['name']}  {result['by']}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    for outcome in ("killed", "survived", "not applicable"):
        names = [result["name"] for result in results if result["outcome"] == outcome]
        print(f"{outcome} (tier {options.tier}): {len(names)}", *(names if outcome != "killed" else ()), sep="\n  ")
    return int(any(result["outcome"] == "survived" for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
