"""A release keeps its promise: by audit, whatever dies when, and whatever is passed in error."""

import contextlib
import random
import re
import signal
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, private, statistics
from dpjax.private.accounting import ledger_file
from dpjax.private.releases import release as release_module
from dpjax.private.releases.exact_sum import are_covered
from dpjax.private.releases.price import affordable, price
from dpjax.private.releases.release import noisy, steps_of
from tests.private.accounting.test_ledger_processes import run_python
from tests.private.audits import DELTA, DRAWS, disproved
from tests.private.releases.paid_sums import ADDED, BOTH, BUDGET, GRAM, RECORDS, TABLE, TOTAL, exact, release, seeded
from tests.private.runs.test_killed_runs import die
from tests.tools.killed_files import Death, dying, left_behind

LAYOUT = re.compile(r"[\w., ()'\[\]]+: given .*; expected .*\. .*", re.DOTALL)
ROWS = {"y": np.linspace(-1.9, 1.9, 40), "group": np.arange(40) % 3}
HIGH, LOW = (
    {name: np.r_[leaf, last] for name, leaf, last in zip(ROWS, ROWS.values(), end, strict=True)}
    for end in ((1e9, 0), (-1e9, 2))
)
PAIRS = {"replace-one": (HIGH, LOW), "add-or-remove": (HIGH, ROWS)}


def steps_and_parts(statistic, records, budget, share=1.0):
    """The sum in steps and the parts of the noise, as `private.release` has them; a share of the noise if told so."""
    cost = affordable(private.Ledger(budget), None)
    parts = [one._replace(scale=share * one.scale) for one in price(statistic, cost, budget.neighbours, None, None)]
    norm = 1 if budget.delta == 0 else 2
    return exact(records, statistic, steps_of(parts), norm).steps, parts


def released(statistic, records, budget, share=1.0, draws=DRAWS):
    """Releases [draws, d] of one data set."""
    steps, parts = steps_and_parts(statistic, records, budget, share)
    return noisy(np.tile(steps, (draws, 1)), parts, private.noise.secure)


def audit(statistic, neighbours, share=1.0):
    """The ε that releases of two neighbours disprove, of a budget of 1."""
    budget = private.Budget(1.0, DELTA, neighbours)
    (one, parts), (other, _) = (steps_and_parts(statistic, records, budget) for records in PAIRS[neighbours])
    scale = np.concatenate([np.full(part.size, part.scale) for part in parts])
    gap = (one - other).astype(float) * steps_of(parts) / scale**2
    return disproved(*(released(statistic, records, budget, share) @ gap for records in PAIRS[neighbours]))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize("statistic", [TOTAL, BOTH], ids=["total", "stacked"])
def test_releases_of_neighbours_disprove_no_promise(statistic, neighbours):
    assert 0.75 < audit(statistic, neighbours) <= 1.0


@pytest.mark.parametrize("neighbours", PAIRS)
def test_half_the_noise_is_found_out(neighbours):
    """A mutation, which the same audit finds."""
    assert audit(TOTAL, neighbours, share=0.5) > 1.0
    assert 0.75 < audit(TOTAL, neighbours) <= 1.0


@pytest.mark.slow
def test_whole_releases_disprove_no_promise():
    budget = private.Budget(1.0, DELTA, "replace-one")
    draws = [np.array([float(release(TOTAL, one, budget).value[0]) for _ in range(4_000)]) for one in (HIGH, LOW)]
    assert 0.1 < disproved(*draws) <= 1.0


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("moment", ["charging", "drawing"])
def test_death_loses_budget_but_no_privacy(tmp_path, monkeypatch, moment, before):
    """Opening the ledger writes it and its marker once; the next write is the charge."""
    path, drawn = tmp_path / "ledger.json", []
    real = release_module.rounded_normal
    monkeypatch.setattr(release_module, "rounded_normal", lambda *given: drawn.append(1) or real(*given))
    ledger = private.Ledger(BUDGET, path)
    place = (ledger_file, "write_whole") if moment == "charging" else (release_module, "rounded_normal")
    with monkeypatch.context() as patch:
        die(patch, place, at=1, before=before)
        with pytest.raises(Death):
            private.release(ledger, TABLE, RECORDS, people=None)
    charged = private.Ledger(BUDGET, path).privacy_spent().epsilon
    assert (charged > 0.999) == (moment == "drawing" or not before)
    assert len(drawn) == (moment == "drawing" and not before)
    if charged:
        with pytest.raises(private.BudgetExceeded):
            private.release(private.Ledger(BUDGET, path), TABLE, RECORDS, people=None)


