"""Tables with names: of the fields and levels of a release, of summaries, of pictures and of completed data."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.adapters.arviz import dims_and_coords
from dpjax.domain import Domain
from dpjax.models import categorical
from dpjax.plot.style import check_labels
from dpjax.posterior.reports import labels_of
from dpjax.statistics import cells

FIELDS, LEVELS = ["sex", "admitted"], [["female", "male"], ["no", "yes"]]
COUNTS = [[58, 21], [12, 64]]
NOISE = dpjax.DiscreteGaussian(10.0)


def side(names, labels):
    """An index of a data frame: its names, and a label for each row."""
    return type("Index", (list,), {"names": names})(labels)


def frame(values=COUNTS, names=FIELDS, levels=LEVELS):
    """What is read of a data frame of two variables, without pandas."""
    index, columns = (side([name], labels) for name, labels in zip(names, levels, strict=True))
    return SimpleNamespace(index=index, columns=columns, to_numpy=lambda: np.array(values))


def series(labels):
    """What is read of a series whose rows have a label for each variable."""
    return SimpleNamespace(index=side(FIELDS, labels), to_numpy=lambda: np.ravel(COUNTS))


def test_a_data_frame_is_its_own_statistic():
    """Values in C order, with its names: whatever reads a frame column by column fails."""
    release = dpjax.Release(frame(), NOISE, n=150)
    assert release.value.tolist() == [58, 21, 12, 64]
    assert release.statistic == cells(FIELDS, levels=LEVELS)
    assert "`sex` (female, male) × `admitted` (no, yes)" in dpjax.describe(release)


def test_a_series_of_two_variables_is_a_table():
    release = dpjax.Release(series([(row, column) for row in LEVELS[0] for column in LEVELS[1]]), NOISE, n=150)
    assert release.statistic == cells(FIELDS, levels=LEVELS)


def test_a_single_field_may_have_a_flat_list_of_names():
    assert cells("day", levels=["Friday", "Sunday"]).level_names == {"day": ("Friday", "Sunday")}
    assert categorical(fields=["day"], levels=["Friday", "Sunday"]).level_names == {"day": ("Friday", "Sunday")}
    with pytest.raises(ValueError, match="one number for each"):
        cells(["day", "place"], levels=["Friday", "Sunday"])


def test_levels_by_field_have_the_fields():
    """In their order, which is not alphabetical; of fields by levels the error was about the concentration."""
    by_field = dict(zip(FIELDS, LEVELS, strict=True))
    for model in (categorical(levels=by_field), categorical(levels=dpjax.Release(frame(), NOISE, n=150).level_names)):
        assert model.columns == ("sex", "admitted")
        assert model.level_names == {"sex": ("female", "male"), "admitted": ("no", "yes")}
    assert categorical(fields=["admitted", "sex"], levels=by_field).columns == ("admitted", "sex")
    with pytest.raises(TypeError, match=r"fields: given \{.* Pass levels="):
        categorical(fields=by_field)
    with pytest.raises(ValueError, match=r"levels: given those of \['sex', 'admitted'\]; expected those of the fields"):
        categorical(fields=["sex", "age"], levels=by_field)


def test_a_table_of_numbers_is_read_row_by_row():
    statistic = cells(FIELDS, [2, 2])
    assert dpjax.Release(COUNTS, NOISE, statistic, 150).value.tolist() == [58, 21, 12, 64]
    named = dpjax.Release(frame(), NOISE, statistic, 150)
    assert named.level_names == {"sex": ("female", "male"), "admitted": ("no", "yes")}


def test_names_are_written_and_read_back():
    release = dpjax.Release(frame(), NOISE, n=150)
    assert dpjax.from_json(release.to_json()).statistic == release.statistic


def refusals():
    """What is refused, with the argument that is named."""
    bare = frame(names=[None, None])
    mixed = series([("female", "no"), ("male", "no"), ("female", "yes"), ("male", "yes")])
    turned = cells(["admitted", "sex"], [2, 2])
    margins = frame(np.ones((3, 3)), levels=[[*names, "All"] for names in LEVELS])
    total = SimpleNamespace(index=side(["sex"], ["female", "male", "Total"]), to_numpy=lambda: np.array([1, 2, 3]))
    return {
        "a frame without names": (lambda: dpjax.Release(bare, NOISE, n=150), "value"),
        "rows out of order": (lambda: dpjax.Release(mixed, NOISE, n=150), "value"),
        "a frame of texts": (lambda: dpjax.Release(frame([["a", "b"], ["c", "d"]]), NOISE, n=150), "value"),
        "a level without a name": (
            lambda: dpjax.Release(frame(levels=[[None, "male"], LEVELS[1]]), NOISE, n=150),
            "value",
        ),
        "one name of both variables": (lambda: dpjax.Release(frame(names=["sex", "sex"]), NOISE, n=150), "field"),
        "a row and a column of totals": (lambda: dpjax.Release(margins, NOISE, n=150), "value"),
        "a total of one variable": (lambda: dpjax.Release(total, NOISE, n=150), "value"),
        "a frame of other fields": (lambda: dpjax.Release(frame(), NOISE, turned, 150), "value"),
        "a frame of a total": (
            lambda: dpjax.Release(frame(), NOISE, dpjax.statistics.total("y", 0.0, 1.0), 150),
            "statistic",
        ),
        "a table turned round": (lambda: dpjax.Release(np.ones((3, 2)), NOISE, cells(FIELDS, [2, 3]), 9), "value"),
        "no n": (lambda: dpjax.Release(frame(), NOISE), "n"),
        "no statistic": (lambda: dpjax.Release(COUNTS, NOISE, n=150), "statistic"),
        "too few names": (lambda: cells(FIELDS, [2, 3], LEVELS), "levels"),
        "equal names": (lambda: cells("sex", levels=[["male", "male"]]), "levels"),
        "names that are one text": (lambda: cells("sex", levels="ab"), "levels"),
        "a model without a shape": (lambda: categorical(fields=FIELDS), "concentration"),
        "fields that do not fit": (lambda: categorical(fields=["sex"], shape=(2, 2)), "fields"),
        "a field twice": (lambda: categorical(fields=["sex", "sex"], shape=(2, 2)), "fields"),
        "levels without fields": (lambda: categorical(levels=LEVELS), "fields"),
        "levels of another shape": (lambda: categorical(shape=(2, 3), fields=FIELDS, levels=LEVELS), "levels"),
        "a concentration of another shape": (lambda: categorical(np.ones((3, 2)), (2, 3), fields=FIELDS), "conc"),
        "one number and no shape": (lambda: categorical(2.0), "concentration"),
    }


@pytest.mark.parametrize(("build", "argument"), refusals().values(), ids=refusals())
def test_bad_tables_are_refused(build, argument):
    with pytest.raises((TypeError, ValueError), match=rf"^{argument}.*: given .*; expected"):
        build()


def test_a_file_with_a_row_for_each_cell_is_told_what_to_do():
    """Not to name its index and columns, which would be no table of its variables."""
    table = frame([[0, 58], [1, 21]], [None, None], [["0", "1"], ["admitted", "count"]])
    table.index = type("RangeIndex", (list,), {"names": [None]})([0, 1])
    with pytest.raises(ValueError, match=r"Make the variables the index: table\.set_index"):
        dpjax.Release(table, NOISE, n=79)


def test_other_names_than_those_of_the_release_are_refused():
    """Levels in another order would give every name to the wrong numbers."""
    model = categorical(fields=FIELDS, levels=[["male", "female"], ["no", "yes"]])
    with pytest.raises(ValueError, match=r"release: given levels \['female', 'male'\] of 'sex'"):
        dpjax.sample(jax.random.key(1), model, dpjax.Release(frame(), NOISE, n=150))


@pytest.mark.parametrize("sizes", [(4,), (2, 2), (2, 3, 4)])
def test_cells_and_records_are_inverse(sizes):
    """With NumPy as the oracle of C order."""
    domain = Domain(tuple("abc"[: len(sizes)]), sizes)
    cell = np.arange(domain.num_cells)
    records = domain.records(jnp.asarray(cell))
    assert all(
        np.array_equal(records[field], place)
        for field, place in zip(domain.fields, np.unravel_index(cell, sizes), strict=True)
    )
    assert np.array_equal(domain.cell(records), cell)


def test_the_model_is_the_same_with_fields_as_with_cells():
    """Densities, draws and updates: a model that mixes up its variables has the wrong density."""
    plain, named = categorical(jnp.arange(1.0, 7.0), (2, 3)), categorical(jnp.arange(1.0, 7.0), (2, 3), fields=FIELDS)
    key, parameters = jax.random.key(1), plain.sample_prior(jax.random.key(2))
    cell, records = plain.sample_records(key, parameters, 20), named.sample_records(key, parameters, 20)
    assert np.array_equal(records["sex"] * 3 + records["admitted"], cell["cell"])
    assert np.array_equal(named.log_density(parameters, records), plain.log_density(parameters, cell))
    assert np.array_equal(
        named.update(key, parameters, records)["probabilities"], plain.update(key, parameters, cell)["probabilities"]
    )


def test_the_noise_of_named_records_gives_them_back():
    """The non-centred form, by which parameters and records move together."""
    model, key = categorical(shape=(2, 3), fields=FIELDS), jax.random.key(1)
    parameters = model.sample_prior(key)
    records = model.sample_records(key, parameters, 20)
    form = model.noncentred
    again = form.records(parameters, form.noise(key, parameters, records))
    assert all(np.array_equal(again[field], leaf) for field, leaf in records.items())


def posterior_of(model, release):
    """What names are read of."""
    return SimpleNamespace(model=model, release=release)


def test_entries_have_the_names_of_levels_whoever_knows_them():
    release, bare = dpjax.Release(frame(), NOISE, n=150), dpjax.Release(COUNTS, NOISE, cells(FIELDS, [2, 2]), 150)
    named, plain = categorical(fields=FIELDS, levels=LEVELS), categorical(shape=(2, 2), fields=FIELDS)
    expected = ("female,no", "female,yes", "male,no", "male,yes")
    for model, given in [(named, bare), (plain, release), (named, release)]:
        assert labels_of(posterior_of(model, given))["probabilities"] == (expected,)
    assert labels_of(posterior_of(plain, bare)) == {}
    assert check_labels(None, release, 4).tolist() == list(expected)


def test_weighted_draws_have_the_names_too():
    release, model = dpjax.Release(frame(), dpjax.Gaussian(60.0), n=150), categorical(shape=(2, 2), fields=FIELDS)
    weighted = dpjax.importance_sample(jax.random.key(1), model, release, 500)
    assert "probabilities[male,no]" in weighted.summary().rows


def test_odds_ratios_are_named_by_neighbouring_levels():
    levels = [["a", "b", "c"], ["x", "y"], ["low", "high"]]
    model = categorical(fields=["one", "two", "three"], levels=levels)
    labels = model.entry_labels(model.level_names)["odds_ratio"]
    assert labels == (("a/b", "b/c"), ("x/y",), ("low", "high"))
    ratios = model.derived(model.sample_prior(jax.random.key(1)))["odds_ratio"]
    assert ratios.shape == tuple(map(len, labels))
    assert dims_and_coords({"odds_ratio": labels})["coords"]["odds_ratio_dim_0"] == ["a/b", "b/c"]


def test_summary_frame_and_completed_data_have_names(tmp_path):
    """One short run, by the default sampler of a table: every way in which a result is shown."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COUNTS, pandas.Index(LEVELS[0], name="sex"), pandas.Index(LEVELS[1], name="admitted"))
    release, model = dpjax.Release(table, NOISE, n=150), categorical(table * 0 + 1.0)
    # As in tests/_util/test_printing.py, whose programs these are.
    settings = {"num_warmup": 50, "num_samples": 40, "num_chains": 2, "collect": "counts", "progress": False}
    posterior = dpjax.sample(jax.random.key(1), model, release, **settings)
    with pytest.warns(UserWarning, match=r"probabilities\[female,no\]"):
        summary = posterior.summary()
    assert summary.rows[:2] == ("probabilities[female,no]", "probabilities[female,yes]")
    assert "probabilities[male,yes]" in posterior.to_frame().columns
    posterior.save(tmp_path / "posterior.npz")
    assert dpjax.load(tmp_path / "posterior.npz").labels == posterior.labels
    people = posterior.completed(jax.random.key(2), 2).frame(0)
    assert set(people["sex"]) == {"female", "male"}
    assert len(people) == 150
