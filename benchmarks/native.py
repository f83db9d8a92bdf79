"""The C loops of `kernels.c`, compiled where there is a compiler."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from problems.regression import COEFFICIENTS, INPUTS, SENSITIVITY

SOURCE = Path(__file__).with_name("kernels.c")
FLAGS = ("-O3", "-shared", "-fPIC")


class Problem(ctypes.Structure):
    """As in `kernels.c`."""

    _fields_ = (
        ("value", ctypes.c_float * 9),
        ("scale", ctypes.c_float),
        ("mean", ctypes.c_float * 2),
        ("coef", ctypes.c_float * 3),
        ("deviation", ctypes.c_float),
    )


def build() -> Callable[[np.ndarray, int, int, int, int], float] | None:
    """``run(value, n, chains, sweeps, attempts) -> acceptance rate``, or None without a C compiler.

    No attempts, 0, means IMwG with the systematic scan.
    """
    library = load(SOURCE)
    if library is None:
        return None
    program = library.run
    program.restype = ctypes.c_double
    program.argtypes = [ctypes.POINTER(Problem), *[ctypes.c_int64] * 4]
    return partial(run, program)


def load(source: Path, *flags: str) -> ctypes.CDLL | None:
    """The functions of a file in C, or None without a compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "library.so"
        command = [compiler, *FLAGS, *flags, str(source), "-o", str(library), "-lm"]
        if subprocess.run(command, check=False).returncode:
            return None
        return ctypes.CDLL(str(library))


def run(program: Callable[..., float], value: np.ndarray, *sizes: int) -> float:
    """The acceptance rate of so many sweeps."""
    problem = Problem(
        (ctypes.c_float * 9)(*map(float, value)),
        SENSITIVITY,
        (ctypes.c_float * 2)(*INPUTS["m"]),
        (ctypes.c_float * 3)(*COEFFICIENTS),
        INPUTS["sigma2"] ** 0.5,
    )
    return program(ctypes.byref(problem), *sizes)
