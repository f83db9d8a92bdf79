"""The command line: ``demo`` privatizes real data and infers from them, ``doctor`` reports the environment."""

import argparse
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax

from dpjax import __version__
from dpjax._util.threads import count_blas_threads

PACKAGES = ("jax", "jaxlib", "blackjax", "numpyro", "numpy", "scipy")

EXTRAS = {
    "plots": ("arviz", "matplotlib"),
    "census": ("pyarrow",),
    "formula": ("formulae",),
    "data": ("scikit-learn",),
    "privacy": ("cryptography", "dp-accounting"),
    "opendp": ("opendp",),
}

ACCELERATORS = ("/dev/nvidia0", "/dev/kfd", "/dev/accel0")
"""Device files of GPUs and TPUs on Linux."""

SWITCHES = {
    "jax_disable_jit": "nothing is compiled, and a sweep takes minutes",
    "jax_debug_nans": "NaN densities stop the run, where dpjax rejects the proposal",
    "jax_debug_infs": "zero densities stop the run, where dpjax rejects the proposal",
    "jax_enable_checks": "JAX checks every step of a compilation, which then takes many times longer",
}
"""JAX options that get in the way of runs, and how."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given by `arguments`, by default those of the process."""
    options = build_parser().parse_args(arguments)
    options.run(options)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line; each command stores the function that runs it as `run`."""
    parser = argparse.ArgumentParser(
        prog="python -m dpjax", description="Bayesian inference from differentially private releases."
    )
    parser.add_argument("--version", action="version", version=f"dpjax {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="privatize real data, infer, and compare",
        description="Privatize real data, infer from the releases, and print each posterior beside the "
        "non-private answer and the naive one that ignores the noise. A figure is saved.",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("dpjax-demo"),
        metavar="DIR",
        help="where the figure goes (default: %(default)s)",
    )
    demo.set_defaults(run=run_demo)
    about = "Print versions, devices, threads, precision and the folder for compiled programs, with advice."
    commands.add_parser("doctor", help="report the environment", description=about).set_defaults(run=run_doctor)
    return parser


def run_demo(options: argparse.Namespace) -> None:
    """Run the demonstration, imported here because it needs the `plots` and `data` extras."""
    from dpjax.demo import main as demo

    demo(options.output)


def run_doctor(options: argparse.Namespace) -> None:
    """Print the report."""
    print(describe_environment())


def is_double() -> bool:
    """Whether numbers are held in double precision."""
    return jax.numpy.result_type(float) == jax.numpy.float64


def program_folder() -> str | None:
    """The folder in which compiled programs are kept, if any."""
    return jax.config.values.get("jax_compilation_cache_dir")


def describe_environment() -> str:
    """Versions, devices, threads, precision and the folder for compiled programs, one per line, and advice."""
    facts = {
        "dpjax": f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "packages": ", ".join(map(name_and_version, PACKAGES)),
        "extras": "; ".join(f"{extra}: {', '.join(map(name_and_version, names))}" for extra, names in EXTRAS.items()),
        "devices": ", ".join(str(device) for device in jax.devices()),
        "threads": describe_threads(),
        "precision": "double (x64)" if is_double() else "single",
        "compiled programs": program_folder() or "kept in memory only",
    }
    lines = [f"{name + ':':<20}{text}" for name, text in facts.items()]
    return "\n".join(lines + [f"- {text}" for text in give_advice()])


def name_and_version(package: str) -> str:
    """A package and its version, or that it is missing."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} missing"


def describe_threads() -> str:
    """The cores of this process, and the threads of its linear algebra."""
    return f"{count_cores()} of {os.cpu_count()} cores; linear algebra on {count_blas_threads()}, while chains run on 1"


def count_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def give_advice() -> list[str]:
    """Suggestions, one sentence each."""
    advice = {
        "Compiled programs are lost when Python exits: call dpjax.enable_compilation_cache() first, or set "
        "JAX_COMPILATION_CACHE_DIR to a folder, and the next session starts in half the time.": program_folder()
        is None,
        f"Compiled programs cannot be kept: {program_folder()} cannot be written to.": not can_keep_programs(),
        "Single precision holds counts up to 16,777,216 only: for larger ones, or sums with little noise, call "
        'jax.config.update("jax_enable_x64", True) first.': not is_double(),
        "Loops of your own over dpjax.gibbs keep all threads of the linear algebra, which on a busy machine wait for "
        "each other most of the time: set OMP_NUM_THREADS=1 before Python starts.": count_blas_threads() > 1,
        "There is an accelerator that JAX does not use: install JAX for it, and check JAX_PLATFORMS.": is_idle(),
    }
    switched = [f"{name} is on: {harm}. Turn it off." for name, harm in SWITCHES.items() if jax.config.values.get(name)]
    return [text for text, holds in advice.items() if holds] + switched


def can_keep_programs() -> bool:
    """Whether the folder for compiled programs, or its nearest existing parent, can be written to."""
    folder = program_folder()
    if folder is None or "://" in folder:
        return True
    existing = next(parent for parent in (Path(folder).absolute(), *Path(folder).absolute().parents) if parent.exists())
    return os.access(existing, os.W_OK)


def is_idle() -> bool:
    """Whether the machine has an accelerator and JAX has none."""
    return any(map(os.path.exists, ACCELERATORS)) and all(device.platform == "cpu" for device in jax.devices())


if __name__ == "__main__":
    main()
