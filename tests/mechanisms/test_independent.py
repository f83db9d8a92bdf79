"""Mechanisms side by side: the law of each on its own coordinates, and only those abilities that all have."""

import pickle

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from dpjax.mechanisms import (
    Censored,
    DiscreteLaplace,
    Gaussian,
    Independent,
    Laplace,
    Privacy,
    RandomizedResponse,
    SmoothedHistogram,
)
from dpjax.mechanisms.base import Mechanism, parts_of
from dpjax.mechanisms.composite import merge_parts, temper_mechanism
from dpjax.release import Release


class Cauchy:
    """A user's mechanism of two methods, which JAX cannot look into."""

    def log_density(self, value, statistic):
        return jnp.sum(jax.scipy.stats.cauchy.logpdf(value, statistic, 2.0))

    def sample(self, key, statistic):
        return statistic + 2.0 * jax.random.cauchy(key, statistic.shape)


SCALES = jnp.array([0.5, 2.0])
NOISE = Independent([Laplace(SCALES), DiscreteLaplace(1.5), Gaussian(0.7)], [2, 3, 1])
TERMS = Independent([Laplace(SCALES), Censored(DiscreteLaplace(1.5), lower=jnp.zeros(3)), Gaussian(0.7)], [2, 3, 1])
PLAIN = Independent([Laplace(SCALES), Cauchy(), Gaussian(0.7)], [2, 3, 1])
KINDS = {"noise": NOISE, "terms": TERMS, "plain": PLAIN}
VALUE, STATISTIC = jnp.array([0.3, -1.2, 4.0, 0.0, 2.0, 7.1]), jnp.array([1.0, 0.0, 2.0, 1.0, 2.0, 6.0])


def by_part(mechanism, value, statistic):
    return sum(part.log_density(value[where], statistic[where]) for part, where in parts_of(mechanism, 6))


@pytest.mark.parametrize("name", KINDS)
def test_has_what_all_parts_have(name):
    mechanism = KINDS[name]
    assert isinstance(mechanism, Mechanism)
    assert mechanism.parts is not None
    assert (mechanism.noise is not None) == (name == "noise")
    assert mechanism._is_elementwise == (name != "plain")
    assert mechanism._can_sample
    assert mechanism.tails is None
    assert not mechanism.integer_noise
    assert Independent([DiscreteLaplace(1.0), Censored(DiscreteLaplace(2.0), lower=0.0)], [1, 1]).integer_noise


def test_parts_and_their_coordinates():
    assert parts_of(NOISE, 6)[1] == (NOISE.mechanisms[1], slice(2, 5))
    assert [where for _, where in parts_of(NOISE, 6)] == [slice(0, 2), slice(2, 5), slice(5, 6)]
    plain = Laplace(2.0)
    assert parts_of(plain, 4) == ((plain, slice(0, 4)),)


