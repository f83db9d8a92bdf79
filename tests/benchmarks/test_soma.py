"""The problems of the paper's experiments, and the survey that they read; what they measure is not tested."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.soma import histogram_quartiles
from benchmarks.papers.soma.problems import PRINTED, histogram, regression, two_records
from benchmarks.papers.soma.time_use_file import read_shares


@pytest.mark.x64
def test_problems_are_those_of_the_paper() -> None:
    assert histogram(20, 5.0)[1].mechanism.scale == pytest.approx(0.4)
    assert two_records("beta", 4.0)[1].mechanism.scale == pytest.approx(0.25)
    assert regression(10, 30)[1].mechanism.scale == pytest.approx(0.04)
    assert regression(100, 30)[1].value.shape == (9,)
    assert regression(10, 3)[1].value.tolist() == pytest.approx(PRINTED[3])


def test_the_time_use_survey_is_read(tmp_path: Path) -> None:
    path = tmp_path / "survey.dat"
    rows = ["1,1,360,240,120,720", "2,2,500,76,72,792", "3,2,500,76,0,864"]
    path.write_text("\n".join(["TUCASEID,TESEX,t010101,t010201,t110101,t120303", *rows]))
    shares = read_shares(path)
    np.testing.assert_allclose(shares["male"], [[600 / 1440, 120 / 1440, 720 / 1440]])
    np.testing.assert_allclose(shares["female"], [[0.4, 0.05, 0.55]])  # a day without a meal is left out


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("age,sex\n1,2\n")
    with pytest.raises(ValueError, match="expected TESEX"):
        read_shares(path)


def test_exact_quartiles_of_a_histogram_are_those_of_weighted_records() -> None:
    """The recursion over bins beside records of the prior, weighted by the density of the released counts."""
    rng = np.random.default_rng(1)
    value = np.array([1.4, -0.3, 2.2])
    records = rng.uniform(size=(50_000, 4))
    counts = np.stack([np.sum((records * 3).astype(int) == place, axis=1) for place in range(3)], axis=1)
    weights = np.exp(-histogram_quartiles.EPSILON / 2 * np.abs(value - counts).sum(axis=1))
    chosen = records[rng.choice(len(records), size=50_000, p=weights / weights.sum())]
    exact = histogram_quartiles.exact_quartiles(value, 4, rng)
    assert np.max(np.abs(exact - histogram_quartiles.summary(chosen))) < 0.02
    assert np.max(np.abs(exact - histogram_quartiles.summary(records))) > 0.05
