"""Strict numerics for every test: x64 unless DPJAX_TEST_FLOAT32=1, and no silent promotion of types or ranks."""

import os

# Compilation takes most of the suite's time; this level saves a third of it and computes the same.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

import jax
import pytest

FLOAT32 = os.environ.get("DPJAX_TEST_FLOAT32") == "1"

jax.config.update("jax_enable_x64", not FLOAT32)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need float64 in the float32 run."""
    for item in items:
        if FLOAT32 and item.get_closest_marker("x64"):
            item.add_marker(pytest.mark.skip(reason="needs float64"))
