"""Sums of local reports, and reports of permanent answers: exact distributions, posteriors by enumeration, refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import models, releases
from dpjax.data_augmentation.counts.form import count_form
from dpjax.mechanisms import ReportSums
from dpjax.mechanisms.base import as_mechanism, at_coordinates
from dpjax.mechanisms.composite import temper_mechanism
from tests.data_augmentation.counts import oracle
from tests.mechanisms.published import check_moments

KEEP, FLIP = 0.75, 0.25


def log_law(value: np.ndarray, sums: np.ndarray, n: int, keep: float, flip: float) -> np.ndarray:
    """By a sum over all numbers of kept bits."""
    kept = np.arange(n + 1)
    terms = stats.binom.logpmf(kept, sums[..., None], keep)
    return special.logsumexp(terms + stats.binom.logpmf(value[..., None] - kept, n - sums[..., None], flip), axis=-1)


@pytest.mark.parametrize("n", [1, 12, 700])
@pytest.mark.parametrize(("keep", "flip"), [(0.75, 0.25), (0.5, 0.02), (0.1, 0.6), (0.99, 0.001)])
def test_law(n: int, keep: float, flip: float) -> None:
    mechanism = ReportSums(keep, flip, n)
    value, sums = (grid.astype(float) for grid in np.meshgrid(np.unique(np.linspace(0, n, 13).round()), [0, n // 3, n]))
    tolerance = (
        {"rtol": 1e-10, "atol": 1e-11} if jnp.result_type(float) == jnp.float64 else {"rtol": 1e-5, "atol": 2e-4}
    )
    found = mechanism.log_density_terms(jnp.asarray(value), jnp.asarray(sums))
    np.testing.assert_allclose(found, log_law(value, sums, n, keep, flip), **tolerance)
    whole = mechanism.log_density_terms(jnp.arange(n + 1.0), jnp.full(n + 1, n // 3, float))
    assert abs(np.sum(np.exp(np.asarray(whole, float))) - 1) < 2e-4 * n**0.5
    assert np.all(np.isneginf(mechanism.log_density_terms(jnp.zeros(2), jnp.array([-1.0, n + 1]))))


def by_hand(n: int, count: int, reports: int, permanent: tuple[float, float] | None) -> np.ndarray:
    """The probabilities of all sums of several reports, by adding up persons one after the other."""
    law = np.ones(1)
    own = stats.binom(reports, KEEP).pmf(np.arange(reports + 1)), stats.binom(reports, FLIP).pmf(np.arange(reports + 1))
    for person in range(n):
        counts = person < count
        share = float(counts) if permanent is None else permanent[0 if counts else 1]
        law = np.convolve(law, share * own[0] + (1 - share) * own[1])
    return law


@pytest.mark.parametrize("permanent", [None, (0.8, 0.1)])
@pytest.mark.parametrize("reports", [1, 4])
def test_several_reports_of_each_person(reports: int, permanent: tuple[float, float] | None) -> None:
    """Of permanent bits, or with noise of their own: all sums of six persons, which add up to 1; and draws."""
    mechanism = ReportSums(KEEP, FLIP, 6, reports=reports, permanent=permanent)
    value = np.arange(6.0 * reports + 1)
    for count in (0, 2, 6):
        found = mechanism.log_density_terms(jnp.asarray(value), jnp.full(len(value), float(count)))
        law = by_hand(6, count, reports, permanent)
        np.testing.assert_allclose(np.exp(found), law, rtol=2e-4, atol=1e-7)
    drawn = np.asarray(mechanism.sample(jax.random.key(2), jnp.full(20_000, 6.0)))
    mean, square = np.sum(law * value), np.sum(law * value**2)
    assert abs(drawn.mean() - mean) < 4.5 * np.sqrt((square - mean**2) / 20_000)
    assert abs(drawn.var() / (square - mean**2) - 1) < 0.06


def test_tables_have_the_probabilities_of_all_sums() -> None:
    """Kernels read them: of parts side by side, in any order of coordinates, and none of sums that cannot be."""
    sums = ReportSums(jnp.array([KEEP, 0.6]), FLIP, 6, reports=2, permanent=(0.8, 0.1))
    mechanism, value = dpjax.mechanisms.Independent((dpjax.Laplace(2.0), sums), (1, 2)), jnp.array([3.0, 7.0, 2.0])
    (_, one), (table, two) = mechanism._tabulated(value).parts
    assert (one, two) == (1, 2)
    counts = jnp.arange(-1.0, 8.0)
    expected = jnp.stack([sums.log_density_terms(value[1:], jnp.full(2, count)) for count in counts], axis=-1)
    for index in ([0, 1], [1, 0]):
        found = at_coordinates(table, jnp.array(index)).log_density_terms(value[1:, None], counts[None])
        np.testing.assert_allclose(found, expected[jnp.array(index)], rtol=1e-5)
    both = expected[0, 5] + expected[1, 2]
    np.testing.assert_allclose(table.log_density(value[1:], jnp.array([4.0, 1.0])), both, rtol=1e-5)
    tempered = temper_mechanism(sums, jnp.array(0.5))._tabulated(value[1:])
    np.testing.assert_allclose(tempered.log_density(value[1:], jnp.array([4.0, 1.0])), both / 2, rtol=1e-5)


@pytest.mark.x64
def test_permanent_bits_make_sums_wider() -> None:
    """The planted fault: noise of its own in each report, with the probabilities of both steps together."""
    both = [FLIP + one * (KEEP - FLIP) for one in (0.8, 0.1)]
    fault = ReportSums(*both, 6, reports=4)
    found = np.exp(np.asarray(fault.log_density_terms(jnp.arange(25.0), jnp.full(25, 2.0))))
    assert np.max(np.abs(found - by_hand(6, 2, 4, (0.8, 0.1)))) > 0.01


def test_sums_of_permanent_answers_are_written_and_described() -> None:
    release = releases.unary_encoding_sums([9, 4], keep=KEEP, flip=FLIP, n=5, reports=3, permanent=(0.8, 0.1))
    assert dpjax.from_json(release.to_json()).mechanism == release.mechanism
    assert "3 reports that were added up; what counts is a permanent bit" in dpjax.describe(release)
    for wrong, argument in (({"permanent": 0.8}, "permanent"), ({"permanent": (0.8, 0.8)}, "permanent")):
        with pytest.raises((TypeError, ValueError), match=f"^{argument}: given"):
            releases.unary_encoding_sums([9, 4], keep=KEEP, flip=FLIP, n=5, reports=3, **wrong)
    with pytest.raises(ValueError, match=r"^n: given 5000; .*unary_encoding"):
        ReportSums(KEEP, FLIP, 5_000, permanent=(0.8, 0.1))


@pytest.mark.parametrize("n", [10**6, 10**8])
def test_large_numbers(n: int) -> None:
    """Nearly Normal: against the Normal density with the first terms of its Edgeworth expansion being 1 at the mean."""
    mechanism, count = ReportSums(KEEP, FLIP, n), n // 4
    mean, deviation = count * KEEP + (n - count) * FLIP, (n * KEEP * FLIP) ** 0.5
    value = np.round(mean + deviation * np.array([-3.0, -1.0, 0.0, 2.0]))
    if jnp.result_type(float) == jnp.float32 and n > 2**24:
        pytest.skip("float32 holds no such counts")
    found = mechanism.log_density_terms(jnp.asarray(value, float), jnp.full(4, float(count)))
    np.testing.assert_allclose(found, stats.norm.logpdf(value, mean, deviation), atol=2e-3 if n < 10**7 else 2e-4)


@pytest.mark.parametrize("permanent", [None, (0.8, 0.1)])
def test_each_unit_has_its_persons(permanent: tuple[float, float] | None) -> None:
    """Densities, draws and JSON text; only one number was taken, that of the largest unit for instance."""
    sizes, counts = np.array([6, 2, 4]), np.array([2, 2, 0])
    channel = ReportSums(KEEP, FLIP, sizes, reports=2, permanent=permanent)
    release = dpjax.LocalRelease([5, 3, 0], channel, "y")
    records = {"y": jnp.asarray(counts)}
    laws = [by_hand(n, count, 2, permanent) for n, count in zip(sizes, counts, strict=True)]
    expected = np.log([law[value] for law, value in zip(laws, (5, 3, 0), strict=True)])
    np.testing.assert_allclose(release.log_densities(records), expected, rtol=1e-4)
    drawn = jax.vmap(lambda key: release.sample(key, records).values)(jax.random.split(jax.random.key(3), 4_000))
    for law, own in zip(laws, np.asarray(drawn).T, strict=True):
        mean, square = law @ np.arange(len(law)), law @ np.arange(len(law)) ** 2
        assert abs(own.mean() - mean) < 4.5 * np.sqrt((square - mean**2) / 4_000)
    assert dpjax.from_json(release.to_json()).channel == channel
    assert "each of 2 to 6 persons reported" in dpjax.describe(release)


def test_draws() -> None:
    mechanism, count = ReportSums(KEEP, 0.1, 9), jnp.full(20_000, 6.0)
    drawn = np.asarray(jax.jit(mechanism.sample)(jax.random.key(1), count))
    expected = 20_000 * np.exp(np.asarray(mechanism.log_density_terms(jnp.arange(10.0), jnp.full(10, 6.0)), float))
    observed, common = np.bincount(drawn.astype(int), minlength=10), expected > 5
    statistic = np.sum((observed[common] - expected[common]) ** 2 / expected[common])
    assert stats.chi2.sf(statistic, common.sum() - 1) > 1e-4


SUMS, N, ALPHA = np.array([9, 4, 5]), 12, np.ones(3)


def truth() -> oracle.Tables:
    """By enumeration of all tables of 12 persons."""
    tables = oracle.compositions(N, 3)
    log_prior = oracle.log_ways(tables) + oracle.log_dirichlet(tables, ALPHA)
    log_joint = log_prior + log_law(np.broadcast_to(SUMS, tables.shape), tables, N, KEEP, FLIP).sum(axis=1)
    return oracle.Tables(tables, log_joint - special.logsumexp(log_joint), 0.0)


def sample(release: Any, **choices: Any) -> dpjax.Posterior:
    options = {"num_warmup": 300, "num_samples": 2_000, "progress": False} | choices
    return dpjax.sample(jax.random.key(1), models.categorical(ALPHA), release, **options)


@pytest.mark.slow
def test_column_sums_have_the_posterior_of_enumeration() -> None:
    """And the planted fault is noticed: noise on the sums in place of the bits."""
    shares = truth().shares(ALPHA)
    np.testing.assert_allclose(shares[0], [0.6268, 0.1662, 0.2070], atol=5e-5)
    release = releases.unary_encoding_sums(SUMS, keep=KEEP, flip=FLIP, n=N)
    found = sample(release)
    check_moments(np.asarray(found.draws["probabilities"], float), *shares)
    planted = release.with_mechanism(ReportSums(KEEP, 0.1, N))
    with pytest.raises(AssertionError):
        check_moments(np.asarray(sample(planted).draws["probabilities"], float), *shares)


@pytest.mark.slow
def test_records_have_it_too() -> None:
    release = releases.unary_encoding_sums(SUMS, keep=KEEP, flip=FLIP, n=N)
    found = sample(release, imputation=dpjax.imwg(), num_samples=8_000)
    check_moments(np.asarray(found.draws["probabilities"], float), *truth().shares(ALPHA))


def test_what_is_promised() -> None:
    """A person moves from one column to another: ε is that of their bits."""
    release = releases.unary_encoding_sums(SUMS, keep=KEEP, flip=FLIP, n=N)
    words = dpjax.describe(release)
    assert f"If one record is replaced: ε = {2 * np.log(3):.4g}" in words
    assert "The number of reports is public" in words
    assert dpjax.from_json(release.to_json()).mechanism == release.mechanism
    law = [
        log_law(np.stack(np.meshgrid(*[np.arange(4)] * 2), -1), np.array(table), 3, KEEP, FLIP).sum(axis=-1)
        for table in ((2, 1), (1, 2))
    ]
    assert np.max(np.abs(law[0] - law[1])) <= 2 * np.log(3) + 1e-9


def test_counts_of_answers_are_answers() -> None:
    release = releases.randomized_response_counts([5, 2, 1], keep=0.6)
    np.testing.assert_array_equal(release.values, [0, 0, 0, 0, 0, 1, 1, 2])
    assert release.channel == dpjax.RandomizedResponse(0.6, 3)


OTHER_NUMBERS = {
    "five": lambda sums: dpjax.Release([3, 2, 1], sums, dpjax.statistics.cells("cell", 3), 5),
    "six": lambda sums: dpjax.Release([3, 2, 1], sums, dpjax.statistics.cells("cell", 3), 6),
    "unknown": lambda sums: dpjax.Release(
        [3, 2, 1], sums, dpjax.statistics.cells("cell", 3), dpjax.UnknownCount(models.UniformCount(4, 4))
    ),
    "a part": lambda sums: dpjax.Release(
        [3, 2, 1],
        dpjax.Independent((dpjax.DiscreteLaplace(1.0), sums), (1, 2)),
        dpjax.statistics.cells("cell", 3),
        5,
    ),
    "tempered": lambda sums: dpjax.Release(
        [3, 2, 1], temper_mechanism(as_mechanism(sums), jnp.array(0.5)), dpjax.statistics.cells("cell", 3), 5
    ),
    "joined": lambda sums: dpjax.joint(
        dpjax.Release([5], dpjax.DiscreteLaplace(1.0), dpjax.statistics.grouped("cell", [0, 0, -1]), 5),
        dpjax.Release([3, 2, 1], sums, dpjax.statistics.cells("cell", 3), 5),
    ),
    "in JSON text": lambda sums: dpjax.from_json(
        dpjax.Release([3, 2, 1], sums, dpjax.statistics.cells("cell", 3), 4).to_json().replace('"n": 4', '"n": 5', 1)
    ),
    "exchanged": lambda sums: dpjax.releases.unary_encoding_sums([3, 2, 1], keep=KEEP, flip=FLIP, n=5).with_mechanism(
        sums
    ),
}


@pytest.mark.parametrize("name", OTHER_NUMBERS)
def test_sums_of_another_number_of_persons_are_refused(name: str) -> None:
    """Sums of 4 persons were sampled in silence as those of 5, 6 or an unknown number of records."""
    with pytest.raises(ValueError, match=r"^n: given .*; expected 4, as ReportSums has\. "):
        OTHER_NUMBERS[name](ReportSums(KEEP, FLIP, 4))


def test_the_count_form_is_of_the_number_that_its_table_has() -> None:
    """Its release is of one record, a whole table: refused if that 1 were compared."""
    release = dpjax.Release([3, 2, 1], ReportSums(KEEP, FLIP, 4), dpjax.statistics.cells("cell", 3), 4)
    assert count_form(models.categorical(ALPHA), release)[1].n == 1


ONES = np.repeat(np.arange(6), [14, 16, 8, 6, 9, 7])
"""How many of five reports of each of 60 persons were 1."""


def grid_posterior(log_likelihood: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of a share with a uniform prior, by a grid, from log-likelihoods [n, 2]."""
    share = (np.arange(4_000) + 0.5) / 4_000
    given = np.exp(log_likelihood)
    log_weight = np.log(given[:, :1] * (1 - share) + given[:, 1:] * share).sum(axis=0)
    weight = special.softmax(log_weight)
    mean = weight @ share
    return float(mean), float(np.sqrt(weight @ (share - mean) ** 2))


