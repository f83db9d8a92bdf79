"""CPU time of a batch of releases by one program, against that of a call for each release."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import time_call
from problems.regression import make_model, simulated_release

N, CHAINS = 100, 4


@dataclass(frozen=True)
class Size:
    """How much is measured.

    steps
        Of warm-up, and as many draws: a call costs by itself what some hundred steps cost.
    releases, calls
        How many there are. A call for each release takes as many times longer as there are releases to one of these.
    """

    steps: tuple[int, ...] = (100, 400, 1_000)
    releases: int = 200
    calls: int = 10


SIZES = {"full": Size(), "quick": Size((100,), 40), "tiny": Size((20,), 40, 1)}


def measure(size: Size) -> Iterator[Row]:
    """A row for each number of draws, of releases that differ in their noise."""
    model = make_model()
    released = simulated_release(model, N)
    keys = jax.random.split(jax.random.key(1), size.releases)
    releases = [replace(released, value=released.mechanism.sample(key, released.value)) for key in keys]
    for number in size.steps:
        yield compare(model, releases, number, size.calls)


def compare(model: dpjax.Model, releases: list[dpjax.Release], number: int, num_calls: int) -> Row:
    """The costs of calls and of a batch in one process, each after its programs were compiled."""
    key, settings = jax.random.key(2), {"num_warmup": number, "num_samples": number, "progress": False}

    def call() -> list:
        drawn = [dpjax.sample(jax.random.fold_in(key, i), model, releases[i], **settings) for i in range(num_calls)]
        return [posterior.draws for posterior in drawn]

    alone, _ = time_call(call, 2)
    together, _ = time_call(lambda: dpjax.sample_batch(key, model, releases, **settings).draws, 2)
    calls, batch = alone.best_seconds / num_calls, together.best_seconds / len(releases)
    figures = {"ms per call": calls * 1e3, "ms per release of a batch": batch * 1e3, "ratio": batch / calls}
    case = f"{len(releases)} releases, {number} + {number} steps"
    return Row("batches", case, N, releases[0].value.size, CHAINS, together, figures, target=("ratio", "<=", 0.5))
