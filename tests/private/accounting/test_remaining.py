"""What is left of a budget is what may still be charged: no less, and no more than a millionth of it."""

import numpy as np
import pytest

from dpjax import private, statistics
from dpjax.private import accounting
from tests.private.accounting.ledgers import BUDGET
from tests.private.releases.paid_sums import seeded

PURE = private.Budget(0.7, 0.0, "add-or-remove")
CHARGED = {
    "nothing": [],
    "Gaussian noise": [private.Query("sum", 30.0, "secure")],
    "both": [private.Query("sum", 40.0, "secure", count=3), private.Query("count", 50.0, "secure", noise="laplace")],
    "subsampled first": [private.Query("batch", 300.0, "secure", sampling_rate=0.1)],
}


def ledger(charged: list[private.Query], budget: private.Budget = BUDGET) -> private.Ledger:
    made = private.Ledger(budget)
    if charged:
        made.charge(charged)
    return made


@pytest.mark.x64
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("charged", CHARGED)
def test_just_as_much_noise_as_is_said_fits(charged: str, noise: private.accounting.query.NoiseFamily) -> None:
    left = ledger(CHARGED[charged]).remaining(noise, count=2)
    least = left.noise_multiplier
    ledger(CHARGED[charged]).charge([private.Query("more", least, "secure", count=2, noise=noise)])
    with pytest.raises(private.BudgetExceeded):
        ledger(CHARGED[charged]).charge([private.Query("more", least * (1 - 1e-6), "secure", count=2, noise=noise)])


@pytest.mark.x64
def test_the_units_are_those_of_the_closed_forms() -> None:
    spent = [private.Query("sum", 30.0, "secure")]
    left = ledger(spent).remaining()
    rho = accounting.largest_mu(BUDGET.epsilon, BUDGET.delta) - (2 / 30.0) ** 2 / 2
    assert left.rho == pytest.approx(rho, rel=1e-8)
    assert left.epsilon == pytest.approx(accounting.epsilon(BUDGET.delta, rho), rel=1e-6)
    assert left.noise_multiplier == pytest.approx(2 / np.sqrt(2 * rho), rel=1e-8)
    counts = [private.Query("count", 4.0, "secure", noise="laplace")]
    pure = ledger(counts, PURE).remaining()
    assert (pure.delta, pure.rho) == (0.0, None)
    assert (pure.epsilon, pure.noise_multiplier) == pytest.approx((0.45, 1 / 0.45), rel=1e-8)


@pytest.mark.x64
def test_subsampled_queries_leave_room_for_more_of_the_same_alone() -> None:
    """The print said that nothing was left, without for what, while more of the same queries fitted."""
    batch = private.Query("batch", 1.0, "secure", sampling_rate=0.02)
    spent = ledger([batch], private.Budget(3.0, 1e-6, "add-or-remove"))
    assert spent.remaining().epsilon == 0
    assert repr(spent).endswith("\nleft for queries of all records: nothing")
    spent.charge([batch])


@pytest.mark.x64
def test_what_a_mixed_ledger_cannot_spend_is_what_its_share_of_delta_costs() -> None:
    """Three quarters of ε are spent when nothing is left, as the closed form at δ / 1024 says: no more is lost."""
    budget = private.Budget(1.0, 1e-6, "replace-one")
    spent = ledger([private.Query("batch", 3_000.0, "secure", sampling_rate=0.99)], budget)
    spent.charge([private.Query("sum", spent.remaining().noise_multiplier, "secure")])
    assert str(spent.remaining()) == "nothing"
    at_share = accounting.closed_form.largest_mu(1.0, 1e-6 / 1024)
    assert spent.privacy_spent().epsilon == pytest.approx(accounting.epsilon(1e-6, at_share), rel=0.01)
    assert 0.74 < spent.privacy_spent().epsilon < 0.76


@pytest.mark.x64
@pytest.mark.parametrize("budget", [BUDGET, PURE], ids=["Gaussian", "Laplace"])
def test_a_release_of_what_is_left_fits_and_leaves_nothing(budget: private.Budget) -> None:
    total, records = statistics.total("y", 0.0, 1.0), {"y": np.full(5, 0.5)}
    spent, noise = ledger([], budget), seeded(1)
    half = spent.remaining().epsilon / 2
    private.release(
        spent, total, records, noise=noise, n=5, budget=private.Budget(half, budget.delta, budget.neighbours)
    )
    left = spent.remaining()
    rest = private.Budget(left.epsilon, left.delta, budget.neighbours)
    private.release(spent, total, records, noise=noise, n=5, budget=rest)
    assert spent.remaining() == (0.0, left.delta, left.rho and 0.0, np.inf)
    assert str(spent).endswith("\nleft: nothing")


def test_errors_and_prints_say_what_is_left() -> None:
    """They said what was spent, from which what is left does not follow."""
    spent = ledger([private.Query("sum", 30.0, "secure")])
    left = f"{spent.remaining().epsilon:.6g}"
    assert f"left: ε = {left} at δ = 1e-06, or one sum with a noise multiplier of " in repr(spent)
    with pytest.raises(private.BudgetExceeded, match=rf"Left is ε = {left} at δ = 1e-06, or one sum with a noise mult"):
        spent.charge([private.Query("sum", 1.0, "secure")])
    pure = ledger([private.Query("count", 4.0, "secure", noise="laplace")], PURE)
    with pytest.raises(private.BudgetExceeded, match=r"Left is ε = 0\.45, or one sum with a noise multiplier of 2\.2"):
        pure.charge([private.Query("count", 1.0, "secure", noise="laplace")])


@pytest.mark.parametrize(
    ("noise", "count", "name"), [("gaussian", 1, "noise"), ("cauchy", 1, "noise"), (None, 0, "count")]
)
def test_what_cannot_be_left_is_refused(noise: str | None, count: int, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: given .*; expected .*\. "):
        ledger([], PURE).remaining(noise, count=count)  # type: ignore[arg-type]
