"""Releases that protect people who have several rows."""

from uuid import UUID

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, private, statistics
from dpjax.private.people import People, number_people
from dpjax.private.releases.records import Batch, select_rows
from tests.private.releases.paid_sums import ADDED, BUDGET, read, seeded

ROWS = 3
PEOPLE = People("who", ROWS)
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


def release(statistic, records=RECORDS, budget=ADDED, identifiers=WHO, **options):
    options = {"people": "who", "max_rows": ROWS, "n": UNKNOWN, "noise": seeded()} | options
    return private.release(private.Ledger(budget), statistic, records | {"who": identifiers}, **options)


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
        people=None,
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
    batch, fixed = Batch({"row": np.arange(10)}, np.ones(10, bool)), {"row": np.array(-1)}
    source = seeded()
    chosen = [select_rows(batch, WHO, PEOPLE, source, fixed).fields["row"] for _ in range(700)]
    counts = np.bincount(np.concatenate(chosen), minlength=10)
    assert all(len(rows) == ROWS + 2 + 1 for rows in chosen)
    np.testing.assert_array_equal(counts[7:], 700)
    assert stats.chisquare(counts[:7]).pvalue > 1e-3


def test_one_row_for_each_person_leaves_their_number_public():
    published = release(statistics.cells("group", 3), budget=BUDGET, max_rows=1, n=None)
    assert published.n == 3
    plain = private.release(private.Ledger(BUDGET), statistics.cells("group", 3), RECORDS, people=None)
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
def test_rows_of_no_one_are_left_out_or_replaced(missing):
    """Left out where their number is confidential; else fixed values stand for them, so that they add a known number.

    An error cost the whole budget. Leaving them out where n is public would move the sum by more than the noise covers.
    """
    who = WHO.astype(object)
    who[7:] = ["bob", missing, missing]
    for options, number, added in (({}, UNKNOWN, 0), ({"max_rows": 1, "n": None, "budget": BUDGET}, 4, 2)):
        with pytest.warns(UserWarning, match="of the records, 2 had an entry .* not private"):
            published = release(OFFSET, {"y": np.full(10, 4.0)}, identifiers=who, **options)
        rows = (ROWS + 1 if not options else 2) * 4.0 + added * 4.5
        same = release(OFFSET, {"y": np.full(10, 4.0)}, **options)
        assert published.n == number
        named = (ROWS + 2 + 1 if not options else 3) * 4.0
        np.testing.assert_allclose(published.value - same.value, rows - named, atol=1e-4)


Y = RECORDS["y"].tolist()


def double(record):
    """A function of one of its fields."""
    return 2.0 * jnp.stack([record["y"]])


def people_of(who, normalise=None):
    """The number of each row's person, and whether it has one."""
    numbers, known = number_people(who, People("who", 2, normalise))
    return numbers.tolist(), known.tolist()


def test_identifiers_are_compared_as_they_stand():
    """Whatever their type: 7 and "7" were one person. Of none that is no number or text, such as NaN, are there any."""
    same = [7, np.int64(7), np.uint8(7)], ["x", np.str_("x")]
    apart = [7, "7", " 7", "7.0", b"7", True, 2**70, 2**70 + 1, UUID(int=7)]
    assert all(len(set(people_of(who)[0])) == 1 for who in same)
    assert people_of(apart) == (list(range(len(apart))), [True] * len(apart))
    assert people_of([7.0, float("nan"), None, [1], object(), np.longdouble(7)])[1] == [False] * 6


@pytest.mark.parametrize("container", [list, lambda who: np.array(who, object)], ids=["list", "objects"])
def test_one_identifier_merges_no_other_people(container):
    """A last one of 0.5 made floats of all: of 401 people 7 were left, whose rows were another sum."""
    who = [16 * 10**17 + number for number in range(400)]
    for last, people in ((16 * 10**17 + 400, 401), (0.5, 400), ("x", 401)):
        records = {"y": np.ones(401), "who": container([*who, last])}
        batches = read(records, statistics.total("y", 0.0, 1.0), People("who", 2), seeded())
        assert sum(int(np.sum(batch.is_readable)) for batch in batches) == people