@pytest.mark.parametrize("kills", [8, pytest.param(24, marks=pytest.mark.slow)])
def test_death_at_any_call_of_a_release_pays_once(tmp_path, kills):
    """Whoever starts again has the value, or has paid and none was ever drawn; and no file is left."""

    def go(folder):
        folder.mkdir(exist_ok=True)
        return private.release(private.Ledger(BUDGET, folder / "ledger.json"), TABLE, RECORDS, people=None)

    with dying(100_000) as clock:
        go(tmp_path / "alive")
    for at in random.Random(6).sample(range(1, clock.count + 1), min(kills, clock.count)):
        with dying(at), pytest.raises(Death):
            go(tmp_path / str(at))
        with contextlib.suppress(private.BudgetExceeded):
            assert go(tmp_path / str(at)).n == 300
        assert 0.999 < private.Ledger(BUDGET, tmp_path / str(at) / "ledger.json").privacy_spent().epsilon <= 1
        assert left_behind(tmp_path / str(at)) == []


KILLED = """
import os, signal, sys
from dpjax import private
from dpjax.private.accounting import ledger_file
from dpjax.private.releases import release as release_module
from tests.private.releases.paid_sums import BUDGET, RECORDS, TABLE
path, moment, when = sys.argv[1:]
ledger = private.Ledger(BUDGET, path)
module, name = {"charging": (ledger_file, "write_whole"), "drawing": (release_module, "rounded_normal")}[moment]
real = getattr(module, name)
def killed(*given, **options):
    if when == "after":
        real(*given, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, name, killed)
print(private.release(ledger, TABLE, RECORDS, people=None).value, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("moment", ["charging", "drawing"])
def test_a_killed_process_has_paid_for_whatever_it_drew(tmp_path, moment, when):
    """As above, by a signal that no process can catch: the file holds the charge as soon as it is written."""
    path = tmp_path / "ledger.json"
    run = run_python(KILLED, str(path), moment, when)
    output, errors = run.communicate()
    assert (output, errors, run.returncode) == ("", "", -signal.SIGKILL)
    charged = private.Ledger(BUDGET, path).privacy_spent().epsilon
    assert (charged > 0.999) == ((moment, when) != ("charging", "before"))
    if charged:
        with pytest.raises(private.BudgetExceeded):
            private.release(private.Ledger(BUDGET, path), TABLE, RECORDS, people=None)
    else:
        assert np.all(np.isfinite(private.release(private.Ledger(BUDGET, path), TABLE, RECORDS, people=None).value))


def test_no_error_and_no_warning_comes_between_charge_and_value(monkeypatch):
    """Whatever can be wrong is found before; in float32 the warning does not depend on the sum."""
    published = release(TABLE)
    monkeypatch.setattr(private.Ledger, "charge", lambda *_: (_ for _ in ()).throw(Death()))
    with pytest.raises(Death):
        release(TABLE)
    assert np.all(np.isfinite(published.value))


def make_loss(norm):
    """A loss whose covariates are clipped."""
    return statistics.losses.Logistic(norm=norm)


class Liar(statistics.RecordStatistic):
    """A statistic that goes beyond what it says."""

    dimension = 1

    def __call__(self, record):
        return record["y"][None]

    def diameter(self, norm):
        return 2.0

    def radius(self, norm):
        return 1.0


class Overflow(Liar):
    """A statistic that is infinite for large records."""

    def __call__(self, record):
        return jnp.where(record["y"] > 1, jnp.inf, 0.0)[None]


class LyingTable(Liar):
    """A table of which a record has a cell that counts too much, or the same one twice."""

    dimension = 1_000

    def __call__(self, record):
        return jnp.zeros(1_000).at[0].add(2.0)

    def sparse(self, records):
        return records["places"], records["values"]


def score(record):
    """A function of the user's."""
    return record["y"][None]


