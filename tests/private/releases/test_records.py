"""Records are read after the charge, each entry by itself: none changes another's, and none shows before."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private, statistics
from dpjax.private.people import People
from dpjax.private.releases.layout import lay_out
from dpjax.private.releases.records import charged
from tests.private.releases.odd_entries import ODD
from tests.private.releases.paid_sums import BUDGET, TOTAL, exact, read, seeded
from tests.tools.killed_files import Death

LARGE = 2**53 if jax.config.jax_enable_x64 else 2**24
"""From here on floats do not tell whole numbers apart."""
COUNTS = statistics.cells("y", 3)
WHO = People("who", 2)


def parity(record: dict[str, Any]) -> jax.Array:
    """What shows which of two neighbouring whole numbers it is given."""
    return jnp.stack([jnp.sum(record["y"]) % 2])


PARITY = statistics.clipped(parity, 1.0, dimension=1)


def objects(entries: list[Any]) -> np.ndarray:
    """An array of objects, of any entries."""
    array = np.empty(len(entries), object)
    for place, one in enumerate(entries):
        array[place] = one
    return array


def frame(**columns: Any) -> Any:
    """A table of pandas, which chooses the types of its columns."""
    return pytest.importorskip("pandas").DataFrame(columns)


class Shut(list):
    """A list that cannot be looked into."""

    def __iter__(self) -> Any:
        raise Death

    __getitem__ = __contains__ = __eq__ = __reversed__ = index = lambda *given: iter(Shut())  # type: ignore[assignment]


HELD: dict[str, Callable[[list[Any]], tuple[Any, dict[str, Any]]]] = {
    "list": lambda entries: ({"y": entries}, {}),
    "tuple": lambda entries: ({"y": (*entries,)}, {}),
    "objects": lambda entries: ({"y": objects(entries)}, {}),
    "table": lambda entries: (frame(y=objects(entries)), {}),
    "batches": lambda entries: ([{"y": entries[:2]}, {"y": entries[2:]}], {"dtypes": {"y": float}}),
    "last batch": lambda entries: ([{"y": [1] * 6}, {"y": objects(entries[-1:])}], {"dtypes": {"y": float}}),
    "several columns": lambda entries: (
        frame(a=objects(entries), b=[1] * len(entries)),
        {"columns": {"y": ["a", "b"]}, "dtypes": {"y": float}},
    ),
    "people": lambda entries: ({"y": entries, "who": [*range(len(entries))]}, {"people": WHO}),
    "identifiers": lambda entries: ({"y": [1] * len(entries), "who": entries}, {"people": WHO}),
    "identifiers of a table": lambda entries: (frame(y=[1] * len(entries), who=objects(entries)), {"people": WHO}),
}
STATISTICS = {"functions": PARITY, "numbers": TOTAL, "categories": COUNTS}


def laid_out(held: Any, statistic: Any, columns: Any = None, dtypes: Any = None, people: People | None = None) -> Any:
    """What is known before the charge."""
    return lay_out(held, statistic, columns, dtypes, people or private.people.EACH_RECORD)


@pytest.fixture
def strict() -> Iterator[None]:
    """As a user may have it: what NumPy or Python would warn of raises."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_nothing_of_an_entry_shows_before_the_charge(strict: None) -> None:
    """Of a last batch, of half of all or of what NumPy warns of, errors told for nothing that it was there."""
    assert len(ODD) > 200
    for place, name in enumerate(HELD):
        plain, options = HELD[name]([1] * 8)
        statistic = PARITY if "dtypes" in options else [*STATISTICS.values()][place % 3]
        expected = laid_out(plain, statistic, **options)
        for start in range(place, len(ODD), 50):
            held, _ = HELD[name](ODD[start:] + ODD[:start])
            assert laid_out(held, statistic, **options) == expected


