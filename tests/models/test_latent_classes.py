"""Latent classes: against sums over classes and over all data sets, which NumPy makes on its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax import models
from dpjax.models.latent_classes import LatentClasses
from tests.tools import perfect_start
from tests.tools.three_columns import EVERY, SIZES, VALUE, N, check_means, release_of

MODEL = models.latent_classes(SIZES, 2, class_concentration=1.5, level_concentration=2.0)


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


@pytest.mark.x64
@pytest.mark.parametrize("interweave", [True, False])
def test_the_posterior_is_that_of_all_data_sets(interweave: bool) -> None:
    """From noisy tables to margins of few records: the update draws classes, and the non-centred form others."""
    run = {"num_warmup": 300, "num_samples": 1_500, "progress": False, "imputation": dpjax.imwg()}
    posterior = dpjax.sample(jax.random.key(6), MODEL, release_of(VALUE, N), interweave=interweave, **run)
    draws = posterior.margin("a", "b", "c").draws.reshape(4, -1, 8)
    check_means(draws, log_shares(by_numpy(20_000)))


LAWS = {"class_probabilities": stats.beta(1.5, 1.5), "a_given_class": stats.beta(2.0, 2.0)}


class LikeliestClass(LatentClasses):
    """A planted fault: each record has its likeliest class."""

    def draw_classes(self, key: jax.Array, parameters: dict, levels: jax.Array) -> jax.Array:
        del key
        return jnp.argmax(self.log_weights(parameters, levels), axis=0)


@pytest.mark.parametrize("kind", [LatentClasses, LikeliestClass])
def test_the_joint_law_is_invariant(kind: type) -> None:
    """Perfect starts: parameters keep their prior; with the likeliest class in place of a draw they do not."""
    model = kind(MODEL.classes, MODEL.level, MODEL.cells, MODEL.plan, MODEL.interweaves)
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