SHARES = statistics.log_composition("share", 0.01, dimension=3)
PARTS = {"share": np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])}
UNKNOWN = dpjax.UnknownCount(models.PoissonCount(300.0))
TWO = {"y": np.ones(2)}
WRONG = {
    "ledger": lambda: private.release(BUDGET, TOTAL, RECORDS),
    "statistic": lambda: release(lambda record: record["y"]),
    "statistic length": lambda: release(statistics.clipped(lambda record: record["x"], 1.0)),
    "statistic that is public": lambda: release(statistics.count()),
    "lower, upper": lambda: release(statistics.total("y", dimension=1)),
    "record['z']": lambda: release(statistics.total("z", 0.0, 1.0)),
    "record['y'] shape": lambda: release(TOTAL, {"y": np.ones((3, 2))}),
    "record['group']": lambda: release(TABLE, {"group": np.ones(3)}, dtypes={"group": float}),
    "records kind": lambda: release(TOTAL, 3.0),
    "records array": lambda: release(TOTAL, np.ones(3)),
    "records text": lambda: release(TOTAL, "records.csv"),
    "records none": lambda: release(TOTAL, {}),
    "records words": lambda: release(TABLE, {"group": np.array(["a", "b"])}),
    "records masked": lambda: release(TOTAL, {"y": np.ma.masked_array([1.0, 2.0], [True, False])}),
    "records names": lambda: release(TOTAL, {3: np.ones(2)}),
    "records field": lambda: release(TOTAL, {"y": 3.0}),
    "records long numbers": lambda: release(TOTAL, {"y": np.ones(3, np.longdouble)}),
    "columns kind": lambda: release(TOTAL, RECORDS, columns=["y"]),
    "columns of a dict": lambda: release(TOTAL, RECORDS, columns={"y": "wage"}),
    "dtypes kind": lambda: release(TOTAL, RECORDS, dtypes=float),
    "dtypes names": lambda: release(TOTAL, RECORDS, dtypes={"z": float}),
    "dtypes of words": lambda: release(TOTAL, RECORDS, dtypes={"y": str}),
    "dtypes words": lambda: release(TOTAL, RECORDS, dtypes={"y": "number"}),
    "records in a list of what are no batches": lambda: release(TOTAL, [TWO, 3.0]),
    "records without the field in a batch": lambda: release(TOTAL, [TWO, {"x": np.ones(2)}]),
    "records with a masked batch": lambda: release(TOTAL, [TWO, {"y": np.ma.masked_array([1.0, 2.0], [True, False])}]),
    "dtypes of batches": lambda: release(statistics.clipped(score, 1.0, dimension=1), [RECORDS]),
    "people of unused columns": lambda: private.release(private.Ledger(BUDGET), TOTAL, RECORDS),
    "people of batches": lambda: private.release(private.Ledger(BUDGET), TOTAL, [TWO]),
    "n unknown": lambda: release(TOTAL, n=UNKNOWN),
    "n missing": lambda: release(TOTAL, budget=ADDED),
    "budget kind": lambda: private.release(private.Ledger(BUDGET), TOTAL, RECORDS, people=None, budget=1.0),
    "budget relation": lambda: private.release(private.Ledger(BUDGET), TOTAL, RECORDS, people=None, budget=ADDED),
    "shares number": lambda: release(BOTH, shares=[1.0]),
    "shares sum": lambda: release(BOTH, shares=[0.5, 0.6]),
    "shares negative": lambda: release(BOTH, shares=[1.5, -0.5]),
    "shares words": lambda: release(BOTH, shares="half"),
    "shares of one": lambda: release(TOTAL, shares=[0.5, 0.5]),
    "weights zero": lambda: release(BOTH, weights=[1.0, 0.0]),
    "weights and shares": lambda: release(BOTH, weights=[1.0, 1.0], shares=[0.5, 0.5]),
    "noise kind": lambda: release(TOTAL, noise=private.noise.jax),
    "noise class": lambda: release(TOTAL, noise=private.noise.Secure),
    "name": lambda: release(TOTAL, name=3),
}


@pytest.mark.parametrize("argument", WRONG)
def test_what_is_wrong_is_named_and_free(argument, monkeypatch):
    charged = []
    monkeypatch.setattr(private.Ledger, "charge", lambda *_: charged.append(1))
    with pytest.raises((TypeError, ValueError)) as refused:
        WRONG[argument]()
    assert type(refused.value) in (TypeError, ValueError)
    assert LAYOUT.fullmatch(str(refused.value))
    assert str(refused.value).split(":")[0].startswith(argument.split(" ")[0].removesuffix(","))
    assert charged == []


