"""Log-linear models: against sums over all combinations of levels and all data sets, which NumPy makes on its own."""

from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax import diagnostics, models, statistics
from tests.tools import perfect_start
from tests.tools.three_columns import EVERY, SCALE, SIZES, VALUE, N, check_means, contributions, release_of

MODEL = models.log_linear(SIZES, [("a", "b"), ("b", "c")], models.NormalPrior(0.2, 0.8))


def log_shares(effects: np.ndarray) -> np.ndarray:
    """The log-probabilities [draw, 8] of all combinations, by signs: with two levels a contrast is ±1 / √2."""
    sign = (1 - 2 * EVERY) / np.sqrt(2)
    terms = [sign[:, 0], sign[:, 1], sign[:, 2], sign[:, 0] * sign[:, 1], sign[:, 1] * sign[:, 2]]
    logs = effects @ np.array(terms)
    return logs - logsumexp(logs, axis=1, keepdims=True)


def test_probabilities_are_those_of_signs() -> None:
    """Each effect has its own table, once: what is written into two tables or none shows in no other test."""
    effects = np.random.default_rng(1).normal(size=(3, 5))
    found = [MODEL.log_density({"effects": jnp.asarray(one, float)}, columns(EVERY)) for one in effects]
    np.testing.assert_allclose(found, log_shares(effects), rtol=1e-4, atol=1e-5)


def columns(levels: np.ndarray) -> dict:
    return {name: jnp.asarray(levels[:, place]) for place, name in enumerate("abc")}


def test_weights_sum_to_zero_and_the_prior_is_the_same_for_all_levels() -> None:
    """Three levels and more: a contrast that is not orthonormal gives some levels more prior variance than others."""
    model = models.log_linear({"a": 4, "b": 3, "c": 2}, [("a", "b", "c")])
    effects = jnp.eye(model.layout.num_effects)
    weights = np.asarray(jax.vmap(lambda one: model.weights({"effects": one})[0])(effects))
    assert weights.shape == (23, 4, 3, 2)
    np.testing.assert_allclose(weights.sum(axis=(1, 2, 3)), 0, atol=1e-5)
    variance = np.sum(weights**2, axis=0)
    np.testing.assert_allclose(variance, variance.ravel()[0], rtol=1e-5)


def test_a_record_outside_is_impossible_and_the_summary_says_as_much_as_records() -> None:
    """Kernels read records through their summary alone."""
    parameters = MODEL.sample_prior(jax.random.key(2))
    assert MODEL.log_density(parameters, columns(np.array([[0, 2, 0], [-1, 0, 0]]))).tolist() == [-np.inf, -np.inf]
    records = MODEL.sample_records(jax.random.key(3), parameters, 40)
    whole = MODEL.log_density(parameters, records).sum()
    np.testing.assert_allclose(MODEL.log_likelihood(parameters, MODEL.summarize(records)), whole, rtol=1e-5)


def test_moments_of_released_tables_are_those_of_all_records() -> None:
    """By the tree, for tables in another order of columns, twice, and of columns that no table of the model joins."""
    model = models.log_linear({"a": 2, "b": 3, "c": 2, "d": 4}, [("a", "b"), ("b", "c")])
    pieces = [("b", "a"), ("d", "c", "a"), ("b", "a"), ("d",)]
    sizes = dict(zip(model.cells.fields, model.cells.sizes, strict=True))
    statistic = statistics.stacked(*(statistics.cells(one, [sizes[name] for name in one]) for one in pieces))
    parameters = model.sample_prior(jax.random.key(4))
    mean, covariance = model.statistic_moments(parameters, statistic)
    records = model.support()
    table = np.asarray(jax.vmap(statistic)(records), np.float64)
    shares = np.exp(np.asarray(model.log_density(parameters, records), np.float64))
    shares /= shares.sum()
    np.testing.assert_allclose(mean, shares @ table, atol=2e-6)
    expected = (table.T * shares) @ table - np.outer(shares @ table, shares @ table)
    np.testing.assert_allclose(covariance, expected, atol=2e-6)
    assert model.statistic_moments(parameters, statistics.total("a", 0.0, 1.0)) is None


@pytest.mark.x64
def test_the_posterior_of_imputed_records_is_that_of_all_data_sets() -> None:
    """The whole way from noisy tables to draws, of few records."""
    run = {"num_warmup": 300, "num_samples": 1_500, "progress": False, "imputation": dpjax.imwg()}
    posterior = dpjax.sample(jax.random.key(6), MODEL, release_of(VALUE, N), **run)
    draws = np.exp(log_shares(posterior.draws["effects"].reshape(-1, 5))).reshape(4, -1, 8)
    check_means(draws, log_shares(0.2 + 0.8 * np.random.default_rng(5).normal(size=(20_000, 5))))


