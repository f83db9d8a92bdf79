"""What dpjax runs on, and what would make it faster or more precise: ``python -m dpjax doctor``."""

import os
import platform
from importlib.metadata import version

import jax

from dpjax import __version__
from dpjax.threads import count_blas_threads

PACKAGES = ("jax", "jaxlib", "blackjax", "numpy")


def is_double() -> bool:
    """Whether numbers are held in double precision."""
    return jax.numpy.result_type(float) == jax.numpy.float64


def program_folder() -> str | None:
    """Where compiled programs are kept for later sessions."""
    return jax.config.values.get("jax_compilation_cache_dir")


def report() -> str:
    """Versions, devices, threads, precision and the folder for compiled programs, one a line, and advice."""
    facts = {
        "dpjax": f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "devices": ", ".join(str(device) for device in jax.devices()),
        "threads": describe_threads(),
        "precision": "double (x64)" if is_double() else "single",
        "compiled programs": program_folder() or "kept in memory only",
    }
    lines = [f"{name + ':':<20}{text}" for name, text in facts.items()]
    return "\n".join(lines + [f"- {text}" for text in give_advice()])


def describe_threads() -> str:
    """The cores of this process, and the threads of its linear algebra."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} of {os.cpu_count()} cores; linear algebra on {count_blas_threads()}, while chains run on 1"


def give_advice() -> list[str]:
    """What could be better, in sentences."""
    advice = {
        "Compiled programs are lost at the end of a session: call "
        "dpjax.enable_compilation_cache(), or set JAX_COMPILATION_CACHE_DIR to a folder, and later sessions start in "
        "seconds.": program_folder() is None,
        "Single precision holds counts up to 16,777,216 only: for larger ones, or sums with little noise, call "
        'jax.config.update("jax_enable_x64", True) first.': not is_double(),
        "Loops of your own over dpjax.gibbs keep all threads of the linear algebra, which on a busy machine wait for "
        "each other most of the time: set OMP_NUM_THREADS=1 before Python starts.": count_blas_threads() > 1,
    }
    return [text for text, holds in advice.items() if holds]
