"""Forecasts of what readers can expect agree with closed forms and with releases that are made."""

import re

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, private, statistics
from dpjax.private.releases.price import cost_of, price
from tests.private.releases.paid_sums import seeded
from tests.private.releases.test_release_safety import LAYOUT

KEY = jax.random.key(11)
NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
TOTAL = statistics.total("y", -6.0, 6.0)
FLAT = statistics.histogram("y", [-200.0, -100.0, 100.0])
"""Of which all records are in the second bin: it costs and says nothing."""
BUDGETS = [private.Budget(epsilon, 1e-6, "replace-one") for epsilon in (0.3, 3.0)]


def exact_width(statistic, budget, n, shares=None):
    """The width of 90 % intervals of the mean, where the total is Normal given it and no record is clamped."""
    part = price(statistic, cost_of(budget), budget.neighbours, shares, None)[0]
    precision = 1.0 + n**2 / (n + part.scale**2)
    return 2 * stats.norm.isf(0.05) / np.sqrt(precision)


@pytest.mark.x64
@pytest.mark.parametrize("n", [40, 2_000])
def test_widths_are_those_of_the_closed_form(n):
    expected = private.design(KEY, NORMAL, TOTAL, BUDGETS, n, num_releases=4, num_samples=250)
    assert expected.approximate == (n > 1_000,)
    for found, budget in zip(expected.widths["mean"][0], BUDGETS, strict=True):
        exact = exact_width(TOTAL, budget, n)
        assert abs(found.mean() / exact - 1) < 0.15
        assert abs(found.mean() / exact_width(TOTAL, BUDGETS[budget is BUDGETS[0]], n) - 1) > 0.3


@pytest.mark.x64
def test_a_split_of_the_budget_is_forecast():
    both = statistics.stacked(TOTAL, FLAT)
    candidates = {"little": (both, [0.02, 0.98]), "much": (both, [0.98, 0.02])}
    expected = private.design(KEY, NORMAL, candidates, BUDGETS[1], 40, num_releases=3, num_samples=250)
    for found, (_, shares) in zip(expected.widths["mean"][:, 0], candidates.values(), strict=True):
        assert abs(found.mean() / exact_width(both, BUDGETS[1], 40, shares) - 1) < 0.15
    assert expected.table().rows == ("little, ε = 3", "much, ε = 3")


def test_a_pilot_takes_the_place_of_the_prior(monkeypatch):
    seen = []
    real = private.planning.design.draw_values

    def listen(*given):
        seen.append(given[3]["mean"])
        return real(*given)

    monkeypatch.setattr(private.planning.design, "draw_values", listen)
    for parameters in ({"mean": 0.7}, None):
        private.design(KEY, NORMAL, TOTAL, BUDGETS, 40, parameters=parameters, num_releases=4, num_samples=10)
    np.testing.assert_allclose(seen[0], np.full(4, 0.7), rtol=1e-6)
    assert len(set(np.asarray(seen[2]).tolist())) == 4
    np.testing.assert_array_equal(seen[0], seen[1])


REGRESSION = models.linear_regression(
    covariate_mean=np.zeros(1), covariate_cov=np.eye(1), coef_prior=models.NormalPrior(0.0, 1.0), noise_variance=1.0
)
GRAM = statistics.gram([-3.0], [3.0], (-5.0, 5.0))


@pytest.mark.x64
def test_widths_are_those_of_releases_that_are_made():
    check_releases(num_forecast=4, num_made=8, budget=BUDGETS[1])


@pytest.mark.slow
def test_widths_are_those_of_two_hundred_releases():
    check_releases(num_forecast=24, num_made=200, budget=BUDGETS[1])


def check_releases(num_forecast, num_made, budget):
    """Compare a forecast at known coefficients with posteriors of `private.release` of simulated records."""
    coef, n = np.array([0.5, -1.0]), 60
    expected = private.design(
        KEY, REGRESSION, GRAM, budget, n, parameters={"coef": coef}, num_releases=num_forecast, num_samples=400
    )
    made = []
    for seed in range(num_made):
        rng = np.random.default_rng(100 + seed)
        x = rng.normal(size=(n, 1))
        records = {"x": x, "y": coef[0] + x[:, 0] * coef[1] + rng.normal(size=n)}
        made.append(private.release(private.Ledger(budget), GRAM, records, noise=seeded(seed)))
    sizes = {"num_chains": 2, "num_warmup": 400, "num_samples": 400, "progress": False}
    draws = dpjax.sample_batch(jax.random.key(5), REGRESSION, made, **sizes).draws["coef"]
    low, high = np.quantile(draws, (0.05, 0.95), axis=(1, 2))
    found = expected.widths["coef"][0, 0].mean(axis=0)
    assert np.all(np.abs(found / (high - low).mean(axis=0) - 1) < 0.15)


ADDED = private.Budget(3.0, 1e-6, "add-or-remove")
UNKNOWN = dpjax.UnknownCount(models.PoissonCount(40.0))
COUNTED = statistics.stacked(TOTAL, statistics.count())


