"""Decisions of a systematic sweep in rounds: those of a window of proposals side by side, until none changes any more.

The fixed point is the sweep in turn, by induction over the proposals of a window. An accelerator takes as long for a
window as for one proposal; a CPU gains nothing.
"""

from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, fail
from dpjax.base import Array, Imputation, Key, Latent, Model, Parameters
from dpjax.data_augmentation.records.proposals import Decisions
from dpjax.models.programs import jit_model
from dpjax.numerics import accept
from dpjax.release import Release

__all__ = [
    "Window",
    "check_window",
    "choose_window",
    "decide_in_rounds",
    "window_of",
    "window_with_default",
]

WINDOW = 256
"""Default number of proposals of a window. A regression with Laplace noise takes 1.4 rounds at ε = 0.1, 9 at 5."""


Window = int | Literal["auto"] | None
"""The option `window` of `imwg`."""

WIDTHS = (64, 256, 1024, 4096)
"""Candidate widths of windows."""

NUMBERS_PER_STEP = 2**18
"""Number of entries of all windows at which a round takes about twice its fixed time on a large GPU."""


class Round(NamedTuple):
    """The rounds made [], the decisions [window] of the last, and whether it changed any []."""

    number: Array
    accepted: Array
    broken: Array
    changed: Array


def default_window() -> int:
    """The default number of proposals decided on side by side: 1 on a CPU, which gains nothing from more."""
    return 1 if jax.default_backend() == "cpu" else WINDOW


def decide_in_rounds(release: Release, residual: Array, changes: Array, log_uniforms: Array, window: int) -> Decisions:
    """The decisions on proposals that change the sum by the columns of changes [d, proposals], `window` at a time.

    Parameters
    ----------
    residual : [d]
        The residual before the first proposal.
    log_uniforms : [proposals]
        Each proposal is accepted if this is below the log of its acceptance ratio.
    window
        How many proposals are decided on side by side; the last window may hold fewer, and no window more than all.
    """
    d, count = changes.shape
    width = min(window, count)
    spare = -count % width
    columns = jnp.pad(changes, ((0, 0), (0, spare))).reshape(d, -1, width).swapaxes(0, 1)
    # No ratio is above an infinite bound: the spare places of the last window accept nothing.
    bounds = jnp.pad(log_uniforms, (0, spare), constant_values=jnp.inf).reshape(-1, width)

    def decide(residual: Array, proposals: tuple[Array, Array]) -> tuple[Array, Round]:
        last = decide_window(release, residual, *proposals)
        return residual - jnp.sum(jnp.where(last.accepted[None], proposals[0], 0), axis=1), last

    residual, last = jax.lax.scan(decide, residual, (columns, bounds))
    accepted, broken = (bits.reshape(-1)[:count] for bits in (last.accepted, last.broken))
    return Decisions(residual, release.log_density_at(residual), accepted, broken, jnp.sum(last.number))


def decide_window(release: Release, residual: Array, changes: Array, log_uniforms: Array) -> Round:
    """The last round of a window of proposals that change the sum by changes [d, window]."""
    width = log_uniforms.shape[0]

    def decide(given: Round) -> Round:
        before = residual[:, None] - sum_before(jnp.where(given.accepted[None], changes, 0))
        log_densities = release.log_densities_at(before)
        accepted, broken = accept(release.log_densities_at(before - changes), log_densities, log_uniforms)
        return Round(given.number + 1, accepted, broken, jnp.any(accepted != given.accepted))

    start = Round(jnp.array(0), jnp.ones(width, bool), jnp.zeros(width, bool), jnp.array(True))
    return jax.lax.while_loop(is_unfinished, decide, start)


def is_unfinished(last: Round) -> Array:
    """Whether decisions may still change []: after as many rounds as there are proposals none does."""
    return last.changed & (last.number < last.accepted.shape[0])


def sum_before(columns: Array) -> Array:
    """The sum [d, window] of the columns [d, window] before each: of the groups before its own, and within that.

    By masks instead of a running sum: few steps on an accelerator, and non-finite numbers do not reach earlier places.
    In two levels, because the work of one grows with the square of the window.
    """
    d, width = columns.shape
    side = isqrt(width - 1) + 1
    groups = jnp.pad(columns, ((0, 0), (0, -width % side))).reshape(d, -1, side)
    sums = earlier_sums(jnp.sum(groups, axis=2))[:, :, None] + earlier_sums(groups)
    return sums.reshape(d, -1)[:, :width]


def earlier_sums(values: Array) -> Array:
    """At each place of the last axis the sum of what is before it [..., m]."""
    places = jnp.arange(values.shape[-1])
    earlier = jnp.broadcast_to(places[:, None] < places[None, :], (*values.shape, values.shape[-1]))
    return jnp.sum(jnp.where(earlier, values[..., None], 0), axis=-2)


def check_window(window: Window) -> Window:
    """The window, or an error unless it is a positive whole number, ``"auto"`` or None."""
    if window is None or (isinstance(window, str) and window == "auto"):
        return window
    return check_count("window", window, "Pass a positive whole number, 'auto' or None.")


def window_of(window: Window) -> int:
    """The window of a kernel, or an error if the warm-up has yet to choose it."""
    if window == "auto":
        fail("window", "'auto'", "a number once the kernel is built", "dpjax.sample tunes it; else pass a number.")
    return default_window() if window is None else int(window)


def window_with_default(window: Window) -> int | None:
    """The window, or None, the default of the backend, if it is left to the warm-up."""
    return None if window == "auto" else window


def choose_window(key: Key, imputation: Any, model: Model, release: Any, latent: Latent, parameters: Parameters) -> int:
    """The window in which a sweep by an imputation ``(window=...)`` costs least, counted in steps of an accelerator.

    A round costs a step, and more if its windows hold many numbers: (1 + chains · d · window / 2¹⁸).

    Parameters
    ----------
    imputation
        A frozen dataclass with a field ``window``.
    latent
        The latent data of the chains, with leading axis [chain].
    parameters
        Their parameters, with leading axis [chain].
    """
    keys = jax.random.split(key, latent.log_density.shape[0])
    numbers = release.observed.size * len(keys)

    def cost(window: int) -> float:
        rounds = most_rounds(model, replace(imputation, window=window), release, latent, parameters, keys)
        # Local releases and unknown numbers of records have no windows.
        return float("inf") if rounds is None else float(rounds) * (1 + window * numbers / NUMBERS_PER_STEP)

    costs = np.array([cost(window) for window in WIDTHS])
    return int(WIDTHS[np.argmin(costs)]) if np.isfinite(costs).any() else 1


@partial(jit_model, static_argnames=("imputation",))
def most_rounds(
    model: Model, imputation: Imputation, release: Any, latent: Latent, parameters: Parameters, keys: Key
) -> Array | None:
    """The rounds of a sweep of the chain that makes most []; None if it is not made in rounds."""
    _, info = jax.vmap(imputation(model, release))(keys, latent, parameters)
    return None if info.num_rounds is None else jnp.max(info.num_rounds)
