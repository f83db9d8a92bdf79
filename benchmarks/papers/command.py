"""The list of the papers: ``python -m benchmarks papers [PAPER ...] [--quick FOLDER [--data FOLDER]]``.

It lists what each paper shows, the command that repeats it, and the paper's numbers beside those of the run that is
kept.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.page import runs, section
from benchmarks.papers.papers import PAPERS


def main(arguments: Sequence[str]) -> None:
    """List the papers, or run all of their experiments at small sizes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks papers", description="Every figure and table.")
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"which ones: {', '.join(PAPERS)} (default: all)")
    parser.add_argument("--quick", type=Path, metavar="FOLDER", help="run all at small sizes; results go to a folder")
    parser.add_argument("--data", metavar="FOLDER", help="the files of the papers' authors, for what --quick runs")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.papers) - set(PAPERS))
    if unknown:
        parser.error(f"no paper is named {', '.join(unknown)}; there are {', '.join(PAPERS)}")
    for name in options.papers or PAPERS:
        if options.quick is None:
            print(section(PAPERS[name]), runs(PAPERS[name]), sep="\n\n", end="\n\n")
        else:
            run_quick(name, options.quick, options.data)


def run_quick(name: str, folder: Path, data: str | None) -> None:
    """Run each experiment of a paper at its small size, in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in dict.fromkeys(row.command for row in PAPERS[name].rows):
        file = folder / f"{name}-{command.split()[-1]}.json"
        options = ["--quick", "--json", str(file), *(["--data", data] if data else [])]
        print(command, *options, flush=True)
        subprocess.run([sys.executable, *command.split()[1:], *options], check=True)
