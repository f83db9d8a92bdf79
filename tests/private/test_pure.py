"""Releases with Laplace noise: an exact sampler, exact sums, and a ledger in which ε adds up without δ."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import exp

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import dpjax
from dpjax import private, statistics
from dpjax.private.accounting.closed_form import mu_of_pure
from dpjax.private.accounting.composition import composed_epsilon, composed_log_delta
from dpjax.private.noise import discrete_laplace as sampler
from dpjax.private.noise.discrete_laplace import Bits, discrete_laplace
from dpjax.private.people import EACH_RECORD
from dpjax.private.planning.design import blank_of
from dpjax.private.releases import exact_sum
from dpjax.private.releases.price import cost_of, price
from tests.private.cases import STARTS, TARGET, WALK
from tests.private.releases.paid_sums import BOTH, RECORDS, TABLE, TOTAL, release, seeded
from tests.private.releases.test_release_safety import PAIRS, released, steps_and_parts
from tests.tools.perfect_start import REJECT

PURE = private.Budget(1.0, 0.0, "replace-one")
WIDE = statistics.scaled(TABLE, 3.0)


class Fork(Exception):
    """A choice that has not been made yet, with the probabilities of its outcomes."""


class Choices(Bits):
    """Makes the choices that it is given, and then forks."""

    def __init__(self, made: tuple[int, ...]) -> None:
        self.made, self.place = made, 0

    def choose(self, chances: list[float]) -> int:
        if self.place == len(self.made):
            raise Fork(chances)
        self.place += 1
        return self.made[self.place - 1]

    def below(self, end: int) -> int:
        return self.choose([1 / end] * end)


def law_of(run: Callable[[Choices], int], least: float) -> tuple[Counter[int], float]:
    """The probabilities of a program's results, and what is lost with branches less probable than the least."""
    found, open_branches = Counter[int](), [((), 1.0)]
    while open_branches:
        made, chance = open_branches.pop()
        try:
            found[run(Choices(made))] += chance
        except Fork as fork:
            branches = [((*made, number), chance * share) for number, share in enumerate(fork.args[0])]
            open_branches += [branch for branch in branches if branch[1] > least]
    return found, 1 - sum(found.values())


