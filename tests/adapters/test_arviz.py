"""A posterior in ArviZ's form."""

import warnings

import numpy as np
import pytest

import dpjax
from tests.plot.results import make_posterior


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


def test_arviz_gets_the_draws_the_reports_and_the_release(arviz, posterior):
    data = posterior.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["mean"], posterior.draws["mean"])
    np.testing.assert_array_equal(data["sample_stats"]["acceptance_rate"], posterior.info["acceptance_rate"])
    np.testing.assert_array_equal(data["observed_data"]["released"], posterior.release.value)
    assert "acceptance_rate_per_record" not in data["sample_stats"]


def test_a_unit_without_a_name_is_refused(arviz):
    """It was called nan."""
    local = make_posterior(dpjax.LocalRelease([1.0, 2.0], dpjax.Laplace(1.0), "y"))
    with pytest.raises(ValueError, match="units: given no name in place 1"):
        local.to_arviz(units=["a", None])
    with pytest.raises(ValueError, match="units: given no name in place 1"):
        local.to_arviz(units=iter(["a", None]))


def test_both_forms_of_arviz_are_served(monkeypatch, arviz, posterior):
    """From version 1 on the groups come as one dict."""
    monkeypatch.setattr(arviz, "__version__", "1.3.0")
    monkeypatch.setattr(arviz, "from_dict", lambda groups: groups)
    assert set(posterior.to_arviz()) == {"posterior", "sample_stats", "observed_data"}


def test_a_missing_arviz_names_its_extra(monkeypatch, posterior):
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install arviz matplotlib"):
        posterior.to_arviz()
