"""Every container of records, with every kind of mistake: a public one costs nothing, and one of a record no release.

A public mistake is one that arguments, names and types alone show. What is wrong with an entry shows after the charge.
"""

import warnings
from collections import deque
from collections.abc import Callable
from datetime import date
from io import StringIO
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import private, statistics
from dpjax.private.releases import release as release_module
from tests.private.releases.paid_sums import ADDED, BUDGET, exact, seeded

LEVELS = {"sex": ["f", "m"], "age": ["young", "middle", "old"]}
STATISTIC = statistics.stacked(statistics.cells([*LEVELS], levels=[*LEVELS.values()]), statistics.total("y", 0.0, 4.0))
ROWS = 12
RNG = np.random.default_rng(3)
CODES = {name: RNG.integers(0, len(levels), ROWS) for name, levels in LEVELS.items()}
NAMES = {name: [LEVELS[name][code] for code in codes] for name, codes in CODES.items()}
NUMBERS = {"y": RNG.integers(0, 9, ROWS) / 2}
STEPS = np.full(STATISTIC.dimension, 2.0**-20)
FIXED = {"sex": -1, "age": -1, "y": 2.0}

Columns = dict[str, list[Any]]
Maker = Callable[[Columns], Any]


def objects(entries: list[Any]) -> np.ndarray:
    """An array of objects."""
    array = np.empty(len(entries), object)
    for place, one in enumerate(entries):
        array[place] = one
    return array


def dict_of(make: Callable[[list[Any]], Any]) -> Maker:
    """A dict of columns made by a function."""
    return lambda columns: {name: make(entries) for name, entries in columns.items()}


def library(name: str) -> Any:
    """A library, which need not be installed."""
    return pytest.importorskip(name)


def frame(columns: Columns) -> Any:
    return library("pandas").DataFrame(columns)


def categories(columns: Columns, order: int) -> Any:
    """Text columns as categoricals with levels of their own, in one order or the other."""
    pandas, table = library("pandas"), frame(columns)
    for name in LEVELS:
        if name in table:
            own = sorted({one for one in columns[name] if isinstance(one, str)}, reverse=order < 0)
            table[name] = pandas.Categorical(columns[name], categories=[*own, "nobody"])
    return table


def sparse(columns: Columns) -> Any:
    pandas, table = library("pandas"), frame(columns)
    table["y"] = pandas.arrays.SparseArray(np.array(columns["y"], float))
    return table


def arrow(columns: Columns) -> Any:
    return library("pyarrow").table(columns)


def encoded(columns: Columns) -> Any:
    table = arrow(columns)
    return library("pyarrow").table({name: encode(table[name]) for name in table.column_names})


def encode(column: Any) -> Any:
    return column.dictionary_encode() if "string" in str(column.type) else column


def polars(columns: Columns) -> Any:
    return library("polars").DataFrame(columns, strict=True)


def polars_categories(columns: Columns) -> Any:
    table = polars(columns)
    texts = [name for name in table.columns if table.schema[name] == library("polars").String]
    return table.with_columns(library("polars").col(texts).cast(library("polars").Categorical))


def halves(columns: Columns) -> list[Columns]:
    return [{name: entries[part] for name, entries in columns.items()} for part in (slice(5), slice(5, None))]


def iterated(make: Maker, kind: Callable[[Any], Any]) -> Maker:
    """Batches made by a function, in a list, a tuple or an iterator."""
    return lambda columns: kind([make(half) for half in halves(columns)])


