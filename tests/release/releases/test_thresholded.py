"""Thresholded tables against enumeration, by formulas and numbers of their own."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import dpjax
from dpjax import models, statistics
from dpjax.mechanisms import Censored, DiscreteLaplace, Laplace, PartitionSelection
from dpjax.release.releases import thresholded

N, SCALE, THRESHOLD = 5, 1.5, 2
PRIOR = np.array([1.0, 2.0, 0.5])
MODEL = models.categorical(concentration=PRIOR)
KEYS = ["a", "b", "c"]
NOISE = {"whole": DiscreteLaplace(SCALE), "real": Laplace(SCALE)}
PUBLISHED = {"whole": 3.0, "real": 2.7}
ABOVE = {"whole": stats.dlaplace(1 / SCALE).pmf, "real": stats.laplace(scale=SCALE).pdf}
BELOW = {
    "whole": lambda count: stats.dlaplace(1 / SCALE).cdf(THRESHOLD - 1 - count),
    "real": lambda count: stats.laplace(scale=SCALE).cdf(THRESHOLD - count),
}
CASES = [(kind, only_present) for kind in NOISE for only_present in (False, True)]


def build(kind, only_present, value=None):
    values = [PUBLISHED[kind] if value is None else value]
    return thresholded(["b"], values, KEYS, NOISE[kind], THRESHOLD, n=N, only_present=only_present)


def log_likelihood(kind, only_present, counts):
    """log p(b published with its value, a and c not published | counts [3])."""
    with np.errstate(divide="ignore"):
        published = np.log(ABOVE[kind](PUBLISHED[kind] - counts[1]))
        hidden = [np.log(BELOW[kind](count)) if count > 0 or not only_present else 0.0 for count in counts[[0, 2]]]
    return -np.inf if only_present and counts[1] == 0 else published + sum(hidden)


def enumerate_counts(kind, only_present):
    """The posterior mean of the probabilities."""
    tables = np.array([counts for counts in product(range(N + 1), repeat=3) if sum(counts) == N])
    log_joint = [
        np.sum(gammaln(PRIOR + counts) - gammaln(counts + 1.0)) + log_likelihood(kind, only_present, counts)
        for counts in tables
    ]
    weights = np.exp(log_joint - logsumexp(log_joint))
    return weights @ (PRIOR + tables) / (PRIOR.sum() + N)


@pytest.mark.parametrize(("kind", "only_present"), CASES)
def test_the_likelihood_of_every_table(kind, only_present):
    release = build(kind, only_present)
    for counts in product(range(N + 1), repeat=3):
        expected = log_likelihood(kind, only_present, np.array(counts))
        found = release.log_density(jnp.array(counts, release.value.dtype))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.x32
@pytest.mark.parametrize(
    ("kind", "only_present"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case in (("whole", False), ("real", True)))) for case in CASES],
)
def test_imputed_records_against_enumeration(kind, only_present):
    algorithm = dpjax.gibbs(MODEL, build(kind, only_present), dpjax.imwg())
    start = dpjax.data_augmentation.Position(
        {"probabilities": jnp.full(3, 1 / 3)}, {"cell": jnp.array([0, 1, 1, 1, 2])}
    )

    @jax.jit
    @jax.vmap
    def means(key):
        def sweep(state, index):
            state = algorithm.step(jax.random.fold_in(key, index), state)[0]
            return state, state.parameters["probabilities"]

        return jnp.mean(jax.lax.scan(sweep, algorithm.init(start), jnp.arange(1_000))[1][50:], axis=0)

    found = np.asarray(means(jax.random.split(jax.random.key(5), 64)))
    error = (found.mean(axis=0) - enumerate_counts(kind, only_present)) / (found.std(axis=0) / 8)
    assert np.max(np.abs(error)) < 5
    other = (found.mean(axis=0) - enumerate_counts(kind, not only_present)) / (found.std(axis=0) / 8)
    assert np.max(np.abs(other)) > 5


@pytest.mark.parametrize(("kind", "only_present"), CASES)
def test_samples_follow_the_likelihood(kind, only_present):
    release, counts = build(kind, only_present), jnp.array([0.0, 3.0, 1.0])
    draw = jax.jit(jax.vmap(release.mechanism.sample, in_axes=(0, None)))
    draws = np.asarray(draw(jax.random.split(jax.random.key(1), 20_000), counts))
    lower = float(release.value[0])
    assert draws.min() == lower
    for count, column in zip(np.asarray(counts), draws.T, strict=True):
        hidden = 1.0 if only_present and count == 0 else BELOW[kind](count)
        assert abs(np.mean(column == lower) - hidden) <= 5 * np.sqrt(hidden * (1 - hidden) / 20_000)
    assert np.all(draws[draws > lower] >= THRESHOLD)
    if only_present:
        assert np.all(draws[:, 0] == lower)


@pytest.mark.parametrize("kind", NOISE)
def test_a_count_at_the_threshold_was_published(kind):
    for threshold, only_present in product((THRESHOLD, 0), (False, True)):
        release = thresholded(["b"], [threshold], KEYS, NOISE[kind], threshold, n=N, only_present=only_present)
        terms = release.mechanism.log_density_terms(release.value, jnp.array([1.0, 1.0, 1.0]))
        np.testing.assert_allclose(terms[1], np.log(ABOVE[kind](threshold - 1.0)), rtol=1e-5)
        assert np.all(release.value[jnp.array([0, 2])] < threshold)


@pytest.mark.parametrize(("step", "threshold"), [(10.0, 20.0), (10.0, 23.0), (0.1, 1.1), ([10.0, 4.0], 20.0)])
@pytest.mark.parametrize("only_present", [False, True])
def test_probabilities_of_rounded_cells_add_up_to_one(step, threshold, only_present):
    """Other tests have noise whose values are dense below the threshold, or all whole numbers."""
    scales = 0.4 * np.ones(2) * step
    release = thresholded([], [], 2, dpjax.Rounded(Laplace(scales), step), threshold, n=N, only_present=only_present)
    least = np.ceil(threshold / np.asarray(step) - 1e-3)
    published = np.asarray(step) * (least + np.arange(60)[:, None]) * np.ones(2)
    counts = 0.75 * threshold * np.ones(2)
    values = np.concatenate([release.value[None], published])
    terms = jax.vmap(release.mechanism.log_density_terms, in_axes=(0, None))(values, counts)
    np.testing.assert_allclose(np.exp(terms).sum(axis=0), 1, rtol=1e-5)
    hidden = stats.laplace(scale=scales).cdf(step * (least - 0.5) - counts)
    np.testing.assert_allclose(np.exp(terms[0]), hidden, rtol=1e-4)


@pytest.mark.parametrize("noise", [DiscreteLaplace(4.0), dpjax.DiscreteGaussian(4.0)])
@pytest.mark.parametrize("threshold", [20, 19.5])
def test_probabilities_of_whole_cells_add_up_to_one(noise, threshold):
    """Other tests compare with tails of discrete Laplace noise alone."""
    release = thresholded([], [], 2, noise, threshold, n=N)
    values = np.concatenate([release.value[:1], np.arange(20.0, 120.0)])
    np.testing.assert_allclose(
        np.exp(release.mechanism.log_density_terms(values, jnp.full(101, 15.0))).sum(), 1, rtol=1e-5
    )


def test_bounds_between_multiples_are_refused():
    """The tails of rounded noise between its multiples would be those of another multiple."""
    with pytest.raises(ValueError, match=r"^lower: given .*15.*; expected multiples of 10"):
        Censored(dpjax.Rounded(Laplace(4.0), 10.0), lower=15.0)


def test_thresholds_between_whole_numbers():
    release = thresholded(["b"], [3], KEYS, DiscreteLaplace(SCALE), 2.5, n=N)
    np.testing.assert_array_equal(release.value, [2, 3, 2])


def test_keys_without_names():
    release = thresholded(["x", "y"], [4.0, 9.0], 4, Laplace(SCALE), 2.0, n=N)
    np.testing.assert_allclose(release.value, [4, 9, 2, 2], rtol=1e-6)
    assert release.statistic == statistics.cells("cell", levels=["x", "y", "unpublished 2", "unpublished 3"])
    nothing = thresholded([], [], 4, Laplace(SCALE), 2.0, n=N, field="page")
    np.testing.assert_allclose(nothing.value, [2] * 4, rtol=1e-6)
    assert nothing.statistic == statistics.cells("page", 4)


def test_keys_of_any_kind_in_any_order():
    keys = [("de", 3), ("fr", 1), ("de", 1)]
    scale = jnp.array([1.0, 2.0, 3.0])
    release = thresholded(keys[:0:-1], np.array([9, 5]), keys, DiscreteLaplace(scale), 4, n=N)
    np.testing.assert_array_equal(release.value, [3, 5, 9])
    numbers = thresholded(np.array([30, 10]), [9, 5], np.array([10, 20, 30]), DiscreteLaplace(scale), 4, n=N)
    np.testing.assert_array_equal(numbers.value, [5, 3, 9])


def test_whole_keys_below_their_number_are_categories():
    """They were taken for names: of keys 0, 3, 4, 7, 9 of twelve, 3 became category 1, and its share was another's."""
    keys, values = [0, 3, 4, 7, 9], [40, 11, 25, 31, 18]
    release = thresholded(np.array(keys), values, 12, DiscreteLaplace(SCALE), 10, n=150)
    expected = np.full(12, 9.0)
    expected[keys] = values
    np.testing.assert_array_equal(release.value, expected)
    listed = thresholded(keys, values, range(12), DiscreteLaplace(SCALE), 10, n=150)
    np.testing.assert_array_equal(listed.value, expected)
    counts = np.array([41, 10, 4, 0, 26, 3, 6, 30, 2, 19, 9, 0])
    laplace = stats.dlaplace(1 / SCALE)
    terms = np.where(expected == 9, laplace.logcdf(9 - counts), laplace.logpmf(expected - counts))
    found = release.log_density(jnp.asarray(counts, release.value.dtype))
    np.testing.assert_allclose(found, terms.sum(), rtol=1e-5)


