"""Results in files, frames and tables."""

import csv
import json
import os
import pickle
from dataclasses import fields, replace
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import dpjax
from dpjax.diagnostics.summary import Summary
from dpjax.posterior.saving import Writer, read

MODEL = dpjax.models.linear_regression(
    covariate_mean=[0.0], covariate_cov=[[1.0]], coef_prior=dpjax.models.NormalPrior(0.0, 1.0), noise_variance=1.0
)
STATISTIC = dpjax.statistics.gram(lower=[-3.0], upper=[3.0], response=(-3.0, 3.0))
RELEASE = dpjax.Release([1.0, 2.0, 3.0, 0.5, 2.0], dpjax.Laplace(1.0), STATISTIC, n=8)
TABLE = Summary(("a_b[0]", "a_b[1]", "c"), {"mean": np.array([1.0, 2.0, 3.0]), "5%": np.array([0.5, 1.0, np.nan])})


@pytest.fixture(scope="module")
def posterior() -> dpjax.Posterior:
    return dpjax.sample(jax.random.key(1), MODEL, RELEASE, num_chains=2, num_warmup=50, num_samples=40, progress=False)


@pytest.mark.x64
def test_a_saved_posterior_is_read_and_goes_on(posterior: dpjax.Posterior, tmp_path) -> None:
    path = tmp_path / "posterior.dpjax"
    posterior.save(path)
    again = dpjax.load(str(path))
    np.testing.assert_array_equal(again.draws["coef"], posterior.draws["coef"])
    assert again.describe() == posterior.describe()
    key = jax.random.key(3)
    np.testing.assert_array_equal(again.completed(key, 2)[1]["x"], posterior.completed(key, 2)[1]["x"])


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*(effective sample size|R-hat)")
def test_all_kinds_of_results_are_read_as_they_were(posterior: dpjax.Posterior, tmp_path) -> None:
    """Types and values alike, with what the run goes on from; each once more from the file of what was read."""
    normal = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    short = {"num_warmup": 20, "num_samples": 10, "num_chains": 2, "progress": False}
    batch = dpjax.sample_batch(jax.random.key(1), normal, [release, release], **short)
    for number, result in enumerate((posterior, batch)):
        again = result
        for _ in range(2):
            again.save(tmp_path / str(number))
            again = dpjax.load(tmp_path / str(number))
        assert type(again) is type(result)
        for name in {field.name for field in fields(result)} - {"model", "draws", "_problem"}:
            one, other = getattr(result, name), getattr(again, name)
            assert jax.tree.structure(one) == jax.tree.structure(other), name
            for leaf, found in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
                assert type(leaf) is type(found)
                np.testing.assert_array_equal(leaf, found)
    np.testing.assert_array_equal(again[1].draws["mean"], batch[1].draws["mean"])
    more = dpjax.sample(jax.random.key(3), again.model, again.releases[0], **short)
    assert dpjax.Posterior.concat([again[0], more]).draws["mean"].shape == (4, 10)


LAPLACE, TOTAL = dpjax.Laplace(1.0), dpjax.statistics.total("y", -1.0, 1.0)
VALUES = {
    "unknown number": dpjax.Release([1.0], LAPLACE, TOTAL, n=dpjax.UnknownCount(dpjax.models.PoissonCount(9.0))),
    "local": dpjax.LocalRelease(np.array([0.1, 0.2]), LAPLACE),
    "promise": dpjax.Gaussian(2.0, privacy=dpjax.Privacy("zcdp", "add-or-remove", rho=0.1)),
    "several": dpjax.joint(dpjax.Release([1.0], LAPLACE, TOTAL, n=9), dpjax.Release([2.0], LAPLACE, TOTAL, n=9)),
    "wrapped": dpjax.Censored(dpjax.Laplace(np.array([1.0, 2.0])), lower=0.0),
    "model": dpjax.models.categorical([1.0, 2.0, 3.0]),
    "numbers": {"a": (np.float32(1.5), 3, float("inf"), True, None), "b": [np.arange(3), jax.numpy.ones(2)]},
}


