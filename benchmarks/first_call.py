"""What the first call costs: whole processes, with no program compiled before, and with all of them on disk."""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import jax
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.machine import all_cores
from benchmarks.memory import answer_of
from benchmarks.regression import make_model, published_release
from benchmarks.rows import Row
from benchmarks.timing import summarize

N = 100
CHAINS = 4
COMPILED = "/jax/core/compile/backend_compile_duration"
WAITED = "model and sample, s"
Problem = tuple[dpjax.Model, dpjax.Release]


def regression() -> Problem:
    """The example of the README."""
    return make_model(), published_release(1)


def logistic() -> Problem:
    """A logistic regression written in NumPyro."""

    def program(n: int) -> None:
        intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.5))
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.5))
        with numpyro.plate("records", n):
            x = numpyro.sample("x", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Bernoulli(logits=intercept + slope * x))

    total = dpjax.statistics.total
    sums = dpjax.statistics.stacked(total("x", -3.0, 3.0), total("y", 0.0, 1.0))
    model = dpjax.from_numpyro(program, records=("x", "y"))
    return model, dpjax.Release([5.0, 60.0], dpjax.Laplace(10.0), sums, n=N)


PROBLEMS: dict[str, Callable[[], Problem]] = {"README's regression": regression, "NumPyro's logistic": logistic}

BOUNDS = {"README's regression": 5.0, "NumPyro's logistic": 10.0}
"""The seconds that a user should wait at most, on two cores that nothing else wants."""


def measure(quick: bool) -> Iterator[Row]:
    """Rows for both problems, each in processes of its own: cold, and warm from what the cold one kept."""
    for name, bound in BOUNDS.items():
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                answer = ask(name, folder, 200 if quick else 2_000)
                timing = summarize(None, [answer["CPU s"]])
                target = (WAITED, "<=", bound) if state == "cold" else None
                d = int(answer.pop("d"))
                yield Row("first_call", f"{name}, {state}", N, d, CHAINS, timing, answer, target=target)


def ask(name: str, folder: str, num_samples: int) -> dict[str, float]:
    """The figures of one process, which has all cores and the flags that users have."""
    caching = {"XLA_FLAGS": "", "JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, "-m", "benchmarks.first_call", name, str(num_samples)]
    with all_cores():
        return answer_of(command, **caching)


def run(name: str, num_samples: int) -> dict[str, float]:
    """Seconds of the two steps a user takes, CPU seconds of the whole process, and the programs compiled or read."""
    programs: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **facts: programs.append(event) if event == COMPILED else None
    )
    began = time.perf_counter()
    model, release = PROBLEMS[name]()
    built = time.perf_counter()
    dpjax.sample(jax.random.key(1), model, release, num_chains=CHAINS, num_samples=num_samples, progress=False)
    ended = time.perf_counter()
    figures = {"model, s": built - began, WAITED: ended - began, "CPU s": time.process_time()}
    return {**figures, "programs": len(programs), "d": release.value.size}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