def test_keys_are_named():
    """By none of them it could be seen which key is which category."""
    release = thresholded(["x", "y"], [4, 9], 3, DiscreteLaplace(SCALE), 2, n=N)
    assert "`cell` (x, y, unpublished 2)" in dpjax.describe(release)
    assert release.level_names == {"cell": ("x", "y", "unpublished 2")}
    pairs = thresholded([("de", 3)], [4], [("de", 3), ("fr", 1)], DiscreteLaplace(SCALE), 2, n=N)
    assert pairs.level_names == {"cell": ("de,3", "fr,1")}
    alike = thresholded([1], [4], [1, "1"], DiscreteLaplace(SCALE), 2, n=N)
    assert alike.level_names == {"cell": ("1 (0)", "'1' (1)")}


@pytest.mark.parametrize(("kind", "only_present"), CASES)
def test_json(kind, only_present):
    release = build(kind, only_present, value=THRESHOLD)
    again = dpjax.from_json(release.to_json())
    assert jax.tree.structure(again) == jax.tree.structure(release)
    for leaf, copy in zip(jax.tree.leaves(release), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(leaf, copy)


def test_the_mechanism_declares_what_it_has():
    mechanism = build("whole", True).mechanism
    assert isinstance(mechanism, PartitionSelection)
    assert mechanism._is_elementwise
    assert mechanism.noise is None
    assert mechanism.integer_noise
    release = build("whole", True)
    residuals = release.value[:, None] - jnp.array([[0.0, 3.0], [5.0, 0.0], [0.0, 2.0]])
    expected = [release.log_density(release.value - column) for column in residuals.T]
    np.testing.assert_allclose(release.log_densities_at(residuals), expected, rtol=1e-6)


def test_tables_are_parts_of_joint_releases():
    total = dpjax.Release([2.0], dpjax.Gaussian(1.0), lambda record: record["cell"][None], N)
    both = dpjax.joint(build("real", True), total)
    records = {"cell": jnp.array([0, 1, 1, 1, 2])}
    expected = log_likelihood("real", True, np.array([1, 3, 1])) + stats.norm.logpdf(2.0 - 5.0)
    np.testing.assert_allclose(both.log_likelihood(records), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"keys": ["b", "b"], "values": [3, 4]}, "keys"),
        ({"keys": ["z"]}, "keys"),
        ({"keys": "b"}, "keys"),
        ({"keys": None}, "keys"),
        ({"keys": [["b"]]}, "keys"),
        ({"keys": ["a", "b"]}, "values"),
        ({"values": [1]}, "values"),
        ({"values": [np.nan]}, "values"),
        ({"values": None}, "values"),
        ({"values": ["3"]}, "values"),
        ({"values": [3.5]}, "value"),
        ({"all_keys": ["a", "b", "a"]}, "all_keys"),
        ({"all_keys": ["b"]}, "all_keys"),
        ({"all_keys": 0}, "all_keys"),
        ({"all_keys": 1}, "all_keys"),
        ({"all_keys": 100_001}, "all_keys"),
        ({"all_keys": 2.0}, "all_keys"),
        ({"all_keys": 12, "keys": [3, 12], "values": [3, 3]}, "keys"),
        ({"all_keys": 12, "keys": [-1], "values": [3]}, "keys"),
        ({"all_keys": 12, "keys": [3, "b"], "values": [3, 3]}, "keys"),
        ({"all_keys": 2, "keys": ["a", "b", "c"], "values": [3, 3, 3]}, "all_keys"),
        ({"mechanism": dpjax.Exact()}, "mechanism"),
        ({"mechanism": 2.0}, "mechanism"),
        ({"mechanism": DiscreteLaplace(jnp.ones(2))}, "mechanism"),
        ({"threshold": None}, "threshold"),
        ({"threshold": np.inf}, "threshold"),
        ({"threshold": [1, 2]}, "threshold"),
        ({"threshold": "2"}, "threshold"),
        ({"n": 0}, "n"),
        ({"field": 3}, "field"),
        ({"only_present": "yes"}, "only_present"),
    ],
)
def test_what_does_not_fit_is_named(change, argument):
    given = {"keys": ["b"], "values": [3], "all_keys": KEYS, "mechanism": NOISE["whole"], "threshold": 2, "n": N}
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}\S*: given .*; expected .*\. .+\.$"):
        thresholded(**(given | change))


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Censored(Laplace(1.0), upper=3.0), Censored])
def test_a_selection_needs_a_lower_bound(mechanism):
    with pytest.raises((ValueError, TypeError), match=r"^mechanism: given .*; expected a Censored mechanism.*\. .+\.$"):
        PartitionSelection(mechanism)
