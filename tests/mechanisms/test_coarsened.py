"""Counts coarsened by a rule: every count, chains of counts and records against enumeration, starts, and refusals."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.mechanisms import Coarsened
from tests.mechanisms.published import (
    ALPHA,
    COLUMNS,
    NOISY_ROWS,
    PRIOR,
    ROWS,
    LogProbability,
    Part,
    check_chains,
    exact,
    laplace,
)

TABLE = models.categorical(ALPHA)
MANY = 80


def midpoint(count: int) -> float:
    """OpenSAFELY's rule, as its documentation writes it."""
    return 6 * int(np.ceil(count / 6)) - 3 if count else 0


def redact_and_round(count: int) -> float:
    """7 and fewer are redacted, and the rest is rounded to the nearest 5."""
    return -1 if 1 <= count <= 7 else 5 * np.floor(count / 5 + 0.5)


def below_ten(count: int) -> float:
    return count if count == 0 or count >= 10 else -1


def rate(count: int) -> float:
    """Per thousand of 700, with one decimal."""
    return round(1000 * count / 700, 1)


RULES: dict[str, tuple[Coarsened, Callable[[int], float]]] = {
    "midpoints": (Coarsened.midpoints(6), midpoint),
    "midpoints of 5": (Coarsened.midpoints(5), lambda count: 5 * int(np.ceil(count / 5)) - 2 if count else 0),
    "multiples": (Coarsened.multiples(5, redacted=(1, 7)), redact_and_round),
    "even multiples": (Coarsened.multiples(10), lambda count: 10 * np.floor(count / 10 + 0.5)),
    "suppressed": (Coarsened.from_function(below_ten, 10, period=1), below_ten),
    "by function": (Coarsened.from_function(redact_and_round, 23, period=5), redact_and_round),
    "bins": (Coarsened.bins([0, 1, 5, 10]), lambda count: (count >= 1) + (count >= 5) + (count >= 10)),
    "rates": (Coarsened.from_function(rate, MANY - 1), rate),
}


@pytest.mark.parametrize("name", RULES)
def test_law(name: str) -> None:
    """The likelihood is an indicator, each count has one number, and each number its least and greatest count."""
    mechanism, rule = RULES[name]
    numbers = np.array([rule(count) for count in range(MANY)], float)
    listed = np.unique(numbers)
    counts = jnp.arange(float(MANY))
    terms = np.asarray(mechanism.log_density_terms(jnp.asarray(listed, float)[:, None], counts[None]))
    np.testing.assert_array_equal(np.exp(terms), listed[:, None] == numbers[None])
    np.testing.assert_allclose(mechanism.sample(jax.random.key(0), counts), numbers, rtol=1e-6)
    assert np.all(np.isneginf(mechanism.log_density_terms(mechanism.sample(jax.random.key(0), counts), -counts - 1)))
    least, most = map(np.asarray, mechanism.sums.bounds(jnp.asarray(listed, float)))
    for place, number in enumerate(listed):
        found = np.flatnonzero(numbers == number)
        assert least[place] == found.min()
        assert most[place] == found.max() or found.max() == MANY - 1
    release = dpjax.Release(listed, mechanism, statistics.total("y", dimension=len(listed)), 1)
    assert dpjax.from_json(release.to_json()).mechanism == mechanism


@pytest.mark.parametrize("name", ["midpoints", "multiples", "suppressed"])
def test_large_counts(name: str) -> None:
    """Millions, in float32 as well."""
    mechanism, rule = RULES[name]
    counts = 10_000_000 + np.arange(12)
    numbers = np.array([rule(int(count)) for count in counts], float)
    np.testing.assert_array_equal(mechanism.sample(jax.random.key(0), jnp.asarray(counts)), numbers)
    least, most = map(np.asarray, mechanism.sums.bounds(jnp.asarray(numbers, float)))
    assert np.all((least <= counts) & (counts <= most) & (most - least <= 5))
    assert np.all(mechanism.log_density_terms(jnp.asarray(numbers, float), jnp.asarray(least)) == 0)
    assert np.all(np.isneginf(mechanism.log_density_terms(jnp.asarray(numbers, float), jnp.asarray(most + 1))))


