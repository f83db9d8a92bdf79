"""Every public kernel lowers for GPUs and TPUs, with full products and no call that only a CPU knows.

Lowering needs no such machine. It tells that XLA is given a program; that it compiles and runs is not claimed. Of the
programs that `benchmarks/accelerator.py` times it is counted what an accelerator's time is made of.
"""

import re
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from jax._src.interpreters import mlir
from numpyro import distributions as dist

import dpjax
from dpjax._util import host
from dpjax.models.programs import jit_model
from dpjax.private import noise
from dpjax.runtime.run import Run
from problems.seven_programs import STEPS, Case, dp_hmc
from tests.conftest import FLOAT32
from tests.tools.programs import LONG, QUICK, Program
from tests.tools.sequence import Counts, count

PLATFORMS = ("cuda", "tpu")

CUDA_CALLS = {"cusolver_potrf_ffi"}
"""Cholesky factors on a GPU; on a TPU they are XLA's own."""


def lower(program: Program) -> str:
    """The step as a portable program in StableHLO, for typed threefry keys."""
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    exported = jax.export.export(jax.jit(program.step), platforms=PLATFORMS)(key, jax.eval_shape(program.start, key))
    assert exported.platforms == PLATFORMS
    return exported.mlir_module()


def custom_calls(module: str) -> set[str]:
    """What the program calls that is not XLA's own."""
    return set(re.findall(r"custom_call @(\w+)", module))


def rounded_products(module: str) -> list[str]:
    """The products of matrices whose factors a GPU or TPU may round before it multiplies them."""
    products = [line for line in module.splitlines() if "= stablehlo.dot_general" in line]
    return [line for line in products if "HIGHEST" not in line and re.search(r"\bf(32|64)\b|xf(32|64)>", line)]


@pytest.mark.x32
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_the_kernel_lowers(name: str) -> None:
    module = lower((QUICK | LONG)[name]())
    assert custom_calls(module) <= CUDA_CALLS
    assert not (FLOAT32 and re.search(r"\bf64\b|xf64>", module))
    assert not rounded_products(module)


def test_a_product_of_rounded_factors_is_found() -> None:
    """A mutation: a product without a precision."""
    module = lower(Program(lambda key, state: state @ state, lambda key: jax.random.normal(key, (3, 3))))
    assert rounded_products(module)


def test_a_call_that_only_a_cpu_knows_is_found() -> None:
    """A mutation: eigenvalues of a matrix that is not symmetric, which JAX computes by LAPACK alone."""

    def step(key: jax.Array, state: jax.Array) -> jax.Array:
        return jax.numpy.linalg.eigvals(state + jax.random.normal(key, state.shape))

    with pytest.raises(NotImplementedError):
        lower(Program(step, lambda key: jax.random.normal(key, (3, 3))))


ONCE = CUDA_CALLS | {"cusolver_syevd_ffi", "Eigh"}
"""With eigenvectors, which programs that run once may take: on a host they are LAPACK's."""

CALLBACKS = {"xla_ffi_python_gpu_callback", "xla_ffi_partitioned_python_gpu_callback"}
"""Of `noise.secure`, whose draws are made on the host."""

MOST = {
    "IMwG by default, with interweaving": Counts(3, 500),
    "SOMA, all n attempts": Counts(27, 500),
    "coupled pairs": Counts(52, 500),
    "DP-HMC": Counts(12, 2 * 8 * 100_000 + 100),
    "mixture, neal5": Counts(4, 8 * 10_000 + 100),
    "table of 252 cells, records as counts": Counts(5, 250_000),
    "chunk of a regression": Counts(4, 500),
    "chunk with records summed out": Counts(3, 500),
}
"""The most of each count, in float64; constants are the records, and the moves of a table."""


@pytest.fixture
def as_on_a_gpu(monkeypatch) -> None:
    """What dpjax chooses by the platform is chosen as for an accelerator, and this CPU is the host beside it."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(host, "host", lambda: jax.devices("cpu")[0])


def trace(case: Case) -> Any:
    """The step of four chains side by side."""
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0, impl="threefry2x32"), 4))
    return jax.jit(jax.vmap(case.step)).trace(keys, jax.eval_shape(jax.vmap(case.start), keys))


def check_counts(name: str, traced: Any) -> None:
    """Raise if a program has more bodies in sequence, or more bytes of constants, than are stated."""
    found, most = count(traced.jaxpr), MOST[name]
    assert found.bodies <= most.bodies, found
    assert found.constants <= most.constants, found


def check_lowered(traced: Any, calls: set[str] = CUDA_CALLS, platforms: tuple[str, ...] = PLATFORMS) -> None:
    """Raise if a program does not lower, for all platforms, to calls of XLA's own and these."""
    assert custom_calls(traced.lower(lowering_platforms=platforms).as_text()) <= calls


