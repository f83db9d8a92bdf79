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
from dpjax.data_augmentation.summed_out.likelihood import error_of_thinning
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


def test_two_numbers_have_no_table():
    model = dpjax.from_numpyro(dispersed, records=["y"], offset=OFFSET)
    near = NEAR | {"size": jnp.full(5, 10.0)}
    assert dpjax.marginal_likelihood(model, RELEASE, near).tabulated(near) is None


def test_where_no_density_is_there_is_no_table(both, monkeypatch):
    """Catches a table with holes, and a warning of NumPy about them: about wide draws it reaches to negative means."""
    summed = tabulated.sum_at_knots

    def with_holes(model: Any, windows: Any, knots: Any, counts: Any) -> Any:
        return np.where(knots[..., None] < knots[3, ..., None], -np.inf, summed(model, windows, knots, counts))

    monkeypatch.setattr(tabulated, "sum_at_knots", with_holes)
    assert both[0].tabulated(NEAR) is None


def test_a_wrong_piece_is_noticed_at_the_draws(both):
    """The error is measured against the sum itself, and the run is made again by that."""
    whole, table = both
    tolerance = max(1e-6, whole.rounding)
    assert error_of_thinning(table, whole, NEAR) <= tolerance
    terms: Any = table.terms
    wrong = replace(table, terms=replace(terms, pieces=terms.pieces.at[:, :, 3].add(0.5)))
    assert error_of_thinning(wrong, whole, NEAR) > 100 * tolerance
    problem = replace(augment(MODEL, RELEASE, allow_sums=True), likelihood=wrong)
    assert better_sums(problem, NEAR, too_narrow=False) is not None
    assert better_sums(replace(problem, likelihood=table), NEAR, too_narrow=False) is None