def law_of(rule: Callable[[int], float]) -> LogProbability:
    def log_probability(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
        published = np.vectorize(rule, otypes=[float])(np.asarray(sums, int))
        return np.where(np.isclose(published, value), 0.0, -np.inf)

    return log_probability


def part(name: str, value: Any, groups: np.ndarray | None = None) -> Part:
    mechanism, rule = RULES[name]
    return Part(mechanism, law_of(rule), np.asarray(value, float), np.arange(4) if groups is None else groups)


NOISY = Part(dpjax.Laplace(2.0), laplace, NOISY_ROWS, ROWS)
KNOWN = Part(dpjax.Exact(), exact, np.array([8, 14]), COLUMNS)
CASES = {
    "beside noisy rows": [part("midpoints", [3, 9, 3, 9]), NOISY],
    "with a zero": [part("midpoints", [0, 9, 3, 9]), NOISY],
    "with coarsened margins": [part("midpoints", [3, 9, 3, 9]), part("multiples", [-1, 15], COLUMNS)],
    "with known columns": [part("bins", [2, 1, 1, 3]), KNOWN],
    "redacted": [part("multiples", [-1, 10, -1, -1]), NOISY],
}


@pytest.mark.x32
@pytest.mark.parametrize("name", ["with a zero", "with coarsened margins", "with known columns"])
def test_counts_agree_with_enumeration(name: str) -> None:
    check_chains(CASES[name], imputation=dpjax.counts())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["beside noisy rows", "redacted"])
def test_counts_of_unknown_number_agree(name: str) -> None:
    check_chains(CASES[name], dpjax.UnknownCount(PRIOR), imputation=dpjax.counts())


@pytest.mark.x32
@pytest.mark.parametrize("name", ["with a zero"])
def test_records_agree_with_enumeration(name: str) -> None:
    check_chains(CASES[name], imputation=dpjax.imwg(), num_samples=8_000)


@pytest.mark.x64
def test_the_midpoint_itself_is_noticed() -> None:
    """The planted fault: a class that is one count longer."""
    longer = Coarsened([0, *[3] * 7], period=7)
    right = CASES["beside noisy rows"][0]
    law = lambda value, sums: right.law(np.where(value == 10, 9, value), sums)  # noqa: E731
    planted = right._replace(mechanism=longer, value=np.array([3.0, 10.0, 3.0, 10.0]), law=law)
    with pytest.raises(AssertionError):
        check_chains([planted, NOISY], imputation=dpjax.counts())


@pytest.mark.x64
def test_rates_of_rounded_denominators() -> None:
    """A rate that was computed from two midpoints, which were published, is a function of them: their joint release."""
    sick = dpjax.Release([9.0], Coarsened.midpoints(6), statistics.grouped("cell", [0, -1, 0, -1]), 22)
    men = dpjax.Release([15.0], Coarsened.midpoints(6), statistics.grouped("cell", [0, 0, -1, -1]), 22)
    joint = dpjax.joint(sick, men)
    found = dpjax.sample(
        jax.random.key(1),
        TABLE,
        joint,
        num_warmup=50,
        num_samples=200,
        imputation=dpjax.counts(),
        progress=False,
        collect=lambda state: state.latent.records["counts"][0],
    )
    counts = np.asarray(found.collected)
    assert np.all((counts[..., 0] + counts[..., 2] >= 7) & (counts[..., 0] + counts[..., 2] <= 12))
    assert np.all((counts[..., 0] + counts[..., 1] >= 13) & (counts[..., 0] + counts[..., 1] <= 18))


@pytest.mark.x32
def test_rates_of_known_denominators() -> None:
    """One rule a cell, side by side; the numbers are fractions."""
    people = (70, 130)
    rules = [Coarsened.from_function(lambda count, d=d: round(1000 * count / d, 1), d) for d in people]
    value = [round(1000 * 7 / 70, 1), round(1000 * 26 / 130, 1)]
    release = dpjax.Release(value, dpjax.Independent(rules, (1, 1)), statistics.grouped("cell", [0, -1, 1, -1]), 200)
    columns = dpjax.Release(people, dpjax.Exact(), statistics.grouped("cell", [0, 0, 1, 1]), 200)
    found = dpjax.sample(
        jax.random.key(1),
        TABLE,
        dpjax.joint(release, columns),
        imputation=dpjax.counts(),
        num_warmup=20,
        num_samples=20,
        progress=False,
        collect=lambda state: state.latent.records["counts"][0],
    )
    assert np.all(np.asarray(found.collected)[..., [0, 2]] == [7, 26])


