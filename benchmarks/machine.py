"""One core, one thread, and a record of both. Nothing here imports JAX: its flags must be set before."""

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
"""Programs run in the thread that calls them."""

PACKAGES = ("jax", "jaxlib", "numpyro", "blackjax", "numpy")


def use_one_core() -> None:
    """Keep this process, and all it starts, on one core and its libraries on one thread."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {XLA_FLAGS}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


def cpu_seconds() -> float:
    """The CPU seconds of this process and of those that it has started."""
    return sum(os.times()[:4])


@contextmanager
def all_cores() -> Iterator[None]:
    """Processes that are started here have every core, as those of users do."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def describe() -> dict[str, object]:
    """What the figures depend on: commit and date, device, processor, cores, flags, versions, dtype."""
    import jax

    import dpjax

    return {
        "commit": read_commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "device": f"{jax.devices()[0].platform}:{jax.devices()[0].device_kind}",
        "processor": read_processor(),
        "cores": list_cores(),
        "load_average": round(os.getloadavg()[0], 2),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "python": platform.python_version(),
        "dpjax": dpjax.__version__,
        **{package: read_version(package) for package in PACKAGES},
        "dtype": jax.numpy.result_type(float).name,
    }


def read_commit() -> str | None:
    """The commit that was measured, with a plus where files differ from it; None outside a repository."""
    command = ["git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def list_cores() -> Sequence[int] | None:
    """The cores this process may use, where the system tells."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def read_processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read_version(package: str) -> str | None:
    """A package's version, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
