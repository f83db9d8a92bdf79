"""Microseconds of a record and sweep where records are counts of one distribution, beside Normal ones in one run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from benchmarks.effective import subtract
from benchmarks.rows import Row
from benchmarks.timing import time_call
from dpjax.diagnostics import ess_bulk


def normal(n: int) -> None:
    """Normal records, beside which counts are compared."""
    mean = numpyro.sample("mean", dist.Normal(3.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.7))


def poisson(n: int) -> None:
    """Poisson records."""
    mean = numpyro.sample("mean", dist.Gamma(4.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Poisson(mean))


def negative_binomial(n: int) -> None:
    """Negative binomial records of unknown mean and size."""
    mean = numpyro.sample("mean", dist.Gamma(4.0, 1.0))
    size = numpyro.sample("size", dist.Gamma(4.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.NegativeBinomial2(mean, size))


def zero_inflated(n: int) -> None:
    """Poisson records with added zeros."""
    gate = numpyro.sample("gate", dist.Beta(2.0, 2.0))
    mean = numpyro.sample("mean", dist.Gamma(4.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.ZeroInflatedPoisson(gate, mean))


class Case(NamedTuple):
    """A model, the parameters that its records are drawn at, and the most microseconds wanted for 1,000 records."""

    model: Callable[[int], None]
    parameters: dict[str, float]
    bound: float | None = None


CASES = {
    "Normal": Case(normal, {"mean": 3.0}),
    "Poisson": Case(poisson, {"mean": 3.0}, 0.3),
    "negative binomial": Case(negative_binomial, {"mean": 3.0, "size": 2.0}, 0.5),
    "zero-inflated Poisson": Case(zero_inflated, {"gate": 0.3, "mean": 3.0}, 0.5),
}


def statistic(record: dict) -> jax.Array:
    """A clamped record, and whether it is 0 or less."""
    return jnp.stack([jnp.clip(record["y"], 0, 20).astype(float), (record["y"] <= 0).astype(float)])


@dataclass(frozen=True)
class Size:
    """The numbers of records, the cases, and chains with their steps of warm-up and draws."""

    records: tuple[int, ...] = (1_000, 10_000)
    cases: tuple[str, ...] = tuple(CASES)
    chains: int = 4
    steps: tuple[int, int] = (100, 400)


SIZES = {"full": Size(), "quick": Size(records=(1_000,)), "tiny": Size((20,), ("Poisson",), 2, (20, 20))}


def measure(size: Size) -> Iterator[Row]:
    """A row for each model and number of records, every choice left to `dpjax.sample`."""
    for n in size.records:
        beside = None
        for name in size.cases:
            row = measure_case(name, CASES[name], n, size)
            beside = row.figures["µs"] if beside is None else beside
            yield replace(row, figures={**row.figures, "times Normal": row.figures["µs"] / beside})


def measure_case(name: str, case: Case, n: int, size: Size) -> Row:
    """The row of a model; a run of one draw is the warm-up, and what a full run takes more are the sweeps."""
    model = dpjax.from_numpyro(case.model, records=["y"])
    release = simulate(model, case.parameters, n)
    settings = {"num_chains": size.chains, "num_warmup": size.steps[0], "progress": False}

    def draw(num_samples: int) -> dict[str, np.ndarray]:
        return dpjax.sample(jax.random.key(1), model, release, num_samples=num_samples, **settings).draws

    warmup, _ = time_call(lambda: draw(1), 3)
    timing, draws = time_call(lambda: draw(size.steps[1]), 3)
    sweeps = subtract(timing, warmup)
    effective = min(float(np.min(ess_bulk(each.astype(float)))) for each in draws.values())
    figures = {
        "µs": sweeps.best_seconds / (size.chains * size.steps[1] * n) * 1e6,
        "effective per draw": effective / (size.chains * size.steps[1]),
    }
    target = ("µs", "<=", case.bound) if case.bound is not None and n == 1_000 else None
    return Row("count_records", name, n, release.value.size, size.chains, sweeps, figures, target=target)


def simulate(model: dpjax.Model, parameters: dict[str, float], n: int) -> dpjax.Release:
    """A release of n records."""
    record_key, noise_key = jax.random.split(jax.random.key(12))
    records = model.sample_records(record_key, {name: jnp.asarray(each) for name, each in parameters.items()}, n)
    return dpjax.Release(jnp.zeros(2), dpjax.Laplace(20.0), statistic, n).sample(noise_key, records)
