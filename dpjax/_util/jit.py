"""Compilation: compiler options, compilation in the background, and the cache of compiled programs on disk."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from threading import Thread
from typing import Any

import jax

from dpjax._util.host import on_host, once_on_cpu
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, is_traced

__all__ = [
    "ahead_options",
    "compiling",
    "enable_compilation_cache",
    "host_options",
    "in_full_precision",
    "jit_unoptimized",
    "light_options",
    "quick_options",
]

Options = dict[str, int | bool]

MIN_COMPILE_TIME, DEFAULT_MIN_COMPILE_TIME = "jax_persistent_cache_min_compile_time_secs", 1.0
"""JAX's option for the shortest compilation whose program is cached, and its default in seconds."""

LIGHT: Options = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 2}
"""XLA's older code generator, and not the last level of optimisation.

Sweeps compile in less than half of the time, and run at least as fast, as far as was measured.
"""

AHEAD: Options = {**LIGHT, "xla_cpu_parallel_codegen_split_count": 2}
"""In two parts, for two threads: the sweeps and refreshes of a regression compile in 0.8 of the time. More parts gain
nothing, and what is needed meanwhile waits for them."""

QUICK: Options = {**AHEAD, "xla_backend_optimization_level": 0}
"""Little optimisation as well: programs compile in an eighth of the time, and take about seven times as long to run."""


QUICK_ELSEWHERE: Options = {"xla_gpu_autotune_level": 0}
"""Where programs that run once have to run on an accelerator: no variant of a kernel is timed against others."""


@cache
def quick_options() -> Options:
    """The compiler options of `QUICK`, for programs that run once, on the CPU or by `on_host`."""
    return known_options(QUICK if once_on_cpu() else QUICK_ELSEWHERE)


@cache
def host_options() -> Options:
    """The compiler options of `LIGHT`, for longer programs that run once, on the CPU or by `on_host`."""
    return known_options(LIGHT if once_on_cpu() else QUICK_ELSEWHERE)


@cache
def ahead_options() -> Options:
    """The compiler options of `AHEAD`, for programs that are compiled while others run; none off CPUs."""
    return known_options(AHEAD) if jax.default_backend() == "cpu" else {}


@cache
def light_options() -> Options:
    """The compiler options of `LIGHT`, for all other programs; none off CPUs, where they were not measured."""
    return known_options(LIGHT) if jax.default_backend() == "cpu" else {}


def known_options(options: Options) -> Options:
    """The options that this version of XLA has, and that the user has not set by the variable XLA_FLAGS."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in options.items() if f"--{name}=" not in flags and is_known(name, value)}


@cache
def is_known(name: str, value: int | bool) -> bool:
    """Whether XLA has a compiler option of this name, with such values."""
    try:
        with on_host():
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except Exception:  # the type is not part of JAX's interface
        return False
    return True


def in_full_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose products of matrices keep all digits of their numbers, also those in functions of the user.

    By default GPUs round factors in float32 to 11 bits, and TPUs to 8.
    """

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments, **keywords)

    return call


def jit_unoptimized(function: Callable[..., Any], static_argnames: tuple[str, ...] = ()) -> Callable[..., Any]:
    """`jax.jit` with the options of `QUICK`, on the host, for a function whose compilation takes longer than its run.

    Called while another program is traced, the function becomes a part of that program.
    """
    full = in_full_precision(function)

    @cache
    def compiled() -> Callable[..., Any]:
        # Made at the first call: the options depend on the devices, which JAX should not start on import.
        return jax.jit(full, static_argnames=static_argnames, compiler_options=quick_options())

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if is_traced(arguments, keywords):
            return full(*arguments, **keywords)
        with on_host():
            return compiled()(*arguments, **keywords)

    return call


@contextmanager
def compiling(lowered: Any) -> Iterator[None]:
    """A context in which a lowered program is compiled on another thread; later calls find it compiled.

    Parameters
    ----------
    lowered
        The result of ``jax.jit(function).lower(...)``; with None, nothing is compiled.
    """
    if lowered is None:
        yield
        return
    thread = Thread(target=compile_quietly, args=(lowered,))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def compile_quietly(lowered: Any) -> None:
    """Compile a program; if that fails, the call that needs the program raises the error."""
    with suppress(Exception):
        lowered.compile()


@names_arguments
def enable_compilation_cache() -> Path:
    """Keep compiled programs on disk, so that later Python processes find them, and return the folder.

    The folder is ``dpjax`` in the user's folder for caches, such as ``~/.cache``. It can be removed at any time.

    Raises
    ------
    OSError
        If nothing can be written there.

    Notes
    -----
    JAX has one such cache for the programs of all libraries, so it is not turned on by default. If JAX already has a
    folder, by ``JAX_COMPILATION_CACHE_DIR`` or its configuration, nothing is changed. A program is found again only
    with the same versions, flags and kind of machine.

    Examples
    --------
    >>> import dpjax
    >>> folder = dpjax.runtime.enable_compilation_cache()  # doctest: +SKIP
    """
    chosen = jax.config.values["jax_compilation_cache_dir"]
    if chosen:
        return Path(chosen)
    folder = cache_folder() / "dpjax"
    make_folder(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if jax.config.values[MIN_COMPILE_TIME] == DEFAULT_MIN_COMPILE_TIME and MIN_COMPILE_TIME.upper() not in os.environ:
        jax.config.update(MIN_COMPILE_TIME, 0.0)  # few of the many small programs take a second to compile
    return folder


def cache_folder() -> Path:
    """The user's folder for caches, by the conventions of the operating system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def make_folder(folder: Path) -> None:
    """Make a folder if it does not exist; raise if it cannot be written to."""
    problem: object = "which cannot be written to"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error
    if not os.access(folder, os.W_OK):
        given, remedy = f"{str(folder)!r} ({problem})", "Set JAX_COMPILATION_CACHE_DIR before Python starts."
        fail("the user's folder for caches", given, "a folder that can be written to", remedy, error=OSError)
