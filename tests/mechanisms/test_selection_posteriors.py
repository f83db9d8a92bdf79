"""Posteriors given a chosen candidate: against enumeration and quadrature, by joint-distribution tests, in parts."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import diagnostics, models, statistics
from dpjax.data_augmentation.counts import count_form
from dpjax.data_augmentation.counts.counts import make_groups, make_moves
from dpjax.data_augmentation.counts.table import table_of
from dpjax.mechanisms import frozen_pytree
from tests.tools import perfect_start
from tests.tools.category_oracle import MAX_ERRORS, MODEL, PRIOR, check, moments

N = 7
EPSILON = 1.5
RUN = {"num_warmup": 500, "num_samples": 4_000, "progress": False}


def scores(table: np.ndarray, alpha: float) -> np.ndarray:
    below = np.array([table[:place].sum() for place in range(len(table))])
    above = np.array([table[place + 1 :].sum() for place in range(len(table))])
    return -np.abs((1 - alpha) * below - alpha * above)


def softmax_at(table: np.ndarray, place: int, rate: float, alpha: float = 0.5) -> float:
    return float(special.log_softmax(rate * scores(table, alpha))[place])


MEDIAN = dpjax.releases.median(2, candidates=3, field="cell", epsilon=EPSILON, n=N)
EXACT = moments(lambda table: softmax_at(table, 2, EPSILON), [N])


@pytest.mark.x32
@pytest.mark.parametrize(
    "imputation",
    [
        dpjax.imwg(),
        dpjax.counts(),
        *(pytest.param(one, marks=pytest.mark.slow) for one in (dpjax.soma(), dpjax.counts(collapse=False))),
    ],
    ids=str,
)
def test_a_median_of_categories(imputation) -> None:
    posterior = dpjax.sample(jax.random.key(1), MODEL, MEDIAN, imputation=imputation, **RUN)
    check(posterior.draws["probabilities"], EXACT)


@pytest.mark.slow
def test_a_median_of_many_records_by_counts() -> None:
    """By default, with a hundred records: against enumeration, at a cost that does not grow with them."""
    release = dpjax.releases.median(0, candidates=3, field="cell", epsilon=0.3, n=100)
    exact = moments(lambda table: softmax_at(table, 0, 0.3), [100])
    posterior = dpjax.sample(jax.random.key(9), MODEL, release, **RUN)
    assert posterior.plan.imputation == dpjax.counts(posterior.plan.imputation.width)
    check(posterior.draws["probabilities"], exact)
    assert posterior.predict(jax.random.key(1), num_samples=8).values.shape == (8, 1)


@pytest.mark.slow
def test_points_instead_of_categories() -> None:
    """The same release by counts around the candidates: one of two cells of each stays empty."""
    release = dpjax.releases.median(2.0, candidates=[0.0, 1.0, 2.0], field="cell", epsilon=EPSILON, n=N)
    check(dpjax.sample(jax.random.key(2), MODEL, release, **RUN).draws["probabilities"], EXACT)


@pytest.mark.x32
def test_epsilon_without_its_half_is_found_out() -> None:
    wrong = moments(lambda table: softmax_at(table, 2, 2 * EPSILON), [N])
    assert np.max(np.abs(wrong.mean - EXACT.mean)) > 0.02
    posterior = dpjax.sample(jax.random.key(1), MODEL, MEDIAN, imputation=dpjax.imwg(), **RUN)
    with pytest.raises(AssertionError):
        check(posterior.draws["probabilities"], wrong)


@pytest.mark.x32
def test_beside_a_noisy_count() -> None:
    """Also with a value in two parts: the posterior of both is that of the product."""
    counts = dpjax.Release([3.0], dpjax.Laplace(1.0), statistics.grouped("cell", [0, 0, -1]), N)
    both = dpjax.joint(MEDIAN, counts)
    assert both.value.tolist() == [2.0, 0.0, 0.0, 3.0]
    exact = moments(lambda table: softmax_at(table, 2, EPSILON) - abs(3.0 - table[0] - table[1]), [N])
    check(dpjax.sample(jax.random.key(3), MODEL, both, **RUN).draws["probabilities"], exact)
    again = dpjax.from_json(both.to_json())
    assert (again.mechanism, again.n) == (both.mechanism, N)
    assert "added or removed: ε = 2.5" in dpjax.describe(both)


@pytest.mark.x32
@pytest.mark.parametrize("imputation", [dpjax.imwg(), pytest.param(dpjax.counts(), marks=pytest.mark.slow)], ids=str)
def test_unknown_number(imputation) -> None:
    number = dpjax.UnknownCount(dpjax.models.UniformCount(4, 7))
    release = dpjax.releases.quantile(1, 0.3, candidates=3, field="cell", epsilon=3.0, n=number)
    exact = moments(lambda table: softmax_at(table, 1, 3.0 / 1.4, 0.3), range(4, 8))
    # The prior of a number is that of sets of records: each number is equally likely.
    posterior = dpjax.sample(jax.random.key(4), MODEL, release, imputation=imputation, **RUN)
    check(posterior.draws["probabilities"], exact)


def test_counts_that_are_read_together_move_one_by_one() -> None:
    """Two pairs of cells at once would each be drawn as if the other stayed."""
    model = models.categorical(concentration=np.ones(8))
    release = dpjax.releases.median(2, candidates=8, field="cell", epsilon=1.0, n=40)
    table = table_of(count_form(model, release)[1])
    batches = [move.directions.real.sum(axis=2) for move in make_moves(table, True, 8)]
    assert all(np.all(size <= 1) for size in batches)
    assert np.all(np.sum(make_groups(table, True).batches >= 0, axis=1) == 1)


def gradient_norms(statistic: jax.Array) -> jax.Array:
    """−|Σ ∇ℓ| of squared losses (y − c)² / 2 at the candidates c = 0, 1, 2 given counts of y = 0, 1, 2."""
    points = jnp.arange(3.0, dtype=statistic.dtype)
    return -jnp.abs((points[:, None] - points[None]) @ statistic)


@pytest.mark.x32
def test_gradients_of_a_loss() -> None:
    """K-norm gradient over candidates: a function of the user's own as utilities."""
    mechanism = dpjax.ExponentialMechanism(gradient_norms, epsilon=2.0, sensitivity=2.0)
    release = dpjax.Release([0], mechanism, statistics.cells("cell", 3), N)

    def log_likelihood(table: np.ndarray) -> float:
        norms = np.abs([np.sum((point - np.arange(3)) * table) for point in range(3)])
        return float(special.log_softmax(-norms / 2)[0])

    check(dpjax.sample(jax.random.key(5), MODEL, release, **RUN).draws["probabilities"], moments(log_likelihood, [N]))