@pytest.mark.parametrize(("part", "whole"), [(1, 1), (1, 3), (2, 3), (0, 1)])
def test_an_event_happens_with_its_probability(part: int, whole: int) -> None:
    found, lost = law_of(lambda bits: int(sampler.happens(bits, part, whole)), 1e-5)
    assert lost < 0.01
    assert found[1] <= exp(-part / whole) + 1e-12
    assert found[0] <= 1 - exp(-part / whole) + 1e-12


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2), Fraction(2)])
def test_noise_has_its_exact_probabilities(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every branch of the algorithm: no result is more probable than it should be, and hardly anything is lost."""
    chance = lambda part, whole: [1 - exp(-part / whole), exp(-part / whole)]  # noqa: E731
    monkeypatch.setattr(sampler, "happens", lambda bits, part, whole: bits.choose(chance(part, whole)) == 1)
    found, lost = law_of(lambda bits: sampler.draw_one(bits, scale.numerator, scale.denominator), 3e-6)
    assert lost < 0.03
    ratio = exp(-1 / scale)
    for number in range(-6, 7):
        expected = (1 - ratio) / (1 + ratio) * ratio ** abs(number)
        assert expected - lost - 1e-12 <= found[number] <= expected + 1e-12


def test_draws_have_their_law_bit_by_bit() -> None:
    """With bytes from a stream; of a scale in fine steps only the quotient can be compared."""
    scale, most = Fraction(7, 3), 8
    drawn = discrete_laplace(np.random.default_rng(2).bytes, [scale] * 4_000).astype(int)
    ratio = exp(-1 / scale)
    chances = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-most, most + 1))
    chances[[0, -1]] /= 1 - ratio
    observed = np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)
    assert stats.chisquare(observed, chances * len(drawn)).pvalue > REJECT
    fine = discrete_laplace(np.random.default_rng(3).bytes, [Fraction(3 * 2**40 + 1, 2**8)] * 1_000)
    assert stats.kstest(fine.astype(float) / (3 * 2**32), "laplace").pvalue > REJECT


def test_numbers_below_an_end_are_uniform() -> None:
    bits = Bits(np.random.default_rng(4).bytes)
    observed = np.bincount([bits.below(5) for _ in range(3_000)], minlength=5)
    assert stats.chisquare(observed).pvalue > REJECT
    assert bits.below(1) == 0
    assert max(bits.below(2**70) for _ in range(20)) > 2**65


def test_counts_are_released_exactly_with_integer_noise() -> None:
    """The value is the count and whole noise; what analysts read is the law that the noise was drawn from."""
    published = release(TABLE, budget=PURE)
    residual = np.asarray(published.value) - np.bincount(RECORDS["group"])
    assert np.all(residual == np.rint(residual))
    assert isinstance(published.mechanism, dpjax.DiscreteLaplace)
    np.testing.assert_allclose(published.mechanism.scale, 2.0, rtol=1e-6)
    promise = published.mechanism.privacy
    assert (promise.notion, promise.sensitivity, promise.norm, promise.delta) == ("pure", 2.0, 1, None)
    assert 1 - 1e-9 < promise.epsilon <= 1
    assert dpjax.from_json(published.to_json()).mechanism == published.mechanism
    noise = released(TABLE, RECORDS, PURE, draws=300) - np.bincount(RECORDS["group"])
    whole = np.arange(-8, 9)
    observed = np.array([np.sum(noise == number) for number in whole])
    chances = np.exp(published.mechanism.log_noise(jnp.asarray(whole, float)))
    observed, chances = (np.append(part, rest - part.sum()) for part, rest in ((observed, noise.size), (chances, 1.0)))
    assert stats.chisquare(observed, noise.size * chances).pvalue > REJECT


def test_sums_are_released_with_laplace_noise_on_a_grid() -> None:
    published = release(BOTH, budget=PURE, shares=[0.2, 0.8])
    total, table = published.mechanism.mechanisms
    assert isinstance(total, dpjax.Laplace)
    assert isinstance(table, dpjax.DiscreteLaplace)
    np.testing.assert_allclose([total.scale, table.scale], [4.0 / 0.2, 2.0 / 0.8], rtol=1e-4)
    noise = released(TOTAL, RECORDS, PURE, draws=200)[:, 0] - np.sum(np.clip(RECORDS["y"], -2.0, 2.0))
    assert stats.kstest(noise / 4.0, "laplace").pvalue > REJECT


def test_weights_give_the_least_weighted_variance() -> None:
    def cost(**given: list[float]) -> float:
        first, second = (one.scale for one in release(BOTH, budget=PURE, **given).mechanism.mechanisms)
        return float(first**2 + 5.0 * 3 * second**2)

    best = cost(weights=[1.0, 5.0])
    assert best <= min(cost(shares=[share, 1 - share]) for share in (0.3, 0.4, 0.5, 0.6)) * (1 + 1e-6)


@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize("statistic", [TOTAL, BOTH, WIDE], ids=["total", "stacked", "whole"])
def test_a_record_moves_rounded_sums_by_no_more_than_is_paid_for(statistic, neighbours) -> None:
    """The log-probability of any release differs by at most Σ |moved| step / b between neighbours."""
    budget = private.Budget(1.0, 0.0, neighbours)
    (one, parts), (other, _) = (steps_and_parts(statistic, records, budget) for records in PAIRS[neighbours])
    rates = [Fraction(part.step) / Fraction(part.scale) for part in parts for _ in range(part.size)]
    moved = sum(abs(int(a) - int(b)) * rate for a, b, rate in zip(one, other, rates, strict=True))
    assert Fraction(1, 2) < moved <= 1


LARGE = [(2**30 + 63, 2**30 + 65), (2**28 + 47, 2**28 + 49), (2**45, 2**45 + 1)]


@pytest.mark.parametrize("weights", LARGE)
def test_large_weights_are_added_up_exactly(weights: tuple[int, int]) -> None:
    """In float32 neighbours were 128 apart under noise for 2."""
    statistic = statistics.linear(statistics.histogram("y", [0.0, 1.0, 2.0]), [weights])
    found = [steps_and_parts(statistic, {"y": np.array([value])}, PURE) for value in (0.5, 1.5)]
    assert [int(steps[0]) for steps, _ in found] == list(weights)
    np.testing.assert_allclose(found[0][1][0].scale, weights[1] - weights[0], rtol=1e-9)


@pytest.mark.parametrize("most", [0, 64])
def test_scaled_tables_are_added_up_exactly(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sum, "MOST_DENSE", most)
    table = statistics.stacked(TABLE, statistics.scaled(TABLE, float(2**30 + 63)))
    steps, _ = steps_and_parts(table, {"group": np.array([0, 2, 2])}, PURE)
    assert steps.tolist() == [1, 0, 2, 2**30 + 63, 0, 2**31 + 126]


def test_whole_numbers_that_floats_do_not_hold_have_a_margin() -> None:
    held, beyond = (statistics.scaled(statistics.scaled(TABLE, 2.0**power), 3.0) for power in (50, 52))
    assert (held.rounding() == 0, beyond.rounding() > 0) == (True, True)
    assert affordable_scale(beyond) > 2 * beyond.radius(1) * (1 + beyond.rounding())


def affordable_scale(statistic: dpjax.statistics.RecordStatistic) -> float:
    return price(statistic, cost_of(PURE), "replace-one", None, None, EACH_RECORD)[0].scale


def test_epsilon_adds_up_without_delta(tmp_path) -> None:
    """To the last digit, in the file, and for Laplace noise alone."""
    path = tmp_path / "ledger.json"
    for _ in range(10):
        tenth = private.Budget(0.1, 0.0, "replace-one")
        private.release(private.Ledger(PURE, path), TABLE, RECORDS, people=None, budget=tenth)
    ledger = private.Ledger(PURE, path)
    spent = ledger.privacy_spent()
    assert 1 - 1e-9 < spent.epsilon <= 1
    assert (spent.delta, spent.grade, spent.num_queries) == (0.0, "secure", 10)
    assert ledger.log_delta(1.0) == -np.inf
    for budget in (None, private.Budget(0.01, 0.0, "replace-one")):
        with pytest.raises(private.BudgetExceeded):
            private.release(ledger, TABLE, RECORDS, people=None, budget=budget)
    fresh, gaussian = private.Ledger(PURE), [private.Query("sum", 1e6, "secure")]
    assert fresh.affordable(gaussian) == 0
    with pytest.raises(private.BudgetExceeded):
        fresh.charge(gaussian)
    assert private.Ledger.from_json(ledger.to_json()).queries == ledger.queries


def test_a_budget_with_delta_pays_for_laplace_noise_alone_by_its_epsilon() -> None:
    """And beside Gaussian noise by the Gaussian query that is no harder to tell apart."""
    ledger = private.Ledger(private.Budget(1.0, 1e-6, "replace-one"))
    private.release(ledger, TABLE, RECORDS, people=None, budget=PURE)
    gaussian = private.Query("sum", 1e4, "secure")
    assert ledger.affordable([gaussian]) == 0
    mixed = private.Ledger(private.Budget(1.0, 1e-6, "replace-one"))
    mixed.charge([gaussian])
    laplace = private.Query("count", 20.0, "secure", noise="laplace")
    assert 1 <= mixed.affordable([laplace]) < 10  # of ε = 0.1
    mixed.charge([laplace])
    assert mixed.privacy_spent().epsilon < 0.2


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 40.0])
def test_a_gaussian_query_is_no_harder_to_tell_apart_than_a_pure_one(epsilon: float) -> None:
    gap = np.sqrt(2 * mu_of_pure(epsilon))
    for first in [*np.linspace(1e-3, 1 - 1e-3, 999), *(10.0 ** -np.arange(4, 15)), 1 / (1 + exp(epsilon))]:
        pure = max(1 - exp(epsilon) * first, exp(-epsilon) * (1 - first), 0.0)
        assert stats.norm.cdf(stats.norm.isf(first) - gap) <= pure * (1 + 1e-9) + 1e-15
    corner = 1 / (1 + exp(epsilon))
    np.testing.assert_allclose(stats.norm.cdf(stats.norm.isf(corner) - gap), corner, rtol=1e-6)


def gaussian_delta(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """δ(ε) of Gaussian queries, at any ε."""
    sd = np.sqrt(2 * mu)
    return stats.norm.cdf((mu - epsilon) / sd) - np.exp(epsilon) * stats.norm.cdf((-mu - epsilon) / sd)


def chosen_delta(epsilon: float, mu: float, pure: float, rest: float) -> float:
    """δ where, after the losses of Gaussian queries of μ, either an ε-DP answer or a Gaussian one of μ is chosen."""
    losses = np.linspace(-8, 8, 20_001) * np.sqrt(2 * mu) + mu
    left, chance = epsilon - losses, 1 / (1 + exp(-pure))
    randomized = chance * np.maximum(1 - np.exp(left - pure), 0) + (1 - chance) * np.maximum(1 - np.exp(left + pure), 0)
    best = np.maximum(randomized, gaussian_delta(left, rest))
    density = stats.norm.pdf(losses, mu, np.sqrt(2 * mu))
    return float(np.trapezoid(best * density, losses))


def test_a_choice_after_answers_gains_nothing() -> None:
    """With ε and μ set off against each other, as for queries fixed beforehand, whoever has seen the losses gains."""
    epsilon, mu, rest = 1.0, 0.05, 0.05
    promised = float(gaussian_delta(np.array(epsilon), mu + rest))
    pure = brentq(lambda pure: mu_of_pure(pure) - rest, 1e-3, 1.0)
    assert chosen_delta(epsilon, mu, pure, rest) <= promised * (1 + 1e-6)
    off = brentq(lambda pure: gaussian_delta(np.array(epsilon - pure), mu) - promised, 1e-3, 0.9)
    assert off > pure
    assert chosen_delta(epsilon, mu, off, rest) > 1.01 * promised


def test_a_posterior_is_that_given_the_exact_noise() -> None:
    """Of three records in two cells: exact by summing over the counts that there can be."""
    published = release(statistics.cells("cell", 2), {"cell": np.array([0, 1, 1])}, PURE, noise=seeded())
    model = dpjax.models.categorical([1.0, 1.0])
    drawn = dpjax.importance_sample(jax.random.key(1), model, published, num_samples=20_000).summary()
    counts = np.array([[k, 3 - k] for k in range(4)])  # of equal prior probability
    weights = np.exp(-np.sum(np.abs(np.asarray(published.value) - counts), axis=1) / published.mechanism.scale)
    expected = np.sum(weights / weights.sum() * (counts[:, 0] + 1) / 5)
    (name,) = {name for name in drawn if "[0]" in name} or set(drawn)
    assert abs(drawn[name]["mean"] - expected) < 5 * drawn[name]["sd"] / np.sqrt(5_000)


def test_a_design_has_laplace_noise_where_there_is_no_delta() -> None:
    blank = blank_of(TOTAL, None, PURE, 10, EACH_RECORD)
    assert isinstance(blank.mechanism, dpjax.Laplace)
    settings = {"source": "synthetic", "num_records": 7, "num_chains": 1, "num_iterations": 9}
    with pytest.raises(ValueError, match=r"^budget: .*δ > 0"):
        private.plan(jax.random.key(1), TARGET, budget=PURE, **settings)


def test_another_accountant_finds_the_same_epsilon() -> None:
    pytest.importorskip("dp_accounting")
    query = private.Query("count", 20.0, "secure", noise="laplace")
    found = private.events.accountant([query], "add-or-remove").get_epsilon(1e-10)
    np.testing.assert_allclose(found, 0.05, rtol=1e-3)


def test_fixed_queries_of_all_kinds_are_composed() -> None:
    """ε of Laplace queries is added to that of the others, subsampled or not."""
    pytest.importorskip("dp_accounting")
    laplace, sampled = (
        private.Query("count", 20.0, "secure", noise="laplace"),
        private.Query("sum", 5.0, "secure", 9, 0.1),
    )
    alone, both = (composed_epsilon(queries, 1e-6, "replace-one") for queries in ([sampled], [laplace, sampled]))
    np.testing.assert_allclose(both, alone + 0.1, rtol=1e-9)
    assert composed_log_delta([laplace, sampled], both, "replace-one") <= np.log(1e-6) + 1e-3
    ledger = private.Ledger(private.Budget(20.0, 1e-6, "replace-one"))
    ledger.charge([sampled])
    ledger.charge([laplace])
    np.testing.assert_allclose(ledger.privacy_spent().epsilon, both, rtol=1e-9)


def test_what_needs_delta_names_the_budget() -> None:
    with pytest.raises(ValueError, match=r"budget: given .*δ = 0.*expected one with δ > 0"):
        private.noise_multiplier_for(PURE, 3, sampling_rate=1.0)
    with pytest.raises(ValueError, match=r"ledger: given .*δ = 0.*expected one with δ > 0"):
        private.sample(jax.random.key(1), WALK, STARTS, private.Ledger(PURE))


def test_a_contribution_beyond_the_l1_norm_is_replaced() -> None:
    """Within the L2 norm it was, by which Gaussian noise goes."""

    class Diagonal(statistics.RecordStatistic):
        dimension = 2

        def __call__(self, record):
            return jnp.stack([record["y"], record["y"]])

        def diameter(self, norm):
            return 2.0

        def radius(self, norm):
            return 1.0

    for budget, records in ((PURE, {"y": np.array([0.7])}), (PURE, {"y": np.array([0.5, 0.6])})):
        with pytest.warns(UserWarning, match="of the records, 1 had"):
            release(Diagonal(), records, budget)
    assert release(Diagonal(), {"y": np.array([0.7])}, private.Budget(1.0, 1e-6, "replace-one")).n == 1
