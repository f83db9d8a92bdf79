"""The ledger counts every query, refuses before the budget breaks, and survives the process."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from dpjax.private import Budget, BudgetExceeded, Ledger, Query, accounting, noise_multiplier_for
from dpjax.private.accounting.closed_form import largest_count, nearly_largest_count
from dpjax.private.accounting.ledger_file import checksum

BUDGET = Budget(6.0, 1e-6, "replace-one")
TAU_L, TAU_G, LEAPFROG = 31.622776601683796, 173.9252713092609, 25
ITERATION = (
    Query("log-likelihood ratio", 2 * TAU_L, "secure"),
    Query("gradient", 2 * TAU_G, "secure", count=LEAPFROG + 1),
)


def test_spends_what_theorem_3_5_says():
    ledger = Ledger(BUDGET)
    assert ledger.privacy_spent() == (0.0, 1e-6, "replace-one", None, 0)
    ledger.charge(ITERATION, 500)
    mu = accounting.mu(500, TAU_L, TAU_G, LEAPFROG)
    spent = ledger.privacy_spent()
    assert spent.epsilon == pytest.approx(accounting.epsilon(1e-6, mu), rel=1e-12)
    assert ledger.log_delta(3.0) == pytest.approx(accounting.log_delta(3.0, mu), abs=1e-10)
    assert (spent.grade, spent.num_queries) == ("secure", 500 * (LEAPFROG + 2))


def test_adding_or_removing_a_record_moves_a_sum_half_as_far():
    ledger = Ledger(Budget(6.0, 1e-6, "add-or-remove"))
    ledger.charge(ITERATION, 500)
    mu = accounting.mu(500, 2 * TAU_L, 2 * TAU_G, LEAPFROG)
    assert ledger.privacy_spent().epsilon == pytest.approx(accounting.epsilon(1e-6, mu), rel=1e-12)


def test_the_budget_is_spent_to_the_last_iteration_and_no_further():
    ledger = Ledger(BUDGET)
    assert ledger.affordable(ITERATION) == 769
    ledger.charge(ITERATION, 700)
    assert ledger.affordable(ITERATION) == 69
    with pytest.raises(BudgetExceeded, match=r"69 can be made") as refused:
        ledger.charge(ITERATION, 70)
    assert "ε = 6, δ = 1e-06" in str(refused.value)
    assert "1820 × gradient" in str(refused.value)
    assert ledger.affordable(ITERATION) == 69
    ledger.charge(ITERATION, 69)
    assert ledger.affordable(ITERATION) == 0
    assert ledger.privacy_spent().epsilon <= 6.0


BATCH = [Query("gradient of a batch", 4.0, "secure", sampling_rate=0.05)]


@pytest.mark.x64
def test_equal_subsampled_queries_are_composed_by_their_distributions():
    pytest.importorskip("dp_accounting")
    ledger = Ledger(Budget(2.0, 1e-6, "replace-one"))
    ledger.charge(BATCH, 300)
    assert 1.9 < ledger.privacy_spent().epsilon < 2.0
    assert ledger.log_delta(2.0) < math.log(1e-6)
    with pytest.raises(BudgetExceeded):
        ledger.charge(BATCH, 25)


FULL = [Query("gradient", 400.0, "secure")]


@pytest.mark.parametrize(("first", "second"), [(BATCH, FULL), (FULL, BATCH)], ids=["sampled first", "sampled later"])
def test_a_mixture_chosen_after_answers_costs_as_much_as_without_sampling(first, second):
    """Any mixture was composed as if it had been fixed beforehand: whoever sees the losses chooses what suits them."""
    pytest.importorskip("dp_accounting")
    budget = Budget(9.0, 1e-6, "replace-one")
    ledger, whole = Ledger(budget), Ledger(budget)
    count = whole.affordable([replace(BATCH[0], sampling_rate=1.0)])
    ledger.charge(first)
    for times in (count + 1, 10 * count):
        with pytest.raises(BudgetExceeded):
            ledger.charge([*BATCH, *second], times)
    ledger.charge([*BATCH, *second], count // 3)
    assert ledger.privacy_spent().epsilon < 9.0 / 3


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
def test_subsampled_queries_are_afforded_to_the_last_thousandth(neighbours):
    pytest.importorskip("dp_accounting")
    ledger = Ledger(Budget(2.0, 1e-6, neighbours))
    ledger.charge(BATCH, 100)
    more = ledger.affordable(BATCH)
    with pytest.raises(BudgetExceeded):
        ledger.charge(BATCH, more + more // 500 + 1)
    ledger.charge(BATCH, more)
    assert 1.98 < ledger.privacy_spent().epsilon <= 2.0
    assert ledger.affordable([Query("gradient", 0.5, "secure", sampling_rate=0.5)]) == 0


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
@pytest.mark.parametrize(("count", "rate"), [(1_000, 1.0), pytest.param(300, 0.05, marks=pytest.mark.slow)])
def test_the_noise_for_a_number_of_queries_buys_just_that_number(neighbours, count, rate):
    budget = Budget(2.0, 1e-6, neighbours)
    multiplier = noise_multiplier_for(budget, count, sampling_rate=rate)
    Ledger(budget).charge([Query("gradient", multiplier, "secure", count, rate)])
    with pytest.raises(BudgetExceeded):
        Ledger(budget).charge([Query("gradient", multiplier * 0.999, "secure", count, rate)])


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.floats(0.2, 5.0), st.floats(-1e3, -1.0))
def test_the_search_finds_the_largest_count(largest, power, floor):
    tried = []

    def excess(count):
        tried.append(count)
        return max(power * (math.log(count) - math.log(largest + 0.5)), floor)

    found = nearly_largest_count(excess)
    assert largest * (1 - 1.01e-3) - 1 <= found <= largest
    assert len(tried) <= 40
    assert largest_count(lambda count: count <= largest) == largest


def test_one_simulated_query_takes_the_grade_from_all():
    ledger = Ledger(BUDGET)
    ledger.charge(ITERATION)
    ledger.charge([Query("gradient", 400.0, "simulation-grade")])
    assert ledger.privacy_spent().grade == "simulation-grade"


def test_a_file_keeps_the_budget_from_being_spent_twice(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger(BUDGET, path).charge(ITERATION, 700)
    reopened = Ledger(BUDGET, path)
    assert reopened.affordable(ITERATION) == 69
    with pytest.raises(BudgetExceeded):
        reopened.charge(ITERATION, 70)
    assert Ledger(BUDGET, path).queries == reopened.queries
    with pytest.raises(ValueError, match="one ledger"):
        Ledger(Budget(7.0, 1e-6, "replace-one"), path)
    assert {item.name for item in tmp_path.iterdir()} == {"ledger.json", "ledger.json.begun"}


def signed(content: dict) -> dict:
    content.pop("sha256")
    return content | {"sha256": checksum(content)}


def test_json_holds_the_whole_ledger():
    ledger = Ledger(BUDGET)
    ledger.charge(ITERATION, 10)
    again = Ledger.from_json(ledger.to_json())
    with pytest.raises(RuntimeError, match="a copy, of a pickle or JSON"):
        again.charge(ITERATION)  # beside the original it would be a second budget
    assert again.budget == ledger.budget
    assert again.queries == ledger.queries
    assert again.queries[1].count == 10 * (LEAPFROG + 1)
    broken = json.loads(ledger.to_json())
    for change in ({"queries": [{"name": "x"}]}, {"budget": {"epsilon": 1.0}}):
        with pytest.raises(ValueError, match="checksum differs"):
            Ledger.from_json(json.dumps(broken | change))
        with pytest.raises(ValueError, match="another form"):
            Ledger.from_json(json.dumps(signed(broken | change)))
    with pytest.raises(ValueError, match="Look at the file"):
        Ledger.from_json(json.dumps(signed(broken | {"format": 0})))
    with pytest.raises(ValueError, match="Look at the file"):
        Ledger.from_json("spent")


def test_equal_queries_are_counted_together():
    ledger = Ledger(BUDGET)
    for _ in range(3):
        ledger.charge(ITERATION, 2)
    assert [query.count for query in ledger.queries] == [6, 6 * (LEAPFROG + 1)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Budget(0.0, 1e-6, "replace-one"), ValueError, "epsilon"),
        (lambda: Budget(math.inf, 1e-6, "replace-one"), ValueError, "epsilon"),
        (lambda: Budget(1.0, 1.0, "replace-one"), ValueError, "delta"),
        (lambda: Budget(1.0, -1e-9, "replace-one"), ValueError, "delta"),
        (lambda: Query("x", 1.0, "secure", noise="normal"), ValueError, "noise"),
        (lambda: Query("x", 1.0, "secure", sampling_rate=0.5, noise="laplace"), ValueError, "sampling_rate"),
        (lambda: noise_multiplier_for(Budget(1.0, 0.0, "replace-one"), 3, sampling_rate=1.0), ValueError, "budget"),
        (lambda: Budget(1.0, 1e-6, "substitute"), ValueError, "State the relation"),
        (lambda: Budget(1.0, 1e-6), TypeError, "neighbours"),
        (lambda: Ledger((1.0, 1e-6)), TypeError, "State ε, δ"),
        (lambda: Query("x", 0.0, "secure"), ValueError, "noise_multiplier"),
        (lambda: Query("x", math.nan, "secure"), ValueError, "noise_multiplier"),
        (lambda: Query("x", 1.0, "secure", count=0), ValueError, "count"),
        (lambda: Query("x", 1.0, "secure", sampling_rate=0.0), ValueError, "sampling_rate"),
        (lambda: Query("x", 1.0, "fine"), ValueError, "grade"),
        (lambda: Ledger(BUDGET).charge([]), TypeError, "queries"),
        (lambda: Ledger(BUDGET).charge(ITERATION, 0), ValueError, "times"),
        (lambda: Ledger(BUDGET).affordable([1.0]), TypeError, "queries"),
    ],
)
def test_bad_input_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
