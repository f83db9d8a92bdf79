"""What can be asked of a posterior: its summary, its predictions, and ArviZ's form of it."""

import re
import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest

from dpjax import diagnostics
from dpjax.diagnostics.summary import tabulate
from dpjax.mechanisms import Gaussian
from dpjax.release import LocalRelease


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


def test_summary_agrees_with_the_draws(posterior):
    summary, draws = posterior.summary(), posterior.draws["mean"]
    row = summary["mean"]
    assert list(summary) == ["mean", "squared"]
    assert row["mean"] == pytest.approx(draws.mean())
    assert row["sd"] == pytest.approx(draws.std(ddof=1))
    assert row["2.5%"] == pytest.approx(np.quantile(draws, 0.025))
    assert row["97.5%"] == pytest.approx(np.quantile(draws, 0.975))
    assert row["ess_bulk"] == pytest.approx(diagnostics.ess_bulk(draws))
    assert row["r_hat"] == pytest.approx(diagnostics.split_r_hat(draws))


def test_quantiles_are_those_asked_for(posterior):
    row = posterior.summary(quantiles=(0.05, 0.5, 0.95))["mean"]
    assert list(row) == ["mean", "sd", "5%", "50%", "95%", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"]
    found = [row[name] for name in ("5%", "50%", "95%")]
    np.testing.assert_allclose(found, np.quantile(posterior.draws["mean"], (0.05, 0.5, 0.95)))


@pytest.mark.parametrize("quantiles", [(0.5, 0.05), (0.5, 0.5), (0.0, 0.5), (5, 95), 0.5, (np.nan,), [[0.5]]])
def test_quantiles_that_are_none_are_refused(posterior, quantiles):
    with pytest.raises(ValueError, match=r"quantiles: given .*; expected numbers in \(0, 1\), in rising order"):
        posterior.summary(quantiles=quantiles)


def test_a_summary_is_a_table(posterior):
    text, html = str(posterior.summary()), posterior.summary()._repr_html_()
    header, mean, squared = text.splitlines()
    assert header.split() == [
        *("mean", "sd", "2.5%", "25%", "50%", "75%", "97.5%"),
        *("mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"),
    ]
    assert mean.split()[0] == "mean"
    assert squared.split()[0] == "squared"
    assert len({len(line) for line in text.splitlines()}) == 1
    assert html.count("<tr>") == 3
    assert html.count("<td>") == 24


def test_rows_of_arrays_and_long_tables():
    table = tabulate({"a": {"mean": np.array(1.0)}, "b": {"mean": np.arange(6.0).reshape(2, 3)}})
    assert list(table) == ["a", "b[0,0]", "b[0,1]", "b[0,2]", "b[1,0]", "b[1,1]", "b[1,2]"]
    assert table["b[1,1]"] == {"mean": 4.0}
    long = str(tabulate({"c": {"mean": np.zeros(130)}}))
    assert long.endswith("... and 30 more rows")
    assert len(long.splitlines()) == 102


def chains(kind):
    draws = np.random.default_rng(5).normal(size=(4, 500))
    if kind == "parted":
        draws += np.array([0.0, 0, 0, 1])[:, None]
    if kind == "sticky":
        draws = np.repeat(draws[:, :50], 10, axis=1)
    if kind == "broken":
        draws[0, 0] = np.inf
    return draws if kind != "constant" else np.ones((4, 500))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("parted", "R-hat above 1.01: theta[1]"),
        ("sticky", "an effective sample size below 400: theta[1]"),
        ("broken", "draws that are not finite: theta[1]"),
    ],
)
def test_poor_draws_are_reported_by_name_with_a_remedy(posterior, kind, message):
    poor = replace(posterior, draws={"theta": np.stack([chains("good"), chains(kind)], axis=2)})
    with pytest.warns(UserWarning, match=rf"{re.escape(message)}.*Draw more") as caught:
        poor.summary()
    assert len(caught) == 1
    assert "theta[0]" not in str(caught[0].message)


def test_a_remedy_is_none_that_is_taken_already(posterior):
    plain = replace(posterior, plan=replace(posterior.plan, interweave=False))
    assert "interweave" not in posterior.remedy
    assert "interweave=True" in plain.remedy
    centred = posterior.model._replace(noncentred=None)
    assert "interweave" not in replace(plain, model=centred).remedy
    assert "NumPyro" in replace(plain, model=centred).remedy
    assert "NumPyro" not in plain.remedy


