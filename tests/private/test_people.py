"""Releases that protect people who have several rows."""

import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, private, statistics
from dpjax.private.releases.people import select_rows
from dpjax.private.releases.records import Batch, read_batches
from tests.private.paid_sums import ADDED, BUDGET, seeded

ROWS = 3
WHO = np.array(["ann"] * 7 + ["bob"] * 2 + ["eve"])
RECORDS = {"y": np.arange(10.0) / 5, "group": np.arange(10) % 3}
UNKNOWN = dpjax.UnknownCount(models.PoissonCount(10.0))
OFFSET = statistics.total("y", 4.0, 5.0)
"""What one row adds, 5, is more than it can move by being replaced, 1."""
PURE = {
    "replace-one": private.Budget(1.0, 0.0, "replace-one"),
    "add-or-remove": private.Budget(1.0, 0.0, "add-or-remove"),
}
APPROXIMATE = {"replace-one": BUDGET, "add-or-remove": ADDED}


def release(statistic, records=RECORDS, budget=ADDED, **options):
    options = {"people": "who", "max_rows": ROWS, "n": UNKNOWN, "noise": seeded()} | options
    return private.release(private.Ledger(budget), statistic, records | {"who": WHO}, **options)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
@pytest.mark.parametrize("budgets", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_noise_covers_all_rows_of_a_person(budgets, neighbours):
    """The scale of a sum of which one row moves K times as far, found by moving rows of two people, is the same."""
    budget = budgets[neighbours]
    given = np.linspace(4.0, 5.0, 5)
    removed = max(given.max() * rows for rows in range(1, ROWS + 1))
    numbers = range(1, ROWS + 1)
    replaced = max(abs(a * 5.0 - b * 4.0) for a in numbers for b in numbers)
    moved = replaced if neighbours == "replace-one" else removed
    published = release(OFFSET, budget=budget)
    single = private.release(
        private.Ledger(budget),
        statistics.total("y", 0.0, 1.0),
        RECORDS,
        n=None if budget is budgets["replace-one"] else 10,
    )
    assert published.mechanism.scale / single.mechanism.scale >= moved * (1 - 1e-6)
    assert published.mechanism.scale / single.mechanism.scale == pytest.approx(15.0, rel=1e-5)


def test_stated_promise_names_the_rows_of_a_person():
    secure = private.release(
        private.Ledger(ADDED), OFFSET, RECORDS | {"who": WHO}, n=UNKNOWN, people="who", max_rows=ROWS
    )
    assert secure.mechanism.privacy.max_rows == ROWS
    assert secure.mechanism.privacy.sensitivity == pytest.approx(15.0)
    assert dpjax.from_json(secure.to_json()).mechanism.privacy == secure.mechanism.privacy
    assert "persons of at most 3 records each" in dpjax.describe(secure)


def test_rows_of_a_person_are_chosen_at_random():
    """No more than K of each, each of them as often as another, and all rows of those who have fewer."""
    batch = Batch({"row": np.arange(10)}, np.ones(10, bool))
    source = seeded()
    chosen = [select_rows(batch, WHO, ROWS, source).fields["row"] for _ in range(700)]
    counts = np.bincount(np.concatenate(chosen), minlength=10)
    assert all(len(rows) == ROWS + 2 + 1 for rows in chosen)
    np.testing.assert_array_equal(counts[7:], 700)
    assert stats.chisquare(counts[:7]).pvalue > 1e-3


def test_one_row_for_each_person_leaves_their_number_public():
    published = release(statistics.cells("group", 3), budget=BUDGET, max_rows=1, n=None)
    assert published.n == 3
    plain = private.release(private.Ledger(BUDGET), statistics.cells("group", 3), RECORDS)
    assert published.mechanism.scale == plain.mechanism.scale


def test_frames_and_dicts_agree():
    """Identifiers may be words; with columns=, too, they need not be a field."""
    pandas = pytest.importorskip("pandas")
    first = release(OFFSET)
    frame = pandas.DataFrame(RECORDS | {"who": WHO})
    for columns in (None, {"y": "y"}):
        again = private.release(
            private.Ledger(ADDED),
            OFFSET,
            frame,
            columns=columns,
            n=UNKNOWN,
            people="who",
            max_rows=ROWS,
            noise=seeded(),
        )
        np.testing.assert_array_equal(again.value, first.value)


class Ambiguous:
    """Like the missing value of pandas."""

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("ambiguous")

    __hash__ = None


@pytest.mark.parametrize("missing", [None, float("nan"), Ambiguous()])
def test_rows_of_no_one_show_only_after_the_charge(missing):
    who = WHO.astype(object)
    who[0] = missing
    ledger = private.Ledger(ADDED)
    with pytest.raises(ValueError, match=r"^records: .*was charged"):
        private.release(ledger, OFFSET, RECORDS | {"who": who}, n=UNKNOWN, people="who", max_rows=10, noise=seeded())
    assert len(ledger.queries) == 1


def test_identifiers_of_any_kind_are_names():
    """Rows of unequal length are no error, and what a number is written as makes no other person of it."""
    ledger = private.Ledger(BUDGET)
    who = [[1, 2], [1], 7, 7.0, "7", np.int64(7), np.str_("x"), "x", True, 1]
    with pytest.raises(ValueError, match=r"^n: given 10"):  # the number of people is public
        private.release(ledger, OFFSET, RECORDS | {"who": who}, n=10, people="who", max_rows=1, noise=seeded())
    published = private.release(ledger, OFFSET, RECORDS | {"who": who}, people="who", max_rows=1, noise=seeded())
    assert published.n == 5


@pytest.mark.parametrize("name", ["id", "person_id", "UserID"])
def test_columns_that_name_people_are_asked_about(name):
    records = RECORDS | {name: np.arange(10)}
    with pytest.raises(ValueError, match=f"^records: given a column '{name}'; expected people="):
        private.release(private.Ledger(BUDGET), OFFSET, records)
    private.release(private.Ledger(BUDGET), OFFSET, records, max_rows=1, noise=seeded())


WRONG = {
    "max_rows": {"max_rows": None},
    "max_rows of zero": {"max_rows": 0},
    "max_rows alone": {"people": None, "max_rows": 2},
    "max_rows that is no number": {"people": None, "max_rows": True},
    "people kind": {"people": WHO},
    "people absent": {"people": "whom"},
    "n known": {"n": 10},
    "n left out": {"n": None},
}


@pytest.mark.parametrize("argument", WRONG)
def test_what_is_wrong_is_named(argument):
    with pytest.raises((TypeError, ValueError), match=f"^{argument.split(' ')[0]}: given "):
        release(OFFSET, **WRONG[argument])


def test_batches_and_matrices_of_identifiers_are_refused():
    with pytest.raises(TypeError, match=r"^records: .*all rows at once"):
        private.release(private.Ledger(ADDED), OFFSET, [RECORDS], n=UNKNOWN, people="who", max_rows=2)
    records = RECORDS | {"who": np.stack([WHO, WHO], axis=1)}
    with pytest.raises(ValueError, match=r"^people: "):
        private.release(private.Ledger(ADDED), OFFSET, records, n=UNKNOWN, people="who", max_rows=2)


def test_a_sum_is_that_of_the_rows_chosen():
    """The released value is within the noise of a sum of K rows each, not of all ten."""
    batch = next(read_batches(RECORDS, None))
    sums = [float(np.sum(select_rows(batch, WHO, ROWS, seeded(seed)).fields["y"])) for seed in range(50)]
    values = [float(release(statistics.total("y", 0.0, 2.0), noise=seeded(seed)).value[0]) for seed in range(50)]
    scale = float(release(statistics.total("y", 0.0, 2.0)).mechanism.scale)
    assert abs(np.mean(values) - np.mean(sums)) < 4 * scale / 50**0.5
