"""The county of the experiments with tables, and what is read off an answer."""

import numpy as np
import pytest

import dpjax
from benchmarks.tables import county, problems, sizes


def make(known, tracts=6):
    generator = np.random.default_rng(5)
    people = problems.draw_county(tracts, 4, 12, generator)
    return people, problems.release_county(people, known, generator)


def test_the_county_is_released_at_three_levels():
    people, release = make(known=True)
    assert release.mechanism.sizes == (24 * 12, 6 * 12, 12)
    assert isinstance(release.mechanism.mechanisms[-1], dpjax.Exact)
    np.testing.assert_array_equal(release.value[-12:], people.counts.sum(axis=0))
    noise = np.asarray(release.value[: 24 * 12]).reshape(24, 12) - people.counts
    assert 15 < noise.var() < 26  # 20, and four standard errors
    assert release.n == people.counts.sum()
    small = problems.draw_county(50, 4, 63, np.random.default_rng(1)).counts <= 3
    assert 0.6 < small.mean() < 0.9


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_least_squares_cover_as_they_say_and_fall_below_zero(known):
    people, release = make(known, tracts=60)
    truth = people.counts.reshape(-1)
    answer = county.estimate(problems.believe_county(people), release, truth)
    rows = {row["count"]: row for row in county.by_size(answer, truth)}
    assert abs(rows["all"]["coverage"] - 0.9) < 0.03
    assert rows["all"]["root mean squared error"] < 20**0.5
    assert rows["0"]["negative"] > 0.4
    assert rows["all"]["cells"] == sum(rows[size]["cells"] for size in county.SIZES)


def test_draws_cover_by_the_place_of_the_truth():
    generator = np.random.default_rng(2)
    rates = generator.gamma(0.5, 4.0, 4_000)
    truth, draws = generator.poisson(rates), generator.poisson(rates, (2, 200, 4_000)).astype(float)
    answer = county.read_draws(draws, truth)
    assert abs(answer["covered"].mean() - 0.9) < 5 * (0.09 / 4_000) ** 0.5
    np.testing.assert_allclose(answer["mean"], draws.mean(axis=(0, 1)))


def test_figures_show_what_was_measured():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    people, release = make(known=False)
    truth = people.counts.reshape(-1)
    by_size = county.by_size(county.estimate(problems.believe_county(people), release, truth), truth)
    rows = [{"totals": "noisy", "way": way} | row for way in ("posterior", "least squares") for row in by_size]
    county.draw({"runs": [{"totals": "noisy"}], "rows": rows}, figure.subplots(1, 2))
    figures = {"microseconds per sweep": 90.0, "effective shares per second": 900.0}
    rows = [{"cells": 6, "n": n} | figures for n in (10**3, 10**6)]
    sizes.draw({"rows": rows, "slopes": {"6": 0.0}}, figure.subplots(1, 2))
    figure.draw_without_rendering()
