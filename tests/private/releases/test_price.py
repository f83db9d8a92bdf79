"""Scales that spend a budget, by shares, weights and relations."""

import numpy as np
import pytest

import dpjax
from dpjax import private
from dpjax.private.releases.price import Cost, price
from tests.private.releases.paid_sums import ADDED, BOTH, BUDGET, GRAM, RECORDS, TABLE, TOTAL, release

CLOSE = 1e-9


COST = Cost("gaussian", 0.02)
"""How far from a budget its cost may stay."""


def scales_of(published: dpjax.Release) -> np.ndarray:
    mechanism = published.mechanism
    return np.array([part.scale for part in getattr(mechanism, "mechanisms", [mechanism])])


@pytest.mark.parametrize("budget", [BUDGET, ADDED], ids=["replace-one", "add-or-remove"])
@pytest.mark.parametrize("statistic", [GRAM, BOTH], ids=["gram", "stacked"])
def test_budget_is_spent_to_the_last_digit(budget, statistic):
    ledger = private.Ledger(budget)
    given = {"n": 300} if budget is ADDED else {}
    published = private.release(ledger, statistic, RECORDS, people=None, **given)
    spent = ledger.privacy_spent()
    assert budget.epsilon * (1 - CLOSE) < spent.epsilon <= budget.epsilon
    assert spent.grade == "secure"
    promise = published.mechanism.privacy
    assert (promise.epsilon, promise.delta, promise.neighbours) == (spent.epsilon, 1e-6, budget.neighbours)
    with pytest.raises(private.BudgetExceeded, match="all of which is spent"):
        private.release(ledger, statistic, RECORDS, people=None, **given)
    assert ledger.privacy_spent() == spent


def test_parts_of_a_budget_are_spent_one_after_the_other():
    ledger, part = private.Ledger(BUDGET), private.Budget(0.4, 1e-6, "replace-one")
    first = private.release(ledger, TABLE, RECORDS, people=None, budget=part, name="table")
    assert 0.4 * (1 - CLOSE) < first.mechanism.privacy.epsilon == ledger.privacy_spent().epsilon <= 0.4
    rest = private.release(ledger, TOTAL, RECORDS, people=None)
    assert 1 - CLOSE < ledger.privacy_spent().epsilon <= 1
    assert rest.mechanism.privacy.epsilon < 1
    assert [query.name for query in ledger.queries] == ["table", "release"]
    ledger = private.Ledger(BUDGET)
    with pytest.raises(private.BudgetExceeded):
        private.release(ledger, TABLE, RECORDS, people=None, budget=private.Budget(1.1, 1e-6, "replace-one"))
    assert ledger.queries == ()


def test_shares_set_the_scales_that_pay_for_them():
    equal, skewed = scales_of(release(BOTH)), scales_of(release(BOTH, shares=[0.2, 0.8]))
    np.testing.assert_allclose(skewed / equal, np.sqrt([0.5 / 0.2, 0.5 / 0.8]), rtol=1e-6)
    np.testing.assert_allclose(equal[0] / equal[1], 4.0 / np.sqrt(2), rtol=1e-5)
    alone = [
        private.release(private.Ledger(BUDGET), one, RECORDS, people=None).mechanism.scale for one in (TOTAL, TABLE)
    ]
    np.testing.assert_allclose(equal / alone, np.sqrt(2), rtol=1e-5)


def test_weights_give_the_least_weighted_variance():
    weights, sizes = np.array([1.0, 5.0]), np.array([1, 3])

    def cost(shares):
        parts = price(BOTH, COST, "replace-one", shares, None)
        return sum(weights * sizes * np.square([part.scale for part in parts]))

    best = np.square([part.scale for part in price(BOTH, COST, "replace-one", None, weights)])
    grid = np.linspace(0.01, 0.99, 99)
    assert sum(weights * sizes * best) <= min(cost([share, 1 - share]) for share in grid)
    assert sum(weights * sizes * best) < 0.999 * min(cost([0.5, 0.5]), cost([0.8, 0.2]))


def test_relations_differ_by_what_a_record_can_do():
    replaced, added = release(TOTAL), release(TOTAL, budget=ADDED, n=300)
    np.testing.assert_allclose(replaced.mechanism.scale / added.mechanism.scale, 2.0, rtol=1e-5)
    assert (replaced.n, added.n) == (300, 300)