@frozen_pytree
@dataclass(frozen=True)
class WithoutHalf(dpjax.PermuteAndFlip):
    """Draws as it should; the density has ε in place of ε / 2."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return dpjax.PermuteAndFlip(self.utilities, 2 * self.epsilon, self.sensitivity).log_density(value, statistic)


def p_value(mechanism: dpjax.Mechanism) -> float:
    """That parameters keep their prior, and the chosen number its place among the records, over four sweeps."""
    template = dpjax.Release([0], mechanism, statistics.cells("cell", 3), N)
    found = perfect_start.run(jax.random.key(6), MODEL, template, dpjax.imwg(), interweave=True)
    laws = {"probabilities": lambda draws: (draws[:, 0], stats.beta(PRIOR[0], PRIOR[1:].sum()))}
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(PRIOR, size=20_000)
    counts = np.array([rng.multinomial(N, share) for share in shares])
    utility = np.array([scores(table, 0.5) for table in counts]) + rng.exponential(2 * 0.5 / 2.0, size=counts.shape)
    fresh = shortfall(np.argmax(utility, axis=1), counts)
    # The implied noise is the chosen number less the counts, which are N together.
    chosen = np.rint((found.noise.sum(axis=1) + N) / 3).astype(int)
    kept = shortfall(chosen, np.rint(chosen[:, None] - found.noise))
    table = [np.histogram(each, np.arange(-0.25, 3, 0.5))[0] for each in (fresh, kept)]
    law = stats.chi2_contingency(table).pvalue
    return perfect_start.corrected([perfect_start.parameter_p_value(found, laws), law])


def shortfall(chosen: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How far the score of the chosen candidate is below the best; 2.5 where it is further."""
    every = np.array([scores(table, 0.5) for table in counts])
    return np.minimum(every.max(axis=1) - every[np.arange(len(every)), chosen], 2.5)


