"""How often chains sweep and refresh: what is predicted of both, and which rates follow."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.data_augmentation.plan import make_plan
from dpjax.data_augmentation.refresh import FLOOR, PERIOD, prior_alone
from dpjax.mcmc.rates import FLOOR_COST, Costs, best_rates, choose_rates, draws_of_refresh, kept_by_sweep


def test_equal_weights_give_independent_draws():
    assert draws_of_refresh(np.full(100, 3.7)) == pytest.approx(1.0)
    assert draws_of_refresh(np.array([0.0, 0.0, -np.inf, np.nan])) == pytest.approx(1 / 3)
    assert draws_of_refresh(np.full(10, -np.inf)) == 0.0


def test_the_draws_of_a_refresh_are_those_of_an_independence_sampler():
    """A chain of a uniform value of its own beside the weight: its autocorrelation is that of staying where it is."""
    log_weights = np.log([0.2, 0.5, 1.0, 1.5, 4.0])
    weights = np.exp(log_weights)
    posterior = weights / weights.sum()
    leave = np.minimum(1, weights[None, :] / weights[:, None]).mean(axis=1)
    lags = np.arange(1, 2_000)[:, None]
    time = 1 + 2 * np.sum(posterior * (1 - leave) ** lags)
    assert draws_of_refresh(log_weights) == pytest.approx(1 / time, rel=1e-9)


@pytest.mark.parametrize("thin", [1, 4])
def test_what_a_sweep_keeps_is_found_from_thinned_draws(thin):
    rng, kept = np.random.default_rng(3), 0.8
    chain = np.zeros((4, 4_000 * thin))
    noise = rng.normal(size=chain.shape)
    for step in range(1, chain.shape[1]):
        chain[:, step] = kept * chain[:, step - 1] + noise[:, step]
    # The effective size of the tails is larger than that of the mean, so that the slowest is the mean.
    assert kept_by_sweep({"mean": chain[:, ::thin]}, thin) == pytest.approx(kept, abs=0.03)


def test_parameters_that_never_move_do_not_count():
    draws = np.random.default_rng(1).normal(size=(4, 100))
    moving = kept_by_sweep({"mean": draws}, 1)
    assert kept_by_sweep({"mean": draws, "fixed": np.ones((4, 100, 2))}, 1) == moving


@pytest.mark.parametrize("cost", [1.5, 3.0, 40.0])
def test_where_refreshes_gain_nothing_they_cost_next_to_nothing(cost):
    sweeps, refreshes = best_rates(0.9, 0.0, cost)
    assert sweeps == PERIOD
    assert refreshes == max(FLOOR, int(FLOOR_COST * PERIOD * cost))


def test_where_sweeps_are_slow_refreshes_take_their_place():
    assert best_rates(0.999, 0.5, 3.0) == (1, 16)
    sweeps, refreshes = best_rates(0.99, 0.1, 12.0)
    assert sweeps == 1
    assert refreshes > 2 * PERIOD


def test_draws_keep_their_worth():
    """A sweep of 0.9 effective draws is not replaced by a refresh of 0.1 every now and then, however cheap."""
    sweeps, refreshes = best_rates((1 - 0.9) / (1 + 0.9), 0.1, 200.0)
    left = (0.1 / 1.9) ** (sweeps / PERIOD) * (0.9 / 1.1) ** (refreshes / PERIOD)
    assert (1 - left) / (1 + left) >= 0.45


def test_costs_follow_the_plan(model, release):
    plan, costs = make_plan(model, release), Costs()
    alone = costs.of_sweep(replace(plan, interweave=False), 100)
    assert costs.of_sweep(plan, 100) == alone + costs.interweaving
    assert costs.of_sweep(replace(plan, noise="moved by surrogate"), 9_000) == alone + costs.interweaving + 10
    assert costs.of_sweep(replace(plan, imputation=dpjax.soma(10), interweave=False), 100) == pytest.approx(alone + 0.7)


def test_too_few_draws_choose_nothing(model, release):
    refresh = prior_alone(model)._replace(prior_share=jnp.array(0.1))
    chosen = choose_rates(
        jax.random.key(0), model, release, make_plan(model, release), refresh, {"mean": np.zeros((4, 30))}, 1
    )
    assert chosen is refresh
