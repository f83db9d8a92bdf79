"""Where the runs of a batch begin: with the keys, starts and tuning that `dpjax.sample` gives each release alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import jit_quickly
from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.parameters import Tuning, fit_to_prior
from dpjax.data_augmentation.records.forms import OwnLatentData
from dpjax.mcmc.batch_run import BatchRun, map_groups
from dpjax.mcmc.run import RunKeys, split_key
from dpjax.mcmc.starts import FEW_RECORDS, Candidate, climb, fail_to_start, search
from dpjax.models.recipe import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.numerics import take_entry
from dpjax.release import PrivateRelease
from dpjax.release.base import is_release
from dpjax.runtime.run import Status

__all__ = ["begin", "check_formed", "check_releases", "split_keys", "stack"]


@partial(jit_quickly, static_argnames=("num_chains",))
def split_keys(key: Key, numbers: Array, num_chains: int) -> RunKeys:
    """The keys of the runs of releases of these numbers [release]: release i has those of ``fold_in(key, i)``."""
    return jax.vmap(lambda number: split_key(jax.random.fold_in(key, number), num_chains))(numbers)


def begin(run: BatchRun) -> Status:
    """The status before the first step."""
    tuning = tune_all.quickly(run.model, run.keys.tuning) if run.plan.uses_tuning else None
    return run.open(find_all(run, run.keys.starts), tuning)


@jit_model
def tune_all(model: Model, keys: Key) -> Tuning:
    """The tuning of each release [release, ...], fitted to draws from the prior of its own."""
    fitted: Tuning = jax.lax.map(partial(fit_to_prior, model=model), keys)
    return fitted


def find_all(run: BatchRun, keys: tuple[Key, Key]) -> GibbsState:
    """States [release, chain, ...] of positive density; an error says for which release there is none."""
    if not isinstance(run.plan.imputation, OwnLatentData):
        return find_records(run, keys)
    states: GibbsState = stack([find_own(run, keys, number) for number in range(len(run.keys.chains))])
    return states


def find_own(run: BatchRun, keys: tuple[Key, Key], number: int) -> GibbsState:
    """The states [chain, ...] of one release, by the imputation's own search."""
    imputation, num_chains = run.plan.imputation, run.keys.chains.shape[1]
    assert isinstance(imputation, OwnLatentData), "others search for records"
    with naming(number):
        return imputation.find_starts(
            take_entry(keys, number), run.model, take_entry(run.releases, number), num_chains, None
        )


def find_records(run: BatchRun, keys: tuple[Key, Key]) -> GibbsState:
    """The states that `dpjax.mcmc.starts.find_starts` finds for each release."""
    look = search_all.quickly if run.keys.chains.size * run.release.n <= FEW_RECORDS else search_all
    best = look(run.model, run.keys.chains.shape[1], run.group, keys[0], run.releases)
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


def check_releases(releases: Any) -> list[PrivateRelease]:
    """The releases as a list, or an error unless they differ in their numbers alone."""
    if not isinstance(releases, Sequence) or not releases:
        given = repr(releases) if isinstance(releases, Sequence) else type(releases).__name__
        remedy = "Pass a list, such as [release.sample(key, records) for key in jax.random.split(key, 200)]."
        fail("releases", given, "a list of releases", remedy, error=TypeError)
    for number, release in enumerate(releases):
        if not is_release(release):
            given = f"{type(release).__name__} in place {number}"
            fail("releases", given, "dpjax.Release or dpjax.LocalRelease", "Pass releases only.", error=TypeError)
        if form(release) != form(releases[0]):
            expected = "releases of one statistic, mechanism and n, with values of one shape and type"
            remedy = "Make a batch of each kind."
            fail("releases", f"release {number}, which is of another kind than release 0", expected, remedy)
    return list(releases)


def check_formed(formed: list[PrivateRelease]) -> list[PrivateRelease]:
    """The releases in the form of their latent data, or an error where that form is not the same for all."""
    for number, release in enumerate(formed):
        if form(release) != form(formed[0]):
            given = f"release {number}, whose known totals are others than those of release 0"
            fail("releases", given, "the same known totals, for which counts are moved", "Make a batch of each.")
    return formed


def form(release: PrivateRelease) -> Any:
    """The structure of a release, and the shapes and types of its numbers."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(release)]
    return jax.tree.structure(release), [(leaf.shape, leaf.dtype) for leaf in leaves]


def stack(trees: list[Any]) -> Any:
    """Trees of numbers as one tree of arrays with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)
