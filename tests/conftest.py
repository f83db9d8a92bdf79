"""Strict numerics for every test: x64 unless DPJAX_TEST_FLOAT32=1, and no silent promotion of types or ranks."""

import ctypes
import gc
import os
from collections.abc import Iterator
from pathlib import Path

from tests.tools.xla_flags import FLAGS

FLOAT32 = os.environ.get("DPJAX_TEST_FLOAT32") == "1"

# `make test-all` runs slow tests with other flags: XLA's own, which users have.
os.environ.setdefault("XLA_FLAGS", FLAGS)

# Programs are found again by what they compute: those of other workers, of earlier runs and of other checkouts.
# Processes that tests start look there, too.
os.environ.setdefault("DPJAX_TEST_CACHE", str(Path.home() / ".cache" / "dpjax-tests"))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.environ["DPJAX_TEST_CACHE"])
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax  # noqa: E402
import pytest  # noqa: E402

from tests.tools import weights  # noqa: E402
from tests.tools.proofs import KILLERS, PROOFS  # noqa: E402
from tests.tools.validation import leave_line  # noqa: E402

jax.config.update("jax_enable_x64", not FLOAT32)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

LEFT_OUT = pytest.StashKey[set[str]]()

MOST_BYTES = 2**31
"""Of compiled programs; a complete run leaves a fifth of it."""

MAPS, PAGES = Path("/proc/self/maps"), Path("/proc/self/statm")
MANY_MAPS = 32_000
"""Half of what Linux allows a process: each compiled program takes some, and past the limit the compiler crashes."""

MANY_BYTES = 3 * 2**30
"""Of memory: two processes of a complete run would else hold 8 GB each."""


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> Iterator[None]:
    """Forget the programs of earlier tests if they have become too many for one process."""
    yield
    if not MAPS.exists():
        return
    resident = int(PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident > MANY_BYTES or MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()
        gc.collect()
        give_back_memory()


def give_back_memory() -> None:
    """Return what was freed to the system, which the C library of Linux keeps for itself otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@pytest.fixture(autouse=True)
def checked_keys(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests that draw from a kernel run under JAX's key reuse checker."""
    with jax.debug_key_reuse(request.node.get_closest_marker("keys") is not None):
        yield


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `make test` and `make test-all`."""
    group = parser.getgroup("dpjax")
    group.addoption("--tier", choices=("quick", "all"), default="all", help="quick: no heavy tests")
    group.addoption("--whole", action="append", default=[], metavar="FILE", help="a file with its heavy tests")
    group.addoption("--shard", default="1/1", metavar="K/N", help="the files of the Kth of N shards of equal weight")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the files that are not even imported: those of other shards, or of heavy tests alone."""
    left_out = set(weights.other_files(config.getoption("--shard")))
    if config.getoption("--tier") == "quick":
        left_out |= set(weights.heavy_files(weights.read_weights())) - set(config.getoption("--whole"))
    config.stash[LEFT_OUT] = left_out


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out these files."""
    return True if str(collection_path.relative_to(weights.ROOT)) in config.stash[LEFT_OUT] else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[bool]:
    """Leave what the test costs, with its fixtures."""
    began = weights.cpu_seconds()
    done = yield
    weights.leave_weight(item.nodeid, kind(item), weights.cpu_seconds() - began)
    return done


def kind(item: pytest.Item) -> str:
    """The run that a test belongs to, or `proof`."""
    marks = {mark.name for mark in item.iter_markers()}
    return "slow" if "slow" in marks else "float32" if FLOAT32 else "proof" if item.nodeid in PROOFS else "float64"


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of a tier; begin with heavy files, as one that comes last keeps other processes waiting."""
    for item in items:
        if item.get_closest_marker("x64") and item.get_closest_marker("x32"):
            raise pytest.UsageError(f"{item.nodeid} is marked x64 and x32: no run of `make test-all` has it")
        if FLOAT32 and item.get_closest_marker("x64"):
            item.add_marker(pytest.mark.skip(reason="in float64 alone"))
        if is_for_float32(item) and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="in float32 alone: set DPJAX_TEST_FLOAT32=1"))
    known, quick = weights.read_weights(), config.getoption("--tier") == "quick"
    known = {path: known[path] for path in known if path not in config.getoption("--whole")}
    kept = [item for item in items if not (quick and is_left_out(item, known))]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    of_file = {path: weights.weigh(known, path, ("light",) if quick else weights.KINDS) for path in map(file_of, items)}
    items[:] = sorted(kept, key=lambda item: (-of_file[file_of(item)], file_of(item)))


def file_of(item: pytest.Item) -> str:
    """The path of a test's file."""
    return item.nodeid.split("::", 1)[0]


def is_left_out(item: pytest.Item, known: dict[str, dict[str, list[str]]]) -> bool:
    """Whether the quick tier leaves out a test: it is heavy, or for float32, and no proof."""
    path, name = item.nodeid.split("::", 1)
    is_heavy = name in known.get(path, {}).get("heavy", ())
    return is_for_float32(item) or (is_heavy and item.nodeid not in PROOFS)


def is_for_float32(item: pytest.Item) -> bool:
    """Whether a test is for float32, in a run that is not; proofs, and what notices a mutant, run in both."""
    elsewhere = item.get_closest_marker("x32") is not None and not FLOAT32
    return elsewhere and item.nodeid not in KILLERS and item.nodeid not in PROOFS


def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep the folder of compiled programs small, once for all processes of a run."""
    if not hasattr(session.config, "workerinput"):
        prune(Path(os.environ["JAX_COMPILATION_CACHE_DIR"]), MOST_BYTES)


def prune(folder: Path, most: int) -> None:
    """Remove the oldest files of a folder until they have at most so many bytes together.

    JAX can bound the folder itself, but then looks at every file whenever it adds one.
    """
    files = sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime)
    total = sum(path.stat().st_size for path in files)
    for path in files:
        if total <= most:
            break
        total -= path.stat().st_size
        path.unlink(missing_ok=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A shard may have no test of a kind."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("--shard") != "1/1":
        session.exitstatus = pytest.ExitCode.OK
