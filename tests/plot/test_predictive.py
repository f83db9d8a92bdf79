"""Pictures of predicted releases."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax.plot.predictive import draw_numbers, draw_values
from dpjax.plot.style import OUTSIDE, name_places
from dpjax.statistics.base import coordinate_names_of
from tests.plot.axes import labels_of, new_axes
from tests.plot.results import N, make_posterior


def test_predicted_numbers_are_in_their_own_units():
    values = np.random.default_rng(3).normal([10.0, -5.0, 7.0], [2.0, 0.1, 0.0], (400, 3))
    axes = new_axes()
    draw_numbers(axes, values, np.array([11.0, -4.5, 7.0]), 0.95)
    inside, outside = (line for line in axes.lines if not line.get_label().startswith("_"))
    np.testing.assert_allclose(inside.get_ydata(), [0.5, 0.0], atol=0.15)  # five errors of a mean over 400 draws
    np.testing.assert_allclose(outside.get_ydata(), [5.0], atol=0.6)
    assert outside.get_color() == OUTSIDE
    assert labels_of(axes) == ["predicted, 95 %", "predicted, 50 %", "released", "released, outside"]


def test_values_of_all_records_are_counted_in_bins():
    values = np.tile([0, 0, 1, 2], (30, 1))
    axes = new_axes()
    draw_values(axes, values, np.array([0, 1, 1, 2]), 0.9)
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0, 1], [1, 2], [2, 1]])
    band, mean = axes.patches
    np.testing.assert_allclose(band.get_data().values, [2, 1, 1])
    np.testing.assert_allclose(mean.get_data().values, [2, 1, 1])
    axes.figure.draw_without_rendering()


def test_withheld_values_are_a_share_and_no_zeros():
    """Eight of ten codes were a bar at -1, which the axis showed as counts of zero."""
    values = np.array([30.0, 45.0] + [np.nan] * 8)
    local = dpjax.releases.thresholded_units(values, dpjax.Laplace(1.0), threshold=20.0)
    posterior = make_posterior(local)
    axes = posterior.plot_predictive(jax.random.key(1), num_samples=20, axes=new_axes())
    assert labels_of(axes)[-1] == "withheld: 80%, predicted 100% to 100%"
    np.testing.assert_allclose(np.sum(axes.lines[0].get_ydata()), 2)
    assert axes.lines[0].get_xdata().min() > 20


def test_withheld_numbers_of_a_table_have_no_mark():
    """They had one at the code, far from predictions that were not withheld."""
    drawn = np.random.default_rng(3).normal(10.0, 1.0, (400, 3))
    drawn[:, 2] = np.nan
    axes = new_axes()
    draw_numbers(axes, drawn, np.array([10.0, np.nan, 4.0]), 0.95, "withheld: 33%")
    inside, outside = (line for line in axes.lines if line.get_label().startswith("released"))
    assert inside.get_xdata().tolist() == [0]
    assert outside.get_xdata().tolist() == [2]
    assert labels_of(axes)[-1] == "withheld: 33%"
    parts = dpjax.mechanisms.Independent(
        (dpjax.mechanisms.PrimarySuppression(5), dpjax.mechanisms.Censored(dpjax.Laplace(1.0), lower=0.0)), (2, 1)
    )
    assert parts._withheld(np.array([[7.0, -1.0, 0.0], [-1.0, 9.0, 1.5]])).tolist() == [
        [False, True, True],
        [True, False, False],
    ]


@pytest.mark.parametrize(("names", "rotation"), [(["a", "b"], 0), (["x" * 30] * 2, 30), (["a"] * 13, 90)])
def test_long_names_are_slanted_and_many_upright(names, rotation):
    axes = new_axes()
    name_places(axes, np.array(names))
    assert {tick.get_rotation() for tick in axes.get_xticklabels()} == {rotation}


def test_what_the_posterior_predicts_is_drawn():
    posterior = make_posterior()
    axes = posterior.plot_predictive(jax.random.key(1), labels=["total"], axes=new_axes())
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["total"]
    local = dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(2.0), field="y")
    axes = make_posterior(local).plot_predictive(jax.random.key(1), num_samples=20, axes=new_axes())
    assert np.sum(axes.lines[0].get_ydata()) == N


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 5}, "num_samples: given 5; expected at least 20"),
        ({"labels": ["a", "b"]}, r"labels: given shape \[2\]; expected 1 names"),
        ({"show": [1]}, "show: given 1; expected numbers from 0 to 0"),
        ({"level": 0}, "level"),
    ],
)
def test_what_cannot_be_predicted_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        make_posterior().plot_predictive(jax.random.key(1), **options)


def test_local_releases_are_shown_as_a_whole():
    local = dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(2.0), field="y")
    with pytest.raises(ValueError, match=r"show: given \[0\]; expected None"):
        make_posterior(local).plot_predictive(jax.random.key(1), show=[0])
    wide = dpjax.LocalRelease(np.zeros((N, 2)), dpjax.Laplace(2.0), field="y")
    with pytest.raises(ValueError, match="one released number for each record"):
        make_posterior(wide).plot_predictive(jax.random.key(1))


def test_sums_are_named_by_what_is_summed():
    """Beside a table, too; a panel that is labelled "0" says nothing."""
    both = dpjax.statistics.stacked(dpjax.statistics.cells("a", 2), dpjax.statistics.count())
    assert coordinate_names_of(both, 3) == ("0", "1", "records")
    sums = dpjax.statistics.stacked(dpjax.statistics.total("x", [-3, -3], [3, 3]), dpjax.statistics.total("y", -4, 4))
    assert coordinate_names_of(sums, 3) == ("x[0]", "x[1]", "y")
