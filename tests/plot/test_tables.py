"""The picture of a table: what it shows is the release, least squares, and the posterior of the sums."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.data_augmentation.counts.least_squares import variances_of
from dpjax.plot.tables import STEEP

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("Agg")

VALUE = np.array([-3.0, 4.0, 11.0, 7.0, 2.0, 9.0])
ROWS = np.array([14.0, 16.0])
N = 30
MODEL = dpjax.models.categorical(jnp.ones(6))


def table():
    return dpjax.Release(VALUE, dpjax.DiscreteGaussian(3.0), dpjax.statistics.cells("cell", 6), n=N)


def table_and_rows():
    rows = dpjax.Release(ROWS, dpjax.Laplace(0.5), dpjax.statistics.grouped("cell", [0, 0, 0, 1, 1, 1]), n=N)
    return dpjax.joint(table(), rows)


def counts(state):
    return {"counts": jnp.bincount(state.latent.records["cell"], length=6)}


@pytest.fixture(scope="module")
def posterior():
    budget = {"num_chains": 2, "num_warmup": 20, "num_samples": 50, "progress": False}
    options = {"imputation": dpjax.imwg(), "interweave": False, "collect": counts}
    return dpjax.sample(jax.random.key(1), MODEL, table(), **budget, **options)


def heights(axes):
    """What each kind of points shows, by the name in the legend."""
    handles, names = axes.get_legend_handles_labels()
    return {name: np.asarray(handle.lines[0].get_ydata()) for name, handle in zip(names, handles, strict=True)}


@pytest.mark.x64
def test_a_panel_shows_the_release_least_squares_and_the_posterior(posterior):
    (axes,) = posterior.plot_table()
    shown = heights(axes)
    np.testing.assert_allclose(shown["released"], VALUE)
    np.testing.assert_allclose(shown["least squares"], VALUE)  # they sum to n
    drawn = np.reshape(posterior.collected["counts"], (-1, 6))
    np.testing.assert_allclose(shown["posterior"], drawn.mean(axis=0))
    bars = axes.containers[2].lines[2][0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], np.quantile(drawn, [0.05, 0.95], axis=0).T)
    axes.figure.draw_without_rendering()


def test_each_part_of_a_joint_release_has_a_panel(posterior):
    posterior = replace(posterior, release=table_and_rows())
    cells, rows = posterior.plot_table(labels=[*"abcdef", "first", "second"])
    assert [tick.get_text() for tick in rows.get_xticklabels()] == ["first", "second"]
    np.testing.assert_allclose(heights(rows)["released"], ROWS)
    for way in ("least squares", "posterior"):
        sums = heights(cells)[way].reshape(2, 3).sum(axis=1)
        np.testing.assert_allclose(heights(rows)[way], sums)
    np.testing.assert_allclose(heights(cells)["least squares"].sum(), N)
    (rows,) = posterior.plot_table(show=[7])
    np.testing.assert_allclose(heights(rows)["released"], ROWS[1:])


def test_without_counts_the_expected_ones_are_shown(posterior):
    shown = heights(replace(posterior, collected=None).plot_table()[0])
    expected = N * np.mean(posterior.draws["probabilities"], axis=(0, 1))
    np.testing.assert_allclose(shown["posterior (expected counts)"], expected, rtol=1e-5)


@pytest.mark.slow
def test_with_a_key_the_chains_go_on():
    """Released sums of the table are those of the count form, which keeps no draws of counts."""
    budget = {"num_chains": 2, "num_warmup": 50, "num_samples": 20, "progress": False, "imputation": dpjax.counts()}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        posterior = dpjax.sample(jax.random.key(1), MODEL, table_and_rows(), **budget)
        cells, rows = posterior.plot_table(jax.random.key(2))
    drawn = heights(cells)["posterior"]
    np.testing.assert_allclose(drawn.sum(), N, rtol=1e-6)
    np.testing.assert_allclose(heights(rows)["posterior"], drawn.reshape(2, 3).sum(axis=1), rtol=1e-6)
    assert np.all(np.abs(heights(rows)["posterior"] - ROWS) < 2)


def test_axes_of_ones_own_are_drawn_on(posterior):
    from matplotlib.figure import Figure

    own = Figure().subplots()
    assert posterior.plot_table(axes=own).tolist() == [own]
    with pytest.raises(ValueError, match="axes: given 2 axes; expected 1"):
        posterior.plot_table(axes=Figure().subplots(1, 2))


def test_small_counts_are_stretched_and_the_first_of_many_shown(posterior):
    value = np.append(np.zeros(79), 3_000.0)
    assert value[-1] > STEEP * 5
    release = dpjax.Release(value, dpjax.Gaussian(2.0), dpjax.statistics.cells("cell", 80), n=3_000)
    drawn = np.broadcast_to(value, (2, 50, 80))
    wider = replace(posterior, release=release, model=dpjax.models.categorical(jnp.ones(80)), collected=drawn)
    (axes,) = wider.plot_table(show=[3, 79])
    assert axes.get_ylabel() == "count, root scale"
    assert heights(axes)["released"].tolist() == [0.0, 3_000.0]
    axes.figure.draw_without_rendering()
    (axes,) = wider.plot_table()
    assert len(heights(axes)["released"]) == 60
    assert axes.get_ylabel() == "count"


def test_releases_that_are_no_sums_of_a_table_are_refused(posterior):
    local = dpjax.LocalRelease(np.zeros(N, int), dpjax.RandomizedResponse(keep=0.7, num_categories=6))
    with pytest.raises(ValueError, match="posterior: given a LocalRelease of RandomizedResponse"):
        replace(posterior, release=local).plot_table()
    with pytest.raises(ValueError, match="a model whose records are not of finitely many kinds"):
        replace(posterior, model=MODEL._replace(support=None)).plot_table()
    with pytest.raises(ValueError, match=r"labels: given shape \[2\]; expected 6 names"):
        posterior.plot_table(labels=["a", "b"])
    for wrong in ([6], [0.5], [], [[1]]):
        with pytest.raises(ValueError, match=r"show: given .*; expected numbers from 0 to 5"):
            posterior.plot_table(show=wrong)
    with pytest.raises(ValueError, match="level"):
        posterior.plot_table(level=90)


def test_the_variance_of_the_noise_is_known_by_its_mechanism():
    key, size = jax.random.key(4), 40_000
    for mechanism in (dpjax.Laplace(3.0), dpjax.Gaussian(3.0), dpjax.DiscreteLaplace(1.5), dpjax.DiscreteGaussian(3.0)):
        (variance,) = variances_of(mechanism, 1)
        drawn = np.var(mechanism.sample(key, jnp.zeros(size)))
        np.testing.assert_allclose(drawn, variance, rtol=5 * np.sqrt(6 / size))
    np.testing.assert_array_equal(variances_of(dpjax.Exact(), 2), [0.0, 0.0])
    assert np.isnan(variances_of(dpjax.Censored(dpjax.Laplace(1.0), lower=0), 1))
