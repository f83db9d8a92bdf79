"""Warnings of results whose draws are not reliable."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from dpjax._util.warn import warn_at_the_call
from dpjax.diagnostics.convergence import ess_bulk, ess_tail
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import Summary, entry_names

__all__ = [
    "STARTS",
    "name_late",
    "name_stuck",
    "never_change",
    "stuck_chains",
    "warn_of_divergences",
    "warn_of_nonfinite",
    "warn_of_poor_mixing",
    "with_runs",
]

MAX_R_HAT = 1.01
MIN_ESS = 400
ESS_KINDS = {"ess_bulk": "bulk", "ess_tail": "tails"}
"""The effective sample sizes in words."""

MAX_NONFINITE, MAX_NONFINITE_OF_RUN = 0.01, 0.05
"""Largest number of undone moves per sweep without a warning, on average and in any one chain."""

MIN_LENGTH = 500
"""Fewest draws of a chain whose halves are compared."""

LATE = "effective sizes that did not grow with the draws, as where chains found a region late"

Numbers = Mapping[str, np.ndarray]


STARTS = (
    "If chains disagree, they may have started badly or sit in different modes. Try "
    "{starts}starting values of your own (initial=...), or dpjax.sample_smc."
)
"""A remedy for chains that disagree; `starts` names others, with a comma, if there are any."""


def warn_of_poor_mixing(
    table: Summary,
    remedy: str,
    stuck: Sequence[str] = (),
    starts: str = "",
    late: Sequence[str] = (),
) -> None:
    """Warn of parameters whose chains disagree, have too few effective draws, never moved, or found something late.

    Parameters
    ----------
    stuck
        The rows with a chain that never moved.
    late
        The rows whose effective size did not grow; see `name_late`.
    starts
        An additional remedy for chains that disagree or never moved.
    """
    columns = table.columns
    # Non-finite draws have no sd; constant draws have neither R-hat nor effective sizes.
    broken, apart = np.isnan(columns["sd"]), columns["r_hat"] > MAX_R_HAT
    found = {
        f"R-hat above {MAX_R_HAT}": name_some(table.rows, apart),
        f"an effective sample size below {MIN_ESS}": name_some(*name_sizes(table, broken | (columns["sd"] == 0))),
        "draws that are not finite": name_some(table.rows, broken),
        "chains that never moved": name_some(stuck, np.ones(len(stuck), bool)),
        LATE: name_some(late, np.ones(len(late), bool)),
    }
    complaints = [f"{text}: {names}" for text, names in found.items() if names]
    if complaints:
        advice = [remedy] + [starts] * bool(starts and (np.any(apart) or stuck))
        warn_at_the_call("; ".join(complaints) + f". {' '.join(advice)}")


def name_late(draws: Numbers, table: Summary) -> list[str]:
    """The rows of the table with enough effective draws, but fewer than the first half of the draws [chain, draw, ...].

    Chains that mix have about twice as many. Fewer are a sign that a region was found late, of which the draws may then
    say too little or too much.
    """
    length = np.shape(next(iter(draws.values()), np.zeros((1, 0))))[1]
    if length < MIN_LENGTH:
        return []
    found, all_rows = [], iter(table.rows)
    for leaf in draws.values():
        half = np.asarray(leaf)[:, : length // 2]
        rows = list(islice(all_rows, half[0, 0].size))
        for kind, size in (("ess_bulk", ess_bulk), ("ess_tail", ess_tail)):
            whole = np.array([table[row][kind] for row in rows])
            fewer = (whole >= MIN_ESS) & (whole < np.ravel(size(half)))
            found += [row for row, is_late in zip(rows, fewer, strict=True) if is_late]
    return list(dict.fromkeys(found))


def name_sizes(table: Summary, left_out: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The row names with their effective sizes that are too small, and which rows have such sizes."""
    sizes = np.stack([np.nan_to_num(table.columns[name]) for name in ESS_KINDS])
    small = (sizes < MIN_ESS) & ~left_out

    def name(number: int) -> str:
        found = zip(ESS_KINDS.values(), sizes[:, number], small[:, number], strict=True)
        parts = [f"{kind} {size:.0f}" for kind, size, is_small in found if is_small]
        return f"{table.rows[number]} ({', '.join(parts)})" if parts else table.rows[number]

    return [name(number) for number in range(len(table.rows))], np.any(small, axis=0)


