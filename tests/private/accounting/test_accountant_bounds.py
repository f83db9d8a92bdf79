"""What the accountant charges for subsampled queries is never below what they cost, however small δ is."""

from math import exp, log
from typing import NamedTuple

import numpy as np
import pytest

from dpjax import private
from dpjax.private import Query, accounting, events
from tests.private.accounting.loss_distributions import log_delta, losses, slope, variance
from tests.tools.validation import record

pytest.importorskip("dp_accounting")

ORACLE_ERROR = 0.01
"""Of log δ, by the grid of the losses: seen to be 0.003 where the sampling rate is 1e-6."""


class Case(NamedTuple):
    """Queries, the relation, the direction of the losses that it means, and ε."""

    queries: list[Query]
    neighbours: str
    direction: str
    epsilon: float


def draw(rng: np.random.Generator, most: float) -> Case:
    """A random composition of one kind of query, or of two, at an ε up to eight deviations above its mean loss."""
    neighbours, direction = [("add-or-remove", "removed"), ("add-or-remove", "added"), ("replace-one", "replaced")][
        rng.integers(3)
    ]
    queries = [one_kind(rng, most) for _ in range(1 + (rng.random() < 0.25))]
    kinds = [losses(query, direction) for query in queries]
    mean = sum(kind.count * slope(kind, 0.0) for kind in kinds)
    spread = np.sqrt(sum(kind.count * variance(kind.loss, np.exp(kind.log_mass)) for kind in kinds))
    return Case(queries, neighbours, direction, float(max(mean + rng.uniform(0, 8) * spread, spread / 1_000)))


def one_kind(rng: np.random.Generator, most: float) -> Query:
    """Rates from 1e-8 to 0.999999, half of them near 1 or single; noise with which the composition costs little."""
    rate = float(np.exp(rng.uniform(np.log(1e-8), np.log(0.999999))))
    rate = 1 - 10 ** rng.uniform(-6, -0.3) if rng.random() < 0.3 else rate
    count = 1 if rng.random() < 0.3 else int(np.exp(rng.uniform(0.0, np.log(most))))
    multiplier = np.exp(rng.uniform(np.log(0.6), np.log(5.0))) * max(1.0, rate * np.sqrt(count))
    return Query("sum", float(multiplier), "secure", count, rate)


def gaps(number: int, most: float, seed: int) -> np.ndarray:
    """How far above the truth log δ is charged, plus the oracle's own error; negative where too little is."""
    rng = np.random.default_rng(seed)
    found = []
    for case in (draw(rng, most) for _ in range(number)):
        truth, added = log_delta(case.queries, case.epsilon, case.direction)
        charged = events.subsampled_log_delta(case.queries, case.epsilon, case.neighbours)
        found.append(charged - truth + added + ORACLE_ERROR)
    return np.array(found)  # infinite where nothing was spent


@pytest.mark.x64
def test_what_is_charged_is_never_below_the_truth() -> None:
    assert np.min(gaps(16, most=3e3, seed=1)) >= 0


@pytest.mark.slow
def test_what_is_charged_is_never_below_the_truth_of_a_thousand_sequences() -> None:
    found = gaps(1_000, most=1e7, seed=2)
    above = found[np.isfinite(found)] - ORACLE_ERROR
    record(
        "accountant",
        title="The accountant of subsampled queries",
        what="log δ charged for sequences of subsampled Gaussian sums: rates from 1e-8 to 0.999999, single and "
        "composed up to ten million times, one or two kinds, both neighbouring relations and directions",
        against="the privacy loss distribution by a tilted Fourier transform that shares no code, which is checked "
        "against closed forms",
        cases=len(found),
        precisions=["float64"],
        result=f"{int(np.sum(found < 0))} below the truth; log δ over-charged by {np.median(above):.2g} in the median, "
        f"nine in ten by less than {np.quantile(above, 0.9):.2g}, not spent at all {int(np.sum(np.isinf(found)))}",
        command=".venv/bin/python -m pytest -m slow tests/private/accounting/test_accountant_bounds.py",
    )
    assert np.min(found) >= 0


