"""Where the runs of a batch begin: with the keys, starts and tuning that `dpjax.sample` gives each release alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import jax
import numpy as np

from dpjax.base import Array, Key, Model
from dpjax.batches.inputs import stack
from dpjax.batches.run import Run, Status, map_groups, open_run
from dpjax.compilation import jit_quickly
from dpjax.imputation.forms import OwnLatentData
from dpjax.numbered import jit_model
from dpjax.numerics import take_entry
from dpjax.parameters import Tuning, fit_to_prior
from dpjax.release import PrivateRelease
from dpjax.sampling.sample import RunKeys, split_key
from dpjax.sampling.starts import FEW_RECORDS, Candidate, climb, fail_to_start, search
from dpjax.states import GibbsState

__all__ = ["begin", "split_keys"]


@partial(jit_quickly, static_argnames=("num_chains",))
def split_keys(key: Key, numbers: Array, num_chains: int) -> RunKeys:
    """The keys of the runs of releases of these numbers [release]: release i has those of ``fold_in(key, i)``."""
    return jax.vmap(lambda number: split_key(jax.random.fold_in(key, number), num_chains))(numbers)


def begin(run: Run, keys: RunKeys) -> Status:
    """The status before the first step."""
    tuning = tune_all.quickly(run.model, keys.tuning) if run.plan.uses_tuning else None
    return open_run(run, find_all(run, keys.starts), tuning)


@jit_model
def tune_all(model: Model, keys: Key) -> Tuning:
    """The tuning of each release [release, ...], fitted to draws from the prior of its own."""
    fitted: Tuning = jax.lax.map(partial(fit_to_prior, model=model), keys)
    return fitted


def find_all(run: Run, keys: tuple[Key, Key]) -> GibbsState:
    """States [release, chain, ...] of positive density; an error says for which release there is none."""
    if not isinstance(run.plan.imputation, OwnLatentData):
        return find_records(run, keys)
    states: GibbsState = stack([find_own(run, keys, number) for number in range(len(run.chain_keys))])
    return states


def find_own(run: Run, keys: tuple[Key, Key], number: int) -> GibbsState:
    """The states [chain, ...] of one release, by the imputation's own search."""
    imputation, num_chains = run.plan.imputation, run.chain_keys.shape[1]
    assert isinstance(imputation, OwnLatentData), "others search for records"
    with naming(number):
        return imputation.find_starts(
            take_entry(keys, number), run.model, take_entry(run.releases, number), num_chains, None
        )


def find_records(run: Run, keys: tuple[Key, Key]) -> GibbsState:
    """The states that `dpjax.sampling.starts.find_starts` finds for each release."""
    look = search_all.quickly if run.chain_keys.size * run.release.n <= FEW_RECORDS else search_all
    best = look(run.model, run.chain_keys.shape[1], run.group, keys[0], run.releases)
    if not np.all(best.found):
        best = climb_all(run.model, run.group, keys[1], run.releases, best)
    found = np.asarray(best.found)
    for number in np.flatnonzero(~np.all(found, axis=1)).tolist():
        with naming(number):
            fail_to_start(take_entry(run.releases, number), found[number], None)
    return best.state


@partial(jit_model, static_argnames=("num_chains", "group"))
def search_all(model: Model, num_chains: int, group: int, keys: Key, releases: PrivateRelease) -> Candidate:
    """The candidates [release, chain, ...] of `search`, for so many releases at a time."""
    best: Candidate = map_groups(lambda given: search(model, num_chains, *given, None), (keys, releases), group)
    return best


@partial(jit_model, static_argnames=("group",))
def climb_all(model: Model, group: int, keys: Key, releases: PrivateRelease, best: Candidate) -> Candidate:
    """The candidates [release, chain, ...] after `climb`, for so many releases at a time."""
    climbed: Candidate = map_groups(lambda given: climb(model, *given), (keys, releases, best), group)
    return climbed


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Adds to an error which release it is about."""
    try:
        yield
    except ValueError as error:
        error.add_note(f"It is release {number} of the batch.")
        raise
