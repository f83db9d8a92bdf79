"""The closed forms of Theorems 2.4 and 3.5: known values, dp_accounting, monotonicity, inverses."""

import json
from math import exp, log
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from dpjax.private import Query, accounting, events

TABLE = json.loads((Path(__file__).parent / "accountant_table.json").read_text())
TAU_L, TAU_G, LEAPFROG = 31.622776601683796, 173.9252713092609, 25  # banana, DP-HMC

epsilons = st.floats(1e-3, 50.0)
taus = st.floats(2.0, 300.0)
counts = st.integers(1, 20_000)
steps = st.integers(0, 50)
factors = st.floats(1.01, 3.0)


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: row["name"])
def test_closed_form_agrees_with_60_digit_arithmetic(row):
    mu = accounting.mu(row["k"], row["tau_l"], row["tau_g"], row["L"])
    assert mu == pytest.approx(float(row["mu"]), rel=1e-14)
    log_delta = accounting.log_delta(row["epsilon"], mu)
    assert log_delta == pytest.approx(float(row["log_delta"]), rel=1e-12, abs=1e-12)
    epsilon = float(row["epsilon_at_delta_1e_6"])
    assert accounting.epsilon(1e-6, mu) == pytest.approx(epsilon, rel=1e-13)


def test_what_delta_lacks_of_one_is_not_lost():
    row = TABLE["rows"][-1]
    assert accounting.log_delta(row["epsilon"], float(row["mu"])) == pytest.approx(float(row["log_delta"]), rel=1e-12)


@pytest.mark.parametrize("row", TABLE["max_k"], ids=lambda row: f"{row['setting']} {row['epsilon']}")
def test_largest_numbers_of_iterations(row):
    run = (row["tau_l"], row["tau_g"], row["L"])
    assert accounting.max_iterations(row["epsilon"], row["delta"], *run) == row["max_k"]


@settings(max_examples=60, deadline=None)
@given(epsilons, taus, taus, counts, steps, factors)
def test_delta_falls_with_epsilon_and_noise_and_grows_with_iterations(epsilon, tau_l, tau_g, count, leapfrog, factor):
    here = accounting.log_delta(epsilon, accounting.mu(count, tau_l, tau_g, leapfrog))
    slack = 1e-9 * (1 + abs(here))
    more = accounting.mu(count + 1, tau_l, tau_g, leapfrog)
    quieter = accounting.mu(count, factor * tau_l, factor * tau_g, leapfrog)
    assert accounting.log_delta(factor * epsilon, accounting.mu(count, tau_l, tau_g, leapfrog)) <= here + slack
    assert accounting.log_delta(epsilon, more) >= here - slack
    assert accounting.log_delta(epsilon, quieter) <= here + slack
    assert accounting.log_delta(epsilon, accounting.mu(count, tau_l, tau_g, leapfrog + 1)) >= here - slack


@settings(max_examples=40, deadline=None)
@given(epsilons, st.floats(-60.0, -1.0), taus, taus, steps)
def test_inverses_meet_the_budget_and_leave_nothing(epsilon, log_delta, tau_l, tau_g, leapfrog):
    delta = exp(log_delta)
    largest = accounting.largest_mu(epsilon, delta)
    assert accounting.log_delta(epsilon, largest) <= log(delta)
    assert accounting.epsilon(delta, largest) == pytest.approx(epsilon, rel=1e-7)
    count = accounting.max_iterations(epsilon, delta, tau_l, tau_g, leapfrog)
    each = accounting.mu(1, tau_l, tau_g, leapfrog)
    assert count * each <= largest * (1 + 1e-9)
    assert (count + 1) * each >= largest * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(epsilons, counts, steps, st.floats(0.0, 0.95, allow_subnormal=False))
def test_noise_for_a_number_of_iterations_buys_just_that_number(epsilon, count, leapfrog, share):
    taus = accounting.taus_for(epsilon, 1e-6, count, leapfrog, gradient_share=share)
    assert (taus.tau_g is None) == (share == 0)
    loss = accounting.mu(count, taus.tau_l, taus.tau_g, leapfrog)
    assert accounting.epsilon(1e-6, loss) == pytest.approx(epsilon, rel=1e-7)
    assert accounting.mu(count, taus.tau_l, None, 0) == pytest.approx((1 - share) * loss, rel=1e-9)


@pytest.mark.parametrize(("neighbours", "tau_factor"), [("replace-one", 1.0), ("add-or-remove", 2.0)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_dp_accounting_agrees_and_the_relation_halves_the_sensitivity(neighbours, tau_factor, epsilon):
    """Noise 2 τ b is τ sensitivities for replaced records, 2 τ for added ones: μ differs by a factor of 4."""
    pytest.importorskip("dp_accounting")
    queries = (Query("ratio", 2 * TAU_L, "secure", 200), Query("gradient", 2 * TAU_G, "secure", 200 * (LEAPFROG + 1)))
    mu = accounting.mu(200, tau_factor * TAU_L, tau_factor * TAU_G, LEAPFROG)
    numerical = events.subsampled_log_delta(queries, epsilon, neighbours)
    ours = accounting.log_delta(epsilon, mu)
    # The library discretises from above and truncates tails of mass 1e-15, which it adds to δ.
    assert -1e-9 * exp(ours) < exp(numerical) - exp(ours) < 1e-6 * exp(ours) + 2e-15


def test_subsampling_lowers_the_cost_and_full_sampling_changes_nothing():
    pytest.importorskip("dp_accounting")
    full = events.subsampled_epsilon([Query("gradient", 20.0, "secure", 300)], 1e-6, "replace-one")
    rates = [
        events.subsampled_epsilon([Query("gradient", 20.0, "secure", 300, rate)], 1e-6, "replace-one")
        for rate in (0.1, 0.5, 1.0)
    ]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(full, rel=1e-4)
    assert rates[0] < full / 5
    assert accounting.epsilon(1e-6, 300 * (2 / 20) ** 2 / 2) == pytest.approx(full, rel=1e-4)


def test_sensitivity_follows_the_relation():
    assert accounting.sensitivity(0.5, "replace-one") == 1.0
    assert accounting.sensitivity(0.5, "add-or-remove") == 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: accounting.log_delta(-1.0, 1.0), "epsilon"),
        (lambda: accounting.log_delta(float("nan"), 1.0), "epsilon"),
        (lambda: accounting.log_delta(1.0, -1.0), "mu"),
        (lambda: accounting.epsilon(0.0, 1.0), "delta"),
        (lambda: accounting.epsilon(1.0, 1.0), "delta"),
        (lambda: accounting.mu(-1, 1.0, 1.0, 1), "num_iterations"),
        (lambda: accounting.mu(1, 0.0, 1.0, 1), "tau_l"),
        (lambda: accounting.mu(1, 1.0, -1.0, 1), "tau_g"),
        (lambda: accounting.mu(1, 1.0, float("nan"), 1), "tau_g"),
        (lambda: accounting.mu(1, 1.0, 1.0, -1), "num_leapfrog"),
        (lambda: accounting.max_iterations(0.0, 1e-6, 1.0, 1.0, 1), "epsilon"),
        (lambda: accounting.max_iterations(1.0, 1e-6, float("inf"), None, 1), "tau_l"),
        (lambda: accounting.taus_for(1.0, 1e-6, 10, 1, gradient_share=1.0), "gradient_share"),
        (lambda: accounting.sensitivity(1.0, "substitute"), "State the relation"),
        (lambda: accounting.sensitivity(0.0, "replace-one"), "bound"),
        (lambda: events.accountant([], "replace"), "State the relation"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
