"""Chains that never moved, told from numbers that cannot change."""

from collections.abc import Iterator, Mapping

import jax
import numpy as np

from dpjax.base import Model
from dpjax.imputation.forms import OwnLatentData
from dpjax.plan import SweepPlan
from dpjax.simulate import draw_parameters, parameter_shapes
from dpjax.summary import entry_names

__all__ = ["free_numbers", "name_refused", "name_stuck", "never_change", "stuck_chains"]

PRIOR_DRAWS = 16

Numbers = Mapping[str, np.ndarray]


def never_change(draws: np.ndarray) -> np.ndarray:
    """Which numbers [...] are the same in all draws [chain, draw, ...]."""
    draws = np.asarray(draws)
    return np.all(draws == draws[:1, :1], axis=(0, 1))


def free_numbers(model: Model, draws: Numbers) -> dict[str, np.ndarray]:
    """Which numbers [...] of each parameter vary under the prior; nothing is said where all of the draws do.

    What the model derives, or reports of records, may well be fixed by the release, and is left out.
    """
    names = [name for name in parameter_shapes(model) if name in draws]
    if not any(np.any(never_change(draws[name])) for name in names):
        return {}
    prior = draw_parameters.quickly(jax.random.key(0), model, PRIOR_DRAWS)
    return {name: ~never_change(np.asarray(prior[name])[None]) for name in names}


def stuck_chains(draws: np.ndarray, free: np.ndarray | bool) -> np.ndarray:
    """Which chains [chain, ...] never moved in draws [chain, draw, ...].

    A value that a chain which moves has too is one of few: such chains may stand there for long. Where all chains have
    one and the same value it is for `free` to say: constants by construction cannot move, and chains of different
    starts do not agree by chance.

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


def name_stuck(draws: Numbers, free: Mapping[str, np.ndarray | bool], run: str = "chain") -> list[str]:
    """The numbers of which a chain never moved, by the names of their rows, with these chains unless it was all."""
    found = {name: stuck_chains(leaf, free.get(name, False)) for name, leaf in draws.items()}
    return [text for name, stuck in found.items() for text in describe(name, stuck, run)]


def describe(name: str, stuck: np.ndarray, run: str) -> Iterator[str]:
    """The rows of a parameter with chains [chain, ...] that never moved."""
    if not np.any(stuck):
        return
    for row, chains in zip(entry_names(name, {name: stuck[0]}), stuck.reshape(len(stuck), -1).T, strict=True):
        if np.any(chains):
            yield row if np.all(chains) else with_runs(row, chains, run)


def name_refused(rates: np.ndarray, plan: SweepPlan, of: str = "the records") -> list[str]:
    """The records of chains that accepted none of their offers, by rates [chain, draw], unless they move otherwise.

    Counts that stand still in all chains may be the only ones that known totals allow.
    """
    refused = np.all(rates == 0, axis=1)
    pinned = isinstance(plan.imputation, OwnLatentData) and np.all(refused)
    return [with_runs(of, refused, "chain")] if np.any(refused) and not (plan.interweave or pinned) else []


def with_runs(what: str, chosen: np.ndarray, run: str) -> str:
    """A name, and the numbers of the runs that are meant."""
    return f"{what} ({run} {', '.join(map(str, np.flatnonzero(chosen)))})"