@pytest.mark.parametrize("values", [[0.6, 0.0], [1.1, 0.0], [0.5, 0.5], [np.inf, 0.0]])
@pytest.mark.parametrize("places", [[3, -1], [3, 3], [3, 1_000]])
def test_large_tables_are_covered_where_they_are_right(places, values):
    right = places == [3, -1] and values[0] < 1
    covered = are_covered(LyingTable(), np.array([places, [0, 1]]), np.array([values, [0.7, 0.7]]))
    assert covered.tolist() == [right, True]
    both = statistics.stacked(LyingTable(), LyingTable())
    assert are_covered(both, np.array([[3, 1_003]]), np.array([[0.9, 0.9]]))
    assert not are_covered(both, np.array([[3, 4]]), np.array([[0.9, 0.9]]))


@pytest.mark.x64
def test_sums_far_from_zero_are_refused():
    with pytest.raises(ValueError, match="statistic: given contributions"):
        release(statistics.total("y", 1e12, 1e12 + 1.0))


def test_what_is_right_is_covered():
    assert release(SHARES, PARTS).value.shape == (3,)
    assert release(statistics.scaled(statistics.stacked(SHARES, SHARES), 0.5), PARTS).value.shape == (6,)
    extreme = {"x": np.array([[9.0, -9.0]] * 3), "y": np.array([9.0, -9.0, 0.0])}
    assert release(GRAM, extreme).n == 3


def test_no_column_is_guessed():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"wage": [1.0, 2.0], "job": ["a", "b"]})
    with pytest.raises(ValueError, match="columns: given"):
        release(TOTAL, frame, columns={"y": "wages"})
    with pytest.raises(TypeError, match="records: given a column 'job' of texts"):
        release(TOTAL, frame, columns={"y": "job"})
    both = statistics.stacked(TOTAL, statistics.total("z", 0.0, 1.0))
    with pytest.raises(ValueError, match=r"columns: given fields \['y'\], without \['z'\]; .* Add \{'z': its column\}"):
        release(both, frame.assign(z=1.0), columns={"y": "wage"})