UNTYPED: dict[str, Maker] = {
    "lists": dict_of(list),
    "tuples": dict_of(tuple),
    "deques": dict_of(deque),
    "objects": dict_of(objects),
    "frame of objects": lambda columns: frame(dict_of(objects)(columns)),
    "dict of series": lambda columns: dict(frame(dict_of(objects)(columns)).items()),
    "batches of lists": iterated(dict_of(list), list),
    "tuple of batches": iterated(dict_of(objects), tuple),
    "generator of lists": iterated(dict_of(list), lambda batches: (one for one in batches)),
    "generator of frames": iterated(lambda columns: frame(dict_of(objects)(columns)), iter),
}
"""Of their columns nothing is known before they are read."""
TYPED: dict[str, Maker] = {
    "arrays": dict_of(np.array),
    "arrays of longer texts": dict_of(
        lambda entries: np.array(entries, "<U9" if isinstance(entries[0], str) else float)
    ),
    "frame": frame,
    "frame of str": lambda columns: frame(columns).astype({name: "string" for name in LEVELS if name in columns}),
    "frame of categories": lambda columns: categories(columns, 1),
    "frame of categories in another order": lambda columns: categories(columns, -1),
    "nullable frame": lambda columns: frame(columns).convert_dtypes(),
    "sparse frame": sparse,
    "frame of pyarrow": lambda columns: frame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "batches of frames": iterated(frame, list),
    "table of pyarrow": arrow,
    "record batch": lambda columns: library("pyarrow").record_batch(columns),
    "encoded table of pyarrow": encoded,
    "batches of tables": iterated(arrow, list),
    "polars": polars,
    "polars of categories": polars_categories,
    "batches of polars": iterated(polars, list),
}
"""Their columns have types."""
CONTAINERS = UNTYPED | TYPED
ITERATORS = [name for name in CONTAINERS if "generator" in name]
MISTAKES: dict[str, list[Any]] = {
    "sex": ["x", None, float("nan"), 2, -1, 0.5, 10**30, "", "F", b"f", [0], date(2020, 1, 1)],
    "age": ["x", None, np.nan, 3, "0"],
    "y": [float("nan"), None, float("inf"), -float("inf"), "n/a", "1.0", [1.0], 10**400, b"1", 1j, date(2020, 1, 1)],
}
Charges = list[tuple[str, Any]]


@pytest.fixture
def charges(monkeypatch: pytest.MonkeyPatch) -> Charges:
    """What happens to the ledger and is said to the data holder, in order."""
    seen: Charges = []
    charge = private.Ledger.charge
    monkeypatch.setattr(
        private.Ledger, "charge", lambda *given, **options: seen.append(("charged", 1)) or charge(*given, **options)
    )
    monkeypatch.setattr(release_module, "report", lambda number: seen.append(("replaced", number)))
    return seen


def released(records: Any, statistic: Any = STATISTIC, people: Any = None, **options: Any) -> Any:
    options = {"people": people, "noise": seeded(), "budget": BUDGET} | options
    return private.release(private.Ledger(BUDGET), statistic, records, **options)


def reference(place: int | None = None, field: str = "") -> dict[str, np.ndarray]:
    """The records in plain numbers, one of which is the fixed value."""
    plain = {name: np.array(leaf) for name, leaf in (CODES | NUMBERS).items()}
    if place is not None:
        plain[field][place] = FIXED[field]
    return plain


@pytest.mark.parametrize("name", CONTAINERS)
def test_texts_categories_and_codes_of_declared_levels_are_taken(name: str, charges: Charges) -> None:
    """In any container, in any order of its own levels: a frame of texts cost the whole budget, and gave nothing."""
    expected = released(reference()).value
    texts_alone = "str" in name or ("categories" in name and "polars" not in name)
    for columns in (NAMES, NAMES if texts_alone else {key: leaf.tolist() for key, leaf in CODES.items()}):
        records = CONTAINERS[name](columns | {"y": NUMBERS["y"].tolist()})
        np.testing.assert_array_equal(released(records).value, expected)
    assert [one for one in charges if one[0] == "replaced"] == [("replaced", 0)] * 3