@pytest.mark.x64
def test_records_counts_and_the_normal_sum_agree() -> None:
    """1,000 people: records by the tree, counts of all combinations, and the Normal sum with the tree's covariances."""
    rng = np.random.default_rng(8)
    levels = rng.choice(8, size=1_000, p=[0.3, 0.1, 0.05, 0.15, 0.1, 0.05, 0.05, 0.2])
    value = contributions()[levels].sum(axis=0) + np.rint(rng.normal(0, 8.0, 10))
    release = release_of(value, 1_000, 8.0)
    run = {"num_warmup": 300, "num_samples": 600, "progress": False}
    ways = [{"imputation": dpjax.imwg()}, {"imputation": dpjax.counts()}, {"likelihood": dpjax.normal_sum()}]
    found = [dpjax.sample(jax.random.key(9), MODEL, release, **run, **way).draws["effects"] for way in ways]
    for place in range(5):
        columns = [draws[..., place] for draws in found]
        errors = [diagnostics.mcse_mean(column) for column in columns]
        for other in (1, 2):
            gap = columns[0].mean() - columns[other].mean()
            # The Normal sum is off by a little of a standard deviation, as counts are skewed.
            allowed = 0.0 if other == 1 else 0.05 * columns[0].std()
            assert abs(gap) < 4 * np.hypot(errors[0], errors[other]) + allowed, (place, other)
            assert abs(columns[other].std() / columns[0].std() - 1) < 0.1, (place, other)


@pytest.mark.x64
def test_counts_and_the_normal_sum_agree_on_a_million_people() -> None:
    """Covariances of sums of a million lose digits that those of a thousand have, and counts have long ways to go."""
    rng = np.random.default_rng(12)
    counts = rng.multinomial(10**6, [0.3, 0.1, 0.05, 0.15, 0.1, 0.05, 0.05, 0.2])
    release = release_of(counts @ contributions() + np.rint(rng.normal(0, 8.0, 10)), 10**6, 8.0)
    run = {"num_warmup": 300, "num_samples": 600, "progress": False}
    ways = [{"imputation": dpjax.counts()}, {"likelihood": dpjax.normal_sum()}]
    exact, normal = (dpjax.sample(jax.random.key(9), MODEL, release, **run, **way).draws["effects"] for way in ways)
    for place in range(5):
        error = np.hypot(*(diagnostics.mcse_mean(draws[..., place]) for draws in (exact, normal)))
        assert abs(exact[..., place].mean() - normal[..., place].mean()) < 4 * error, place
        assert abs(normal[..., place].std() / exact[..., place].std() - 1) < 0.15, place


def test_the_joint_law_is_invariant() -> None:
    """Perfect starts: effects keep their prior, and the implied noise its law; no oracle has twelve records."""
    replicates = perfect_start.run(jax.random.key(11), MODEL, release_of(VALUE, 12), dpjax.imwg(), num_chains=3_000)
    law = stats.norm(0.2, 0.8)
    p_values = [stats.kstest(column, law.cdf).pvalue for column in replicates.parameters["effects"].T]
    assert min(p_values) * 5 > perfect_start.REJECT
    grid = np.exp(-0.5 * np.square(np.arange(-40, 41) / SCALE))
    probability = lambda values: np.exp(-0.5 * np.square(values / SCALE)) / grid.sum()  # noqa: E731
    assert perfect_start.lattice_p_value(replicates.noise, probability, 3) > perfect_start.REJECT


def test_trees_that_are_too_large_are_refused_with_what_to_leave_out() -> None:
    """Before anything is computed: nine columns of ten levels, of which all pairs are tables."""
    domain = {f"c{number}": 10 for number in range(9)}
    pairs = [(f"c{left}", f"c{right}") for left in range(9) for right in range(left + 1, 9)]
    with pytest.raises(
        ValueError, match=r"tables: given .* 1,000,000,000 entries, over the columns .*Leave out"
    ) as info:
        models.log_linear(domain, pairs)
    assert "16,777,216" in str(info.value)
    assert "oarsen" in str(info.value)
    assert prod(domain.values()) == 10**9


@pytest.mark.parametrize(
    ("domain", "tables", "message"),
    [
        ({"a": 2}, [("a", "z")], r"tables\[0\]: given the columns \['z'\]"),
        ({"a": 2}, [("a", "a")], r"tables\[0\]: given the columns \['a', 'a'\]"),
        ({"a": 1}, [("a",)], r"domain\['a'\]"),
        ({"a": ["x", "x"]}, [("a",)], "names that differ"),
        ({"a": 2}, [], "tables: given no tables"),
        ({}, [("a",)], "domain: given no columns"),
        ({"a": 2}, "a", "tables"),
        (["a"], [("a",)], "domain"),
    ],
)
def test_bad_input_is_named(domain: object, tables: object, message: str) -> None:
    """Each refusal of its own: the general tests of bad input try single values alone."""
    with pytest.raises((TypeError, ValueError), match=message):
        models.log_linear(domain, tables)