@pytest.mark.parametrize(("count", "multiplier", "epsilon"), [(10, 20.0, 1.0), (1_000, 100.0, 2.0)])
def test_the_oracle_knows_the_closed_form_of_full_batches(count: int, multiplier: float, epsilon: float) -> None:
    found, added = log_delta([Query("sum", multiplier, "secure", count, 1 - 1e-12)], epsilon, "removed")
    assert abs(found - accounting.log_delta(epsilon, count / 2 / multiplier**2)) < 1e-4 + added


@pytest.mark.x64
def test_an_error_of_the_transform_is_charged_and_not_given_away() -> None:
    """A million queries of nearly all records once came out at a negative δ, and as free."""
    query = Query("sum", 1_000.0, "secure", 1_000_000, 0.999999)
    for epsilon in (8.0, 12.0):
        truth = accounting.log_delta(float(epsilon), 0.5)
        charged = events.subsampled_log_delta([query], float(epsilon), "add-or-remove")
        assert truth - 1e-3 <= charged
        assert charged <= max(truth + 2.0, log(2e-7))
    ledger = private.Ledger(private.Budget(3.0, 1e-10, neighbours="add-or-remove"))
    with pytest.raises(private.BudgetExceeded):
        ledger.charge([query])


@pytest.mark.x64
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("log_delta", [-5.0, -25.0, -60.0])
def test_epsilon_goes_with_delta(neighbours: str, log_delta: float) -> None:
    """However small δ is, there is an ε, and at it δ is no more than that."""
    queries = [Query("sum", 30.0, "secure", 2_000, 0.01)]
    epsilon = events.subsampled_epsilon(queries, exp(log_delta), neighbours)
    assert 0 <= epsilon < 60
    assert events.subsampled_log_delta(queries, epsilon * (1 + 1e-6), neighbours) <= log_delta + 1e-3


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.float16, np.float32])
def test_numbers_of_numpy_are_charged_as_python_s(kind: type) -> None:
    """NumPy's integers wrap round where they are multiplied: three times 100 of them were charged as 44."""
    ledger = private.Ledger(private.Budget(4.0, 1e-6, neighbours="replace-one"))
    count = kind(100) if issubclass(kind, np.integer) else 100
    query = Query("sum", kind(100), "secure", count)
    assert (type(query.noise_multiplier), type(query.count)) == (float, int)
    ledger.charge([query], times=3)
    assert ledger.queries == (Query("sum", 100.0, "secure", 300),)
    with pytest.raises(ValueError, match="sampling_rate"):
        Query("sum", 1.0, "secure", 1, np.float16(1.001) + np.float16(0.01))


def test_what_is_solved_for_is_rounded_away_from_harm() -> None:
    """Against 60-digit arithmetic: no μ that a budget does not buy, and no ε below the one that was spent."""
    mpmath = pytest.importorskip("mpmath")

    def exact(epsilon: float, mu: float) -> object:
        with mpmath.workdps(60):
            spread = mpmath.sqrt(2 * mpmath.mpf(mu))
            upper, lower = (sign * spread / 2 - mpmath.mpf(epsilon) / spread for sign in (1, -1))
            return mpmath.log(mpmath.ncdf(upper) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(lower))

    rng = np.random.default_rng(3)
    for _ in range(100):
        epsilon, delta = float(np.exp(rng.uniform(-6, 3))), float(np.exp(rng.uniform(-60, -1)))
        mu = accounting.largest_mu(epsilon, delta)
        assert exact(epsilon, mu) <= mpmath.log(mpmath.mpf(delta))
        spent = accounting.epsilon(delta, mu)
        assert exact(spent, mu) <= mpmath.log(mpmath.mpf(delta))
        assert spent == pytest.approx(epsilon, rel=1e-6)