def hold(name: str, columns: Columns) -> Any:
    """A container, or None if it cannot hold such entries, or makes others of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CONTAINERS[name](columns)
        except (TypeError, ValueError, OverflowError, *library_errors()):
            return None


def library_errors() -> tuple[type[Exception], ...]:
    """What pyarrow and polars raise if entries have no common type."""
    try:
        import pyarrow

        return (pyarrow.ArrowException,)
    except ImportError:
        return ()


def is_typed_otherwise(name: str, field: str, odd: Any) -> bool:
    """Whether one odd entry gives the whole column another type, which is public."""
    if "longer texts" in name and odd == 10**30:
        return False
    texts = isinstance(odd, str) and field == "y"
    others = isinstance(odd, (bytes, list, date, complex)) or (isinstance(odd, int) and abs(odd) >= 2**63)
    return name in TYPED and (texts or others or (field != "y" and not isinstance(odd, str)))


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_mistake_of_a_record_is_charged_counted_and_released(name: str, charges: Charges) -> None:
    """What is in no level, or no number, is replaced by its fixed value, whatever it is and wherever it stands."""
    tried, place = 0, 7
    for field, mistakes in MISTAKES.items():
        expected = exact(reference(place, field), STATISTIC, STEPS).steps.tolist()
        for odd in mistakes:
            columns = {key: list(leaf) for key, leaf in (NAMES | NUMBERS).items()}
            columns[field][place] = odd
            records = hold(name, columns)
            if records is None or (is_typed_otherwise(name, field, odd) and odd is not None):
                continue
            total = exact(records, STATISTIC, STEPS)
            assert (total.steps.tolist(), total.num_replaced) == (expected, 1), (field, odd)
            tried += 1
            if tried % 10 == 1:
                last = records if name not in ITERATORS else CONTAINERS[name](columns)
                charges.clear()
                released(last)
                assert charges == [("charged", 1), ("replaced", 1)]
    assert tried >= (20 if name in UNTYPED else 8)


PUBLIC: dict[str, Callable[[Maker], Any]] = {
    "missing column": lambda make: released(make({"sex": NAMES["sex"], "y": [*NUMBERS["y"]]})),
    "unknown field": lambda make: released(make(whole()), statistics.total("z", 0.0, 1.0)),
    "columns that are not there": lambda make: released(make(whole()), columns={"y": "z", "sex": "sex", "age": "age"}),
    "columns of another kind": lambda make: released(make(whole()), columns=["y"]),
    "dtypes of texts": lambda make: released(make(whole()), dtypes={"sex": str}),
    "dtypes of fields that are not there": lambda make: released(make(whole()), dtypes={"z": float}),
    "dtypes of numbers for levels": lambda make: released(make(whole()), dtypes={"sex": float}),
    "people absent": lambda make: released(make(whole()), people="who", max_rows=1),
    "max_rows alone": lambda make: released(make(whole()), max_rows=2),
    "n unknown": lambda make: released(make(whole()), n=dpjax.UnknownCount(dpjax.models.PoissonCount(9.0))),
    "n of another kind": lambda make: released(make(whole()), n=12.0),
    "shares": lambda make: released(make(whole()), shares=[1.0]),
    "two orders of levels": lambda make: released(
        make(whole()),
        statistics.stacked(statistics.cells("sex", levels=["f", "m"]), statistics.cells("sex", levels=["m", "f"])),
    ),
}
BY_TYPE: dict[str, Callable[[Maker], Any]] = {
    "texts for numbers": lambda make: released(make(whole()), statistics.total("sex", 0.0, 1.0)),
    "texts without levels": lambda make: released(make(whole()), statistics.cells("sex", 2)),
    "dates for numbers": lambda make: released(make({"y": [date(2020, 1, 1)] * ROWS}), statistics.total("y", 0.0, 1.0)),
    "bytes for levels": lambda make: released(make({"sex": [b"f"] * ROWS}), statistics.cells("sex", levels=["f", "m"])),
    "floats for people": lambda make: people_of(make(whole() | {"who": [0.5] * ROWS})),
    "lists for people": lambda make: people_of(make(whole() | {"who": [[1]] * ROWS})),
}


OBJECTS = {
    "arrays": ("dates for numbers",),
    "arrays of longer texts": ("dates for numbers", "bytes for levels", "lists for people"),
    "frame of categories": (*BY_TYPE,),
    "frame of categories in another order": (*BY_TYPE,),
    "sparse frame": ("dates for numbers", "bytes for levels", "lists for people"),
    "frames": ("dates for numbers", "bytes for levels", "lists for people"),
}
"""Mistakes that give no type to the columns of some containers."""


def whole() -> Columns:
    """Columns without a mistake."""
    return {**NAMES, "y": NUMBERS["y"].tolist()}


def people_of(records: Any) -> Any:
    number = dpjax.UnknownCount(dpjax.models.PoissonCount(9.0))
    return private.release(private.Ledger(ADDED), STATISTIC, records, people="who", max_rows=2, n=number)


FREE = [(mistake, name) for mistake in PUBLIC for name in CONTAINERS]
FREE += [(mistake, name) for mistake in BY_TYPE for name in TYPED]
LATER = ("missing column", "unknown field", "columns that are not there", "dtypes of fields that are not there")
"""What an iterator does not show before it is read."""
FREE = [(mistake, name) for mistake, name in FREE if not (mistake in LATER and name in ITERATORS)]


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_public_mistake_costs_nothing(name: str, charges: Charges) -> None:
    """Whatever arguments, names and types alone show is refused by name, for every container."""
    assert len(FREE) > 300
    for mistake in [mistake for mistake, held in FREE if held == name]:
        if mistake in OBJECTS.get(name, OBJECTS["frames"] if "frame" in name else ()):
            continue  # objects are made of them, or numbers
        with pytest.raises((TypeError, ValueError), match=r"given .*; expected .*\. .*") as refused:
            (PUBLIC | BY_TYPE)[mistake](CONTAINERS[name])
        assert type(refused.value) in (TypeError, ValueError), mistake
        assert charges == [], mistake


def lazy(columns: Columns) -> Any:
    return polars(columns).lazy()


class Repeated:
    """A table of which two columns have one name."""

    def __new__(cls) -> Any:
        return library("pandas").DataFrame(np.ones((3, 2)), columns=["y", "y"])


NO_RECORDS: dict[str, Callable[[], Any]] = {
    "LazyFrame": lambda: lazy({"y": [1.0]}),
    "batches of LazyFrame": lambda: [lazy({"y": [1.0]})],
    "repeated names": Repeated,
    "set": lambda: {"y": {1.0, 2.0}},
    "frozenset": lambda: {"y": frozenset([1.0])},
    "keys": lambda: {"y": {1.0: 2}.keys()},
    "dict": lambda: {"y": {0: 1.0}},
    "frame": lambda: {"y": frame({"y": [1.0]})},
    "text": lambda: {"y": "1.0"},
    "generator": lambda: {"y": (one for one in [1.0])},
    "number": lambda: {"y": 1.0},
    "set of records": lambda: {1.0, 2.0},
    "series": lambda: frame({"y": [1.0]})["y"],
    "chunked array": lambda: arrow({"y": [1.0]})["y"],
    "numbers": lambda: [1.0, 2.0],
    "rows": lambda: [{"y": 1.0}, {"y": 2.0}],
    "rows as lists": lambda: [[1.0], [2.0]],
    "matrix": lambda: {"y": np.ones((3, 2))},
    "complex": lambda: {"y": np.ones(3, complex)},
    "device numbers": lambda: {"y": jnp.ones((3, 2))},
    "dates": lambda: {"y": np.array(["2020-01-01"], "datetime64[D]")},
    "masked": lambda: {"y": np.ma.masked_array([1.0], [True])},
    "text file": lambda: StringIO("1.0"),
}


@pytest.mark.parametrize("kind", NO_RECORDS)
def test_what_holds_no_records_costs_nothing(kind: str, charges: Charges) -> None:
    """A set was accepted, in which equal entries of two people are one."""
    records = NO_RECORDS[kind]()
    with pytest.raises((TypeError, ValueError), match=r"given .*; expected .*\. .*") as refused:
        released(records, statistics.total("y", 0.0, 1.0))
    assert type(refused.value) in (TypeError, ValueError)
    assert charges == []


@pytest.mark.parametrize(
    ("levels", "entries", "codes"),
    [
        (["1", "2", "3"], [1, 2, 3, 0, "1", 2.0, True], [0, 1, 2, -1, 0, 1, 0]),
        (["no", "yes"], [0, 1, True, "yes", 2, "1", False], [0, 1, 1, 1, -1, -1, 0]),
        (["True", "False"], [True, False, "True", 0, 1, 2], [0, 1, 0, 0, 1, -1]),
        (["01", "02"], [1, "01", "1", 2, 0], [0, 0, -1, 1, -1]),
        (["1", "01", "2"], [1, "01", 2], [-1, 1, 2]),
    ],
)
def test_whole_numbers_are_levels_of_that_name_if_there_are_such(levels: Any, entries: Any, codes: Any) -> None:
    """The level "1" of ["1", "2"] was 2 for whoever meant it by the number 1."""
    table = statistics.cells("y", levels=levels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = released({"y": entries}, table)
    np.testing.assert_array_equal(
        found.value, released({"y": np.array(codes)}, statistics.cells("y", len(levels))).value
    )


@pytest.mark.parametrize("name", ["table of pyarrow", "polars", "frame of pyarrow", "nullable frame"])
@pytest.mark.parametrize("who", [["a"] * 5 + ["b"] * 7, [1] * 5 + [2**60] * 7], ids=["texts", "numbers"])
def test_identifiers_of_any_table_tell_people_apart(name: str, who: list[Any]) -> None:
    """Of pyarrow each entry is an object of its own: all rows were those of no one."""
    counted = statistics.count()
    number = dpjax.UnknownCount(dpjax.models.PoissonCount(9.0))
    options = {"people": "who", "max_rows": 2, "n": number, "noise": seeded()}
    found = private.release(
        private.Ledger(ADDED), counted, CONTAINERS[name]({"y": [1.0] * ROWS, "who": who}), **options
    )
    options["noise"] = seeded()
    same = private.release(private.Ledger(ADDED), counted, {"y": [1.0] * ROWS, "who": who}, **options)
    np.testing.assert_array_equal(found.value, same.value)
