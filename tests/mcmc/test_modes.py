"""Modes that chains miss: against sums over a grid, and with draws that are made up."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.mcmc.climb import settle
from dpjax.mcmc.modes import far_candidates, warn_of_modes

VALUES = np.array([2.1, 3.9, 1.7, 4.4, 3.0, 2.4])


def squared(n, y=None):
    root = numpyro.sample("root", dist.Normal(1.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(root**2, 1.0), obs=y)


@pytest.fixture(scope="module")
def problem():
    model = dpjax.from_numpyro(squared, ["y"])
    release = dpjax.LocalRelease(VALUES, dpjax.Gaussian(1.0), field="y")
    return augment(model, release, allow_sums=True)


def weight_below_zero() -> float:
    """The posterior probability of a root below zero, on a grid."""
    grid = np.linspace(-5, 5, 20_001)
    logs = stats.norm.logpdf(VALUES[:, None], grid[None] ** 2, np.sqrt(2.0)).sum(axis=0) + stats.norm.logpdf(
        grid, 1.0, 1.0
    )
    weights = np.exp(logs - logs.max())
    return float(weights[grid < 0].sum() / weights.sum())


@pytest.mark.parametrize("seed", range(4))
def test_a_mode_that_no_climb_of_a_chain_finds_is_found_and_weighed(problem, seed):
    """Catches climbs that all lead to one mode, after which no chain and no R-hat sees another."""
    _, ascent = settle(problem, jax.random.key(seed), None, 4, True)
    roots = np.array([float(mode.parameters["root"]) for mode in ascent.others])
    assert len(roots) == 2
    assert roots[0] > 1
    assert roots[1] < -1
    np.testing.assert_allclose(ascent.others[1].weight, weight_below_zero(), rtol=0.15)


def test_draws_that_have_not_been_at_a_mode_are_warned_of(problem):
    """Catches a warning where some draw was there, and none where no draw was."""
    _, ascent = settle(problem, jax.random.key(0), None, 4, True)
    near = np.random.default_rng(0).normal(1.7, 0.15, (2, 500))
    with pytest.warns(UserWarning, match=r"near root = -1\.\d+, a mode .*sample_smc"):
        warn_of_modes(problem.model, ascent.others, {"root": jnp.asarray(near)})
    near[1, 7] = -1.65
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_modes(problem.model, ascent.others, {"root": jnp.asarray(near)})


def test_candidates_are_far_by_the_spread_of_each_end():
    """Catches distances from a narrow mode that are measured by the spread of a wide one."""
    candidates, heights = np.array([[0.5], [8.0], [10.4], [14.0]]), np.array([-0.1, -3.0, -0.5, -9.0])
    ends, factors = np.array([[0.0], [10.0]]), np.array([[[1.0]], [[0.1]]])
    assert far_candidates(candidates, heights, 0.0, ends, factors) == [1]
    assert far_candidates(candidates, heights, 0.0, ends[:1], factors[:1]) == [2, 1]