def test_no_column_has_two_fields():
    """Catches one column under two names, which no model can read: it was taken and charged."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"wage": [1.0, 2.0], "job": [0, 1]})
    both = statistics.stacked(TOTAL, statistics.total("z", 0.0, 1.0))
    with pytest.raises(ValueError, match=r"columns: given \['wage'\], each for several fields; expected one field"):
        release(both, frame, columns={"y": "wage", "z": "wage"})


def test_what_subsampled_queries_leave_can_be_spent():
    pytest.importorskip("dp_accounting")
    ledger = private.Ledger(BUDGET)
    ledger.charge([private.Query("gradient", 50.0, "secure", sampling_rate=0.1)])
    private.release(ledger, TOTAL, RECORDS, people=None, budget=private.Budget(0.5, 1e-6, "replace-one"))
    private.release(ledger, TOTAL, RECORDS, people=None)
    assert ledger.privacy_spent().epsilon <= 1
    with pytest.raises(private.BudgetExceeded):
        private.release(ledger, TOTAL, RECORDS, people=None)


FAULTY = {
    "no rows": (TOTAL, {"y": np.ones(0)}, "none;"),
    "no batches": (TOTAL, iter([]), "none;"),
    "unequal lengths": (TOTAL, {"y": np.ones(3), "x": np.ones(2)}, "fields of unequal length"),
    "a batch that is none": (TOTAL, iter([TWO, 3.0]), "a batch that is a float"),
    "a batch without the field": (TOTAL, iter([TWO, {"x": np.ones(2)}]), r"a batch without \['y'\]"),
    "a masked batch": (TOTAL, iter([TWO, {"y": np.ma.masked_array([1.0, 2.0], [True, False])}]), "a masked array"),
    "a batch of texts": (TOTAL, iter([TWO, {"y": 3}]), "what raised TypeError"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_what_is_wrong_with_batches_shows_only_when_it_is_paid_for(fault):
    """An error before the charge tells for nothing whether such a record is there."""
    ledger, (statistic, records, given) = private.Ledger(BUDGET), FAULTY[fault]
    with pytest.raises((TypeError, ValueError), match=rf"^records: given {given}.*was charged") as refused:
        private.release(ledger, statistic, records, people=None)
    assert LAYOUT.fullmatch(str(refused.value))
    assert len(ledger.queries) == 1


COUNTS = statistics.cells("group", 3)
LAST = np.array([[0.2, 0.3, 0.5]])
REPLACED = {
    "NaN": (TOTAL, {"y": np.array([1.0, np.nan])}, {"y": [1.0, 0.0]}),
    "infinite": (TOTAL, {"y": np.array([1.0, np.inf])}, {"y": [1.0, 0.0]}),
    "centre": (statistics.total("y", 4.0, 5.0), {"y": [None]}, {"y": [4.5]}),
    "in a later batch": (TOTAL, [TWO, {"y": np.array([-np.inf, 0.0])}], {"y": [1.0, 1.0, 0.0, 0.0]}),
    "overflow": (Overflow(), {"y": np.array([0.0, 2.0])}, {"y": [0.0, 0.0]}),
    "outside": (Liar(), {"y": np.array([0.5, 1.5])}, {"y": [0.5, 0.0]}),
    "no shares": (SHARES, {"share": np.array([[1.0, 1.0, 0.01]])}, {"share": [[1 / 3] * 3]}),
    "scaled": (statistics.scaled(SHARES, 2.0), {"share": np.array([[1.0, 1.0, 0.01]])}, {"share": [[1 / 3] * 3]}),
    "stacked": (
        statistics.stacked(SHARES, Liar()),
        {"share": LAST, "y": np.array([1.5])},
        {"share": [[1 / 3] * 3], "y": [0.0]},
    ),
    "row of another length": (
        GRAM,
        {"x": [[1.0, 0.0], [0.5], [0.0, 1.0]], "y": [0.0, 1.0, 1.5]},
        {"x": [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], "y": [0.0, 1.0, 1.5]},
    ),
    "a coordinate": (
        GRAM,
        {"x": np.array([[np.nan, 0.5]]), "y": [1.0]},
        {"x": [[0.0, 0.5]], "y": [1.0]},
    ),
    "None": (TOTAL, {"y": [0.0, None, 1.0]}, {"y": [0.0, 0.0, 1.0]}),
    "word": (TOTAL, {"y": [0.0, "n/a", 1.0]}, {"y": [0.0, 0.0, 1.0]}),
    "word in objects": (TOTAL, {"y": np.array([0.0, "n/a", 1.0], object)}, {"y": [0.0, 0.0, 1.0]}),
    "large number": (TOTAL, {"y": [0, 10**400, 1]}, {"y": [0.0, 0.0, 1.0]}),
    "list": (TOTAL, {"y": [0.0, [1.0], 1.0]}, {"y": [0.0, 0.0, 1.0]}),
    "None among categories": (COUNTS, {"group": [0, None, 1]}, {"group": [0, -1, 1]}),
    "NaN among categories": (COUNTS, {"group": np.array([0, np.nan, 1])}, {"group": [0, -1, 1]}),
    "half among categories": (COUNTS, {"group": [0, 1.5, 1]}, {"group": [0, -1, 1]}),
    "bin": (statistics.histogram("y", [0.0, 1.0, 2.0, 5.0]), {"y": [None, 0.5]}, {"y": [2.0, 0.5]}),
    "quantile": (statistics.around("y", [1.0, 3.0, 4.0]), {"y": [None, 0.5]}, {"y": [3.0, 0.5]}),
    "power": (statistics.powers("y", 1.0, 5.0), {"y": [None, 1.5]}, {"y": [3.0, 1.5]}),
    "function": (statistics.clipped(score, 1.0, dimension=1), {"y": [None, 0.5]}, {"y": [0.0, 0.5]}),
}


@pytest.mark.parametrize("mistake", REPLACED)
@pytest.mark.filterwarnings("error")
def test_mistakes_of_a_record_are_replaced_and_counted_after_the_charge(mistake, monkeypatch):
    """One odd entry cost the whole budget. Even where warnings are errors the value is kept."""
    ledger, (statistic, records, instead) = private.Ledger(BUDGET), REPLACED[mistake]
    charged_before = []
    monkeypatch.setattr(release_module, "report", lambda number: charged_before.append((number, len(ledger.queries))))
    found = private.release(ledger, statistic, records, people=None, noise=seeded())
    assert charged_before == [(1, len(ledger.queries))]
    assert len(ledger.queries) == (2 if mistake == "stacked" else 1)
    plain = release(statistic, {name: np.asarray(leaf) for name, leaf in instead.items()}, noise=seeded())
    np.testing.assert_allclose(found.value, plain.value, atol=1e-6)
    assert found.n == plain.n


@pytest.mark.parametrize("action", ["error", "always", "ignore"])
def test_the_data_holder_is_told_how_many_and_loses_nothing(action, capsys):
    """Whatever the filters of warnings are: as an error it would lose a value that was charged."""
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        assert release(TOTAL, {"y": [None, 1.0, "x"]}).n == 3
    with pytest.warns(UserWarning, match=r"of the records, 2 had .* This number is not private: keep it to yourself"):
        release(TOTAL, {"y": [None, 1.0, "x"]})


def test_gaps_of_a_table_are_replaced():
    """A missing value makes floats of a column of integers, and objects of one that pandas says can have gaps."""
    pandas = pytest.importorskip("pandas")
    for column in ([0, 1, None, 2, 2], pandas.array([0, 1, None, 2, 2], dtype="Int64")):
        frame = pandas.DataFrame({"group": column})
        for records in (frame, {"group": frame["group"]}, [frame.iloc[:2], frame.iloc[2:]]):
            with pytest.warns(UserWarning, match="of the records, 1 had"):
                assert release(COUNTS, records, noise=seeded()).n == 5


def test_a_statistic_that_is_wrong_where_entries_are_replaced_is_refused_before_the_charge():
    class Logarithm(Liar):
        def __call__(self, record):
            return jnp.log(record["y"])[None] / 100

    ledger = private.Ledger(BUDGET)
    with pytest.raises(ValueError, match=r"^statistic: .*fixed_values"):
        private.release(ledger, Logarithm(), {"y": np.ones(3)})
    assert not ledger.queries


def test_lists_are_read_as_what_their_entries_are():
    """Whole floats are categories where the statistic takes these, and integers numbers where it takes numbers."""
    whole = private.release(private.Ledger(BUDGET), COUNTS, {"group": [0.0, 1.0, 2.0]}, noise=seeded())
    assert private.release(private.Ledger(BUDGET), COUNTS, {"group": np.arange(3)}, noise=seeded()).value.tolist() == (
        whole.value.tolist()
    )
    mixed = private.release(
        private.Ledger(BUDGET), TOTAL, [{"y": [0, 1]}, {"y": [0.5, 1]}], people=None, noise=seeded()
    )
    assert mixed.n == 4


@pytest.mark.parametrize("make", [lambda bound: statistics.clipped(lambda r: r["x"], bound), make_loss])
def test_bounds_whose_squares_do_not_exist_are_refused(make):
    """A bound of 1e-21 in float32 made a NaN of a vector of zeros."""
    for bound in np.array([0.9, 1e-3]) * float(jnp.finfo(jnp.result_type(float)).tiny) ** 0.5:
        with pytest.raises(ValueError, match="square"):
            make(bound)
    with pytest.raises(ValueError, match="square"):
        make(1.1 * float(jnp.finfo(jnp.result_type(float)).max) ** 0.5)
    least = statistics.clipped(lambda record: record["x"], 1.1 * float(jnp.finfo(jnp.result_type(float)).tiny) ** 0.5)
    for vector in (jnp.zeros(2), jnp.ones(2)):
        assert np.all(np.isfinite(least({"x": vector})))


def test_what_is_public_is_checked_before_values():
    """Wrong fields and a wrong number are told whatever the records' values are."""
    with pytest.raises(ValueError, match="field 'y'"):
        release(TOTAL, {"z": np.array([np.nan])})
    with pytest.raises(TypeError, match=r"^n: "):
        release(TOTAL, {"y": np.array([np.nan])}, n=1.0)


def test_clipped_functions_stay_within_their_bound():
    short = statistics.clipped(lambda record: record["x"] * 1e3, 2.0, dimension=2)
    rows = jax.vmap(short)({"x": jnp.asarray(np.r_[RECORDS["x"], [[0.0, 0.0], [1e30, 0.0]]])})
    assert np.all(np.isfinite(rows))
    assert np.max(np.linalg.norm(np.asarray(rows, float), axis=1)) <= 2 * (1 + 1e-6)
    half = statistics.clipped(lambda record: record["x"] / 3, 0.1, dimension=2)
    assert release(half, {"x": RECORDS["x"].astype(np.float32)}).n == 300
    gradient = jax.jacobian(lambda x: short({"x": x}))(jnp.zeros(2))
    np.testing.assert_allclose(gradient, 1e3 * np.eye(2))
