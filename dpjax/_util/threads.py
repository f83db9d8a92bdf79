"""Linear algebra on one thread while chains run.

On a CPU, JAX calls SciPy's LAPACK for small Cholesky factors and triangular systems. Its usual backend, OpenBLAS, keeps
a pool of threads that wait for each other in busy loops. In chains that solve small systems a thousand times a second,
this waiting dominates as soon as the machine has other work. On two busy cores, 400 sweeps of a private regression with
n = 400 took 6 to 9 CPU seconds instead of 0.5, with draws equal to the last bit.
"""

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_info, threadpool_limits


def one_blas_thread() -> AbstractContextManager:
    """A context in which the BLAS libraries of this process use one thread."""
    return threadpool_limits(limits=1, user_api="blas")


def count_blas_threads() -> int:
    """The largest number of threads of a BLAS library of this process; 1 if there is none."""
    return max((library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1)
