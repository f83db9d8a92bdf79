"""Kernels of the parameters by their number: what the default is chosen by where records are imputed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import time_call
from dpjax.diagnostics import ess_bulk

KERNELS: dict[str, Any] = {
    "HMC, 4 leapfrogs": dpjax.data_augmentation.parameter_kernel("hmc"),
    "NUTS": dpjax.data_augmentation.parameter_kernel("nuts"),
}


def walk(n: int, number: int) -> None:
    """Counts of n weeks whose level is a random walk of `number` − 2 steps."""
    start = numpyro.sample("start", dist.Normal(2.0, 1.0))
    scale = numpyro.sample("scale", dist.HalfNormal(0.5))
    with numpyro.plate("steps", number - 2):
        step = numpyro.sample("step", dist.Normal(0.0, 1.0))
    level = start + scale * jnp.cumsum(step)[np.arange(n) * (number - 2) // n]
    with numpyro.plate("weeks", n):
        numpyro.sample("y", dist.Poisson(jnp.exp(jnp.clip(level, -5.0, 12.0))))


def means(n: int, number: int) -> None:
    """Records of `number` measurements, each with a mean of its own."""
    with numpyro.plate("measurements", number):
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.5))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Normal(mean, 1.0).to_event(1))


def local_release(number: int, records: int) -> tuple[dpjax.Model, Any]:
    """One count of each week, behind Laplace noise."""
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.exp(2 + np.cumsum(rng.normal(0, 0.2, records))))
    model = dpjax.from_numpyro(lambda n: walk(n, number), records=("y",), n=records)
    return model, dpjax.LocalRelease(counts + rng.laplace(0, 3.0, records), dpjax.Laplace(3.0), field="y")


def summed_release(number: int, records: int) -> tuple[dpjax.Model, Any]:
    """The sum of each measurement, behind Laplace noise."""
    value = records * np.random.default_rng(4).normal(0, 1.5, number)
    model = dpjax.from_numpyro(lambda n: means(n, number), records=("y",))
    return model, dpjax.Release(value, dpjax.Laplace(10.0), lambda record: record["y"], n=records)


PROBLEMS: dict[str, Callable[[int, int], tuple[dpjax.Model, Any]]] = {"local": local_release, "sum": summed_release}


@dataclass(frozen=True)
class Size:
    """Numbers of parameters, kernels, records, chains, their steps of warm-up and draws, and runs of each."""

    numbers: tuple[int, ...] = (3, 10, 30, 100)
    kernels: tuple[str, ...] = tuple(KERNELS)
    records: int = 60
    chains: int = 4
    steps: tuple[int, int] = (400, 400)
    runs: int = 3


SIZES = {
    "full": Size(),
    "quick": Size(numbers=(3, 10), steps=(200, 100), runs=1),
    "tiny": Size((3,), ("HMC, 4 leapfrogs",), 6, 2, (20, 20), 1),
}


def measure(size: Size) -> Iterator[Row]:
    """A row for each number of parameters, problem and kernel; ratios are to the first kernel."""
    for number in size.numbers:
        for name, build in PROBLEMS.items():
            model, release = build(number, size.records)
            first = None
            for kernel in size.kernels:
                row = measure_kernel(f"{name}, {number} parameters: {kernel}", model, release, KERNELS[kernel], size)
                first = row if first is None else first
                row.figures["times the first"] = row.figures["effective per s"] / first.figures["effective per s"]
                yield row


def measure_kernel(case: str, model: dpjax.Model, release: Any, choice: Any, size: Size) -> Row:
    """The effective draws of the worst parameter per CPU second of runs, with their warm-up and without compilation.

    The figures are the means and the extremes of several runs.
    """
    warmup, samples = size.steps
    settings = {
        "imputation": dpjax.imwg(),
        "parameter_kernel": choice,
        "refresh": False,
        "num_chains": size.chains,
        "progress": False,
    }

    def call(seed: int) -> dict[str, np.ndarray]:
        budget = {"num_warmup": warmup, "num_samples": samples}
        return dpjax.sample(jax.random.key(seed), model, release, **settings, **budget).draws

    timing, draws = time_call(partial(call, 0), 1)
    seconds, sizes = [timing.best_seconds], [smallest_size(draws)]
    for seed in range(1, size.runs):
        began = time.process_time()
        sizes.append(smallest_size(call(seed)))
        seconds.append(time.process_time() - began)
    figures = {
        "effective per s": sum(sizes) / sum(seconds),
        "effective per draw": sum(sizes) / (len(sizes) * size.chains * samples),
        "fewest per draw": min(sizes) / (size.chains * samples),
        "most per draw": max(sizes) / (size.chains * samples),
        "s per run": sum(seconds) / len(seconds),
    }
    return Row("kernel_choice", case, size.records, int(np.size(release.observed)), size.chains, timing, figures)


def smallest_size(draws: dict[str, np.ndarray]) -> float:
    """The effective draws of the worst parameter."""
    return min(float(np.min(ess_bulk(leaf))) for leaf in draws.values())
