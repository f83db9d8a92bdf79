"""How often chains sweep and refresh: what is measured of some rates, and which are chosen."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.refresh import FLOOR, PERIOD, TRIED, TRIED_IN_PARTS, Rates, prior_alone, with_rates
from dpjax.mcmc.rates import (
    FLOOR_COST,
    MARGIN,
    PART_COST,
    CostsOfOneCore,
    best_rates,
    choose_rates,
    count_accepted,
    kept_by,
    measure,
    rates_to_try,
)


@pytest.mark.parametrize("thin", [1, 4])
def test_what_a_sweep_keeps_is_found_from_thinned_draws(thin):
    rng, kept = np.random.default_rng(3), 0.8
    chain = np.zeros((4, 4_000 * thin))
    noise = rng.normal(size=chain.shape)
    for step in range(1, chain.shape[1]):
        chain[:, step] = kept * chain[:, step - 1] + noise[:, step]
    # The effective size of the tails is larger than that of the mean, so that the slowest is the mean.
    assert kept_by({"mean": chain[:, ::thin]}, thin) == pytest.approx(kept, abs=0.03)


def test_parameters_that_never_move_do_not_count():
    draws = np.random.default_rng(1).normal(size=(4, 100))
    moving = kept_by({"mean": draws}, 1)
    assert kept_by({"mean": draws, "fixed": np.ones((4, 100, 2))}, 1) == moving


@pytest.mark.parametrize("cost", [1.5, 3.0, 40.0])
def test_where_refreshes_gain_nothing_they_cost_next_to_nothing(cost):
    sweeps, refreshes, _ = best_rates(TRIED, np.array([0.9, 0.99, 0.999]), cost, 1.0)
    assert sweeps == PERIOD
    assert refreshes == max(FLOOR, int(FLOOR_COST * PERIOD * cost))


def test_where_sweeps_are_slow_refreshes_take_their_place():
    assert best_rates(TRIED, np.array([0.999, 0.5, 0.4]), 3.0, 1.0) == Rates(1, 16)
    assert best_rates(TRIED, np.array([0.99, 0.2, 0.95]), 3.0, 1.0) == Rates(4, 16)


def test_the_fewest_refreshes_are_made_only_where_they_gain_much():
    """Where they give 1.35 times as many effective draws for their cost as other rates, and where 1.65 times."""
    cost, few = 6.0, 0.2
    other = (4 * cost + PERIOD * 2.0) / PERIOD
    for gain, is_chosen in ((0.9 * MARGIN, False), (1.1 * MARGIN, True)):
        kept = np.array([(1 - draws) / (1 + draws) for draws in (few * gain * cost / other, few, 0.001)])
        assert (best_rates(TRIED, kept, cost, 2.0).refreshes < PERIOD) == is_chosen


def test_draws_keep_their_worth():
    """Sweeps of 0.9 effective draws are not replaced by a few refreshes, but by many, however cheap."""
    kept = np.array([(1 - 0.9) / (1 + 0.9), 0.8, 0.8])
    sweeps, refreshes, _ = best_rates(TRIED, kept, 200.0, 1.0)
    multiple = refreshes / PERIOD
    assert sweeps == multiple
    assert 0.45 <= (1 - 0.8**multiple) / (1 + 0.8**multiple) < 0.9


def test_costs_follow_the_plan(model, release):
    plan, costs = augment(model, release).plan, CostsOfOneCore()
    alone = costs.of_sweep(replace(plan, interweave=False), 100)
    assert costs.of_sweep(plan, 100) == alone + costs.interweaving
    moved = costs.of_sweep(replace(plan, noise="moved by surrogate"), 2_000)
    assert moved == alone + costs.interweaving + costs.surrogate / 2_000
    some = costs.of_sweep(replace(plan, imputation=dpjax.soma(10), interweave=False), 100)
    assert some == pytest.approx(alone + 10 * costs.soma_attempt)
    assert costs.of_refresh(model._replace(noncentred=None), 100) == 1.0
    assert costs.of_refresh(model, 100) > costs.of_refresh(model, 1_000) > costs.of_refresh(model, 10_000) > 1.0


def test_too_few_draws_choose_nothing(model, release):
    refresh, costs = (
        prior_alone(model)._replace(prior_share=jnp.array(0.1)),
        CostsOfOneCore().of(model, augment(model, release).plan, 100),
    )
    assert measure(refresh, 0, {"mean": np.zeros((4, 30))}, 1) is refresh
    rng = np.random.default_rng(2)
    for place in range(len(TRIED)):
        chosen = choose_rates(with_rates(refresh, Rates(4, 16)), TRIED, costs)
        assert (int(chosen.sweeps), int(chosen.refreshes), int(chosen.parts)) == TRIED[0]
        refresh = measure(refresh, place, {"mean": rng.normal(size=(4, 100))}, 1)
    assert np.all(np.asarray(refresh.kept) >= 0)
    assert int(choose_rates(refresh, TRIED, costs).sweeps) == 1


def test_refreshes_that_are_never_accepted_stop(model, release):
    """None of 600 was: no more are made, unless draws are worth more with them; of too few nothing is concluded."""
    refresh, costs = prior_alone(model), CostsOfOneCore().of(model, augment(model, release).plan, 100)

    def rates_after(made, accepted, kept=(-1.0, -1.0, -1.0), share=1.0):
        info = {"num_refreshes": np.full((4, 10), made), "refresh_acceptance_rate": np.full((4, 10), accepted)}
        counted = count_accepted(count_accepted(refresh, info), info)
        given = counted._replace(kept=jnp.array(kept), prior_share=jnp.array(share))
        chosen = choose_rates(given, TRIED, costs)
        return int(chosen.sweeps), int(chosen.refreshes)

    assert rates_after(8, 0.0) == (PERIOD, 0)
    assert rates_after(8, 0.0, kept=(0.5, 0.99, 0.999), share=0.1) == (PERIOD, 0)
    assert rates_after(8, 0.0, kept=(0.999, 0.5, 0.4), share=0.1)[1] >= PERIOD
    assert rates_after(8, 0.125) == (PERIOD, FLOOR)
    assert rates_after(2, 0.0) == (PERIOD, FLOOR)


def test_parts_are_swept_where_that_leaves_most_draws():
    """A sweep over a part costs less than half of a whole one, and is chosen if it gives more than so many draws."""

    def choose(whole, part):
        return best_rates(TRIED_IN_PARTS, np.array([whole, part, 0.999, 0.999]), 10.0, 50.0)

    share = PART_COST * 1.2
    slow, fast = [(1 - draws) / (1 + draws) for draws in (0.4 * share, 0.4)]
    assert choose(fast, fast).parts == 1
    assert choose(fast, slow).parts == 16
    # Draws that are kept are worth something, however cheap the others are.
    assert choose(fast, (1 - 0.19) / (1 + 0.19)).parts == 16


@pytest.mark.parametrize(
    ("changes", "n"),
    [({"noise": "held"}, 1_000), ({"refresh": False}, 1_000), ({"imputation": dpjax.soma()}, 1_000), ({}, 2**21)],
)
def test_parts_are_for_noise_that_moves_and_records_that_fit(model, release, changes, n):
    plan = replace(augment(model, release).plan, noise="moved", refresh=True)
    assert rates_to_try(plan, 1_000) == TRIED_IN_PARTS
    assert rates_to_try(replace(plan, **changes), n) == TRIED
