"""Noisy measurement files: written as the Census Bureau documents them, and read as sums of one table."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax.adapters.census import PL94_PERSON, PL94_UNIT, Histogram, read_noisy_measurements

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SMALL = Histogram({"hhgq": 3, "votingage": 2, "cenrace": 2}, {"nonvoting": ("votingage", (0, -1))})
TRACT = "05000101"
GROUPS = (f"{TRACT}1", f"{TRACT}2", f"{TRACT}3")
QUERIES = {
    "total_dpq": ("*", "*", "*"),
    "hhgq_dpq": ("hhgq", "*", "*"),
    "votingage * cenrace_dpq": ("*", "votingage", "cenrace"),
    "detailed_dpq": ("detailed", "detailed", "detailed"),
}
VARIANCES = {TRACT: 2.5, GROUPS[0]: 20.0, GROUPS[1]: 20.0, GROUPS[2]: 40.0}
TABLE = np.random.default_rng(5).poisson(3.0, (3, 3, 2, 2))
TABLE[:, 1, 0] = 0  # nobody under age in the second kind of group quarters
TABLE[1, 2] = 0  # and no such quarters in the second block group


def counts_of(geocode):
    """The people of an area [3, 2, 2]."""
    return TABLE.sum(axis=0) if geocode == TRACT else TABLE[GROUPS.index(geocode)]


def sum_out(counts, coding):
    """The sums of a query, whose codings are all of whole attributes."""
    return counts.sum(axis=tuple(place for place, level in enumerate(coding) if level == "*"), keepdims=True)


def write(path, rows):
    """A Parquet file of rows, in folders as the Bureau's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    return path


def noisy_row(geocode, query, coding, noise=0):
    sums = sum_out(counts_of(geocode), coding)
    return {
        "geocode": geocode,
        "query_name": query,
        **dict(zip(SMALL.sizes, coding, strict=True)),
        "query_shape": list(sums.shape),
        "value": (sums.reshape(-1) + noise).tolist(),
        "variance": VARIANCES[geocode],
    }


def constraint_row(geocode, query, sign, coding, shape, value):
    coded = dict(zip(SMALL.sizes, coding, strict=True))
    numbers = {"query_shape": shape, "value": value, "variance": 0.0}
    return {"geocode": geocode, "query_name": query, "sign": sign, **coded, **numbers}


CONSTRAINTS = [
    constraint_row(TRACT, "total_con", "=", ("*", "*", "*"), [1, 1, 1], [int(TABLE.sum())]),
    *(constraint_row(code, "minors_con", "=", ("second", "nonvoting", "*"), [1, 1, 1], [0]) for code in GROUPS),
    constraint_row(GROUPS[0], "hhgq_total_ub_con", "<=", ("hhgq", "*", "*"), [3, 1, 1], [90, 90, 90]),
    constraint_row(GROUPS[1], "hhgq_total_ub_con", "le", ("hhgq", "*", "*"), [3, 1, 1], [90, 90, 0]),
    constraint_row(GROUPS[1], "hhgq_total_lb_con", ">=", ("hhgq", "*", "*"), [3, 1, 1], [0, 1, 0]),
    constraint_row(GROUPS[2], "hhgq_total_lb_con", "ge", ("hhgq", "*", "*"), [3, 1, 1], [0, 0, 0]),
]
CODED = SMALL._replace(codings=SMALL.codings | {"second": ("hhgq", (-1, 0, -1))})


def write_county(folder, noise=0):
    """Two levels of noisy values, and the constraints, of one tract with three block groups."""
    root = folder / "US_Person_PL_PROD"
    for level, codes in {"Tract": (TRACT,), "Block_Group": GROUPS}.items():
        rows = [noisy_row(code, query, coding, noise) for code in codes for query, coding in QUERIES.items()]
        write(root / f"{level}.parquet" / "DPQuery" / "State=50" / "part-0.parquet", rows)
        rows = [row for row in CONSTRAINTS if row["geocode"] in codes]
        write(root / f"{level}.parquet" / "Constraint" / "State=50" / "part-0.parquet", rows)
    return root


@pytest.fixture
def county(tmp_path):
    return write_county(tmp_path)


