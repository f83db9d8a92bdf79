"""Step sizes as functions of the iteration, in the form of optax's schedules."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_float, check_positive, fail
from dpjax.base import Array
from dpjax.private.arguments import check_real

__all__ = ["Schedule", "as_schedule", "check_step", "halton_steps"]

MOST_STEPS = 2**20
"""The longest sequence of step sizes: the device holds all of them."""

Schedule = Callable[[Array], Array]
"""``iteration [] -> step size []``."""


@names_arguments
def halton_steps(step_size: float, *, low: float, high: float, length: int, rng: np.random.Generator) -> Schedule:
    """Step sizes spread over (low, high) · step_size by a scrambled Halton sequence.

    Within one trajectory the step is the same, so that the invariant distribution does not change. The published code
    of Räisä, Koskela and Honkela (2021) has ``low=0, high=1``: its mean step is half the step size stated.

    Parameters
    ----------
    step_size
        The step size that the factors multiply.
    low
        The least factor, at least 0.
    high
        The greatest factor, above `low`.
    length
        The number of step sizes, which are then repeated.
    rng
        The source of the scrambling.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> schedule = dpjax.private.halton_steps(0.1, low=0.5, high=1.5, length=8, rng=np.random.default_rng(1))
    >>> bool(0.05 < schedule(3) < 0.15)
    True
    """
    check_positive("step_size", check_real("step_size", step_size))
    if not isinstance(rng, np.random.Generator):
        fail("rng", repr(rng), "a numpy.random.Generator", "Pass numpy.random.default_rng(seed).", error=TypeError)
    if not 0 <= check_real("low", low) < check_real("high", high) < np.inf:
        fail("low, high", (low, high), "0 <= low < high", "Pass the range as factors of the step size.")
    points = scipy.stats.qmc.Halton(d=1, scramble=True, seed=rng).random(
        check_count("length", length, most=MOST_STEPS)
    )[:, 0]
    steps = jnp.asarray(step_size * (low + (high - low) * points), float)
    return lambda iteration: steps[iteration % length]


def as_schedule(step_size: Any) -> Schedule:
    """A step size, or a function of the iteration, as a function of the iteration.

    Raises
    ------
    TypeError, ValueError
        If it is neither, or not positive.
    """
    if callable(step_size):
        check_schedule(step_size)
        return lambda iteration: jnp.asarray(step_size(iteration), float)
    check_step(step_size, "a number or a function", "Pass one number, or a schedule such as optax's.")
    return lambda iteration: jnp.asarray(step_size, float)


def check_step(step_size: Any, expected: str = "a number", remedy: str = "Pass one number.") -> None:
    """Raise unless a step size is one positive number."""
    dimensions: int = getattr(step_size, "ndim", 0)
    is_number = isinstance(step_size, (Real, jax.Array, np.ndarray)) and not isinstance(step_size, bool)
    if not is_number or dimensions:
        fail("step_size", type(step_size).__name__, expected, remedy, error=TypeError)
    check_float("step_size", step_size)


def check_schedule(schedule: Callable[..., Any]) -> None:
    """Raise unless a function of the iteration returns one positive number."""
    remedy = "Pass a schedule of positive step sizes, such as optax's: iteration [] -> step size []."
    try:
        first = np.asarray(schedule(jnp.zeros((), int)))
    except Exception as error:
        fail("step_size", f"a function that fails ({type(error).__name__}: {error})", "a schedule", remedy)
    if first.shape != () or first.dtype.kind not in "iuf":
        given = f"a function that returns {first.dtype}{list(first.shape)}"
        fail("step_size", given, "one number", remedy, error=TypeError)
    check_positive("step_size", first, remedy)