def test_floats_are_no_identifiers_by_their_type_alone():
    """An array of whole numbers and one float has lost them before: it is refused whatever it holds."""
    pandas = pytest.importorskip("pandas")
    for who in (np.arange(10.0), np.arange(10) * 1j, np.ma.masked_array(np.arange(10)), WHO.reshape(5, 2)):
        with pytest.raises((TypeError, ValueError), match=r"^people: given a "):
            release(OFFSET, RECORDS, identifiers=who)
    frame = pandas.DataFrame(RECORDS | {"who": [1, *range(9)]}).convert_dtypes()
    frame["who"] = frame["who"].where(frame["who"] > 0)  # whole numbers and gaps, in a type that has both
    options = {"people": "who", "max_rows": 2, "n": UNKNOWN}
    with pytest.warns(UserWarning, match="of the records, 1 had an entry"):
        private.release(private.Ledger(ADDED), OFFSET, frame, **options)
    with pytest.raises(TypeError, match=r"^people: given a column of float64"):
        private.release(private.Ledger(ADDED), OFFSET, frame.astype({"who": float}), **options)


def test_a_function_of_the_user_says_which_identifiers_are_one_person():
    assert people_of([" 7", "7", 7, "07"], lambda one: int(str(one)))[0] == [0] * 4
    numbers, known = people_of(["a", "", None, "A", "b"], lambda one: {"a": 1, "b": 2}[one.lower()])
    assert known == [True, False, False, True, True]
    assert numbers[0] == numbers[3] != numbers[4]
    with pytest.warns(UserWarning, match="of the records, 3 had an entry"):
        release(OFFSET, normalise=lambda one: {"ann": 1}[one])
    few, more = (release(statistics.count(), normalise=one) for one in (lambda one: 0, lambda one: one.strip()))
    np.testing.assert_array_equal(more.value - few.value, 3.0)


@pytest.mark.parametrize("name", ["ssn", "household", "anything"])
def test_columns_that_are_not_used_are_asked_about(name):
    """Rows of up to five people went out with the noise for one where the column had a name that was not thought of."""
    pandas = pytest.importorskip("pandas")
    frame, words = pandas.DataFrame(RECORDS | {name: WHO}), f"beside columns .*'{name}'.* that are not used"
    alone = {"y": RECORDS["y"]}
    for records, columns in (
        (frame, {"y": "y"}),
        (frame, None),
        (alone | {name: WHO}, None),
        (alone | {name: Y}, None),
    ):
        for statistic in (OFFSET, statistics.clipped(double, 1.0, dimension=1)):
            with pytest.raises(ValueError, match=f"^people: given nothing, {words}; expected people="):
                private.release(private.Ledger(BUDGET), statistic, records, columns=columns)
    private.release(private.Ledger(BUDGET), OFFSET, frame, people=None, noise=seeded())
    private.release(private.Ledger(BUDGET), OFFSET, alone, noise=seeded())


WRONG = {
    "max_rows": {"max_rows": None},
    "max_rows of zero": {"max_rows": 0},
    "max_rows alone": {"people": None, "max_rows": 1},
    "max_rows that is no number": {"people": None, "max_rows": True},
    "people kind": {"people": WHO},
    "people absent": {"people": "whom"},
    "normalise kind": {"normalise": "strip"},
    "normalise alone": {"people": None, "max_rows": None, "normalise": str.strip},
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
    batch = next(read(RECORDS, statistics.total("y", 0.0, 2.0)))
    sums = [
        float(np.sum(select_rows(batch, WHO, PEOPLE, seeded(seed), {"y": np.array(1.0)}).fields["y"]))
        for seed in range(50)
    ]
    values = [float(release(statistics.total("y", 0.0, 2.0), noise=seeded(seed)).value[0]) for seed in range(50)]
    scale = float(release(statistics.total("y", 0.0, 2.0)).mechanism.scale)
    assert abs(np.mean(values) - np.mean(sums)) < 4 * scale / 50**0.5
