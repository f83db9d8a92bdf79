"""Every public kernel lowers for GPUs and TPUs, none with a call that only a CPU knows.

Lowering needs no such machine. It tells that XLA is given a program; that it compiles and runs is not claimed.
"""

import re

import jax
import pytest

from tests.conftest import FLOAT32
from tests.lowering.programs import LONG, QUICK, Program

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


@pytest.mark.x32
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_the_kernel_lowers(name: str) -> None:
    module = lower((QUICK | LONG)[name]())
    assert custom_calls(module) <= CUDA_CALLS
    assert not (FLOAT32 and re.search(r"\bf64\b|xf64>", module))


def test_a_call_that_only_a_cpu_knows_is_found() -> None:
    """A planted fault: eigenvalues of a matrix that is not symmetric, which JAX computes by LAPACK alone."""

    def step(key: jax.Array, state: jax.Array) -> jax.Array:
        return jax.numpy.linalg.eigvals(state + jax.random.normal(key, state.shape))

    with pytest.raises(NotImplementedError):
        lower(Program(step, lambda key: jax.random.normal(key, (3, 3))))
