"""Results in files, frames and tables."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax.diagnostics.summary import Summary

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


@pytest.mark.filterwarnings("ignore:.*effective sample size.*:UserWarning")
def test_a_summary_shows_what_is_asked_for(posterior: dpjax.Posterior) -> None:
    table = posterior.summary(names=["coef[1]", "coef[0]"], quantiles=(0.1, 0.9))
    assert table.rows == ("coef[1]", "coef[0]")
    assert "10%" in table.columns
    assert posterior.summary(names=["coef"]).rows == ("coef[0]", "coef[1]")
    with pytest.raises(ValueError, match="coefs"):
        posterior.summary(names=["coefs"])


def test_tables_for_papers() -> None:
    assert TABLE.take(["c", "a_b"]).rows == ("c", "a_b[0]", "a_b[1]")
    expected = ["|  | mean | 5% |", "| --- | ---: | ---: |", "| a_b[0] | 1.000 | 0.5000 |"]
    assert TABLE.to_markdown().splitlines()[:3] == expected
    lines = TABLE.to_latex().splitlines()
    assert lines[:4] == [r"\begin{tabular}{lrr}", r"\toprule", r" & mean & 5\% \\", r"\midrule"]
    assert lines[4] == r"a\_b[0] & 1.000 & 0.5000 \\"
    frame = TABLE.to_frame()
    assert float(frame.loc["c", "mean"]) == 3.0
