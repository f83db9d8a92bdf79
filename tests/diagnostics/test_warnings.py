"""What a summary complains of, and what it advises: by how much, of which size, and no more than helps."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpjax
from dpjax.diagnostics.warnings import warn_of_nonfinite

INDEPENDENT = np.random.default_rng(4).normal(size=(4, 1_000))


def undone(*, number, chains=4, draws=1_000):
    """So many undone moves, all in the first chain, each in a draw of its own."""
    counts = np.zeros((chains, draws), int)
    counts[0, :number] = 1
    return counts


@pytest.mark.parametrize("counts", [undone(number=1), undone(number=8), undone(number=1, draws=60)])
def test_a_few_undone_moves_in_a_whole_run_are_no_complaint(counts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_nonfinite(counts)


@pytest.mark.parametrize("counts", [undone(number=60), np.tile(undone(number=15)[:1], (4, 1))], ids=["one", "all"])
def test_many_undone_moves_are_reported_with_their_share(counts):
    with pytest.warns(
        UserWarning, match=r"proposals or moves in [14] of 4 chains, 0\.015 a sweep, were undone because"
    ):
        warn_of_nonfinite(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_nonfinite(counts, sweeps=10)  # draws that are ten sweeps apart


@pytest.mark.x64
def test_a_run_with_few_of_them_says_nothing(posterior):
    replace(posterior, info=posterior.info | {"num_nonfinite": undone(number=8)}).summary()


def test_a_small_effective_size_says_of_what_it_is(posterior):
    calm = np.where(np.abs(INDEPENDENT) < 1.5, INDEPENDENT, np.sign(INDEPENDENT))
    for start in (100, 600):  # both tails come in a row, by turns
        calm[:, start : start + 60] = np.tile([3.0, -3.0], 30)
    with pytest.warns(UserWarning, match=r"an effective sample size below 400: theta\[1\] \(tails \d+\)\. ") as caught:
        replace(posterior, draws={"theta": np.stack([INDEPENDENT, calm], axis=2)}).summary()
    assert "initial=" not in str(caught[0].message)
    slow = np.repeat(INDEPENDENT[:, :50], 20, axis=1)
    with pytest.warns(UserWarning, match=r"below 400: theta \(bulk \d+, tails \d+\)"):
        replace(posterior, draws={"theta": slow}).summary()


def test_chains_that_disagree_are_told_of_other_starts(posterior):
    apart = INDEPENDENT + np.array([0.0, 0, 0, 1])[:, None]
    with pytest.warns(UserWarning, match=r"R-hat above 1.01: theta.*of your own \(initial=.*dpjax\.sample_smc"):
        replace(posterior, draws={"theta": apart}).summary()


def test_interweaving_is_advised_where_it_pays_and_not_for_tables(posterior):
    off = replace(posterior.plan, interweave=False)
    assert "interweave=True" in replace(posterior, plan=off).remedy
    table, shares = dpjax.statistics.cells("cell", 3), dpjax.models.categorical([1.0, 1.0, 1.0])
    release = dpjax.Release([3.0, 4.0, 5.0], dpjax.Laplace(1.0), table, n=12)
    local = dpjax.LocalRelease(np.zeros(12, int), dpjax.RandomizedResponse(keep=0.9, num_categories=3), field="cell")
    for given in (release, local):
        assert shares.has("noncentred")
        assert "interweave" not in replace(posterior, model=shares, release=given, plan=off).remedy