@pytest.mark.parametrize("name", KINDS)
def test_the_density_is_the_product_of_those_of_the_parts(name):
    mechanism = KINDS[name]
    expected = by_part(mechanism, VALUE, STATISTIC)
    np.testing.assert_allclose(jax.jit(mechanism.log_density)(VALUE, STATISTIC), expected, rtol=1e-6)
    # Scales [d] meet values [..., d], as in any mechanism.
    with jax.numpy_rank_promotion("allow"):
        if mechanism._is_elementwise:
            rows = jnp.stack([VALUE, STATISTIC])[:, None]
            terms = mechanism.log_density_terms(rows, jnp.broadcast_to(STATISTIC, rows.shape))
            assert terms.shape == (2, 1, 6)
            np.testing.assert_allclose(jnp.sum(terms[0, 0]), expected, rtol=1e-6)
        if mechanism.noise is not None:
            noise = mechanism.noise.log_density((VALUE - STATISTIC)[None])
            np.testing.assert_allclose(jnp.sum(noise, axis=1)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_densities_of_columns(name):
    release = Release(VALUE, KINDS[name], lambda record: record["y"], 5)
    residuals = jnp.round(5 * jax.random.normal(jax.random.key(1), (6, 6)))  # as many columns as rows
    expected = [by_part(release.mechanism, VALUE, VALUE - column) for column in residuals.T]
    np.testing.assert_allclose(release.log_densities_at(residuals), expected, rtol=1e-5)
    np.testing.assert_allclose([release.log_density_at(column) for column in residuals.T], expected, rtol=1e-5)
    assert not np.allclose(release.log_densities_at(residuals), release.log_densities_at(residuals.T))


@pytest.mark.x32
@pytest.mark.parametrize("name", KINDS)
def test_draws_are_those_of_the_parts(name):
    mechanism = KINDS[name]
    draws = jax.jit(jax.vmap(mechanism.sample, in_axes=(0, None)))(jax.random.split(jax.random.key(2), 500), STATISTIC)
    keys = jax.vmap(lambda key: jax.random.split(key, 3))(jax.random.split(jax.random.key(2), 500))
    for place, (part, where) in enumerate(parts_of(mechanism, 6)):
        expected = jax.vmap(part.sample, in_axes=(0, None))(keys[:, place], STATISTIC[where])
        np.testing.assert_allclose(draws[:, where], expected, rtol=1e-6)


def test_neighbours_of_one_family_become_one_part():
    """With a number for each coordinate, in place of a program that has each part: fourteen tables are one part."""
    promised = Laplace(2.0, privacy=Privacy("pure", "replace-one", epsilon=1.0))
    many = Independent(
        [Laplace(SCALES), promised, Gaussian(0.7), Gaussian(0.7), Cauchy(), Laplace(1.0)], [2, 1, 1, 2, 1, 1]
    )
    merged = merge_parts(many)
    assert [(type(part).__name__, size) for part, size in merged.parts][:2] == [("Laplace", 3), ("Gaussian", 3)]
    assert [size for _, size in merged.parts] == [3, 3, 1, 1]
    value, statistic = jnp.arange(8.0), jnp.cos(jnp.arange(8.0))
    np.testing.assert_allclose(merged.log_density(value, statistic), many.log_density(value, statistic), rtol=1e-6)
    assert isinstance(merge_parts(Independent([Laplace(1.0), Laplace(1.0)], [2, 1])), Laplace)
    assert merge_parts(NOISE) is NOISE
    assert merge_parts(Gaussian(1.0)) == Gaussian(1.0)


@pytest.mark.parametrize("name", KINDS)
def test_powers_are_taken_by_part(name):
    tempered = temper_mechanism(KINDS[name], jnp.array(0.3))
    assert type(tempered) is type(KINDS[name])
    expected = 0.3 * KINDS[name].log_density(VALUE, STATISTIC)
    np.testing.assert_allclose(tempered.log_density(VALUE, STATISTIC), expected, rtol=1e-6)
    residuals = jnp.round(5 * jax.random.normal(jax.random.key(1), (6, 4)))
    plain, powers = (Release(VALUE, one, lambda record: record["y"], 5) for one in (KINDS[name], tempered))
    np.testing.assert_allclose(powers.log_densities_at(residuals), 0.3 * plain.log_densities_at(residuals), rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_is_a_pytree_that_compiles_once_for_all_scales(name):
    mechanism = KINDS[name]
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def density(mechanism):
        return mechanism.log_density(VALUE, STATISTIC)

    wider = jax.tree.map(lambda leaf: 2 * leaf, mechanism)
    assert density(mechanism) != density(wider)
    assert jax.tree.structure(wider) == jax.tree.structure(mechanism)
    assert type(wider) is type(mechanism)
    assert [size for _, size in wider.parts] == [2, 3, 1]
    others = [jax.tree.structure(other) for other in KINDS.values() if other is not mechanism]
    others.append(jax.tree.structure(Independent([Laplace(SCALES), DiscreteLaplace(1.5), Gaussian(0.7)], [2, 2, 2])))
    assert jax.tree.structure(mechanism) not in others
    rebuilt = jax.tree.unflatten(jax.tree.structure(mechanism), [object()] * len(jax.tree.leaves(mechanism)))
    assert jax.tree.structure(rebuilt) == jax.tree.structure(mechanism)


@pytest.mark.parametrize("name", KINDS)
def test_copies_are_of_the_same_kind(name):
    mechanism = pickle.loads(pickle.dumps(KINDS[name]))
    assert type(mechanism) is type(KINDS[name])
    assert mechanism.sizes == (2, 3, 1)
    assert mechanism.log_density(VALUE, STATISTIC) == KINDS[name].log_density(VALUE, STATISTIC)


def test_parts_within_parts_are_parts_of_the_whole():
    nested = Independent([Laplace(2.0), NOISE], (1, 6))
    assert nested.sizes == (1, 2, 3, 1)
    assert nested.mechanisms[1:] == NOISE.mechanisms


LAPLACE = Laplace(1.0, privacy=Privacy("pure", "replace-one", epsilon=1.0))


@pytest.mark.parametrize(
    ("mechanisms", "sizes", "argument"),
    [
        ([], [], "mechanisms"),
        (LAPLACE, 1, "mechanisms"),
        (None, [1], "mechanisms"),
        ([LAPLACE, Laplace], [1, 1], r"mechanisms\[1\]"),
        ([LAPLACE, 3.0], [1, 1], r"mechanisms\[1\]"),
        ([LAPLACE, SmoothedHistogram(0.5, 3)], [1, 3], r"mechanisms\[1\]"),
        ([RandomizedResponse(0.9, 3), LAPLACE], [1, 3], r"mechanisms\[0\]"),
        ([LAPLACE], [1, 2], "sizes"),
        ([LAPLACE], 1, "sizes"),
        ([LAPLACE, LAPLACE], [1, 0], r"sizes\[1\]"),
        ([LAPLACE, LAPLACE], [1, 1.0], r"sizes\[1\]"),
        ([LAPLACE, NOISE], [1, 5], "sizes"),
    ],
)
def test_bad_parts_are_named(mechanisms, sizes, argument):
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. .+\.$"):
        Independent(mechanisms, sizes)


def test_what_the_parts_promise_together_is_kept():
    promise = Privacy("pure", "replace-one", epsilon=2.0)
    whole = Independent([LAPLACE, LAPLACE], [1, 1], privacy=promise)
    assert whole.privacy == promise == jax.tree.map(lambda leaf: leaf, whole).privacy
    with pytest.raises(TypeError, match=r"^privacy: given 2.0; expected .*\. .+\.$"):
        Independent([LAPLACE, LAPLACE], [1, 1], privacy=2.0)


def test_a_release_checks_each_part():
    cells = statistics.cells("a", 6)
    with pytest.raises(ValueError, match=r"^mechanism: given parts of \[2, 3, 1\] coordinates; expected .*\[5\]"):
        Release(VALUE[:5], NOISE, statistics.cells("a", 5), 5)
    with pytest.raises(ValueError, match=r"^value\[2:5\]: given .*; expected whole numbers"):
        Release(VALUE.at[3].set(0.5), NOISE, cells, 5)
    with pytest.raises(ValueError, match=r"^value\[2:5\]: given .*; expected values from"):
        Release(VALUE.at[3].set(-1.0), TERMS, cells, 5)
    wide = Independent([Laplace(jnp.ones(6)), DiscreteLaplace(1.0)], [2, 4])
    with pytest.raises(ValueError, match=r"^mechanism\.mechanisms\[0\]\.scale: given shape \[6\]; expected .*\[2\]"):
        Release(VALUE, wide, cells, 5)