@pytest.mark.parametrize("kind", ["good", "constant"])
def test_good_draws_are_not_reported(posterior, kind):
    replace(posterior, draws={"theta": chains(kind)}).summary()


@pytest.mark.keys
def test_predictions_have_the_law_of_the_posterior_predictive(posterior, exact):
    """A new value is N(n mean, n + noise²): its moments follow from the posterior's; gates of 5 standard errors."""
    prediction = posterior.predict(jax.random.key(8))
    assert prediction.values.shape == (4_000, 1)
    np.testing.assert_array_equal(prediction.released, [13.0])
    sd = np.sqrt(20**2 * exact.sd**2 + 20 + 5.0**2)
    standardized = (prediction.values - 20 * exact.mean) / sd
    # The draws are dependent: their effective number is taken from the run.
    size = float(diagnostics.ess_bulk(posterior.draws["mean"]))
    assert abs(standardized.mean()) < 5 / np.sqrt(size)
    assert abs(standardized.std() - 1) < 5 / np.sqrt(2 * size)
    assert abs((standardized * sd / 5.0).std() - 1) > 5 / np.sqrt(2 * size)


def test_fewer_draws_are_taken_from_all_chains(posterior):
    """The first ones are of one chain, and so alike that predictions from them look right."""
    assert posterior.choose_draws(5).tolist() == [0, 1_000, 2_000, 2_999, 3_999]


def test_predictions_do_not_depend_on_the_batch(monkeypatch, posterior):
    whole = posterior.predict(jax.random.key(8), num_samples=50).values
    monkeypatch.setattr("dpjax.models.simulation.BATCH_BYTES", 7 * 20 * 16)
    np.testing.assert_allclose(posterior.predict(jax.random.key(8), num_samples=50).values, whole, rtol=1e-5)
    assert len(np.unique(whole)) == 50


@pytest.mark.parametrize(
    ("key", "num_samples", "message"),
    [
        (3, None, "key: given 3"),
        (None, 0, "num_samples: given 0"),
        (None, 4_001, "num_samples: given 4001; expected at most"),
    ],
)
def test_bad_predictions(posterior, key, num_samples, message):
    with pytest.raises((TypeError, ValueError), match=message):
        posterior.predict(jax.random.key(0) if key is None else key, num_samples)


def test_a_local_release_is_predicted_record_by_record(posterior):
    """With parameter zero a new value is N(0, 1 + 0.5²), independently for each record."""
    release = LocalRelease(np.linspace(-1.0, 1.0, 12), Gaussian(0.5), field="y")
    local = replace(posterior, release=release, draws={"mean": np.zeros((4, 1_000))})
    prediction = local.predict(jax.random.key(1))
    assert prediction.values.shape == (4_000, 12)
    np.testing.assert_array_equal(prediction.released, release.values)
    correlation = np.corrcoef(prediction.values.T) - np.eye(12)
    assert np.abs(correlation).max() < 5 / np.sqrt(4_000)
    assert abs(prediction.values.var() - 1.25) < 5 * 1.25 * np.sqrt(2 / prediction.values.size)


def test_arviz_gets_the_draws_the_reports_and_the_release(arviz, posterior):
    data = posterior.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["mean"], posterior.draws["mean"])
    np.testing.assert_array_equal(data["sample_stats"]["acceptance_rate"], posterior.info["acceptance_rate"])
    np.testing.assert_array_equal(data["observed_data"]["released"], posterior.release.value)
    assert "acceptance_rate_per_record" not in data["sample_stats"]


def test_both_forms_of_arviz_are_served(monkeypatch, arviz, posterior):
    """From version 1 on the groups come as one dict."""
    monkeypatch.setattr(arviz, "__version__", "1.3.0")
    monkeypatch.setattr(arviz, "from_dict", lambda groups: groups)
    assert set(posterior.to_arviz()) == {"posterior", "sample_stats", "observed_data"}


def test_a_missing_arviz_names_its_extra(monkeypatch, posterior):
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install arviz matplotlib"):
        posterior.to_arviz()
