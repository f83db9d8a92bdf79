"""Strict numerics for every test: x64 unless DPJAX_TEST_FLOAT32=1, and no silent promotion of types or ranks."""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.xla_flags import FLAGS

FLOAT32 = os.environ.get("DPJAX_TEST_FLOAT32") == "1"

# `make test-slow` sets other flags, XLA's own, under which users run.
os.environ.setdefault("XLA_FLAGS", FLAGS)

# Programs are found again by what they compute: those of other workers, of the run before and of `make test-keys`.
# Processes that tests start look there, too.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax  # noqa: E402
import pytest  # noqa: E402

from tests.validation import leave_line  # noqa: E402

jax.config.update("jax_enable_x64", not FLOAT32)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


MAPS = Path("/proc/self/maps")
MANY_MAPS = 32_000
"""Half of what Linux allows a process: each compiled program takes some, and past the limit the compiler crashes."""


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> Iterator[None]:
    """Forget the programs of earlier tests where they have become too many for one process."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """The names of the programs compiled during a test, as they come."""
    names: list[str] = []

    def listen(event: str, seconds: float, **details: object) -> None:
        if event.endswith("backend_compile_duration"):
            names.append(str(details["fun_name"]))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Leave a line for the page on validation."""
    report = yield
    if call.when == "call" and not report.skipped:
        leave_line(item.nodeid, report.outcome, "float32" if FLOAT32 else "float64", report.duration)
    return report


def pytest_collection_finish() -> None:
    """Look for cycles less often: tracing makes millions of objects, and those that tests begin with stay anyway."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of float64 alone in the float32 run, and begin with files of few tests.

    These are the long ones: a process that takes one last would keep the others waiting.
    """
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: sizes[item.path])
    for item in items:
        if item.get_closest_marker("x64") and item.get_closest_marker("x32"):
            raise pytest.UsageError(
                f"{item.nodeid} is marked x64 and x32: neither `make test` nor test-float32 runs it"
            )
        if FLOAT32 and item.get_closest_marker("x64"):
            item.add_marker(pytest.mark.skip(reason="in float64 alone"))