@pytest.mark.x64
@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_read_as_it_was_written(name: str) -> None:
    """Of the kinds that results are made of: leaves, their types, and what belongs to the structure."""
    writer = Writer()
    node = json.loads(json.dumps(writer.value(VALUES[name])))
    found = read(writer.arrays, node)
    assert jax.tree.structure(found) == jax.tree.structure(VALUES[name])
    for one, other in zip(jax.tree.leaves(VALUES[name]), jax.tree.leaves(found), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


class OfYours(dpjax.Model):
    """A model of the user's own, as NumPyro models are."""

    scale: float


@pytest.mark.x64
def test_functions_are_left_out_and_missed_by_name(posterior: dpjax.Posterior, tmp_path) -> None:
    """A file cannot name them; a pickle can, and runs whatever it names."""
    changed = replace(
        posterior,
        model=MODEL._replace(derived=lambda parameters: {}),
        predictor=lambda *given: np.zeros(3),
        release=dpjax.Release([1.0], dpjax.Laplace(1.0), lambda record: record["y"], n=8),
    )
    with pytest.warns(UserWarning, match=r"The file is without the model and the release and the predictor\. ") as said:
        changed.save(tmp_path / "result")
    assert [warning.filename for warning in said] == [__file__]
    again = dpjax.load(tmp_path / "result")
    np.testing.assert_array_equal(again.draws["coef"], posterior.draws["coef"])
    for name, why in (
        ("model", "sample_prior, which is not of dpjax"),
        ("release", "a function <lambda>.*, which is not of dpjax|.*which is not of dpjax"),
    ):
        with pytest.raises(ValueError, match=rf"^{name}: given a result .* without it .*{why}.*dataclasses.replace"):
            _ = getattr(again, name).anything
    assert replace(again, release=RELEASE).release is RELEASE


@pytest.mark.x64
def test_draws_of_a_model_that_no_file_holds_are_shown_and_summed_up(posterior: dpjax.Posterior, tmp_path) -> None:
    """To print what was loaded asked the model that is left out for survey weights, which raised its error."""
    with pytest.warns(UserWarning, match="without the model"):
        replace(posterior, model=OfYours(2.0)).save(tmp_path / "result")
    again = dpjax.load(tmp_path / "result")
    assert repr(again).startswith("Posterior: 2 chains of 40 draws of coef\nno model, which was left out")
    with pytest.warns(UserWarning, match="an effective sample size"):
        table, own = again.summary(), posterior.summary()
    np.testing.assert_array_equal(table.columns["mean"], own.columns["mean"])


def test_a_model_of_the_user_is_left_out_and_named_with_its_numbers() -> None:
    assert Writer().part("model", OfYours(2.0)) == {
        "missing": "it could not be written: OfYours(scale=2.0), whose code no file holds"
    }


def test_what_a_model_of_many_numbers_is_fits_a_line() -> None:
    """Arrays of a model once filled the error of whatever needed it."""
    why = Writer().part("model", OfYours(np.arange(5000.0)))["missing"]  # type: ignore[arg-type]
    assert why.startswith("it could not be written: OfYours(scale=array([")
    assert len(why) < 300


class Evil:
    """Runs code where it is unpickled."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def node(**content):
    return {"format": "dpjax result 2", "class": "dpjax.posterior.posterior:Posterior", "parts": content}


FORGED = {
    "a class of Python's": {"class": ["os:system", {"command": "touch evil"}]},
    "another's class": {"class": ["tests.posterior.test_saving:Evil", {"path": "evil"}]},
    "a class of files": {"class": ["dpjax._util.files:Lock", {"path": "evil", "descriptor": None}]},
    "a class by way of others": {"class": ["dpjax.models:np.ndarray", {"shape": 3}]},
    "a program": {"class": ["dpjax.__main__:main", {}]},
    "a function of Python's": {"model": ["__builtins__", {"tuple": []}, {"dict": []}]},
    "a class of models": {"model": ["NormalPrior", {"tuple": [0.0, 1.0]}, {"dict": []}]},
    "no kind": {"run": "evil"},
    "two kinds": {"tuple": [], "list": []},
    "a bare list": [1, 2],
    "a missing array": {"array": ["numpy", "array7"]},
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_file_names_values_of_dpjax_alone(forgery: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("forged.npz", result=np.array(json.dumps(node(info=FORGED[forgery]))))
    with pytest.raises(ValueError, match=r"path: given forged\.npz, which cannot be read"):
        dpjax.load("forged.npz")
    assert os.listdir() == ["forged.npz"]


def test_no_code_in_a_stranger_s_file_is_run(tmp_path) -> None:
    """Results were pickles, which run whatever they say."""
    path, trace = tmp_path / "stranger", tmp_path / "trace"
    content = pickle.dumps(Evil(trace))
    path.write_bytes(b"dpjax result 1\n" + content)
    with pytest.raises(ValueError, match=r"begins otherwise.*dpjax\.from_json"):
        dpjax.load(path)
    for name in ("result", "array0"):
        arrays = {"result": np.array(json.dumps(node(info={"array": ["numpy", "array0"]}))), "array0": np.zeros(2)}
        arrays[name] = np.array([Evil(trace)], object)
        with path.open("wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(ValueError, match="cannot be read"):
            dpjax.load(path)
    assert not trace.exists()


def test_other_files_are_refused(posterior: dpjax.Posterior, tmp_path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="begins otherwise"):
        dpjax.load(path)
    posterior.save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="cannot be read"):
        dpjax.load(path)
    with pytest.raises(FileNotFoundError):
        dpjax.load(tmp_path / "none")


def test_draws_are_a_frame(posterior: dpjax.Posterior) -> None:
    frame = posterior.to_frame()
    assert list(frame) == ["coef[0]", "coef[1]"]
    assert frame.index.names == ["chain", "draw"]
    assert float(frame.loc[(1, 7), "coef[1]"]) == posterior.draws["coef"][1, 7, 1]


def test_a_row_that_is_none_is_named_with_those_that_are() -> None:
    """It was "x not in tuple"."""
    with pytest.raises(ValueError, match="summary: given the row 'd'; expected the name of a row, such as a_b\\[0\\]"):
        TABLE["d"]
    with pytest.raises(ValueError, match=r"such as a_b\[0\], a_b\[1\]\. Those of a_b are summary\.take\('a_b'\)"):
        TABLE["a_b"]


@pytest.mark.filterwarnings("ignore:.*effective sample size.*:UserWarning")
def test_a_summary_shows_what_is_asked_for(posterior: dpjax.Posterior) -> None:
    table = posterior.summary(names=["coef[1]", "coef[0]"], quantiles=(0.1, 0.9))
    assert table.rows == ("coef[1]", "coef[0]")
    assert "10%" in table.columns
    assert posterior.summary(names=["coef"]).rows == ("coef[0]", "coef[1]")
    with pytest.raises(ValueError, match="coefs"):
        posterior.summary(names=["coefs"])


@pytest.mark.filterwarnings("ignore:.*effective sample size.*:UserWarning")
def test_draws_and_tables_for_other_programs(posterior: dpjax.Posterior, tmp_path: Path) -> None:
    posterior.to_csv(tmp_path / "draws.csv")
    with open(tmp_path / "draws.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == posterior.info["acceptance_rate"].size
    assert [float(row["coef[1]"]) for row in rows] == posterior.draws["coef"][..., 1].ravel().tolist()
    assert list(posterior.summary(columns=["sd", "mean"]).columns) == ["sd", "mean"]
    with pytest.raises(ValueError, match=r"^columns: given 'median'; expected some of mean, sd"):
        posterior.summary(columns=["mean", "median"])


def test_a_latex_table_has_the_columns_and_digits_that_are_asked_for() -> None:
    lines = TABLE.to_latex(columns=["mean"], digits=2).splitlines()
    assert lines[0] == r"\begin{tabular}{lr}"
    assert lines[4] == r"a\_b[0] & 1.0 \\"
    with pytest.raises(ValueError, match="columns: given 'p'"):
        TABLE.to_latex(columns=["p"])


HOSTILE = Summary(("1|state[A]", r"x^2~\{a}<b>", "[b]"), {"mean": np.array([1.0, 2.0, 3.0])})
"""Names as formulas and levels have them, which LaTeX and Markdown would read as something else."""


def test_names_are_printed_as_they_are_by_latex_and_markdown() -> None:
    """A bar was set as a dash, and ended a cell of Markdown; a bracket after a line's end would be its spacing."""
    lines = HOSTILE.to_latex().splitlines()[4:7]
    assert [line.split(" & ")[0] for line in lines] == [
        r"1\textbar{}state[A]",
        r"x\textasciicircum{}2\textasciitilde{}\textbackslash{}\{a\}\textless{}b\textgreater{}",
        "{[}b]",
    ]
    assert HOSTILE.to_markdown().splitlines()[2] == r"| 1\|state[A] | 1.000 |"


def test_a_summary_becomes_a_file_and_no_array_without_names(tmp_path: Path) -> None:
    """`pandas.DataFrame(summary)` was a column of names, without a figure."""
    HOSTILE.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"parameter": "1|state[A]", "mean": "1.0"}
    for make in (pd.DataFrame, np.asarray):
        with pytest.raises(TypeError, match=r"^summary: .*summary\.to_frame\(\)"):
            make(HOSTILE)


def test_tables_for_papers() -> None:
    assert TABLE.take(["c", "a_b"]).rows == ("c", "a_b[0]", "a_b[1]")
    expected = ["|  | mean | 5% |", "| --- | ---: | ---: |", "| a_b[0] | 1.000 | 0.5000 |"]
    assert TABLE.to_markdown().splitlines()[:3] == expected
    lines = TABLE.to_latex().splitlines()
    assert lines[:4] == [r"\begin{tabular}{lrr}", r"\toprule", r" & mean & 5\% \\", r"\midrule"]
    assert lines[4] == r"a\_b[0] & 1.000 & 0.5000 \\"
    frame = TABLE.to_frame()
    assert float(frame.loc["c", "mean"]) == 3.0
