"""Peak memory of `dpjax.sample` with a million records and ten: no trajectory of latent records is kept."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import summarize, time_once
from problems.regression import STATISTIC, make_mechanism, make_model, parameters, privatize

CHAINS = 4
MOST_GIB = {1_000_000: 2.0, 10_000_000: 4.0}
"""By the number of records."""


def normal_problem(n: int) -> tuple[dpjax.Model, dpjax.Release]:
    """The mean of normal records from their clamped sum under Gaussian noise."""
    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    return model, simulate(model, dpjax.Gaussian(10.0), dpjax.statistics.total("y", -5, 5), {"mean": 0.5}, n)


def regression_problem(n: int) -> tuple[dpjax.Model, dpjax.Release]:
    """The private regression."""
    model = make_model()
    return model, simulate(model, make_mechanism(1), STATISTIC, parameters(), n)


def simulate(
    model: dpjax.Model, mechanism: dpjax.mechanisms.Mechanism, statistic: Callable, truth: dict, n: int
) -> dpjax.Release:
    """A release of n records drawn at the true parameters."""
    record_key, noise_key = jax.random.split(jax.random.key(1))
    records = jax.jit(model.sample_records, static_argnums=2)(record_key, truth, n)
    return privatize(noise_key, mechanism, statistic, records, n)


PROBLEMS = {"normal mean": normal_problem, "linear regression": regression_problem}


@dataclass(frozen=True)
class Size:
    """Runs, each of a problem with a number of records, of warm-up and of draws.

    With ten million records chains make as few sweeps as show what a sweep holds.
    """

    runs: tuple[tuple[str, int, int, int], ...]


SIZES = {
    "full": Size((*((name, 1_000_000, 64, 1_000) for name in PROBLEMS), ("linear regression", 10_000_000, 8, 4))),
    "quick": Size(tuple((name, 1_000_000, 64, 20) for name in PROBLEMS)),
    "tiny": Size((("normal mean", 2_000, 64, 20),)),
}


def measure(size: Size) -> Iterator[Row]:
    """Rows for both problems, and for one with more records, each in a process of its own."""
    for name, n, num_warmup, num_samples in size.runs:
        command = [sys.executable, "-m", "benchmarks.memory", name, *map(str, (n, num_warmup, num_samples))]
        answer = answer_of(command)
        figures = {"peak GiB": answer["peak"], "before sampling GiB": answer["before"], "draws": num_samples}
        timing = summarize(None, [answer["seconds"]])
        figures["CPU s"] = answer["seconds"]
        yield Row(
            "memory", name, n, answer["d"], CHAINS, timing, figures, target=("peak GiB", "<=", MOST_GIB.get(n, 2.0))
        )


def answer_of(command: list[str], **environment: str) -> dict[str, float]:
    """The JSON object in the last line that a process of its own prints, with these variables set there."""
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    answer: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return answer


def run(name: str, n: int, num_warmup: int, num_samples: int) -> dict[str, float]:
    """Peak memory before and after sampling, in GiB, and CPU seconds with compilation."""
    model, release = PROBLEMS[name](n)
    before = peak()
    budget = {"num_chains": CHAINS, "num_warmup": num_warmup, "num_samples": num_samples}
    seconds = time_once(lambda: dpjax.sample(jax.random.key(2), model, release, **budget, progress=False).draws)
    return {"peak": peak(), "before": before, "seconds": seconds, "d": release.value.size}


def peak() -> float:
    """The most memory this process has held, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], *map(int, sys.argv[2:]))))