@pytest.mark.x64
@pytest.mark.parametrize("name", STEPS)
def test_what_a_measured_step_asks_of_an_accelerator(name: str, as_on_a_gpu) -> None:
    """Nothing else notices that a step waits for more bodies in turn, or that a program holds an array more."""
    traced = trace(STEPS[name]())
    check_counts(name, traced)
    check_lowered(traced)


@pytest.mark.x64
def test_secure_noise_lowers(as_on_a_gpu, monkeypatch) -> None:
    """Its callbacks; other kernels are lowered with JAX's noise. For a TPU only its own client makes a callback."""
    monkeypatch.setattr(mlir.ModuleContext, "get_backend", lambda self, optional=False: None)
    check_lowered(trace(dp_hmc(100, noise.secure)), CUDA_CALLS | CALLBACKS, ("cuda",))


class Started(Exception):
    """The first chunk is asked for."""


class Preparation:
    """A run of `dpjax.sample` up to its first chunk: what the device compiles for it, its programs, and the chunk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, model: dpjax.Model, release: Any) -> None:
        self.for_device: list[str] = []
        self.programs: dict[str, Any] = {}
        bind = jit_model.bind

        def record(program: Any, *arguments: Any, **keywords: Any) -> Any:
            bound = bind(program, *arguments, **keywords)
            self.programs[program.compiled.__name__] = partial(program.jitted.trace, *bound)
            return bound

        def stop(run: Run, status: Any, length: int) -> None:
            bound = type(run).PROGRAM.bind(*run.static(status), **run.arguments(status, length))
            self.chunk = type(run).PROGRAM.jitted.trace(*bound)
            raise Started

        def listen(event: str, seconds: float, **details: object) -> None:
            if event.endswith("backend_compile_duration") and jax.config.jax_default_device is None:
                self.for_device.append(str(details["fun_name"]))

        monkeypatch.setattr(jit_model, "bind", record)
        monkeypatch.setattr(Run, "make_chunk", stop)
        jax.monitoring.register_event_duration_secs_listener(listen)
        key = jax.random.key(1, impl="threefry2x32")
        self.for_device.clear()
        with pytest.raises(Started):
            dpjax.sample(key, model, release, num_chains=2, num_warmup=0, num_samples=1, progress=False)
        jax.monitoring.unregister_event_duration_listener(listen)


def visits(n: int, y: Any = None) -> None:
    """Counts, which are summed out behind discrete noise."""
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    with numpyro.plate("weeks", n):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


def check_run(run: Preparation, name: str) -> None:
    """The counts of the chunk, and that all programs of a run lower."""
    check_counts(name, run.chunk)
    check_lowered(run.chunk)
    assert len(run.programs) >= 3
    for traced in run.programs.values():
        check_lowered(traced(), ONCE)


@pytest.mark.x64
def test_a_run_with_records_leaves_the_device_one_program(as_on_a_gpu, monkeypatch) -> None:
    """Each program before the first draw takes an accelerator seconds to compile; no other test counts them."""
    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    run = Preparation(monkeypatch, model, release)
    assert run.for_device == ["jit(advance_chains)"]  # compiled while starts are looked for
    check_run(run, "chunk of a regression")


@pytest.mark.x64
def test_a_run_with_records_summed_out_leaves_the_device_one_program(as_on_a_gpu, monkeypatch) -> None:
    """As with records; its preparation has other programs, such as the climbs."""
    model = dpjax.from_numpyro(visits, ["y"])
    release = dpjax.LocalRelease(np.array([5, 3, -4]), dpjax.DiscreteLaplace(2.0), "y")
    run = Preparation(monkeypatch, model, release)
    assert run.for_device == []  # the chunk is the first
    check_run(run, "chunk with records summed out")


def test_what_is_counted() -> None:
    """Of a program that has some of each: loops in turn, one in another, one whose length the data decide."""
    table = np.asarray(jnp.arange(6.0))

    def program(number: jax.Array) -> jax.Array:
        inner = lambda total, _: (jax.lax.fori_loop(0, 3, lambda _, part: part + table, total), None)  # noqa: E731
        total = jax.lax.scan(inner, jnp.zeros(6), None, length=5)[0]
        total = jax.lax.scan(lambda one, _: (one + 1, None), total, None, length=10, unroll=4)[0]
        total = jax.lax.while_loop(lambda one: one[0] < number, lambda one: one + 1, total)
        return jax.lax.cond(number > 0, lambda: jnp.sum(total), lambda: number)

    assert count(jax.jit(program).trace(jnp.array(1.0)).jaxpr) == Counts(15 + 3 + 1, table.nbytes)
