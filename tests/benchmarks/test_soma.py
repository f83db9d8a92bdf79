"""The problems of the paper's experiments, and the authors' files that they read; what they measure is not tested."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments import main
from benchmarks.papers import authors
from benchmarks.papers.soma import histogram_quartiles, relabelling, time_use
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
    assert two_records("beta", 4.0)[1].mechanism.scale == pytest.approx(0.125)
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


@pytest.mark.x64
def test_pairs_in_numpy_have_the_statistic_and_the_weights_of_the_problem(folder: str) -> None:
    """Contributions beside the library's statistic, and a maximal coupling of places beside its two laws."""
    statistic, rng = regression(10, 30, folder)[1].statistic, np.random.default_rng(0)
    records = 5 * rng.normal(size=(4, 3))
    exact = [statistic({"x": record[:2], "y": record[2]}) for record in records]
    np.testing.assert_allclose(relabelling.contributions(records), exact, atol=1e-15)
    laws = rng.dirichlet(np.ones(10), size=2)
    weights = np.repeat(laws[:, None], 40_000, axis=1)
    for first in (False, True):
        places = relabelling.choose(weights, np.full(weights.shape[1:], first) & (np.arange(10) % 3 == 0), rng)
        for chain in (0, 1):
            shares = np.bincount(places[chain], minlength=10) / 40_000
            assert np.max(np.abs(shares - laws[chain]) / np.sqrt(laws[chain] / 40_000)) < 4.5
        together, bound = np.mean(places[0] == places[1]), laws.min(axis=0).sum()
        assert abs(together - bound) < 4.5 * np.sqrt(0.25 / 40_000)


def test_relabelled_pairs_keep_their_sums_if_contributions_move(folder: str) -> None:
    """An exchange of records and contributions leaves each chain's own sum; of records alone it does not."""
    rng = np.random.default_rng(1)
    records = rng.normal(size=(2, 50, 10, 3))
    own = relabelling.contributions(records)
    which, one, other = np.arange(50), rng.integers(10, size=50), rng.integers(10, size=50)
    for values in (records, own):
        relabelling.exchange(values[0], which, one, other)
    np.testing.assert_allclose(relabelling.contributions(records), own, atol=1e-15)
    relabelling.exchange(records[1], which[:1], np.array([0]), np.array([1]))
    assert np.max(np.abs(relabelling.contributions(records[1]) - own[1])) > 1e-3


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
