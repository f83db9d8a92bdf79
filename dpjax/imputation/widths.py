"""How many offers of a systematic sweep an accelerator should decide on side by side.

Costs are counted and not timed, so that equal keys give equal draws.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Imputation, Key, Latent, Model, Parameters
from dpjax.imputation.rounds import default_window
from dpjax.numbered import jit_model
from dpjax.validation import check_count, fail

__all__ = ["Window", "check_window", "choose_window", "closed_window", "window_of"]

Window = int | Literal["auto"] | None
"""As `imwg` takes it."""

WIDTHS = (64, 256, 1024, 4096)
"""Those to choose from."""

NUMBERS_PER_STEP = 2**18
"""So many numbers of all windows together take a round as long as its start does, roughly, on a large GPU."""


def check_window(window: Window) -> Window:
    """The window, or an error unless it is a positive whole number, ``"auto"`` or None."""
    if window is None or (isinstance(window, str) and window == "auto"):
        return window
    return check_count("window", window, "Pass a positive whole number, 'auto' or None.")


def window_of(window: Window) -> int:
    """The window of a kernel, or an error where the warm-up is still to choose it."""
    if window == "auto":
        fail("window", "'auto'", "a number once the kernel is built", "dpjax.sample tunes it; else pass a number.")
    return default_window() if window is None else int(window)


def closed_window(window: Window) -> int | None:
    """The window, or the default of the machine where it is open."""
    return None if window == "auto" else window


def choose_window(key: Key, imputation: Any, model: Model, release: Any, latent: Latent, parameters: Parameters) -> int:
    """The window in which a sweep by an imputation ``(window=...)`` costs least, counted in steps of an accelerator.

    A round costs a step, and more where its windows hold many numbers: (1 + chains · d · window / 2¹⁸).

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
        # Local releases and unknown numbers of records know no windows.
        return float("inf") if rounds is None else float(rounds) * (1 + window * numbers / NUMBERS_PER_STEP)

    costs = np.array([cost(window) for window in WIDTHS])
    return int(WIDTHS[np.argmin(costs)]) if np.isfinite(costs).any() else 1


@partial(jit_model, static_argnames=("imputation",))
def most_rounds(
    model: Model, imputation: Imputation, release: Any, latent: Latent, parameters: Parameters, keys: Key
) -> Array | None:
    """The rounds of a sweep of the chain that makes most []; None where it is not made in rounds."""
    _, info = jax.vmap(imputation(model, release))(keys, latent, parameters)
    return None if info.num_rounds is None else jnp.max(info.num_rounds)
