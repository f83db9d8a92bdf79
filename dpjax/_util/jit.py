"""What is waited for before the first draw: programs that run once are compiled quickly, and all may be kept."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from threading import Thread
from typing import Any

import jax

from dpjax._util.validation import fail, is_traced

__all__ = ["compiling", "enable_compilation_cache", "jit_quickly", "light_options", "quick_options"]

Options = dict[str, int | bool]

SHORTEST, JAX_SHORTEST = "jax_persistent_cache_min_compile_time_secs", 1.0
"""JAX's setting of how long a compilation must take for the program to be kept, and what it is by itself."""

LIGHT: Options = {"xla_cpu_use_fusion_emitters": False}
"""XLA's older code generator: sweeps compile in two thirds of the time, and run as fast, within a tenth either way."""

QUICK: Options = {**LIGHT, "xla_backend_optimization_level": 0}
"""That, and little optimisation: a program is compiled in an eighth of the time, and then takes some seven times as
long."""


@cache
def quick_options() -> Options:
    """The options of `QUICK`, for programs that run once."""
    return known_options(QUICK)


@cache
def light_options() -> Options:
    """The options of `LIGHT`, for all others."""
    return known_options(LIGHT)


def known_options(options: Options) -> Options:
    """Those that this XLA has; none but on a CPU, where what they bring was measured."""
    if jax.default_backend() != "cpu":
        return {}
    return {name: value for name, value in options.items() if is_known({name: value})}


def is_known(options: Options) -> bool:
    """Whether XLA has compiler options of these names."""
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except Exception:  # its type is not part of JAX's interface
        return False
    return True


def jit_quickly(function: Callable[..., Any], static_argnames: tuple[str, ...] = ()) -> Callable[..., Any]:
    """`jax.jit` of a function that runs once or so, and soon, so that its compilation is what it costs.

    Within another program it is a part of that one.
    """

    @cache
    def compiled() -> Callable[..., Any]:
        # Made when it is first called: what options there are is known only once JAX has its devices.
        return jax.jit(function, static_argnames=static_argnames, compiler_options=quick_options())

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        run = function if is_traced(arguments, keywords) else compiled()
        return run(*arguments, **keywords)

    return call


@contextmanager
def compiling(lowered: Any) -> Iterator[None]:
    """Meanwhile compile a lowered program on a thread of its own; calls that come later find it compiled.

    Parameters
    ----------
    lowered
        What ``jax.jit(function).lower(...)`` returned; with None, nothing is compiled.
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
    """Compile a program; where that fails, the call that needs the program says why."""
    with suppress(Exception):
        lowered.compile()


def enable_compilation_cache() -> Path:
    """Keep compiled programs on disk, so that later sessions find them there, and return the folder.

    The folder is ``dpjax`` in the user's folder for caches, such as ``~/.cache``. It can be removed at any time.

    Raises
    ------
    OSError
        If nothing can be written there.

    Notes
    -----
    JAX has one such cache for all programs, those of other libraries included, so that this is left to the user. What
    the user has set stays as it is: where JAX knows a folder already, by ``JAX_COMPILATION_CACHE_DIR`` or its
    configuration, nothing is changed. Programs are found again only on the same versions, flags and kind of machine.

    Examples
    --------
    >>> folder = enable_compilation_cache()  # doctest: +SKIP
    """
    chosen = jax.config.values["jax_compilation_cache_dir"]
    if chosen:
        return Path(chosen)
    folder = cache_folder() / "dpjax"
    make_folder(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if jax.config.values[SHORTEST] == JAX_SHORTEST and SHORTEST.upper() not in os.environ:
        jax.config.update(SHORTEST, 0.0)  # of many small programs, few take a second to compile
    return folder


def cache_folder() -> Path:
    """Where the system wants programs to keep what can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def make_folder(folder: Path) -> None:
    """Make a folder unless it is there, or raise where programs cannot be kept in it."""
    problem: object = "which cannot be written to"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error
    if not os.access(folder, os.W_OK):
        given, remedy = f"{str(folder)!r} ({problem})", "Set JAX_COMPILATION_CACHE_DIR before Python starts."
        fail("the user's folder for caches", given, "a folder that can be written to", remedy, error=OSError)


def reads(function: Callable[..., Any], argument: Any, *others: Any) -> bool:
    """Whether anything that a function returns depends on its first argument, by its traced program.

    Parameters
    ----------
    argument
        The one that is asked about: an array, a tree of them or their shapes.
    others
        The other arguments, likewise. A value that is computed and not used does not count; a function within the
        function counts as a whole.
    """
    program = jax.make_jaxpr(function)(argument, *others).jaxpr
    needed = set(map(id, program.outvars))
    for equation in reversed(program.eqns):
        if any(id(variable) in needed for variable in equation.outvars):
            needed.update(map(id, equation.invars))
    return any(id(variable) in needed for variable in program.invars[: len(jax.tree.leaves(argument))])
