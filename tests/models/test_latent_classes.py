"""Latent classes: against sums over classes and over all data sets, which NumPy makes on its own."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import dpjax
from dpjax import diagnostics, models, statistics
from dpjax.models.latent_classes import LatentClasses
from tests.tools import perfect_start

SIZES = {"a": 2, "b": 2, "c": 2}
MODEL = models.latent_classes(SIZES, 2, class_concentration=1.5, level_concentration=2.0)
EVERY = np.array(list(product(range(2), repeat=3)))
N, SCALE = 5, 1.0
TABLES = [("a", "b"), ("c", "b"), ("a",)]
VALUE = np.array([3.0, 1.0, -1.0, 2.0, 2.0, 0.0, 1.0, 3.0, 4.0, 1.0])


def release_of(value: np.ndarray, n: int) -> dpjax.Release:
    """Noisy tables of the three columns, joined from releases of one table each."""
    parts, start = [], 0
    for table in TABLES:
        statistic = statistics.cells(table, [2] * len(table))
        end = start + statistic.dimension
        parts.append(dpjax.Release(value[start:end], dpjax.DiscreteGaussian(SCALE), statistic, n))
        start = end
    return dpjax.joint(*parts)


def contributions() -> np.ndarray:
    """What each combination of levels adds to the tables [8, 10]."""
    hot = [np.eye(4)[2 * EVERY[:, 0] + EVERY[:, 1]], np.eye(4)[2 * EVERY[:, 2] + EVERY[:, 1]], np.eye(2)[EVERY[:, 0]]]
    return np.concatenate(hot, axis=1)


def log_shares(draws: dict[str, np.ndarray]) -> np.ndarray:
    """The log-probabilities [draw, 8] of all combinations, by a sum over the classes."""
    terms = np.log(draws["class_probabilities"])[:, :, None]
    for place, name in enumerate("abc"):
        terms = terms + np.log(draws[f"{name}_given_class"])[:, :, EVERY[:, place]]
    return logsumexp(terms, axis=1)


def by_numpy(number: int) -> dict[str, np.ndarray]:
    """Draws from the prior."""
    rng = np.random.default_rng(5)
    rows = {f"{name}_given_class": rng.dirichlet([2.0, 2.0], (number, 2)) for name in "abc"}
    return {"class_probabilities": rng.dirichlet([1.5, 1.5], number), **rows}


def test_densities_and_priors_are_those_of_sums_over_classes() -> None:
    """Catches a class that is left out, and levels looked up in another column's table."""
    draws = {name: np.asarray(leaf, jnp.zeros(()).dtype) for name, leaf in by_numpy(3).items()}
    records = {name: jnp.asarray(EVERY[:, place]) for place, name in enumerate("abc")}
    of_one = lambda one: (MODEL.log_density(one, records), MODEL.log_prior(one))  # noqa: E731
    found, prior = jax.vmap(of_one)(jax.tree.map(jnp.asarray, draws))
    np.testing.assert_allclose(found, log_shares(draws), rtol=1e-4)
    expected = stats.beta(1.5, 1.5).logpdf(draws["class_probabilities"][:, 0])
    for name in "abc":
        expected = expected + stats.beta(2.0, 2.0).logpdf(draws[f"{name}_given_class"][..., 0]).sum(axis=1)
    np.testing.assert_allclose(prior, expected, rtol=1e-3, atol=1e-4)
    outside = {name: jnp.array([0, 2, -1]) for name in "abc"}
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), draws)
    assert np.isfinite(MODEL.log_density(one, outside)).tolist() == [True, False, False]