@pytest.mark.x32
def test_perfect_start() -> None:
    utilities = dpjax.mechanisms.QuantileScores(0.5, 3)
    assert p_value(dpjax.PermuteAndFlip(utilities, 2.0, 0.5)) > perfect_start.REJECT
    assert p_value(WithoutHalf(utilities, 2.0, 0.5)) < perfect_start.REJECT


SIZE, POINTS, FLAT = 20, np.array([-2.0, 0.0, 1.5]), 2.0
NORMAL = models.normal(models.NormalPrior(0.5, 2.0), variance=models.InverseGammaPrior(3.0, 4.0))


def quadrature() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The means on a grid, their posterior weights, and those of variances, given the median of 20 Normal records."""
    line = np.arange(SIZE + 1)
    cells = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = cells[cells.sum(axis=1) <= SIZE]
    cells = np.column_stack([cells, SIZE - cells.sum(axis=1)])
    below = np.cumsum(cells[:, :3], axis=1)
    chosen = special.log_softmax(-FLAT * np.abs(below - SIZE / 2), axis=1)[:, 1]
    chosen = chosen + special.gammaln(SIZE + 1) - special.gammaln(cells + 1).sum(axis=1)
    mean, variance = np.linspace(-12, 12, 161), np.exp(np.linspace(np.log(0.15), np.log(150), 101))
    place, spread = np.meshgrid(mean, variance, indexing="ij")
    ends = stats.norm.cdf((POINTS[:, None, None] - place) / np.sqrt(spread))
    shares = np.diff(np.concatenate([np.zeros_like(ends[:1]), ends, np.ones_like(ends[:1])]), axis=0).reshape(4, -1)
    log_likelihood = special.logsumexp(cells @ np.log(np.maximum(shares, 1e-300)) + chosen[:, None], axis=0)
    log_prior = stats.norm.logpdf(place, 0.5, 2.0) + stats.invgamma.logpdf(spread, 3, scale=4) + np.log(spread)
    weight = special.softmax(log_likelihood.reshape(place.shape) + log_prior)
    return mean, weight.sum(axis=1), weight.sum(axis=0)


@pytest.mark.slow
def test_a_median_of_normal_records() -> None:
    """Over eight keys with the default settings: mean, spread and both tails of the mean."""
    mean, weight, _ = quadrature()
    release = dpjax.releases.median(0.0, candidates=POINTS, field="y", epsilon=FLAT, n=SIZE)
    draws = np.concatenate(
        [dpjax.sample(jax.random.key(key), NORMAL, release, progress=False).draws["mean"] for key in range(8)]
    )
    exact = weight @ mean
    sd = np.sqrt(weight @ (mean - exact) ** 2)
    assert abs(draws.mean() - exact) < MAX_ERRORS * diagnostics.mcse_mean(draws)
    assert abs(draws.std() / sd - 1) < 0.05
    for beyond, share in ((draws > 2.5, weight[mean > 2.5].sum()), (draws < -2.0, weight[mean < -2.0].sum())):
        # The grid's cell at the bound is in or out.
        error = MAX_ERRORS * diagnostics.mcse_mean(beyond.astype(float)) + weight[np.abs(mean - 2.5).argmin()]
        assert abs(beyond.mean() - share) < error


@pytest.mark.slow
def test_an_interval_quantile_of_normal_records() -> None:
    """Against importance sampling from the prior."""
    ends = {"lower": -4.0, "upper": 4.0, "num_bins": 40}
    release = dpjax.releases.interval_quantile(1.1, 0.5, **ends, field="y", epsilon=1.0, n=SIZE)
    posterior = dpjax.sample(jax.random.key(7), NORMAL, release, num_samples=4_000, progress=False)
    exact = dpjax.importance_sample(jax.random.key(8), NORMAL, release, 40_000).summary()["mean"]
    draws = posterior.draws["mean"]
    error = np.hypot(diagnostics.mcse_mean(draws), exact["se_mean"])
    assert abs(draws.mean() - exact["mean"]) < MAX_ERRORS * error
