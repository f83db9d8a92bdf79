"""Shards of the suite in rotation, as many as there is time for: ``python -m tests.tools.shards MINUTES``.

The first is chosen by the number of commits, so that as many commits as there are shards run them all.
"""

import subprocess
import sys
import time
from functools import partial

from tests.tools.weights import ROOT, divide, read_weights, time_import, weigh

NUMBER = 20
CORES = 2.0
"""By which a shard's CPU seconds are divided until one has been timed."""


def rotation(commits: int) -> list[int]:
    """The shards, from 1 on, in the order in which a commit runs them."""
    return [(commits + place) % NUMBER + 1 for place in range(NUMBER)]


def count_commits() -> int:
    """How many commits lead to this one; 0 outside a repository."""
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(counted.stdout or 0)


def main(minutes: float) -> int:
    """Run shards until the next would take longer than is left; the exit status tells whether one failed."""
    end, weight = time.monotonic() + 60 * minutes, partial(weigh, read_weights())
    seconds_per_weight, ran, failed = time_import() / CORES, [], []
    divided = divide(NUMBER)
    for shard in rotation(count_commits()):
        expected = sum(map(weight, divided[shard - 1]))
        began = time.monotonic()
        if began + expected * seconds_per_weight > end:
            break
        print(f"== shard {shard}/{NUMBER}: {expected:.0f} J", flush=True)
        done = subprocess.run(["make", "test-all", f"SHARD={shard}/{NUMBER}"], cwd=ROOT, check=False)
        seconds_per_weight = (time.monotonic() - began) / max(expected, 1.0)
        ran.append(shard)
        failed += [shard] * (done.returncode != 0)
    print(f"== shards run: {ran or 'none, as there was no time for one'}; failed: {failed or 'none'}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