@pytest.mark.parametrize("kind", STATISTICS)
def test_lists_and_batches_are_not_looked_into(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def batches() -> Iterator[Any]:
        started.append(1)
        yield {"y": Shut([1, 2])}

    monkeypatch.setattr(private.Ledger, "charge", lambda *_: (_ for _ in ()).throw(ZeroDivisionError("charged")))
    shut = Shut([1, 2])
    people: dict[str, Any] = {"people": "who", "max_rows": 1}
    for records, options in (({"y": shut}, {}), ({"y": shut, "who": shut}, people), (batches(), {"people": None})):
        with pytest.raises(ZeroDivisionError, match="charged"):
            private.release(private.Ledger(BUDGET), STATISTICS[kind], records, dtypes={"y": int}, **options)
    assert started == []


def check_plain_entries(name: str, entries: list[Any], is_plain: np.ndarray, layout: Any = None) -> None:
    """Raise unless those entries of a container that are 1 are read as such, whatever the others are."""
    statistic = COUNTS if "ident" in name or name == "people" else PARITY
    held, options = HELD[name](entries)
    layout = layout or laid_out(held, statistic, **options)
    with charged():
        batches = list(read(held, statistic, options.get("people"), seeded(), layout=layout))
    values = np.concatenate([batch.fields["y"] for batch in batches])
    readable = np.concatenate([batch.is_readable for batch in batches])
    assert values.dtype == layout.fields["y"].reading.dtype
    assert np.all(np.isfinite(values))
    if "ident" in name:
        assert np.sum(readable) >= np.sum(is_plain[-2:])  # two rows of all whose identifier is 1
    else:
        places = is_plain if name != "last batch" else np.ones(len(values), bool)
        places[-1] &= bool(is_plain[-1])
        assert np.all(values[places] == 1)
        assert np.all(readable[places])


@pytest.mark.parametrize("name", HELD)
def test_an_entry_is_read_by_itself(name: str, strict: None) -> None:
    """Whatever stands before and after them, the others are what they are, of the same type."""
    for odd in (ODD, ODD[::-1]):
        entries = [one for other in odd for one in (other, 1)]
        check_plain_entries(name, entries, np.arange(len(entries)) % 2 == 1)
        check_plain_entries(name, entries[:-1], np.arange(len(entries) - 1) % 2 == 1)


@pytest.mark.parametrize("place", [0, 2, 3])
def test_one_odd_entry_is_read_by_itself(place: int, strict: None) -> None:
    layout = laid_out({"y": [1]}, PARITY)
    for odd in ODD:
        entries = [1, 1, 1, 1]
        entries[place] = odd
        check_plain_entries("list", entries, np.arange(4) != place, layout)


def rows(records: Any, statistic: Any, **options: Any) -> np.ndarray:
    """What all records but the last contribute, in whole numbers, and whether they can be read."""
    found = []
    for batch in read(records, statistic, options.pop("people", None), seeded(), **options):
        total = np.asarray(jax.vmap(statistic)({name: jnp.asarray(leaf) for name, leaf in batch.fields.items()}), float)
        found.append(np.where(batch.is_readable[:, None], total, -1.0))
    return np.concatenate(found)[:-1]


PROMOTED: dict[str, Callable[[list[Any]], tuple[Any, dict[str, Any]]]] = HELD | {
    "table of pandas": lambda entries: (frame(y=entries), {}),
    "column of pandas": lambda entries: ({"y": frame(y=entries)["y"]}, {}),
    "several columns": lambda entries: (
        frame(a=[*entries[:-1], 4], b=[0] * (len(entries) - 1) + [entries[-1]]),
        {"columns": {"y": ["a", "b"]}},
    ),
}


@pytest.mark.parametrize("declared", [None, int, float])
@pytest.mark.parametrize("name", [one for one in PROMOTED if "ident" not in one and "batch" not in one])
def test_one_entry_changes_its_own_contribution_alone(name: str, declared: Any) -> None:
    """An entry of 4.5 made floats of 2^53 + 3 or, in float32, of 2^24 + 3, and the sum fell from 393 to 8."""
    if declared is int and name == "several columns":
        declared = np.int32
    found = []
    for last in (4, 4.5, -1, 2**63, None, "x", True):
        held, options = PROMOTED[name]([LARGE + 3] * 40 + [last])
        if declared is not None:
            options = options | {"dtypes": {"y": (declared, 2) if name == "several columns" else declared}}
        found.append(rows(held, PARITY, **options))
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize(
    "statistic",
    [
        statistics.total("y", LARGE / 2, LARGE * 2.0),
        statistics.histogram("y", [0.0, LARGE + 2.0, LARGE + 4.0]),
        statistics.around("y", [LARGE + 2.0]),
        statistics.powers("y", 0.0, 4.0),
        statistics.grouped("y", [0, 1, 0, 1]),
        COUNTS,
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_pandas_has_promoted_is_read_as_it_was(statistic: Any) -> None:
    """By statistics of dpjax, too: numbers as the same floats, and categories below 2^53 alone."""
    for whole in (2**24 + 3, 2**53 + 1, 2**53 + 3, 2):
        both = [frame(y=[whole] * 8 + [last]) for last in (4, 4.5)]
        assert both[0]["y"].dtype != both[1]["y"].dtype
        np.testing.assert_array_equal(*(rows(one, statistic) for one in both))


def test_numbers_that_a_float_does_not_hold_are_replaced_unless_a_type_is_declared() -> None:
    """A function of the user's was given another number, without a word."""
    large = {"y": [LARGE + 1, 1.5]}
    ledger = private.Ledger(BUDGET)
    with pytest.warns(UserWarning, match="of the records, 1 had an entry"):
        private.release(ledger, PARITY, large)
    assert len(ledger.queries) == 1
    as_whole = {"dtypes": {"y": int}}
    for last in (1, 1.5):
        total = exact({"y": [LARGE + 1, last]}, PARITY, np.ones(1), **as_whole)
        assert (total.steps.tolist(), total.num_replaced) == ([2 if last == 1 else 1], int(last == 1.5))
    assert rows({"y": [LARGE + 1, 1]}, PARITY, dtypes={"y": float}).tolist() == [[0.0]]  # as it was asked for


def test_vectors_of_lists_and_batches_have_the_shape_that_is_stated() -> None:
    """By a statistic of dpjax, by dtypes, or by the list of columns."""
    gram = statistics.gram([-2.0, -2.0], [2.0, 2.0])
    both = [[0.5, 1.0], [0.25, -1.0]]
    expected = next(read({"x": np.array(both)}, gram)).fields["x"]
    length = statistics.clipped(lambda record: record["x"] * 1.0, 1.0, dimension=2)
    stated = {"dtypes": {"x": (float, 2)}}
    for records, statistic, options in (
        ({"x": both}, gram, {}),
        ({"x": np.array(both, object)}, gram, {}),
        ([{"x": np.array(both)}], gram, {}),
        ([{"x": np.array(both)}], length, stated),
        ({"x": both}, length, stated),
        (frame(a=[0.5, 0.25], b=[1, -1]), length, {"columns": {"x": ["a", "b"]}}),
    ):
        batch = next(read(records, statistic, **options))
        np.testing.assert_array_equal(batch.fields["x"], expected)
        assert np.all(batch.is_readable)
    with pytest.raises(ValueError, match=r"^statistic: "):
        private.release(private.Ledger(BUDGET), length, {"x": both})


def test_fields_that_do_not_matter_are_not_read() -> None:
    """A column of names beside those that are summed needs no `columns=`, and a gap in it is no error."""
    records = {"y": [0.5, 1.0], "name": np.array(["a", "b"]), "z": [None, "x"], "w": np.array([np.nan, 1.0])}
    for held in (records, frame(**records)):
        for statistic in (TOTAL, PARITY, statistics.count()):
            batch = next(read(held, statistic))
            assert np.all(batch.is_readable)
            assert not np.any(batch.fields["w"])
    with pytest.raises(TypeError, match=r"^records: given a column 'name' of texts"):
        private.release(private.Ledger(BUDGET), statistics.total("name", 0.0, 1.0), records, people=None)
