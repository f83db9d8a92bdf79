"""Couplings of two laws: both marginals, and the chance of a common draw against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.coupling import categorical, common_uniform, maximal, reflection_maximal
from dpjax.coupling.couplings import couple_indices, maximal_records, reflect

NUM = 20_000


def within(share: float, probability: float, num: int = NUM) -> bool:
    """Whether a share of `num` draws is within 5 standard errors of a probability."""
    return abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / num) + 1e-12


def density(log_density: stats.rv_continuous) -> object:
    return lambda value: jax.scipy.stats.norm.logpdf(value, *log_density)


def draw(law: tuple) -> object:
    return lambda key: law[0] + law[1] * jax.random.normal(key, (), float)


SLOW = pytest.mark.slow


@pytest.mark.keys
@pytest.mark.parametrize("max_trials", [pytest.param(2.0, marks=SLOW), 100.0, pytest.param(np.inf, marks=SLOW)])
def test_rejection_keeps_both_marginals_and_meets_as_often_as_it_says(max_trials: float) -> None:
    p, q = (0.0, 1.0), (0.7, 1.5)
    pairs = jax.jit(jax.vmap(lambda key: maximal(key, draw(p), density(p), draw(q), density(q), max_trials)))
    x, y, same = map(np.asarray, pairs(jax.random.split(jax.random.key(5), NUM)))
    grid = np.linspace(-14, 14, 200_001)
    eta = 1 - 1 / max_trials
    overlap = np.trapezoid(np.minimum(stats.norm.pdf(grid, *p), eta * stats.norm.pdf(grid, *q)), grid)
    assert within(same.mean(), overlap)
    assert np.array_equal(x[same], y[same])
    assert stats.kstest(x, stats.norm(*p).cdf).pvalue > 1e-4
    assert stats.kstest(y, stats.norm(*q).cdf).pvalue > 1e-4


def test_a_residual_that_is_not_thinned_is_rejected() -> None:
    """A mutation: after a failed common draw y is any draw from q."""
    p, q = (0.0, 1.0), (0.7, 1.5)

    def pair(key: jax.Array) -> jax.Array:
        x_key, y_key, uniform_key = jax.random.split(key, 3)
        x = draw(p)(x_key)
        common = jnp.log(jax.random.uniform(uniform_key)) < density(q)(x) - density(p)(x)
        return jnp.where(common, x, draw(q)(y_key))

    y = np.asarray(jax.jit(jax.vmap(pair))(jax.random.split(jax.random.key(5), NUM)))
    assert stats.kstest(y, stats.norm(*q).cdf).pvalue < 1e-4


def test_records_share_their_trials_and_stay_independent() -> None:
    """Trials are handed to the records that wait, in order; each record keeps its law, and two are uncorrelated."""
    p, q = (0.0, 1.0), (1.5, 1.0)

    def many(law: tuple) -> object:
        return lambda key, num: law[0] + law[1] * jax.random.normal(key, (num,), float)

    def pairs(key: jax.Array) -> tuple:
        return maximal_records(key, many(p), density(p), many(q), density(q), 3, np.inf)

    _, y, same = map(np.asarray, jax.jit(jax.vmap(pairs))(jax.random.split(jax.random.key(5), NUM)))
    assert all(stats.kstest(column, stats.norm(*q).cdf).pvalue > 1e-4 for column in y.T)
    assert all(within(column.mean(), 2 * stats.norm.cdf(-0.75)) for column in same.T)
    assert np.all(np.abs(np.corrcoef(y.T) - np.eye(3)) < 5 / np.sqrt(NUM))


def test_equal_laws_give_common_draws() -> None:
    law = (0.0, 1.0)
    many = lambda key, num: jax.random.normal(key, (num,), float)  # noqa: E731
    other = density((3.0, 1.0))
    couple = jax.jit(lambda key: maximal_records(key, many, density(law), many, other, 5, 10.0, equal=True))
    x, y, same = couple(jax.random.key(5))
    assert np.all(same)
    assert np.array_equal(x, y)


@pytest.mark.keys
def test_reflection_meets_with_one_minus_the_total_variation() -> None:
    factor = np.array([[1.0, 0.0], [0.6, 0.8]])
    means = np.array([0.3, -0.2]), np.array([1.0, 0.5])
    draws = jax.jit(jax.vmap(lambda key: reflection_maximal(key, *map(jnp.asarray, means), jnp.asarray(factor))))
    x, y, same = map(np.asarray, draws(jax.random.split(jax.random.key(5), NUM)))
    shift = np.linalg.norm(np.linalg.solve(factor, means[0] - means[1]))
    assert within(same.mean(), 2 * stats.norm.cdf(-shift / 2))
    assert np.array_equal(x[same], y[same])
    for values, mean in ((x, means[0]), (y, means[1])):
        scores = np.linalg.solve(factor, (values - mean).T)
        assert all(stats.kstest(row, "norm").pvalue > 1e-4 for row in scores)
        assert abs(np.corrcoef(scores)[0, 1]) < 5 / np.sqrt(NUM)


@pytest.mark.x64
def test_a_reflected_pair_is_mirrored_in_the_plane_between_the_means() -> None:
    normal, means = jnp.array([0.4, 1.3]), (jnp.array([0.0, 2.0]), jnp.array([1.0, 0.0]))
    x, y, same = reflect(normal, jnp.asarray(0.999), *means, jnp.eye(2))
    assert not same
    midpoint, direction = (means[0] + means[1]) / 2, (means[0] - means[1]) / jnp.sqrt(5.0)
    np.testing.assert_allclose(x - y - 2 * jnp.sum((x - midpoint) * direction) * direction, 0.0, atol=1e-10)
    x, y, same = reflect(normal, jnp.asarray(0.5), means[0], means[0], jnp.eye(2))
    assert same
    assert np.array_equal(x, y)


COUPLE = jax.jit(jax.vmap(couple_indices, in_axes=(0, None, None, None)))


def laws_of_indices(log_p: np.ndarray, log_q: np.ndarray, line: np.ndarray | None) -> tuple:
    """Both marginals and the chance of equality, exactly: the index is a step function of the uniform."""
    p, q = (np.exp(w - np.logaddexp.reduce(w)) for w in (log_p, log_q))
    common = np.minimum(p, q)
    orders = np.arange(len(p)) if line is None else np.argsort(~line, kind="stable")
    rests = [common.sum() + np.cumsum((law - common)[orders]) for law in (p, q)]
    edges = np.unique(np.clip(np.concatenate([[0, 1], np.cumsum(common), *rests]), 0, 1))
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    padded = np.concatenate([middles, np.zeros(4 * len(p) - len(middles))])  # one shape, so one program
    (x, total_p), (y, _) = COUPLE(*map(jnp.asarray, (padded, log_p, log_q)), line_of(line))
    x, y, total_p = (np.asarray(leaf)[: len(middles)] for leaf in (x, y, total_p))
    np.testing.assert_allclose(total_p, np.logaddexp.reduce(log_p), atol=1e-10)
    size = len(p)
    return (np.bincount(x, widths, size), p), (np.bincount(y, widths, size), q), (widths[x == y].sum(), common.sum())


def line_of(line: np.ndarray | None) -> jax.Array | None:
    return None if line is None else jnp.asarray(line)


@pytest.mark.x64
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("with_line", [False, True])
def test_coupled_indices_are_maximal_and_keep_both_laws(seed: int, with_line: bool) -> None:
    rng = np.random.default_rng(seed)
    log_p, log_q = rng.normal(size=7) * 2, rng.normal(size=7) * 2
    log_p[seed % 7], log_q[(seed + 3) % 7] = -np.inf, -np.inf
    for found, expected in laws_of_indices(log_p, log_q, rng.random(7) < 0.4 if with_line else None):
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.x64
def test_unmatched_entries_meet_each_other_first() -> None:
    """Of the residual 0.6, 0.3 of p and 0.2 of q are at unmatched entries: 0.2 of it pairs two of them."""
    p, q = np.array([0.5, 0.1, 0.3, 0.1]), np.array([0.1, 0.3, 0.1, 0.5])
    line = jnp.array([False, True, True, False])
    uniforms = jnp.asarray((np.arange(4000) + 0.5) / 4000)
    (x, _), (y, _) = COUPLE(uniforms, jnp.log(p), jnp.log(q), line)
    both = (x != y) & line[x] & line[y]
    np.testing.assert_allclose(np.mean(both), 0.2, atol=1e-3)


def test_an_independent_residual_meets_as_often_but_pairs_worse() -> None:
    """The residual is shared: a pair outside the common part is one function of one uniform."""
    log_p, log_q = jnp.log(jnp.array([0.5, 0.3, 0.2])), jnp.log(jnp.array([0.2, 0.3, 0.5]))
    x, y, same = map(
        np.asarray, jax.jit(jax.vmap(lambda k: categorical(k, log_p, log_q)))(jax.random.split(jax.random.key(5), NUM))
    )
    assert within(same.mean(), 0.7)
    assert {(0, 2)} == {(int(i), int(j)) for i, j in zip(x[~same], y[~same], strict=True)}


def test_zero_totals_are_survived() -> None:
    nothing, law = jnp.full(3, -jnp.inf), jnp.log(jnp.array([0.1, 0.6, 0.3]))
    (_, total), (index, _) = COUPLE(jnp.linspace(0, 0.999, 1000), nothing, law, None)
    assert np.all(np.isneginf(total))
    np.testing.assert_allclose(np.bincount(index, minlength=3) / 1000, [0.1, 0.6, 0.3], atol=2e-3)


@pytest.mark.x64
def test_two_events_agree_as_often_as_possible() -> None:
    uniforms = jnp.asarray((np.arange(1000) + 0.5) / 1000)
    x, y, same = common_uniform(uniforms, jnp.log(0.3), jnp.log(0.8))
    np.testing.assert_allclose([x.mean(), y.mean(), same.mean()], [0.3, 0.8, 0.5], atol=1e-10)
    assert not common_uniform(jnp.asarray(0.5), jnp.asarray(jnp.nan), jnp.asarray(0.0))[0]


def test_max_trials_is_checked() -> None:
    with pytest.raises(ValueError, match="max_trials"):
        maximal(jax.random.key(5), draw((0.0, 1.0)), density((0.0, 1.0)), draw((0.0, 1.0)), density((0.0, 1.0)), 1.0)
