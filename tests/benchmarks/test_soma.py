"""The problems of the paper's experiments, and the authors' files that they read; what they measure is not tested."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments import main
from benchmarks.papers import authors
from benchmarks.papers.soma import histogram_quartiles, time_use
from benchmarks.papers.soma.problems import PRINTED, RELEASES, histogram, regression, two_records


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a file of the form of the authors', of made-up numbers."""
    path = tmp_path_factory.mktemp("authors")
    means = np.arange(7 * 5 * 9).reshape(7, 5, 9) / 1e3
    content = {"sdp_obs_ckpt_n+20": means.tolist(), "atus_male_sdp_obs_eps_10.0": [-0.9, -3.2, -0.6]}
    (path / RELEASES).write_text(json.dumps(content))
    return str(path)


@pytest.mark.x64
def test_problems_are_those_of_the_paper(folder: str) -> None:
    assert histogram(20, 5.0)[1].mechanism.scale == pytest.approx(0.4)
    assert two_records("beta", 4.0)[1].mechanism.scale == pytest.approx(0.25)
    assert regression(10, 30)[1].mechanism.scale == pytest.approx(13 / 300)
    assert regression(10, 3)[1].value.shape == (9,)
    released = regression(100, 30)[1]
    beyond = released.statistic({"x": np.full(2, 7.0), "y": np.array(-7.0)})
    assert (100 * beyond).tolist() == pytest.approx([-1, -1, -1, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(released.value, np.array(PRINTED[30])[[0, 1, 2, 3, 4, 6, 5, 7, 8]])
    # Budget 5, repetition 0, in which the sixth and seventh numbers change places.
    assert regression(10, 30, folder)[1].value.tolist() == pytest.approx(
        [0.225, 0.226, 0.227, 0.228, 0.229, 0.231, 0.23, 0.232, 0.233]
    )
    survey = time_use.make_problem("male", folder)[1]
    assert survey.value.tolist() == pytest.approx([-0.9, -3.2, -0.6])
    assert survey.mechanism.scale == pytest.approx(3 * np.log(1440) / (10 * 3128))


def test_a_run_says_which_file_it_read(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its checksum, and no path of the machine; a file that is missing is named on standard error, too."""
    monkeypatch.setattr(time_use, "measure", lambda **settings: {"given": settings["data"]})
    monkeypatch.setattr("benchmarks.machine.use_one_core", lambda: None)
    main("soma", ["time-use", "--tiny", "--data", folder, "--json", "-"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["given"] == folder
    assert printed["files"] == {RELEASES: hashlib.sha256((Path(folder) / RELEASES).read_bytes()).hexdigest()}
    assert "data" not in printed["settings"]
    main("soma", ["time-use", "--tiny", "--json", "-"])
    said = capsys.readouterr()
    assert json.loads(said.out)["files"] == {RELEASES: authors.MISSING}
    assert f"{RELEASES}: not given" in said.err
    with pytest.raises(ValueError, match="expected a folder with soma_releases"):
        main("soma", ["time-use", "--tiny", "--data", str(tmp_path), "--json", "-"])


def test_a_jackknife_of_a_mean_is_its_standard_error() -> None:
    draws = np.random.default_rng(0).normal(size=(20, 5))
    found = time_use.jackknife(lambda part: part.mean(axis=0), draws)
    np.testing.assert_allclose(found["standard_error"], draws.std(axis=0, ddof=1) / np.sqrt(20))
    np.testing.assert_allclose(found["value"], draws.mean(axis=0))


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
