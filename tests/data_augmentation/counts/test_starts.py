"""Starts of tables with known totals and empty cells: within the fibre, or an error."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models
from dpjax.data_augmentation.counts import count_form, starts
from dpjax.data_augmentation.counts.table import table_of
from tests.data_augmentation.counts import cases
from tests.data_augmentation.counts.cases import COLUMNS, COLUMNS_KNOWN, GAP, ROWS, ROWS_KNOWN, ZERO_KNOWN

COUNTS = dpjax.counts(8)
NUM_CHAINS = 16


def known(values: np.ndarray, groups: np.ndarray, n: int = cases.N) -> dpjax.Release:
    return cases.sums_release(values, groups, dpjax.Exact(), n)


def start(model: dpjax.Model, *known_parts: dpjax.Release, value: np.ndarray = cases.VALUE) -> np.ndarray:
    """The counts [chain, c] that chains start from."""
    release = dpjax.joint(cases.table_release(value), *known_parts)
    keys = tuple(jax.random.split(jax.random.key(3)))
    states = COUNTS.find_starts(keys, *count_form(model, release), NUM_CHAINS, None)
    return np.asarray(states.latent.records["counts"])[:, 0]


SKEWED = models.categorical(cases.SKEWED)
SOME = np.array([6, 5, 3, 5, 7, 4])
"""A table with the known margins that has records in a cell where nobody can be."""


@pytest.mark.x64
@pytest.mark.parametrize("value", [cases.VALUE, SOME], ids=["far", "near"])
@pytest.mark.parametrize("empty", ["known", "impossible"])
def test_chains_start_with_the_known_totals_and_nobody_in_empty_cells(empty: str, value: np.ndarray) -> None:
    """Whether the release says that a cell is empty or the model that no record can be in it."""
    parts = [known(*COLUMNS_KNOWN)] + [known(*ZERO_KNOWN)] * (empty == "known")
    counts = start(SKEWED if empty == "known" else cases.with_gap(), *parts, value=value)
    np.testing.assert_array_equal(counts[:, GAP], 0)
    np.testing.assert_array_equal(counts @ cases.membership(COLUMNS).T, np.tile(COLUMNS_KNOWN[0], (NUM_CHAINS, 1)))
    assert np.all(counts >= 0)


def test_nobody_is_added_to_cells_that_are_impossible() -> None:
    """Though no table with these margins is nearer than one with records there."""
    release = dpjax.joint(cases.table_release(SOME), known(*COLUMNS_KNOWN), known(*ROWS_KNOWN))
    table = table_of(count_form(SKEWED, release)[1])
    cells, possible = np.where(np.arange(6) == GAP, 0, SOME + np.array([0, 5, 0, 0, 0, 0])), np.arange(6) != GAP
    assert starts.into_limits(table, starts.known_limits(table), cells, np.ones(6, bool))[GAP] > 0
    found = starts.into_limits(table, starts.known_limits(table), cells, possible)
    assert found[GAP] == 0
    np.testing.assert_array_equal(cases.membership(ROWS) @ found, ROWS_KNOWN[0])


@pytest.mark.x32
def test_shares_that_are_rounded_to_0_do_not_matter_where_they_are_integrated_out() -> None:
    model = models.categorical(np.full(6, 1e-4))
    counts = start(model, known(*COLUMNS_KNOWN))
    np.testing.assert_array_equal(counts.sum(axis=1), cases.N)


BOTH_ZERO = np.where(COLUMNS == 0, 0, -1)
REFUSED: dict[str, tuple[Callable[[], dpjax.Model], list[dpjax.Release], str]] = {
    "an empty column with a positive total": (
        lambda: SKEWED,
        [known(*COLUMNS_KNOWN), known(np.array([0]), BOTH_ZERO)],
        "contradict",
    ),
    "a positive total of an impossible cell": (
        cases.with_gap,
        [known(np.array([4]), ZERO_KNOWN[1])],
        "probability 0",
    ),
    "an empty cell within both margins": (
        lambda: SKEWED,
        [known(*COLUMNS_KNOWN), known(*ROWS_KNOWN), known(*ZERO_KNOWN)],
        "decomposable",
    ),
    "more than n": (lambda: SKEWED, [known(np.array([31]), np.where(ROWS == 0, 0, -1))], "contradict"),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_table_has_is_refused_by_name(name: str) -> None:
    model, parts, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        start(model(), *parts)


MANY = 60


def mostly_impossible() -> dpjax.Model:
    """A table of sixty cells, all but each tenth of them impossible."""
    possible = np.arange(0, MANY, 10)
    rest = models.categorical(np.ones(len(possible)))
    unused = ("update", "update_log_density", "noncentred", "summarize", "log_likelihood", "conjugate")
    logs = jnp.where(np.isin(np.arange(MANY), possible), 0.0, -jnp.inf)
    return rest._replace(
        sample_records=lambda key, parameters, n: {"cell": 10 * rest.sample_records(key, parameters, n)["cell"]},
        log_density=lambda parameters, records: (
            logs[records["cell"]] + jnp.log(parameters["probabilities"])[records["cell"] // 10]
        ),
        support=lambda: {"cell": jnp.arange(MANY)},
        **dict.fromkeys(unused),
    )


@pytest.mark.x64
def test_impossible_cells_that_may_cut_tables_apart_are_refused_unless_they_are_told() -> None:
    table = cases.table_release(np.full(MANY, 1_000), 1_000 * MANY)
    empty = np.where(np.arange(MANY) % 10 == 0, -1, 0)
    with pytest.raises(ValueError, match="54 of 60 cells"):
        dpjax.gibbs(mostly_impossible(), table, COUNTS)
    dpjax.gibbs(mostly_impossible(), dpjax.joint(table, known(np.array([0]), empty, 1_000 * MANY)), COUNTS)


def test_impossible_cells_within_margins_are_refused() -> None:
    release = dpjax.joint(cases.table_release(cases.VALUE), known(*COLUMNS_KNOWN), known(*ROWS_KNOWN))
    with pytest.raises(ValueError, match="structural zeros"):
        dpjax.gibbs(cases.with_gap(), release, COUNTS)


def test_starts_of_a_published_key_have_a_record_of_it():
    noise, keys = dpjax.DiscreteLaplace(1.5), ["a", "b", "c"]
    release = dpjax.releases.thresholded(["b"], [3], keys, noise, threshold=2, n=4, only_present=True)
    model, form = count_form(dpjax.models.categorical(concentration=[1.0, 1.0, 1.0]), release)
    for seed in range(3):
        states = starts.find_starts(jax.random.split(jax.random.key(seed)), model, form, 20, None, True)
        counts = np.asarray(states.latent.records["counts"])[:, 0]
        assert np.all(counts[:, 1] > 0)
        assert np.all(counts.sum(axis=1) == 4)
