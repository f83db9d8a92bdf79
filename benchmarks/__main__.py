"""The one command line of all benchmarks.

``python -m benchmarks [NAME ...]`` measures speed and memory. ``python -m benchmarks FOLDER NAME`` runs an experiment
of a paper, such as those of `soma`, or one with `tables`. ``python -m benchmarks papers`` lists what papers show.
"""

import sys
from collections.abc import Sequence

from benchmarks import experiments, speed
from benchmarks.papers import command


def main(arguments: Sequence[str] | None = None) -> None:
    """Hand the arguments to what the first of them names."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    first = given[0] if given else ""
    if first == "papers":
        command.main(given[1:])
    elif first in experiments.FOLDERS:
        experiments.main(first, given[1:])
    else:
        speed.main(given)


if __name__ == "__main__":
    main()