@pytest.mark.slow
def test_a_large_table_starts_within_its_bins() -> None:
    """100,000 people in 40 cells of bins of ten thousands: starts lie in the middle of their bins."""
    n, rng = 100_000, np.random.default_rng(1)
    table = rng.multinomial(n, rng.dirichlet(np.ones(40)))
    rule = Coarsened.bins([0, 1_000, 2_000, 5_000, 10_000])
    value = rule.sample(jax.random.key(0), jnp.asarray(table, float))
    release = dpjax.Release(value, rule, statistics.cells("cell", 40), n)
    found = dpjax.sample(
        jax.random.key(1),
        models.categorical(np.ones(40)),
        release,
        num_warmup=5,
        num_samples=5,
        progress=False,
        collect=lambda state: state.latent.log_density,
    )
    assert np.all(np.asarray(found.collected) == 0)


def test_it_is_no_privacy() -> None:
    words = dpjax.describe(CASES["with a zero"][0].release(22))
    assert "Noise: none, but counts are coarsened by a rule; the rule repeats every 6 counts." in words
    assert words.count("no promise is known") == 2


def test_records_that_are_told_are_refused() -> None:
    told = part("suppressed", [-1, 12, -1, -1]).release(22)
    with pytest.raises(ValueError, match=r"^imputation: given .*exact in part"):
        dpjax.gibbs(TABLE, told, dpjax.imwg())


BAD = {
    "no table": (lambda: Coarsened([]), "published"),
    "a matrix": (lambda: Coarsened([[0.0, 1.0]]), "published"),
    "a missing number": (lambda: Coarsened([0.0, np.nan]), "published"),
    "text": (lambda: Coarsened(["0", "1"]), "published"),
    "a fractional period": (lambda: Coarsened([0.0, 1.0], period=1.5), "period"),
    "a period beyond the table": (lambda: Coarsened([0.0, 1.0], period=3), "period"),
    "counts apart": (lambda: Coarsened([0.0, 1.0, 0.0]), "published"),
    "a function that is none": (lambda: Coarsened.from_function(3, 5), "function"),
    "a rule of another period": (lambda: Coarsened.from_function(midpoint, 6, period=5), "function"),
    "a base of 0": (lambda: Coarsened.midpoints(0), "base"),
    "no multiples": (lambda: Coarsened.multiples(2.5), "base"),
    "redaction backwards": (lambda: Coarsened.multiples(5, redacted=(7, 1)), "redacted"),
    "redaction of a number": (lambda: Coarsened.multiples(5, redacted=7), "redacted"),
    "bins from 1": (lambda: Coarsened.bins([1, 5]), "starts"),
    "bins without a start": (lambda: Coarsened.bins([np.inf]), "starts"),
    "bins exchanged": (lambda: Coarsened.bins([0, 5, 3]), "starts"),
    "a number that is not published": (lambda: part("midpoints", [3, 4, 3, 9]).release(22), "value"),
    "a negative number": (lambda: part("midpoints", [3, -3, 3, 9]).release(22), "value"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()


def with_code(code: float, period: int | None) -> Coarsened:
    return Coarsened.from_function(lambda count: code if 500 <= count <= 503 else count, 519, period=period)


def test_a_code_that_is_also_a_count_far_beyond_the_table_is_refused() -> None:
    """Catches a look at a few periods after the table: 9,999 stands for 500 to 503, and for 9,999."""
    with pytest.raises(ValueError, match="published: given counts published as 9999 with others between them"):
        with_code(9_999.0, 1)
    assert with_code(9_999.5, 1).period == 1
    assert with_code(9_999.0, None).period is None
    with pytest.raises(ValueError, match="published: given counts published as 6 with others between them"):
        Coarsened([0, 3, 6, 4], period=2)


def test_a_large_code_stands_for_the_counts_of_the_table() -> None:
    """Catches a code that is taken for the number of a count far beyond the table, and refused."""
    rule = Coarsened.from_function(lambda count: 9_999 if 1 <= count <= 7 else 10 * ((count + 5) // 10), 40, period=10)
    rule.check_value("value", jnp.array([9_999.0, 5_000.0]))
    least, most = rule.sums.bounds(jnp.array([9_999.0, 5_000.0]))
    assert (least.tolist(), most.tolist()) == ([1.0, 4_995.0], [7.0, 5_004.0])


def test_bins_take_open_ends():
    """Catches an infinite end that ends in an error of NumPy."""
    assert Coarsened.bins([-np.inf, 1, 5, np.inf]) == Coarsened.bins([0, 1, 5])
