"""What each test costs, in J: CPU seconds of ``import jax`` on the same machine, which machines of all speeds share.

`weights.json` keeps the tests that `make test` leaves out as heavy, and what each file costs, by which `make test-all`
divides the suite into shards. With `DPJAX_TEST_WEIGHTS` set to a folder, each test leaves its CPU seconds there;
``python -m tests.tools.weights FOLDER`` brings `weights.json` up to date with them. A test that is not listed is light.
"""

import json
import os
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.tools.proofs import KILLERS, PROOFS

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "weights.json"

HEAVY = 0.2
"""J from which a test is heavy."""

HEAVY_KILLER = 4.0
"""J from which a test is heavy that is known to notice a mutant."""

UNKNOWN = 1.0
"""The weight of a file that has not been measured."""

KINDS = ("float64", "float32", "slow")
"""The runs of `make test-all`."""


def cpu_seconds() -> float:
    """CPU seconds of this process, and of those that it has waited for."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def time_import() -> float:
    """J in CPU seconds: the least of three imports of JAX."""
    return min(time_process([sys.executable, "-c", "import jax"]) for _ in range(3))


def time_process(command: list[str], **options: Any) -> float:
    """CPU seconds of a process and its children."""
    began = cpu_seconds()
    subprocess.run(command, check=True, cwd=ROOT, **options)
    return cpu_seconds() - began


def leave_weight(test: str, kind: str, seconds: float) -> None:
    """Write what a test cost to a file of this process's own."""
    folder = os.environ.get("DPJAX_TEST_WEIGHTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with (Path(folder) / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps({"test": test, "kind": kind, "seconds": seconds}) + "\n")


def read_weights() -> dict[str, dict[str, Any]]:
    """By path: the heavy tests of a file, and J of its light tests and of all in each kind of run."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def shards(paths: Iterable[str], weight: Callable[[str], float], number: int) -> list[list[str]]:
    """The paths in shards of equal weight: each in turn, the heaviest first, goes to the lightest shard."""
    found: list[list[str]] = [[] for _ in range(number)]
    loads = [0.0] * number
    for path in sorted(paths, key=lambda path: (-weight(path), path)):
        lightest = loads.index(min(loads))
        found[lightest].append(path)
        loads[lightest] += weight(path)
    return found


def weigh(weights: dict[str, dict[str, Any]], path: str, kinds: tuple[str, ...] = KINDS) -> float:
    """J of a file in some kinds of runs."""
    return sum(weights[path].get(kind, 0.0) for kind in kinds) if path in weights else UNKNOWN


@cache
def divide(number: int) -> list[list[str]]:
    """The files of tests and of doctests in shards."""
    doctests = [path for path in ROOT.joinpath("dpjax").rglob("*.py") if ">>>" in path.read_text()]
    paths = [str(path.relative_to(ROOT)) for path in [*ROOT.joinpath("tests").rglob("test_*.py"), *doctests]]
    return shards(paths, partial(weigh, read_weights()), number)


def heavy_files(weights: dict[str, dict[str, Any]]) -> list[str]:
    """The files that have heavy tests alone, and no proof."""
    proving = {proof.split("::")[0] for proof in PROOFS}
    return [path for path, of_file in weights.items() if "light" not in of_file and path not in proving]


def other_files(shard: str) -> list[str]:
    """The files that do not belong to a shard ``K/N``, with K from 1 to N."""
    place, number = map(int, shard.split("/"))
    if not 1 <= place <= number:
        raise ValueError(f"--shard: given {shard}; expected K/N with K from 1 to N.")
    return [path for other, paths in enumerate(divide(number), 1) if other != place for path in paths]


def renew(weights: dict[str, dict[str, Any]], measured: dict[tuple[str, str], float]) -> dict[str, dict[str, Any]]:
    """The weights after a run, given J by test and kind; what the run left out keeps its weight.

    Heavy tests stay heavy, as the first test that needs a program compiles it for others: with the program gone from
    the run, they would be light, and then heavy again.
    """
    renewed = {path: deepcopy(of_file) for path, of_file in weights.items() if (ROOT / path).exists()}
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for (test, kind), weight in measured.items():
        path, name = test.split("::", 1)
        heavy = renewed.setdefault(path, {}).setdefault("heavy", [])
        limit = HEAVY_KILLER if test in KILLERS else HEAVY
        is_heavy = kind == "float64" and weight >= limit
        if is_heavy and name not in heavy:
            heavy.append(name)
        if not is_heavy and name in heavy and (kind == "proof" or limit > HEAVY):
            heavy.remove(name)
        run = "float64" if kind == "proof" else kind
        sums[path, run] += weight
        if run == "float64":
            renewed[path].pop("light", None)
        if run == "float64" and name not in heavy:
            sums[path, "light"] += weight
    ran = {test for test, kind in measured if kind == "float64"}
    for (path, kind), total in sums.items():
        whole = kind != "float64" or all(f"{path}::{name}" in ran for name in renewed[path]["heavy"])
        if whole:
            renewed[path][kind] = round(total, 2)
    return {path: {name: entry for name, entry in renewed[path].items() if entry != []} for path in sorted(renewed)}


def main(folder: str) -> None:
    """Bring the file up to date with what the tests of a run have left in a folder."""
    lines = [json.loads(line) for path in Path(folder).glob("*.jsonl") for line in path.read_text().splitlines()]
    unit = time_import()
    renewed = renew(read_weights(), {(line["test"], line["kind"]): line["seconds"] / unit for line in lines})
    FILE.write_text(json.dumps(renewed, indent=1) + "\n")
    for kind in ("light", *KINDS):
        print(f"{kind}: {sum(of_file.get(kind, 0.0) for of_file in renewed.values()):.0f} J")


if __name__ == "__main__":
    main(*sys.argv[1:])