def unknown_widths(max_rows, number=400):
    """The widths of 90 % intervals of the mean, on a grid of mean and number, of NumPy's own releases."""
    people = private.people.People("who", max_rows)
    noise = [part.scale for part in price(COUNTED, cost_of(ADDED), "add-or-remove", None, None, people)]
    rng, sizes, means, found = np.random.default_rng(4), np.arange(1, 140)[:, None], np.linspace(-5, 5, 2_001), []
    for _ in range(number):
        mean, size = rng.normal(), rng.poisson(40.0)
        total, count = rng.normal(size * mean, np.sqrt(size)) + rng.normal() * noise[0], size + rng.normal() * noise[1]
        density = (
            stats.poisson.logpmf(sizes, 40.0) + stats.norm.logpdf(count, sizes, noise[1]) + stats.norm.logpdf(means)
        )
        density = density + stats.norm.logpdf(total, sizes * means, np.sqrt(sizes + noise[0] ** 2))
        share = np.cumsum(np.exp(density - density.max()).sum(axis=0))
        found.append(np.diff(np.interp([0.05, 0.95], share / share[-1], means))[0])
    return np.array(found)


def test_records_in_unknown_numbers_have_noisy_sums_of_their_moments():
    """Mean and variance of count and total are those of a Poisson number of Normal records, and the noise's."""
    people = private.people.People("who", 2)
    blank = private.planning.design.blank_of(COUNTED, None, ADDED, UNKNOWN, people)
    values = private.planning.design.draw_unknown_values(KEY, NORMAL, blank, {"mean": np.full(3_000, 0.7)}, 3_000)
    noise = [part.scale for part in price(COUNTED, cost_of(ADDED), "add-or-remove", None, None, people)]
    means, variances = 40 * np.array([0.7, 1.0]), np.array([40 * 1.49 + noise[0] ** 2, 40 + noise[1] ** 2])
    assert np.all(np.abs(values.mean(axis=0) - means) < 4 * np.sqrt(variances / 3_000))
    assert np.all(np.abs(values.var(axis=0) / variances - 1) < 4 * np.sqrt(2 / 3_000))
    single = price(COUNTED, cost_of(ADDED), "add-or-remove", None, None)
    np.testing.assert_allclose(noise, [2 * part.scale for part in single], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("max_rows", [1, 3])
def test_widths_with_an_unknown_number_of_records_are_those_of_a_grid(max_rows):
    """Of the same records without noise for three rows of a person they would be half as wide."""
    exact = unknown_widths(max_rows)
    expected = private.design(
        KEY, NORMAL, COUNTED, ADDED, UNKNOWN, people="who", max_rows=max_rows, num_releases=8, num_samples=150
    )
    found = expected.widths["mean"][0, 0]
    error = np.hypot(found.std(ddof=1) / 8**0.5, exact.std() / 20)
    assert abs(found.mean() - exact.mean()) < 4 * error + 0.05 * exact.mean()
    assert expected.widths["num_records"].shape == (1, 1, 8)


GIVEN = {"key": KEY, "model": NORMAL, "candidates": TOTAL, "budgets": BUDGETS, "n": 40}
WRONG = [
    *[("key", {"key": bad}) for bad in (1, None)],
    *[("candidates", {"candidates": bad}) for bad in ({}, {3: TOTAL})],
    *[("statistic", {"candidates": bad}) for bad in (None, lambda record: record["y"], {"a": "b"})],
    ("shares", {"candidates": {"a": (TOTAL, [0.5, 0.5])}}),
    *[("budgets", {"budgets": bad}) for bad in (None, [], 1.0, [1.0])],
    *[("n", {"n": bad}) for bad in (0, 2.5, None)],
    ("n", {"n": UNKNOWN}),
    *[("people", {"people": bad}) for bad in (3, ["who"])],
    *[("max_rows", {"max_rows": bad}) for bad in (0, None, 1.5)],
    *[("num_releases", {"num_releases": bad}) for bad in (1, None)],
    *[("num_samples", {"num_samples": bad}) for bad in (5, 20.0)],
    *[("level", {"level": bad}) for bad in (0.0, 1.0)],
    *[("progress", {"progress": bad}) for bad in ("yes", None)],
    *[("parameters", {"parameters": bad}) for bad in ({"mu": 0.0}, {"mean": [0.0, 1.0]}, 3.0)],
    ("record['z']", {"candidates": statistics.total("z", 0.0, 1.0)}),
]


@pytest.mark.parametrize(("argument", "change"), WRONG)
def test_what_is_wrong_is_named(argument, change):
    with pytest.raises((TypeError, ValueError)) as refused:
        private.design(**(GIVEN | change))
    assert LAYOUT.fullmatch(str(refused.value))
    assert str(refused.value).startswith(argument)


def test_table_and_picture_show_the_means():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    widths = {"mean": np.array([[[2.0, 4.0], [1.0, 1.0]], [[1.0, 1.0], [0.5, 0.5]]])}
    design = private.Design(("a", "b"), tuple(BUDGETS), widths, 0.9, (True, True))
    assert design.table()["a, ε = 0.3"] == {"mean": 3.0, "se of mean": 1.0}
    assert re.search("Mean widths of 90 % posterior intervals over 2 simulated releases", repr(design))
    panel = design.plot(axes=figure.subplots())[0]
    lines = [line.get_xydata().tolist() for line in panel.lines]
    assert lines == [[[0.3, 3.0], [3.0, 1.0]], [[0.3, 1.0], [3.0, 0.5]]]
    with pytest.raises(ValueError, match="axes: given 2 axes"):
        design.plot(axes=figure.subplots(1, 2))