def exact_means() -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of the probabilities of all combinations, and their errors: every data set, for prior draws."""
    every = np.array([counts for counts in product(range(N + 1), repeat=8) if sum(counts) == N])
    ways = gammaln(N + 1) - gammaln(every + 1).sum(axis=1)
    log_noise = -0.5 * np.square((VALUE - every @ contributions()) / SCALE).sum(axis=1)
    logs = log_shares(by_numpy(20_000))
    weight = np.concatenate([logsumexp(part @ every.T + ways + log_noise, axis=1) for part in np.split(logs, 20)])
    weight = np.exp(weight - logsumexp(weight))
    mean = weight @ np.exp(logs)
    return mean, np.sqrt(np.square(weight) @ np.square(np.exp(logs) - mean))


@pytest.mark.x64
@pytest.mark.parametrize("interweave", [True, False])
def test_the_posterior_is_that_of_all_data_sets(interweave: bool) -> None:
    """From noisy tables to margins of few records: the update draws classes, and the non-centred form others."""
    run = {"num_warmup": 300, "num_samples": 1_500, "progress": False, "imputation": dpjax.imwg()}
    posterior = dpjax.sample(jax.random.key(6), MODEL, release_of(VALUE, N), interweave=interweave, **run)
    draws = posterior.margin("a", "b", "c").draws.reshape(4, -1, 8)
    mean, error = exact_means()
    for place in range(8):
        spread = np.hypot(diagnostics.mcse_mean(draws[..., place]), error[place])
        assert abs(draws[..., place].mean() - mean[place]) < 4 * spread, place


LAWS = {"class_probabilities": stats.beta(1.5, 1.5), "a_given_class": stats.beta(2.0, 2.0)}


class LikeliestClass(LatentClasses):
    """A planted fault: each record has its likeliest class."""

    def draw_classes(self, key: jax.Array, parameters: dict, levels: jax.Array) -> jax.Array:
        del key
        return jnp.argmax(self.log_weights(parameters, levels), axis=0)


@pytest.mark.parametrize("kind", [LatentClasses, LikeliestClass])
def test_the_joint_law_is_invariant(kind: type) -> None:
    """Perfect starts: parameters keep their prior; with the likeliest class in place of a draw they do not."""
    model = kind(MODEL.classes, MODEL.level, MODEL.cells, MODEL.interweaves)
    replicates = perfect_start.run(jax.random.key(11), model, release_of(VALUE, 12), dpjax.imwg(), num_chains=2_000)
    p_values = []
    for name, law in LAWS.items():
        leaf = replicates.parameters[name]
        columns = leaf[:, 0] if leaf.ndim == 2 else leaf[:, 0, 0]
        p_values.append(stats.kstest(columns, law.cdf).pvalue)
    assert (min(p_values) * 2 > perfect_start.REJECT) == (kind is LatentClasses)


def test_local_reports_and_listed_counts_are_possible_and_labels_are_said_to_be_symmetric() -> None:
    """Catches a model that only works with sums."""
    assert "classes can change places" in MODEL.describe()
    run = {"num_warmup": 20, "num_samples": 20, "num_chains": 2, "progress": False}
    channel = dpjax.RandomizedResponse(keep=0.8, num_categories=2)
    answers = {name: (EVERY[:, place], channel) for place, name in enumerate("abc")}
    local = dpjax.sample(jax.random.key(1), MODEL, dpjax.LocalRelease(answers), **run)
    counted = dpjax.sample(jax.random.key(2), MODEL, release_of(VALUE, 12), imputation=dpjax.counts(), **run)
    for posterior in (local, counted):
        assert posterior.margin("c", given="a").draws.shape == (2, 20, 2, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 1}, "classes"),
        ({"classes": 2, "class_concentration": [1.0, 1.0, 1.0]}, "class_concentration"),
        ({"classes": 2, "level_concentration": 0.0}, "level_concentration"),
        ({"classes": 2, "level_concentration": [1.0, 1.0]}, "level_concentration"),
        ({"domain": {"a": 1}, "classes": 2}, r"domain\['a'\]"),
    ],
)
def test_bad_input_is_named(options: dict, message: str) -> None:
    """Each refusal of its own."""
    with pytest.raises((TypeError, ValueError), match=message):
        models.latent_classes(**({"domain": SIZES} | options))
