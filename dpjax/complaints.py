"""What results complain of: draws that are not to be trusted."""

import warnings
from collections.abc import Sequence

import numpy as np

from dpjax.summary import Summary

__all__ = ["warn_of_divergences", "warn_of_nonfinite", "warn_of_poor_mixing"]

MAX_R_HAT = 1.01
MIN_ESS = 400
ESS_KINDS = {"ess_bulk": "bulk", "ess_tail": "tails", "ess_mean": "of the mean"}
"""What each effective size is of, in words."""

MAX_NONFINITE, MAX_NONFINITE_OF_RUN = 0.01, 0.05
"""Moves undone in a sweep, in the mean of all chains and in one of them, above which it is said."""


def warn_of_poor_mixing(table: Summary, remedy: str, stuck: Sequence[str] = (), starts: str = "") -> None:
    """Warn of parameters whose chains disagree, know too little, or never moved.

    Parameters
    ----------
    stuck
        The rows of which a chain never moved.
    starts
        What may help chains that disagree, or never moved, beyond the remedy.
    """
    columns = table.columns
    # Draws that are not finite have no spread; those that are one have no R-hat and no size.
    broken, apart = np.isnan(columns["sd"]), columns["r_hat"] > MAX_R_HAT
    found = {
        f"R-hat above {MAX_R_HAT}": name_some(table.rows, apart),
        f"an effective sample size below {MIN_ESS}": name_some(*name_sizes(table, broken | (columns["sd"] == 0))),
        "draws that are not finite": name_some(table.rows, broken),
        "chains that never moved": name_some(stuck, np.ones(len(stuck), bool)),
    }
    complaints = [f"{text}: {names}" for text, names in found.items() if names]
    if complaints:
        advice = [remedy] + [starts] * bool(starts and (np.any(apart) or stuck))
        warnings.warn("; ".join(complaints) + f". {' '.join(advice)}", stacklevel=3)


def name_sizes(table: Summary, left_out: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The rows with those of their effective sizes that are too small, and which rows these are."""
    kinds = {name: ESS_KINDS[name] for name in table.columns if name in ESS_KINDS}
    sizes = np.stack([np.nan_to_num(table.columns[name]) for name in kinds])
    small = (sizes < MIN_ESS) & ~left_out

    def name(number: int) -> str:
        parts = [
            f"{kind} {sizes[place, number]:.0f}" for place, kind in enumerate(kinds.values()) if small[place, number]
        ]
        return f"{table.rows[number]} ({', '.join(parts)})" if parts else table.rows[number]

    return [name(number) for number in range(len(table.rows))], np.any(small, axis=0)


def name_some(rows: Sequence[str], chosen: np.ndarray) -> str:
    """The names of the chosen rows, the first six of them."""
    names = [row for row, wanted in zip(rows, chosen, strict=True) if wanted]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def warn_of_nonfinite(num_nonfinite: np.ndarray, stacklevel: int, runs: str = "chains", sweeps: int = 1) -> None:
    """Warn where many offers or moves [run, draw] were undone because a density, parameter or record was not finite.

    Parameters
    ----------
    sweeps
        How many of them each entry counts for. One undone move in hundreds of sweeps misses less of the posterior than
        draws can tell, and of the warm-up nothing is counted.
    """
    rates = np.mean(num_nonfinite, axis=1) / sweeps
    if np.mean(rates) > MAX_NONFINITE or np.max(rates) > MAX_NONFINITE_OF_RUN:
        warnings.warn(
            f"{int(np.sum(num_nonfinite))} offers or moves in {int(np.sum(rates > 0))} of {len(rates)} {runs}, "
            f"{np.mean(rates):.2g} a sweep, were undone because a density, "
            "parameter or record was not finite; see `num_nonfinite`. The draws may then miss part of the "
            "posterior. Look at the model where its densities or records overflow, underflow or are not a number; "
            "float64 may help: jax.config.update('jax_enable_x64', True).",
            stacklevel=stacklevel,
        )


def warn_of_divergences(num_divergent: np.ndarray, stacklevel: int) -> None:
    """Warn where trajectories [chain, draw] went astray."""
    total = int(np.sum(num_divergent))
    if total:
        text = f"{total} of {num_divergent.size} trajectories diverged: the draws may miss part of the posterior. "
        warnings.warn(f"{text}Warm up longer (num_warmup), or use dpjax.sample.", stacklevel=stacklevel)
