"""Wall seconds on an accelerator, and on the CPU of the same machine: of sweeps by number of chains, and of runs.

Each device has a process of its own, in which programs are compiled side by side before any is timed. If there is no
accelerator there are rows of the CPU alone. Rows are kept as they come, so that a run may be cut short.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.depth import answers, cells
from benchmarks.machine import all_cores
from benchmarks.rows import Row
from benchmarks.summed_out_cases import counties
from benchmarks.timing import Timing, summarize
from dpjax import mixture, models
from dpjax.diagnostics import ess_bulk
from problems.regression import make_model, parameters, simulated_release

LARGEST = 2**24
"""Most records of all chains together."""

IN_TURN = 10_000
"""Most records of a scan over them."""

UPDATES, MOST_SWEEPS = 2**23, 20
"""A timed program makes so many updates of a record, and at most so many sweeps."""

ON_CPU = 64
"""Most chains of `alone` on a CPU, where they take a time in proportion."""

KERNELS = {
    "IMwG, in turn": dpjax.imwg(window=1),
    "IMwG, windows of 64": dpjax.imwg(window=64),
    "IMwG, windows of 256": dpjax.imwg(window=256),
    "IMwG, windows of 1,024": dpjax.imwg(window=1_024),
}

WAYS: dict[str, dict[str, Any]] = {"every default": {}, "without refreshes": {"refresh": False}}

ALONE: dict[str, Any] = {
    "NUTS": None,
    "HMC of 8 leapfrogs": dpjax.data_augmentation.parameter_kernel("hmc", num_leapfrogs=8),
    "HMC of 16 leapfrogs": dpjax.data_augmentation.parameter_kernel("hmc", num_leapfrogs=16),
}
"""Kernels of parameters that move alone."""

Step = Callable[[jax.Array, Any], Any]


@dataclass(frozen=True)
class Size:
    """How much is measured.

    records, chains
        Numbers of records and of chains of sweeps, and of chains of `alone`.
    other_records, other_chains
        Those of sweeps without a scan over records.
    kernels, ways, alone
        Of which kernels there are sweeps, and in which ways runs.
    steps_alone
        Steps of warm-up and draws of kernels alone.
    runs
        Records, chains and draws of runs with every default.
    repeats
        How often a sweep is timed.
    """

    records: tuple[int, ...] = (100, 10_000)
    chains: tuple[int, ...] = (4, 1_024, 16_384)
    chains_alone: tuple[int, ...] = (4, 64, 1_024)
    other_records: tuple[int, ...] = (10_000,)
    other_chains: int = 256
    kernels: tuple[str, ...] = ("IMwG, in turn", "IMwG, windows of 256")
    ways: tuple[str, ...] = ("every default",)
    alone: tuple[str, ...] = ("NUTS",)
    steps_alone: tuple[int, int] = (300, 200)
    runs: tuple[tuple[int, int, int], ...] = ((100, 1_024, 200), (10_000, 64, 50))
    repeats: int = 2


SIZES = {
    "full": Size(),
    "quick": Size((100,), (4, 64), (4,), (100,), alone=("NUTS",), runs=((100, 1_024, 200),)),
    "tiny": Size(
        (100,), (4,), (4,), (100,), 2, ("IMwG, in turn",), ("every default",), ("NUTS",), (20, 20), ((100, 4, 20),), 1
    ),
}


class Case(NamedTuple):
    """A step of one chain and the states of all."""

    name: str
    n: int
    chains: int
    step: Step
    states: Any

    @property
    def sweeps(self) -> int:
        """How many sweeps are timed at once."""
        return min(max(UPDATES // (self.n * self.chains), 1), MOST_SWEEPS)


def measure(size: Size) -> Iterator[Row]:
    """Rows of the device that JAX chooses, and of the CPU if that is another."""
    on_accelerator = False
    with all_cores():
        for row in rows_of("", name_of(size)):
            on_accelerator = not row.case.startswith("cpu")
            yield row
        if on_accelerator:
            yield from rows_of("cpu", name_of(size))


def rows_of(platform: str, size: str) -> Iterator[Row]:
    """The rows that a process on this platform prints, one a line; on that which JAX chooses if it is empty."""
    command = [sys.executable, "-m", "benchmarks.accelerator", size]
    environment = {**os.environ, "JAX_PLATFORMS": platform, "XLA_FLAGS": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            row = json.loads(line)
            yield Row(**{**row, "timing": Timing(**row["timing"])})
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def name_of(size: Size) -> str:
    """The name by which the process of a device finds the size."""
    return next(name for name, one in SIZES.items() if one == size)


def cases(size: Size) -> Iterator[Case]:
    """The sweeps that are timed."""
    model = make_model()
    for n in size.records:
        release = simulated_release(model, n)
        for chains in size.chains:
            if n * chains > LARGEST and chains > size.chains[0]:
                continue
            for name in size.kernels:
                imputation = KERNELS[name]
                if n <= IN_TURN if imputation.window == 1 else jax.default_backend() != "cpu":
                    yield sweep_of(name, model, release, chains, imputation=imputation, interweave=False)
            yield sweep_of("IMwG by default, with interweaving", model, release, chains)
    table = models.categorical(concentration=np.ones(12))
    for n in size.other_records:
        yield sweep_of("table of 12 cells, counts", table, cells(n), size.other_chains)
        yield sweep_of("table of 12 cells, randomized responses", table, answers(n), size.other_chains)
        yield mixture_of(n, size.chains[0])


def sweep_of(name: str, model: dpjax.Model, release: Any, chains: int, **options: Any) -> Case:
    """A sweep of chains that start at draws from the model."""
    algorithm = dpjax.gibbs(model, release, **options)
    start = partial(algorithm.init, start_at(model))
    states = jax.jit(jax.vmap(start))(jax.random.split(jax.random.key(1), chains))
    return Case(name, release.n, chains, algorithm.step, states)


def start_at(model: dpjax.Model) -> dict[str, jax.Array]:
    """The true coefficients of the regression; a draw from the prior of other models."""
    drawn = model.sample_prior(jax.random.key(0))
    return parameters() if "coef" in drawn else drawn


def mixture_of(n: int, chains: int) -> Case:
    """A sweep of a mixture of noisy values."""
    values = np.asarray(jax.random.normal(jax.random.key(0), (n,)))
    base = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    options = {"component": base, "concentration": 1.0, "sampler": mixture.conditional(), "capacity": 32}
    algorithm = mixture.gibbs(values, dpjax.Laplace(0.6), **options)
    start = partial(algorithm.init, jnp.zeros(n, int))
    states = jax.jit(jax.vmap(start))(jax.random.split(jax.random.key(1), chains))
    return Case("mixture, conditional", n, chains, algorithm.step, states)


def build(case: Case) -> tuple[Case, float, Any]:
    """The compiled program of some steps of a case, and how long its compilation took."""

    def program(key: jax.Array, states: Any) -> Any:
        def body(states: Any, key: jax.Array) -> tuple[Any, None]:
            return jax.vmap(case.step)(jax.random.split(key, case.chains), states)[0], None

        return jax.lax.scan(body, states, jax.random.split(key, case.sweeps))[0]

    began = time.perf_counter()
    compiled = jax.jit(program).lower(jax.random.key(2), case.states).compile()
    return case, time.perf_counter() - began, compiled


def time_case(case: Case, compile_seconds: float, compiled: Any, repeats: int) -> Row:
    """The row of one case: the best of some runs."""
    jax.block_until_ready(compiled(jax.random.key(2), case.states))
    seconds = [wall_seconds(partial(compiled, jax.random.key(2), case.states)) for _ in range(repeats)]
    best = min(seconds) / case.sweeps
    figures = {"ms per sweep": best * 1e3, "ns per record": best / case.n / case.chains * 1e9}
    timing = summarize(compile_seconds, seconds)
    return Row("accelerator", f"{device()}: {case.name}", case.n, 0, case.chains, timing, figures)


def time_run(name: str, n: int, chains: int, draws: int, options: dict[str, Any]) -> Row:
    """The row of a run of the regression."""
    model = make_model()
    release = simulated_release(model, n)
    budget = {"num_chains": chains, "num_samples": draws, "num_warmup": draws}
    return time_sample(f"sample, {name}", model, release, **budget, **options)


def time_alone(name: str, chains: int, steps: tuple[int, int]) -> Row:
    """The row of a run in which the records of 300 counties are summed out."""
    case = counties(300, 50)
    model = case.read()
    budget = {"num_chains": chains, "num_warmup": steps[0], "num_samples": steps[1]}
    return time_sample(f"summed out, {name}", model, case.release, **budget, parameter_kernel=ALONE[name])


def time_sample(name: str, model: dpjax.Model, release: Any, **options: Any) -> Row:
    """The row of a second run: all wall seconds, warm-up included; effective draws of the worst parameter."""

    def run() -> dpjax.posterior.Posterior:
        return dpjax.sample(jax.random.key(1), model, release, progress=False, **options)

    first = wall_seconds(run)
    began = time.perf_counter()
    posterior = run()
    seconds = time.perf_counter() - began
    size = min(float(np.min(ess_bulk(leaf))) for leaf in posterior.draws.values())
    chains = options["num_chains"]
    figures = {
        "wall s": seconds,
        "effective per s": size / seconds,
        "effective per draw": size / (chains * options["num_samples"]),
    }
    timing = summarize(first - seconds, [seconds])
    width = release.value.size if isinstance(release, dpjax.Release) else 1
    return Row("accelerator", f"{device()}: {name}", release.n, width, chains, timing, figures)


def wall_seconds(call: Callable[[], Any]) -> float:
    """The wall seconds of one call."""
    began = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - began


def device() -> str:
    """The device's name."""
    return str(jax.devices()[0].device_kind)


def run(size: Size) -> Iterator[Row]:
    """The rows of this process's device."""
    with ThreadPoolExecutor() as threads:
        built = list(threads.map(build, cases(size)))
    for case, compile_seconds, compiled in built:
        yield time_case(case, compile_seconds, compiled, size.repeats)
    for n, chains, draws in size.runs:
        for name in size.ways:
            yield time_run(name, n, chains, draws, WAYS[name])
    for name in size.alone:
        for chains in size.chains_alone:
            if chains <= ON_CPU or jax.default_backend() != "cpu":
                yield time_alone(name, chains, size.steps_alone)


def main(size: Size) -> None:
    """Print each row as it comes."""
    for row in run(size):
        print(json.dumps({**row.__dict__, "timing": row.timing.__dict__}), flush=True)


if __name__ == "__main__":
    main(SIZES[sys.argv[1]])
