"""Wall seconds on an accelerator, row by row: ``make accelerator``, or with ``PLATFORM=cpu`` on one core of a CPU.

Each row is a process of its own with a limit of its own, so that one that hangs leaves the others. Few chains come
first. The file of results is written after each row. Rows of other devices and of earlier runs stay in it.
Compiled programs are kept by `dpjax.enable_compilation_cache`, so that the next run finds them. Each row says how many
programs it compiled and how many it found. Nothing here imports JAX, which would take the device's memory.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LIMIT = 90.0
"""Seconds of one row."""


class Planned(NamedTuple):
    """A row to be measured: its name in `accelerator_row.py`, and the chains, or pairs of chains."""

    name: str
    chains: int


MANY = (64, 256, 1_024, 16_384)
FULL: dict[str, Sequence[int]] = {
    "sample, every default": MANY,
    "summed out, NUTS": MANY,
    "IMwG by default, with interweaving": MANY,
    "SOMA, all n attempts": (4, 1_024, 16_384),
    "coupled pairs": (1_000, 10_000),
    "DP-HMC": (4, 64),
    "mixture, neal5": (4, 256),
    "table of 252 cells, records as counts": (256, 1_024),
    "summed out, HMC of 8 leapfrogs": MANY[1:],
    "summed out, 3,143 units, NUTS": MANY[:3],
    "summed out, 3,143 units, HMC of 8 leapfrogs": (1_024,),
}
"""The rows by their numbers of chains."""


def in_order(rows: dict[str, Sequence[int]]) -> list[Planned]:
    """The rows with the fewest chains first, else in the order given."""
    return sorted((Planned(name, chains) for name in rows for chains in rows[name]), key=lambda row: row.chains)


PLANS = {"full": in_order(FULL), "tiny": in_order(dict.fromkeys(FULL, (2,)))}
"""The rows by how much of each is measured; ``tiny`` runs the code, and no figure means anything then."""


def measure(
    plan: Iterable[Planned], command: Callable[[Planned], list[str]], limit: float, file: Path, seconds: float
) -> None:
    """Measure the rows of a plan one after another, and write the file after each.

    Parameters
    ----------
    command
        The process of a row, whose last line is a JSON object of the environment and the row.
    limit
        Seconds after which a row's process is ended.
    seconds
        Those of the whole plan; rows that are not reached are left out.
    """
    content: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"environment": {}, "rows": []}
    content["left_out"] = []
    ends = time.monotonic() + seconds
    for planned in plan:
        measured = ask(command(planned), min(limit, ends - time.monotonic()))
        if isinstance(measured, str):
            content["left_out"].append({**planned._asdict(), "reason": measured})
        else:
            content["environment"], row = measured["environment"], measured["row"]
            content["rows"] = [other for other in content["rows"] if key_of(other) != key_of(row)] + [row]
        print(planned.name, planned.chains, measured if isinstance(measured, str) else row["figures"], flush=True)
        replace(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def ask(command: list[str], limit: float) -> dict[str, Any] | str:
    """The environment and the row that a process prints within its limit, or the reason why there is none."""
    if limit <= 0:
        return "not reached"
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it has started
            return f"not done within {limit:.0f} s"
    if process.returncode:
        return f"ended with {process.returncode}"
    measured: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return measured


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a later measurement of the same has in common with a row."""
    return row["case"], row["n"], row["chains"]


def replace(file: Path, text: str) -> None:
    """Write the file whole, or leave it as it was."""
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the rows of a plan on the device that JAX chooses, or on a platform."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accelerator", description="Wall seconds by rows.")
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes: whether all runs")
    parser.add_argument("--platform", default="", help="such as cpu, of which one core is used; JAX's choice if empty")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of one row")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of all rows; others are left out")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="the file of results")
    options = parser.parse_args(arguments)
    size = "tiny" if options.tiny else "full"
    if options.platform:
        os.environ["JAX_PLATFORMS"] = options.platform
    if options.platform == "cpu" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def command(row: Planned) -> list[str]:
        return [sys.executable, "-m", "benchmarks.accelerator_row", size, row.name, str(row.chains)]

    measure(PLANS[size], command, options.limit, options.json, 60 * options.minutes)


if __name__ == "__main__":
    main()
