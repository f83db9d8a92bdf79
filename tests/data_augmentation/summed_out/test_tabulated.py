"""Tables of sums over windows, in the one number through which the parameters reach each record."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out import tabulated
from dpjax.data_augmentation.summed_out.likelihood import error_of_thinning, left_out_at
from dpjax.mcmc.alone import better_sums

OFFSET = np.array([0.0, 2.0, 5.0, 8.0])
RELEASED = np.array([3, 0, 160, 3_010])
SCALE = 4.0


def areas(offset: Any, y: Any = None) -> None:
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("areas", 4):
        numpyro.sample("y", dist.Poisson(jnp.exp(offset + level)), obs=y)


def dispersed(offset: Any, y: Any = None) -> None:
    level, size = numpyro.sample("level", dist.Normal(0.0, 1.0)), numpyro.sample("size", dist.Gamma(2.0, 0.1))
    with numpyro.plate("areas", 4):
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(offset + level), size), obs=y)


def own_effects(offset: Any, y: Any = None) -> None:
    with numpyro.plate("units", 4):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
    with numpyro.plate("areas", 4):
        numpyro.sample("y", dist.Poisson(jnp.exp(offset + effect)), obs=y)


MODEL = dpjax.from_numpyro(areas, records=["y"], offset=OFFSET)
RELEASE = dpjax.LocalRelease(RELEASED, dpjax.DiscreteLaplace(SCALE), "y")
NEAR = {"level": jnp.linspace(-0.1, 0.1, 5)}


@pytest.fixture(scope="module")
def both() -> Any:
    whole = dpjax.marginal_likelihood(MODEL, RELEASE, NEAR)
    return whole, whole.tabulated(NEAR)


def by_hand(level: float) -> float:
    numbers = np.arange(20_000)
    of_counts = stats.poisson.logpmf(numbers[:, None], np.exp(OFFSET + level))
    noise = stats.dlaplace.logpmf(RELEASED - numbers[:, None], 1 / SCALE)
    return float(np.sum(logsumexp(of_counts + noise, axis=0)))


def test_a_table_is_the_sum_up_to_a_constant(both):
    """At knots and between them: SciPy's sum over all numbers. In float32 the predictor is rounded."""
    table = both[1]
    levels = np.linspace(-0.12, 0.12, 41)
    found = np.array([float(table({"level": jnp.asarray(level, float)})) for level in levels])
    error = found - np.array([by_hand(level) for level in levels])
    size = 1e-8 if jnp.zeros(()).dtype == jnp.float64 else 2e-3
    assert np.ptp(error) < size
    assert float(table.left_out({"level": jnp.zeros(())})) < 1e-10


def test_its_slope_is_that_of_the_sum(both):
    """Trajectories follow it: that of a piece in other units than the number would be off by a factor."""
    table, at = both[1], jnp.asarray(0.033, float)
    slope = float(jax.grad(lambda level: table({"level": level}))(at))
    expected = (by_hand(0.033 + 1e-5) - by_hand(0.033 - 1e-5)) / 2e-5
    assert slope == pytest.approx(expected, rel=1e-3)


def test_beyond_the_table_all_may_be_left_out(both):
    """What chains find there is not trusted. The density goes on as a parabola, so that they come back."""
    table = both[1]
    values = [float(table({"level": jnp.asarray(level, float)})) for level in (0.3, 0.9, 2.0)]
    assert values[0] > values[1] > values[2] > -np.inf
    assert np.isinf(float(table.left_out({"level": jnp.asarray(0.9, float)})))
    assert np.isinf(left_out_at(table, {"level": jnp.asarray([0.0, 0.9], float)}))


def test_two_numbers_have_no_table():
    model = dpjax.from_numpyro(dispersed, records=["y"], offset=OFFSET)
    near = NEAR | {"size": jnp.full(5, 10.0)}
    assert dpjax.marginal_likelihood(model, RELEASE, near).tabulated(near) is None


def test_a_model_with_an_effect_for_each_record_is_not_divided():
    """Records whose windows differ in length are summed over apart; this was a broadcasting error of JAX's own."""
    model = dpjax.from_numpyro(own_effects, records=["y"], offset=OFFSET)
    near = {"effect": jnp.asarray(np.outer(NEAR["level"], [1.0, -1.0, 0.5, 0.2]), float)}
    whole = dpjax.marginal_likelihood(model, RELEASE, near)
    found = [[float(each({"effect": effect})) for each in (whole, whole.tabulated(near))] for effect in near["effect"]]
    assert np.ptp(np.subtract(*np.transpose(found))) < (1e-6 if jnp.zeros(()).dtype == jnp.float64 else 2e-3)


def test_a_table_that_is_summed_block_by_block_is_the_same(both, monkeypatch):
    """Catches rows of a block that are stored at the place of others, or with the covariates of others."""
    whole, table = both
    monkeypatch.setattr(tabulated, "TOGETHER", tabulated.SHORTEST * 3)
    again = whole.tabulated(NEAR)
    np.testing.assert_allclose(again.terms.pieces, table.terms.pieces, rtol=1e-6, atol=1e-6)
    blocks = tabulated.split_rows(np.array([1, 4, 5, 7, 8]), 2)
    assert [block.tolist() for block in blocks] == [[1, 4], [5, 7], [8, 8]]