def name_some(rows: Sequence[str], chosen: np.ndarray) -> str:
    """The names of the chosen rows, the first six of them."""
    names = [row for row, wanted in zip(rows, chosen, strict=True) if wanted]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def warn_of_nonfinite(num_nonfinite: np.ndarray, runs: str = "chains", sweeps: int = 1) -> None:
    """Warn if many proposals or moves [run, draw] were undone because a density, parameter or record was not finite.

    Parameters
    ----------
    sweeps
        Number of sweeps that each entry counts for. One undone move in hundreds of sweeps misses less of the posterior
        than draws can show, and the warm-up is not counted.
    """
    rates = np.mean(num_nonfinite, axis=1) / sweeps
    if np.mean(rates) > MAX_NONFINITE or np.max(rates) > MAX_NONFINITE_OF_RUN:
        warn_at_the_call(
            f"{int(np.sum(num_nonfinite))} proposals or moves in {int(np.sum(rates > 0))} of {len(rates)} {runs}, "
            f"{np.mean(rates):.2g} a sweep, were undone because a density, "
            "parameter or record was not finite; see `num_nonfinite`. The draws may then miss part of the "
            "posterior. Look at the model where its densities or records overflow, underflow or are not a number; "
            "float64 may help: jax.config.update('jax_enable_x64', True).",
        )


def warn_of_divergences(num_divergent: np.ndarray, per_draw: int = 1, remedy: str = "", allowed: float = 0.0) -> None:
    """Warn of divergent trajectories [chain, draw].

    Parameters
    ----------
    per_draw
        How many trajectories there are for each entry.
    remedy
        What may help.
    allowed
        The largest share of them without a warning.
    """
    total, size = round(float(np.sum(num_divergent))), num_divergent.size * per_draw
    if total > allowed * size:
        text = f"{total} of {size} trajectories diverged: the draws may miss part of the posterior. "
        warn_at_the_call(f"{text}{remedy or 'Warm up longer (num_warmup), or use dpjax.sample.'}")


def never_change(draws: np.ndarray) -> np.ndarray:
    """Which numbers [...] are the same in all draws [chain, draw, ...]."""
    draws = np.asarray(draws)
    return np.all(draws == draws[:1, :1], axis=(0, 1))


def stuck_chains(draws: np.ndarray, free: np.ndarray | bool) -> np.ndarray:
    """Which chains [chain, ...] never moved in draws [chain, draw, ...].

    A value that a moving chain takes as well is one of few values, at which a chain may stay for long, and does not
    count. If all chains have the same value, `free` decides: constants by construction cannot move, and chains with
    different starts do not agree by chance.

    Parameters
    ----------
    free
        Which numbers [...] can change.
    """
    draws = np.asarray(draws)
    still = np.all(draws == draws[:, :1], axis=1)
    alike = never_change(draws)
    stuck = still & np.where(alike, free, True)
    for chain, *place in np.argwhere(still & ~alike & ~np.all(still, axis=0)):
        numbers = draws[(slice(None), slice(None), *place)]
        stuck[(chain, *place)] = numbers[chain, 0] not in numbers[~still[(slice(None), *place)]]
    return stuck


def name_stuck(
    draws: Numbers, free: Mapping[str, np.ndarray | bool], run: str = "chain", labels: Labels | None = None
) -> list[str]:
    """The row names of numbers with a chain that never moved, with the indices of these chains unless it was all."""
    found = {name: stuck_chains(leaf, free.get(name, False)) for name, leaf in draws.items()}
    return [text for name, stuck in found.items() for text in describe(name, stuck, run, labels)]


def describe(name: str, stuck: np.ndarray, run: str, labels: Labels | None) -> Iterator[str]:
    """The rows of a parameter with chains [chain, ...] that never moved."""
    if not np.any(stuck):
        return
    for row, chains in zip(entry_names(name, {name: stuck[0]}, labels), stuck.reshape(len(stuck), -1).T, strict=True):
        if np.any(chains):
            yield row if np.all(chains) else with_runs(row, chains, run)


def with_runs(what: str, chosen: np.ndarray, run: str) -> str:
    """A name, and the indices of the chosen runs."""
    return f"{what} ({run} {', '.join(map(str, np.flatnonzero(chosen)))})"
