"""What can be asked of a posterior: its summary, and what it complains of."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from dpjax import diagnostics
from dpjax.diagnostics.summary import tabulate


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


def test_a_function_of_the_user_s_own_that_fails_is_named(posterior):
    """`math.exp` takes one number, and its error named no argument."""
    with pytest.raises(ValueError, match=r"transform\['mean'\]: given a function that failed with TypeError"):
        posterior.summary(transform={"mean": math.exp})


@pytest.mark.parametrize("kind", ["good", "constant"])
def test_good_draws_are_not_reported(posterior, kind):
    replace(posterior, draws={"theta": chains(kind)}).summary()
