"""Every public kernel lowers for GPUs and TPUs, with full products and no call that only a CPU knows.

Lowering needs no such machine. It tells that XLA is given a program; that it compiles and runs is not claimed.
"""

import re

import jax
import pytest

from tests.conftest import FLOAT32
from tests.tools.programs import LONG, QUICK, Program

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
