"""Pictures of one posterior: acceptance with its bound, and predicted releases."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax.plot.acceptance import epsilon_of
from dpjax.plot.predictive import draw_numbers, draw_values
from dpjax.plot.style import OUTSIDE, name_places
from dpjax.statistics.base import coordinate_names_of
from tests.plot.results import MODEL, RELEASE, STATISTIC, N, make_posterior

figure = pytest.importorskip("matplotlib.figure")
EPSILON = 1.0  # a range of 4 over a scale of 4


def new_axes():
    return figure.Figure(layout="constrained").subplots()


def labels_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_acceptance_is_shown_with_what_is_proved_of_it():
    posterior = make_posterior()
    axes = posterior.plot_acceptance(axes=new_axes())
    rates = posterior.info["acceptance_rate_per_record"]
    dots, mean, bound = axes.lines
    np.testing.assert_allclose(dots.get_ydata(), rates.mean(axis=0))
    np.testing.assert_allclose(mean.get_ydata(), rates.mean())
    np.testing.assert_allclose(bound.get_ydata(), np.exp(-EPSILON))
    assert labels_of(axes)[1:] == ["mean 0.70", "at least exp(−1) = 0.37"]
    axes.figure.draw_without_rendering()


def test_the_bound_is_that_of_the_sampler():
    bound = make_posterior(imputation=dpjax.soma(attempts=8)).plot_acceptance(epsilon=3.0, axes=new_axes()).lines[2]
    np.testing.assert_allclose(bound.get_ydata(), 8 / (8 + np.exp(3) - 1))
    bound = make_posterior(imputation=dpjax.soma()).plot_acceptance(axes=new_axes()).lines[2]
    np.testing.assert_allclose(bound.get_ydata(), N / (N + np.exp(EPSILON) - 1))
    assert len(make_posterior(imputation=dpjax.pcn(4, 0.5)).plot_acceptance(axes=new_axes()).lines) == 2


def test_epsilon_follows_from_the_noise_or_the_promise():
    assert epsilon_of(RELEASE) == pytest.approx(EPSILON)
    unclamped = dpjax.statistics.total("y")
    assert epsilon_of(dpjax.Release([12.0], dpjax.Laplace(4.0), unclamped, n=N)) is None
    for neighbours, epsilon in {"replace-one": 0.5, "add-or-remove": 1.0}.items():
        promise = dpjax.Privacy("pure", neighbours, epsilon=0.5)
        assert epsilon_of(dpjax.Release([12.0], dpjax.Laplace(4.0, privacy=promise), unclamped, n=N)) == epsilon
    rho = dpjax.Privacy("zcdp", "replace-one", rho=0.5)
    assert epsilon_of(dpjax.Release([12.0], dpjax.Gaussian(4.0, privacy=rho), STATISTIC, n=N)) is None
    both = dpjax.joint(RELEASE, dpjax.Release([12.0], dpjax.Laplace(2.0), STATISTIC, n=N))
    assert epsilon_of(both) == pytest.approx(3 * EPSILON)


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


def test_acceptance_needs_records_that_were_imputed():
    posterior = make_posterior()
    posterior.info.pop("acceptance_rate_per_record")
    with pytest.raises(ValueError, match="posterior: given draws without rates of records"):
        posterior.plot_acceptance()
    with pytest.raises(ValueError, match="epsilon"):
        make_posterior(model=MODEL).plot_acceptance(epsilon=-1.0)


def test_sums_are_named_by_what_is_summed():
    """Beside a table, too; a panel that is labelled "0" says nothing."""
    both = dpjax.statistics.stacked(dpjax.statistics.cells("a", 2), dpjax.statistics.count())
    assert coordinate_names_of(both, 3) == ("0", "1", "records")
    sums = dpjax.statistics.stacked(dpjax.statistics.total("x", [-3, -3], [3, 3]), dpjax.statistics.total("y", -4, 4))
    assert coordinate_names_of(sums, 3) == ("x[0]", "x[1]", "y")