def parts_of(release):
    """The mechanism, the released values and the sums of the true table of each part of a joint release."""
    cells = jax.numpy.arange(TABLE.size)
    index, weight = map(np.asarray, release.statistic.sparse({"cell": cells}))
    used = index >= 0
    sums = np.bincount(index[used], (weight * TABLE.reshape(-1, 1))[used], minlength=len(release.value))
    stops = np.cumsum(release.mechanism.sizes)
    values = np.split(np.asarray(release.value), stops[:-1])
    return list(zip(release.mechanism.mechanisms, values, np.split(sums, stops[:-1]), strict=True))


def test_every_query_is_the_sum_that_it_says(county):
    read = read_noisy_measurements(county, histogram=CODED)
    assert read.areas == GROUPS
    assert read.shape == TABLE.shape
    assert read.attributes == SMALL.sizes
    assert read.release.n == TABLE.sum()
    parts = parts_of(read.release)
    assert len(parts) == 2 * len(QUERIES) + 3
    for _, value, sums in parts:
        np.testing.assert_array_equal(sums, value)


def test_noise_is_that_of_the_rows_and_constraints_have_none(county):
    parts = parts_of(read_noisy_measurements(county, histogram=CODED).release)
    exact = [value.tolist() for mechanism, value, _ in parts if isinstance(mechanism, dpjax.Exact)]
    assert sorted(exact) == [[0], [0, 0, 0], [TABLE.sum()]]
    scales = [np.asarray(mechanism.scale) for mechanism, _, _ in parts if isinstance(mechanism, dpjax.DiscreteGaussian)]
    assert sorted(scale.size for scale in scales) == [1, 1, 1, 1, 3, 9, 12, 36]
    for scale in scales:
        expected = np.repeat([20, 20, 40], scale.size // 3) if scale.size > 1 else 2.5
        np.testing.assert_allclose(scale**2, expected, rtol=1e-6)


def test_bounds_that_are_not_zero_are_told_and_not_used(county):
    read = read_noisy_measurements(county, histogram=CODED)
    assert [(row.geocode, row.sign) for row in read.bounds] == [(GROUPS[0], "<="), (GROUPS[1], "<="), (GROUPS[1], ">=")]
    assert read.left_out == ()


def test_queries_of_other_attributes_are_left_out(county):
    read = read_noisy_measurements(county, histogram=CODED, attributes=["cenrace", "votingage"])
    assert read.shape == (3, 2, 2)
    assert read.left_out == ("detailed_dpq", "hhgq_dpq", "hhgq_total_lb_con", "hhgq_total_ub_con", "minors_con")
    kinds = [type(mechanism) for mechanism in read.release.mechanism.mechanisms]
    assert kinds == [dpjax.Exact] + 4 * [dpjax.DiscreteGaussian]


def test_an_area_is_read_alone(county):
    n = dpjax.UnknownCount(dpjax.models.UniformCount(0, 500))
    read = read_noisy_measurements(county, histogram=CODED, within=GROUPS[1], n=n)
    assert read.areas == GROUPS[1:2]
    assert read.shape == (1, 3, 2, 2)
    assert TRACT not in {row.geocode for row in read.bounds}
    assert read.release.n == n


def test_names_tell_the_coding_where_columns_do_not(tmp_path):
    bare = [{k: v for k, v in noisy_row(TRACT, *query).items() if k not in SMALL.sizes} for query in QUERIES.items()]
    read = read_noisy_measurements(write(tmp_path / "bare.parquet", bare), histogram=SMALL, n=int(TABLE.sum()))
    assert read.shape == (1, 3, 2, 2)
    assert sorted(
        len(value) for value in np.split(read.release.value, np.cumsum(read.release.mechanism.sizes)[:-1])
    ) == [
        1,
        3,
        4,
        12,
    ]


def test_the_bureaus_histograms_are_known(tmp_path):
    shape = [8, 2, 2, 63]
    rows = [
        ("hhinstlevels_dpq", ("hhinstlevels", "*", "*", "*"), [3, 1, 1, 1]),
        ("hispanic * cenrace_dpq", ("*", "*", "hispanic", "cenrace"), [1, 1, 2, 63]),
        ("detailed_dpq", ("detailed",) * 4, shape),
    ]
    content = [
        {"geocode": "0", "query_name": name, **dict(zip(PL94_PERSON.sizes, coding, strict=True)), "query_shape": sizes}
        | {"value": list(range(int(np.prod(sizes)))), "variance": 4.0}
        for name, coding, sizes in rows
    ]
    read = read_noisy_measurements(write(tmp_path / "us.parquet", content), n=1_000)
    assert read.shape == (1, *shape)
    index = np.asarray(read.release.statistic.sparse({"cell": jax.numpy.arange(2016)})[0]).reshape([*shape, -1])
    levels = [read.release.mechanism.sizes.index(size) for size in (3, 126, 2016)]
    starts = np.cumsum([0, *read.release.mechanism.sizes])
    household, race = index[..., levels[0]] - starts[levels[0]], index[..., levels[1]] - starts[levels[1]]
    np.testing.assert_array_equal(household[:, 0, 0, 0], [0, 1, 1, 1, 1, 2, 2, 2])
    assert race[5, 1, 1, 7] == 63 + 7


def test_housing_units_have_a_total_in_every_area(tmp_path):
    codes = ("050001", "050003")
    common = {"query_shape": [2], "variance": 25.0}
    rows = [
        {"geocode": code, "query_name": "detailed_dpq", "h1": "detailed", "value": [30, 80]} | common for code in codes
    ]
    totals = [
        {"geocode": code, "query_name": "total_con", "h1": "*", "sign": "=", "query_shape": [1], "value": [100]}
        | {"variance": 0.0}
        for code in codes
    ]
    paths = [write(tmp_path / "noisy.parquet", rows), write(tmp_path / "known.parquet", totals)]
    read = read_noisy_measurements(paths, histogram=PL94_UNIT)
    assert read.release.n == 200
    assert read.shape == (2, 2)


def change(county, **changes):
    """The tract's rows with their first one changed; None takes the column away."""
    rows = [noisy_row(TRACT, *query) for query in QUERIES.items()]
    rows[0] |= changes
    dropped = {name for name, value in changes.items() if value is None}
    return write(county / "changed.parquet", [{k: v for k, v in row.items() if k not in dropped} for row in rows])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"variance": None}, r"path: given changed.parquet without \['variance'\]"),
        ({"geocode": 5}, "with their leading zeros"),
        ({"variance": 0.0}, "variance of 'total_dpq' of area '05000101' in changed.parquet"),
        ({"value": [1, 2]}, r"shape \[1, 1, 1\] and 2 numbers; expected shape \[1, 1, 1\] and 1"),
        ({"query_shape": [2, 1, 1]}, r"shape \[2, 1, 1\] and 1 numbers"),
        ({"hhgq": "relgq"}, "'total_dpq', which codes hhgq as 'relgq'"),
        ({"sign": "<"}, "with sign '<'"),
        ({"query_name": "hhgq_dpq", "hhgq": "*"}, "the number of people"),
    ],
)
def test_files_that_are_not_in_the_format_are_refused(tmp_path, changes, expected):
    if "geocode" in changes:
        path = write(tmp_path / "changed.parquet", [noisy_row(TRACT, *next(iter(QUERIES.items()))) | changes])
    else:
        path = change(tmp_path, **changes)
    with pytest.raises((TypeError, ValueError), match=expected):
        read_noisy_measurements(path, histogram=SMALL)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"n": 3}, "n: given 3; expected .*the exact total in the files"),
        ({"attributes": ["sex"]}, "attributes: given .*'sex'"),
        ({"within": "99"}, "path: given no query of"),
        ({"histogram": SMALL.sizes}, "histogram: given"),
    ],
)
def test_arguments_that_do_not_fit_the_files_are_refused(county, options, expected):
    with pytest.raises((TypeError, ValueError), match=expected):
        read_noisy_measurements(county, **{"histogram": CODED} | options)


def test_files_read_twice_or_not_at_all_are_refused(county, tmp_path):
    with pytest.raises(ValueError, match="of area '05000101' twice"):
        read_noisy_measurements([county, county / "Tract.parquet"], histogram=CODED)
    with pytest.raises(ValueError, match="a file or folder that exists"):
        read_noisy_measurements(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected Parquet files"):
        read_noisy_measurements(tmp_path / "empty")
