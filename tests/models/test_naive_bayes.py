"""Naive Bayes with levels that a class cannot have: probabilities of 0, in records and counts, against enumeration."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import dpjax
from dpjax import models, statistics
from tests.tools.category_oracle import Moments, check

CLASSES = np.array([1.5, 1.0])
FEATURES = np.array([[[1.0, 2.0, 0.7], [1.2, 0.8, 1.0]], [[2.0, 1.0, 1.0], [0.9, 1.1, 1.0]]])
POSSIBLE = np.array([[[True, False, True], [True, True, True]], [[True, True, False], [False, True, False]]])
MODEL = models.naive_bayes(CLASSES, FEATURES, possible=POSSIBLE.tolist())
STATISTIC, N, SCALE = statistics.class_features(2, 2, 3), 3, 1.3
VALUE = np.array([1.4, 0.2, 0.5, 1.0, 1.3, -0.4, 2.0, -0.6, 0.4, 0.9, 0.3, 0.1])
RELEASE = dpjax.Release(VALUE, dpjax.Laplace(SCALE), STATISTIC, N)
RUN = {"num_warmup": 300, "num_samples": 2_500, "progress": False}
INSIDE = np.flatnonzero(POSSIBLE)


def possible_records(flags: np.ndarray) -> list[tuple[int, tuple[int, int]]]:
    every = product(range(2), product(range(3), repeat=2))
    return [(label, levels) for label, levels in every if flags[0, label, levels[0]] and flags[1, label, levels[1]]]


def log_dirichlet(shape: np.ndarray) -> float:
    return float(gammaln(shape).sum() - gammaln(shape.sum()))


def log_marginal(classes: np.ndarray, features: np.ndarray, flags: np.ndarray) -> float:
    """The log-probability of records in order, with these posterior concentrations, up to a constant."""
    rows = [features[k, i][flags[k, i]] for k in range(2) for i in range(2)]
    return log_dirichlet(classes) + sum(log_dirichlet(row) for row in rows)


def exact(flags: np.ndarray) -> Moments:
    """Of class probabilities, then all feature probabilities, by every way to give each of N people a record."""
    weights, first, second = [], [], []
    for records in product(possible_records(flags), repeat=N):
        classes, features, seen = CLASSES.copy(), FEATURES.copy(), np.zeros((2, 3, 2))
        for label, levels in records:
            classes[label] += 1
            for k, level in enumerate(levels):
                features[k, label, level] += 1
                seen[k, level, label] += 1
        weights.append(log_marginal(classes, features, flags) - np.abs(VALUE - seen.ravel()).sum() / SCALE)
        held = np.where(flags, features, 0.0)
        shape = np.concatenate([classes, held.ravel()])
        size = np.concatenate([np.full(2, classes.sum()), np.repeat(held.sum(axis=2).ravel(), 3)])
        first.append(shape / size)
        second.append(shape * (shape + 1) / (size * (size + 1)))
    weight = np.exp(np.array(weights) - logsumexp(weights))
    mean = weight @ np.array(first)
    return Moments(mean, np.sqrt(np.maximum(weight @ np.array(second) - mean**2, 0)))


def free(moments: Moments) -> Moments:
    """Of the numbers that are neither 0 nor 1."""
    places = moments.sd > 1e-6
    return Moments(moments.mean[places], moments.sd[places])


EXACT = exact(POSSIBLE)


@pytest.mark.x32
@pytest.mark.parametrize(
    "imputation",
    [
        dpjax.imwg(),
        pytest.param(dpjax.counts(), marks=pytest.mark.slow),
        pytest.param(dpjax.counts(collapse=False), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_posterior(imputation) -> None:
    draws = dpjax.sample(jax.random.key(1), MODEL, RELEASE, imputation=imputation, **RUN).draws
    assert np.all(draws["feature_probabilities"][..., ~POSSIBLE] == 0)
    assert np.all(draws["feature_probabilities"][..., 1, 1, 1] == 1)  # the only level that is possible
    shape = draws["class_probabilities"].shape[:2]
    both = [draws["class_probabilities"], draws["feature_probabilities"].reshape(*shape, -1)]
    check(np.concatenate(both, axis=-1)[..., EXACT.sd > 1e-6], free(EXACT))


def test_an_impossible_level_is_no_rare_one() -> None:
    """A mutation: the same concentrations where every level can be give another posterior."""
    assert np.max(np.abs(exact(np.ones_like(POSSIBLE)).mean - EXACT.mean)[:2]) > 0.02


@pytest.mark.x64
def test_integrated_out_it_is_the_same_distribution() -> None:
    """The law of the counts against that of records in order."""
    conjugate = MODEL.conjugate()
    support = {name: np.asarray(field) for name, field in MODEL.support().items()}
    listed = list(zip(support["class"].tolist(), map(tuple, support["features"].tolist()), strict=True))
    assert listed == possible_records(POSSIBLE)
    found, expected = [], []
    for chosen in ([0, 0, 1], [2, 3, 4], [0, 2, 6], []):
        classes, features = CLASSES.copy(), FEATURES.copy()
        sums = np.zeros(conjugate.shift.size)
        for place in chosen:
            label, levels = listed[place]
            classes[label] += 1
            features[np.arange(2), label, levels] += 1
            np.add.at(sums, np.asarray(conjugate.places)[place], 1)
        expected.append(log_marginal(classes, features, POSSIBLE))
        found.append(np.sum(np.asarray(conjugate.sign) * gammaln(sums + np.asarray(conjugate.shift))))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-10, atol=1e-10)


def test_prior_records_and_slopes() -> None:
    parameters = MODEL.sample_prior(jax.random.key(3))
    tables = np.asarray(parameters["feature_probabilities"], np.float64)
    rows = [(k, i) for k in range(2) for i in range(2) if POSSIBLE[k, i].sum() > 1]
    classes = np.asarray(parameters["class_probabilities"], np.float64)
    expected = stats.dirichlet.logpdf(classes / classes.sum(), CLASSES)
    for row in rows:
        share = tables[row][POSSIBLE[row]]
        expected += stats.dirichlet.logpdf(share / share.sum(), FEATURES[row][POSSIBLE[row]])
    np.testing.assert_allclose(MODEL.log_prior(parameters), expected, rtol=1e-3)
    records = MODEL.sample_records(jax.random.key(4), parameters, 2_000)
    features, label = np.asarray(records["features"]), np.asarray(records["class"])
    assert np.all(POSSIBLE[np.arange(2), label[:, None], features])
    assert np.all(np.isfinite(MODEL.log_density(parameters, records)))
    beyond = {"class": jnp.array([0]), "features": jnp.array([[1, 0]])}
    assert np.isneginf(MODEL.log_density(parameters, beyond)[0])
    real = MODEL.unconstrain(parameters)
    assert real["feature_probabilities"].shape == (4,)
    again = MODEL.constrain(real)
    np.testing.assert_allclose(again["feature_probabilities"], tables, rtol=1e-4, atol=1e-6)

    def likelihood(real):
        return MODEL.log_likelihood(MODEL.constrain(real), MODEL.summarize(records)) + MODEL.log_jacobian(real)

    def one_by_one(real):
        return jnp.sum(MODEL.log_density(MODEL.constrain(real), records)) + MODEL.log_jacobian(real)

    slopes = jax.grad(likelihood)(real), jax.grad(one_by_one)(real)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-2), *slopes)


@pytest.mark.x64
def test_jacobian() -> None:
    real = MODEL.unconstrain(MODEL.sample_prior(jax.random.key(5)))["feature_probabilities"]

    def free_probabilities(ratios):
        both = {"class_probabilities": jnp.zeros(1), "feature_probabilities": ratios}
        tables = MODEL.constrain(both)["feature_probabilities"]
        return jnp.stack([tables[0, 0, 0], tables[0, 1, 0], tables[0, 1, 1], tables[1, 0, 0]])

    matrix = jax.jacobian(free_probabilities)(real)
    both = {"class_probabilities": jnp.zeros(1), "feature_probabilities": real}
    classes = {"class_probabilities": jnp.zeros(1), "feature_probabilities": jnp.full(4, 0.0)}
    rest = MODEL.log_jacobian(classes) - jnp.linalg.slogdet(jax.jacobian(free_probabilities)(jnp.zeros(4)))[1]
    np.testing.assert_allclose(MODEL.log_jacobian(both) - rest, jnp.linalg.slogdet(matrix)[1], rtol=1e-10)
