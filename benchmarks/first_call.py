"""What the first call costs: whole processes, with no program compiled before, and with all of them on disk."""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.machine import all_cores
from benchmarks.memory import answer_of
from benchmarks.rows import Row
from benchmarks.timing import summarize
from problems.regression import make_model, published_release

N = 100
CHAINS = 4
COMPILED = "/jax/core/compile/backend_compile_duration"
WAITED = "whole process, s"
KEY = jax.random.key(1)
QUIET = {"num_chains": CHAINS, "progress": False}


class Problem(NamedTuple):
    """What a user calls first, as a function of the number of draws, and the released numbers."""

    call: Callable[[int], Any]
    d: int


def sampling(model: dpjax.Model, release: dpjax.Release) -> Problem:
    """Draws with every default, and their summary."""
    sample = partial(dpjax.sample, KEY, model, release, **QUIET)
    return Problem(lambda num: sample(num_samples=num).summary(), release.value.size)


def regression() -> Problem:
    """The example of the README."""
    return sampling(make_model(), published_release(1))


def normal() -> Problem:
    """A Normal model written in NumPyro, given noisy sums of values and squares."""

    def program(n: int) -> None:
        mean, sd = numpyro.sample("mean", dist.Normal(0.0, 5.0)), numpyro.sample("sd", dist.HalfNormal(2.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mean, sd))

    def moments(record: dict[str, jax.Array]) -> jax.Array:
        return jnp.stack([record["y"], record["y"] ** 2])

    release = dpjax.Release([80.0, 310.0], dpjax.Laplace(jnp.array([15.0, 60.0])), moments, n=N)
    return sampling(dpjax.from_numpyro(program, records=("y",)), release)


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
    return sampling(model, dpjax.Release([5.0, 60.0], dpjax.Laplace(10.0), sums, n=N))


def table() -> Problem:
    """A noisy table of four cells."""
    cells = dpjax.statistics.cells("cell", 4)
    release = dpjax.Release([10.0, 20.0, 30.0, 42.0], dpjax.DiscreteLaplace(2.0), cells, n=N)
    return sampling(dpjax.models.categorical([1.0] * 4), release)


def particles() -> Problem:
    """The marginal likelihood of the regression by `dpjax.sample_smc`, whose particles stand for draws."""
    model, release = make_model(), published_release(1)
    return Problem(lambda num: dpjax.sample_smc(KEY, model, release).log_marginal_likelihood, release.value.size)


def batch() -> Problem:
    """Ten releases of the regression at once."""
    model, releases = make_model(), [published_release(1)] * 10
    sample = partial(dpjax.sample_batch, KEY, model, releases, **QUIET)
    return Problem(lambda num: sample(num_samples=num).draws, releases[0].value.size)


def approximation() -> Problem:
    """The regression by the Normal approximation of its sums."""
    model, release = make_model(), published_release(1)
    sample = partial(dpjax.sample_clt, KEY, model, release, **QUIET)
    return Problem(lambda num: sample(num_samples=num).draws, release.value.size)


def invariance() -> Problem:
    """The invariance test of the regression's posterior, which is drawn before."""
    model, release = make_model(), published_release(1)

    def call(num: int) -> Any:
        posterior = dpjax.sample(KEY, model, release, num_samples=num, **QUIET)
        return dpjax.sampler_tests.invariance_test(KEY, posterior, progress=False)

    return Problem(call, release.value.size)


def mixture() -> Problem:
    """A Dirichlet-process mixture of Normal distributions, given a hundred noisy values."""
    values = jnp.concatenate([jnp.linspace(-3.0, -1.0, N // 2), jnp.linspace(1.0, 3.0, N // 2)])
    component = dpjax.mixture.NormalInverseGamma(0.0, 0.1, 2.0, 1.0)
    sample = partial(dpjax.mixture.sample, KEY, values, dpjax.Laplace(0.5), component=component, concentration=1.0)
    return Problem(lambda num: sample(num_samples=num, **QUIET).draws, N)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "README's regression": regression,
    "a table of four cells": table,
    "a Normal in NumPyro": normal,
    "a logistic regression in NumPyro": logistic,
    "sample_smc": particles,
    "sample_batch of ten": batch,
    "sample_clt": approximation,
    "sample and invariance_test": invariance,
    "mixture.sample": mixture,
}

BOUNDS = {name: 4.0 if make in (regression, table, normal, logistic) else 8.0 for name, make in PROBLEMS.items()}
"""The seconds that a user should wait at most, on two fast cores that nothing else wants."""


@dataclass(frozen=True)
class Size:
    """The problems, and how many draws a call makes."""

    problems: tuple[str, ...] = tuple(BOUNDS)
    draws: int = 2_000


SIZES = {"full": Size(), "quick": Size(draws=200), "tiny": Size(("a table of four cells",), 200)}


def measure(size: Size) -> Iterator[Row]:
    """Rows for each problem in processes of its own: cold, and warm from what the cold one kept."""
    for name in size.problems:
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                answer = ask(name, folder, size.draws)
                timing = summarize(None, [answer["CPU s"]])
                target = (WAITED, "<=", BOUNDS[name]) if state == "cold" else None
                d = int(answer.pop("d"))
                yield Row("first_call", f"{name}, {state}", N, d, CHAINS, timing, answer, target=target)


def ask(name: str, folder: str, num_samples: int) -> dict[str, float]:
    """The figures of one process, which has all cores and the flags that users have."""
    caching = {"XLA_FLAGS": "", "JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, "-m", "benchmarks.first_call", name, str(num_samples)]
    began = time.perf_counter()
    with all_cores():
        answer = answer_of(command, **caching)
    return {WAITED: time.perf_counter() - began, **answer}


def run(name: str, num_samples: int) -> dict[str, float]:
    """Seconds of the two steps a user takes, CPU seconds of the whole process, and the programs compiled or read."""
    programs: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **facts: programs.append(event) if event == COMPILED else None
    )
    began = time.perf_counter()
    problem = PROBLEMS[name]()
    built = time.perf_counter()
    jax.block_until_ready(problem.call(num_samples))
    figures = {"model, s": built - began, "call, s": time.perf_counter() - built, "CPU s": time.process_time()}
    return {**figures, "programs": len(programs), "d": problem.d}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
