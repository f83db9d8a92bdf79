"""The oracles agree with each other and with SciPy wherever two of them speak of the same law."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from tests.data_augmentation.counts import oracle

ALPHA = np.array([0.5, 1.0, 2.0, 3.0, 1.5, 0.8])
VALUE = np.array([9, -2, 6, 3, 12, 1])
EVERY = np.eye(6, dtype=int)


def test_as_many_tables_as_there_are() -> None:
    tables = oracle.compositions(30, 6)
    assert len(tables) == special.comb(35, 5, exact=True) == 324_632
    assert np.all(tables.sum(axis=1) == 30)
    assert len(np.unique(tables, axis=0)) == len(tables)


def test_the_prior_is_the_dirichlet_multinomial_law() -> None:
    tables = oracle.compositions(12, 6)
    log_prior = oracle.log_ways(tables) + oracle.log_dirichlet(tables, ALPHA)
    np.testing.assert_allclose(log_prior, stats.dirichlet_multinomial(ALPHA, 12).logpmf(tables), atol=1e-10)
    assert special.logsumexp(log_prior) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("law", [oracle.discrete_gaussian(1.7), oracle.discrete_laplace(1.7)])
def test_noise_has_total_one(law: oracle.LogNoise) -> None:
    noise = np.arange(-2_000, 2_001)
    assert special.logsumexp(law(noise)) == pytest.approx(0.0, abs=1e-12)


def test_discrete_laplace_noise_is_scipys() -> None:
    noise = np.arange(-20, 21)
    np.testing.assert_allclose(oracle.discrete_laplace(1.7)(noise), stats.dlaplace(1 / 1.7).logpmf(noise), atol=1e-12)


def test_convolution_and_enumeration_agree() -> None:
    noise = oracle.discrete_gaussian(2.0)
    table = oracle.enumerate_tables(30, ALPHA, [oracle.Seen(EVERY, VALUE, noise)])
    for cell, (counts, law) in enumerate(oracle.large_table(30, ALPHA, VALUE, noise, 80)):
        expected = np.pad(table.marginal(cell), (0, 200))[counts]
        np.testing.assert_allclose(law, expected, atol=1e-12)


def test_a_known_cell_is_a_table_without_it() -> None:
    noise = oracle.discrete_gaussian(2.0)
    known = oracle.Seen(EVERY[4:5], np.array([0]), oracle.exact)
    whole = oracle.enumerate_tables(12, ALPHA, [oracle.Seen(EVERY, VALUE // 2, noise), known])
    rest = np.delete(np.arange(6), 4)
    part = oracle.enumerate_tables(12, ALPHA[rest], [oracle.Seen(np.eye(5), VALUE[rest] // 2, noise)])
    np.testing.assert_allclose(whole.counts()[0][rest], part.counts()[0], atol=1e-10)
    np.testing.assert_allclose(whole.counts()[1][rest], part.counts()[1], atol=1e-10)


def test_shares_are_mixtures_of_beta_laws() -> None:
    table = oracle.enumerate_tables(8, ALPHA, [oracle.Seen(EVERY, VALUE // 3, oracle.discrete_laplace(1.0))])
    mean, sd = table.shares(ALPHA)
    points = np.linspace(0.0, 1.0, 20_001)
    for cell in range(6):
        above = 1 - table.share_below(ALPHA, cell, points)
        first, second = integrate.trapezoid(above, points), integrate.trapezoid(2 * points * above, points)
        assert first == pytest.approx(mean[cell], abs=1e-5)
        assert np.sqrt(second - first**2) == pytest.approx(sd[cell], abs=1e-4)


def test_an_unknown_size_that_is_known() -> None:
    seen = [oracle.Seen(EVERY, VALUE // 3, oracle.discrete_laplace(1.0))]
    fixed = oracle.enumerate_tables(8, ALPHA, seen)
    free = oracle.enumerate_sizes(oracle.uniform_size(8, 8), range(8, 9), ALPHA, seen)
    assert free.log_evidence == pytest.approx(fixed.log_evidence)
    assert oracle.negative_binomial_size(30.0, 1e9)(np.arange(60)) == pytest.approx(
        oracle.poisson_size(30.0)(np.arange(60)), abs=1e-5
    )


def test_poisson_sizes_make_cells_independent() -> None:
    """A Poisson number of records of known probabilities: given these, a very large concentration fixes them."""
    shares = np.array([0.2, 0.5, 0.3])
    value, noise = np.array([3, 8, 4]), oracle.discrete_gaussian(1.5)
    table = oracle.enumerate_sizes(
        oracle.poisson_size(14.0), range(60), 1e9 * shares, [oracle.Seen(np.eye(3), value, noise)]
    )
    for cell, share in enumerate(shares):
        counts = np.arange(60)
        law = special.softmax(stats.poisson(14.0 * share).logpmf(counts) + noise(value[cell] - counts))
        assert table.counts()[0][cell] == pytest.approx(law @ counts, abs=1e-5)


def test_naive_bayes_without_features_is_a_table() -> None:
    """One feature of one level says nothing."""
    seen = [oracle.Seen(np.eye(3), np.array([2, 5, 1]), oracle.discrete_gaussian(1.0))]
    bayes = oracle.enumerate_naive_bayes(9, ALPHA[:3], np.ones((1, 3, 1)), seen)
    table = oracle.enumerate_tables(9, ALPHA[:3], seen)
    assert bayes.posterior.log_evidence == pytest.approx(table.log_evidence)


def test_naive_bayes_of_one_class_and_feature_is_a_table() -> None:
    seen = [oracle.Seen(np.eye(3), np.array([2, 5, 1]), oracle.discrete_gaussian(1.0))]
    bayes = oracle.enumerate_naive_bayes(9, [1.3], ALPHA[None, None, :3], seen)
    table = oracle.enumerate_tables(9, ALPHA[:3], seen)
    assert bayes.posterior.log_evidence == pytest.approx(table.log_evidence)
    np.testing.assert_array_equal(bayes.features[:, 0, 0], table.tables)


def test_the_grid_meets_adaptive_quadrature() -> None:
    """Two cells of log-odds N(0, 1.5²): the posterior mean by SciPy's own integration."""

    def log_cells(points: np.ndarray) -> np.ndarray:
        return special.log_softmax(np.column_stack([points[:, 0], np.zeros(len(points))]), axis=1)

    noise, value, n = oracle.discrete_gaussian(1.2), np.array([5, 1]), 6
    grid = oracle.grid_tables(n, log_cells, [np.linspace(-15, 15, 401)], 1.5, [oracle.Seen(np.eye(2), value, noise)])
    counts = np.arange(n + 1)
    likelihood = np.exp(noise(value[0] - counts) + noise(value[1] - (n - counts)))

    def density(logit: float) -> float:
        return stats.norm.pdf(logit, 0, 1.5) * (likelihood @ stats.binom(n, special.expit(logit)).pmf(counts))

    total = integrate.quad(density, -15, 15)[0]
    assert np.exp(grid.tables.log_evidence) == pytest.approx(total, rel=1e-8)
    assert grid.mean[0] == pytest.approx(integrate.quad(lambda x: x * density(x), -15, 15)[0] / total, abs=1e-8)