def test_where_no_density_is_there_is_no_table(both, monkeypatch):
    """Catches a table with holes, and a warning of NumPy about them: about wide draws it reaches to negative means."""
    summed = tabulated.sum_at_knots

    def with_holes(model: Any, windows: Any, knots: Any, counts: Any, scale: str) -> Any:
        return np.where(knots[..., None] < knots[3, ..., None], -np.inf, summed(model, windows, knots, counts, scale))

    monkeypatch.setattr(tabulated, "sum_at_knots", with_holes)
    assert both[0].tabulated(NEAR) is None


def test_a_wrong_piece_is_noticed_at_the_draws(both):
    """The error is measured against the sum itself, and the run is made again by that."""
    whole, table = both
    tolerance = max(1e-6, whole.rounding)
    assert error_of_thinning(table, whole, NEAR) <= tolerance
    terms: Any = table.terms
    wrong = replace(table, terms=replace(terms, pieces=terms.pieces.at[..., 3].add(0.5)))
    assert error_of_thinning(wrong, whole, NEAR) > 100 * tolerance
    problem = replace(augment(MODEL, RELEASE, allow_sums=True), likelihood=wrong)
    assert better_sums(problem, NEAR, too_narrow=False) is not None
    assert better_sums(replace(problem, likelihood=table), NEAR, too_narrow=False) is None


def of_rate(y: Any = None) -> None:
    """The parameter reaches the counts as their mean, which is positive."""
    mean = numpyro.sample("mean", dist.LogNormal(2.0, 1.0))
    with numpyro.plate("areas", 2):
        numpyro.sample("y", dist.NegativeBinomial2(mean, 1.0), obs=y)


def test_a_positive_number_is_tabulated_by_its_logarithm():
    """Catches a table in the number itself, which reaches below zero, so that there was none."""
    model = dpjax.from_numpyro(of_rate, records=["y"])
    released, at = np.array([3, 25]), np.linspace(2.0, 40.0, 9)
    near = {"mean": jnp.asarray(at, float)}
    release = dpjax.LocalRelease(released, dpjax.DiscreteLaplace(2.0), "y")
    table: Any = dpjax.marginal_likelihood(model, release, near).tabulated(near)
    assert table.terms.scale == "log"
    numbers = np.arange(200)[:, None]
    noise = stats.dlaplace.logpmf(released - numbers, 0.5)
    expected = [np.sum(logsumexp(stats.nbinom.logpmf(numbers, 1, 1 / (1 + one)) + noise, axis=0)) for one in at]
    found = [float(table({"mean": one})) for one in near["mean"]]
    assert np.ptp(np.array(found) - expected) < (1e-6 if jnp.zeros(()).dtype == jnp.float64 else 1e-4)


def grouped(known: Any, y: Any = None) -> None:
    level = numpyro.sample("level", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    with numpyro.plate("areas", 4):
        numpyro.sample("y", dist.Poisson(jnp.exp(known["offset"] + level[known["group"]])), obs=y)


def test_whole_numbers_known_of_records_are_passed_as_they_were_compiled():
    """Catches a crash of the check of tables in float32: NumPy's indices of groups went to it with 32 bits, not 64."""
    known = {"offset": OFFSET, "group": np.array([0, 1, 0, 1])}
    model = dpjax.from_numpyro(grouped, records=["y"], known=known)
    near = {"level": jnp.linspace(-0.1, 0.1, 10).reshape(5, 2)}
    whole = dpjax.marginal_likelihood(model, RELEASE, near)
    table = whole.tabulated(near)
    assert error_of_thinning(table, whole, near) <= max(1e-6, whole.rounding)


ALL_SIZES = np.array([0, 3, 40, 900, 30_000, 1_000_000, 10_000_000])


def of_all_sizes(known: Any, y: Any = None) -> None:
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("areas", 7):
        numpyro.sample("y", dist.Poisson(jnp.exp(known["offset"] + level)), obs=y)


@pytest.mark.filterwarnings("ignore:The release has noise of scale")
def test_counts_from_none_to_ten_millions_are_tabulated_together():
    """Catches a table in float32 that rounds what large counts say, or that small ones share their pieces."""
    offset = np.log(np.maximum(ALL_SIZES, 1.0))
    model = dpjax.from_numpyro(of_all_sizes, records=["y"], known={"offset": offset})
    release = dpjax.LocalRelease(ALL_SIZES + np.array([4, -2, 7, -1, 3, 0, -6]), dpjax.DiscreteLaplace(4.0), "y")
    at = np.linspace(-1e-3, 1e-3, 5)
    near = {"level": jnp.asarray(at, float)}
    table: Any = dpjax.marginal_likelihood(model, release, near).tabulated(near)
    released = np.asarray(release.values)

    def by_numpy(level: float) -> float:
        numbers = np.maximum(released + np.arange(-120, 121)[:, None], -1)
        logs = stats.poisson.logpmf(numbers, np.exp(offset + level)) + stats.dlaplace.logpmf(released - numbers, 0.25)
        return float(np.sum(logsumexp(np.where(numbers >= 0, logs, -np.inf), axis=0)))

    is_double = jnp.zeros(()).dtype == jnp.float64
    found = np.array([float(table({"level": one})) for one in near["level"]])
    exact = [float(one) for one in near["level"]]
    # In float32 the predictor itself, about 16, is rounded by 1e-6, and ten millions move by ten times as much.
    assert np.ptp(found - [by_numpy(one) for one in exact]) < (1e-6 if is_double else 0.1)
    slope = jax.grad(lambda level: table({"level": level}))(near["level"][1])
    expected = (by_numpy(exact[1] + 1e-6) - by_numpy(exact[1] - 1e-6)) / 2e-6
    assert float(slope) == pytest.approx(expected, rel=1e-3 if is_double else 1e-2)