def permanent_likelihood() -> np.ndarray:
    """Given the true bit, over both permanent bits."""
    given_answer = np.stack([stats.binom.pmf(ONES, 5, p) for p in (FLIP, KEEP)], axis=1)
    return np.log(given_answer @ np.array([[0.75, 0.25], [0.25, 0.75]]))


def five_reports() -> tuple[np.ndarray, np.ndarray]:
    """The reports one by one, and who made them."""
    bits = (np.arange(5) < ONES[:, None]).astype(int).ravel()
    return bits, np.repeat(np.arange(60), 5)


def log_ratios(release: dpjax.LocalRelease) -> np.ndarray:
    """What each person's reports say of each category [n, c], relative to the first."""
    table = np.asarray(release.channel.log_probabilities).T[np.asarray(release.values)]
    return table - table[:, :1]


def test_permanent_answers() -> None:
    """As by RAPPOR; without `permanent` the same reports say far more, which is the planted fault."""
    bits, people = five_reports()
    given_answer = np.log(np.where(bits[:, None] == np.arange(2), KEEP, FLIP))
    release = releases.likelihoods(given_answer, people=people, permanent=0.75)
    right = permanent_likelihood()
    np.testing.assert_allclose(log_ratios(release), right - right[:, :1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(grid_posterior(right), (0.2155, 0.1224), atol=2e-4)
    np.testing.assert_allclose(grid_posterior(log_ratios(release)), (0.2155, 0.1224), atol=2e-4)
    of_both_steps = np.log(np.where(bits[:, None] == np.arange(2), 0.625, 0.375))
    fault = releases.likelihoods(of_both_steps, people=people)
    np.testing.assert_allclose(grid_posterior(log_ratios(fault)), (0.303, 0.089), atol=2e-3)
    assert "ε = 1.099" in dpjax.describe(release)
    matrix = releases.likelihoods(given_answer, people=people, permanent=[[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(log_ratios(matrix), log_ratios(release), rtol=1e-6)


def test_permanent_bits() -> None:
    """Three categories: each column is mixed over its own permanent bit, by enumeration of all permanent bits."""
    rng = np.random.default_rng(1)
    bits, people = rng.integers(0, 2, (8, 3)), np.array([0, 0, 0, 1, 1, 2, 2, 2])
    release = releases.unary_encoding(bits, keep=0.8, flip=0.3, people=people, permanent=(0.7, 0.2))
    expected = np.zeros((3, 3))
    for person, category in np.ndindex(3, 3):
        own, total = bits[people == person], 0.0
        for kept in np.ndindex(2, 2, 2):
            one = np.where(np.arange(3) == category, 0.7, 0.2)
            p = np.where(np.array(kept) == 1, 0.8, 0.3)
            total += np.prod(np.where(np.array(kept) == 1, one, 1 - one)) * np.prod(np.where(own == 1, p, 1 - p))
        expected[person, category] = np.log(total)
    np.testing.assert_allclose(log_ratios(release), expected - expected[:, :1], rtol=1e-5, atol=1e-5)


def test_one_report_of_a_permanent_bit_is_a_channel() -> None:
    bits = np.eye(3, dtype=int)
    both = releases.unary_encoding(bits, keep=0.8, flip=0.3, permanent=(0.7, 0.2))
    keep, flip = 0.7 * 0.8 + 0.3 * 0.3, 0.2 * 0.8 + 0.8 * 0.3
    np.testing.assert_allclose(
        log_ratios(both), log_ratios(releases.unary_encoding(bits, keep=keep, flip=flip)), rtol=1e-5
    )


LOGS = np.log([[0.6, 0.4], [0.3, 0.7]])
BITS = [[1, 0], [0, 1]]
BAD = {
    "keep of 1": (lambda: ReportSums(1.0, 0.2, 5), "keep"),
    "flip of text": (lambda: ReportSums(0.5, "a", 5), "flip"),
    "the same twice": (lambda: ReportSums(0.3, 0.3, 5), "flip"),
    "no persons": (lambda: ReportSums(0.5, 0.3, 0), "n"),
    "no persons in a unit": (lambda: ReportSums(0.5, 0.3, [4, 0]), "n"),
    "half a person in a unit": (lambda: ReportSums(0.5, 0.3, [4, 1.5]), "n"),
    "a table of persons": (lambda: ReportSums(0.5, 0.3, [[4, 1]]), "n"),
    "more reports than persons of the unit": (
        lambda: dpjax.LocalRelease([3, 2], ReportSums(0.5, 0.3, [4, 1]), "y"),
        "values",
    ),
    "three units of two": (lambda: dpjax.LocalRelease([3, 1, 2], ReportSums(0.5, 0.3, [4, 1]), "y"), r"channel\.n"),
    "units in one sum": (
        lambda: dpjax.Release([3, 1], ReportSums(0.5, 0.3, [4, 1]), dpjax.statistics.cells("cell", 2), 5),
        "mechanism",
    ),
    "sums above n": (lambda: releases.unary_encoding_sums([13, 1], keep=0.7, flip=0.2, n=12), "sums"),
    "negative sums": (lambda: releases.unary_encoding_sums([-1, 1], keep=0.7, flip=0.2, n=12), "sums"),
    "fractions": (lambda: releases.randomized_response_counts([1.5, 1], keep=0.7), "counts"),
    "no answers": (lambda: releases.randomized_response_counts([0, 0], keep=0.7), "counts"),
    "a permanent 1": (lambda: releases.likelihoods(LOGS, permanent=1.0), "permanent"),
    "a permanent matrix of columns": (
        lambda: releases.likelihoods(LOGS, permanent=[[0.5, 0.4], [0.5, 0.6]]),
        "permanent",
    ),
    "another number of answers": (lambda: releases.likelihoods(LOGS, permanent=[[0.5, 0.25, 0.25]] * 2), "permanent"),
    "one permanent probability": (
        lambda: releases.unary_encoding(BITS, keep=0.7, flip=0.2, permanent=0.7),
        "permanent",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
