"""Quotients of whole noisy sums: probabilities against sums over all pairs, draws, posteriors, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import WholeQuotient
from tests.conftest import FLOAT32
from tests.tools.category_oracle import MODEL, check, moments

N = 7
NUMERATOR, DENOMINATOR = statistics.grouped("cell", [-1, -1, 0]), statistics.grouped("cell", [-1, 0, 0])
NOISES = {"Gaussian": dpjax.DiscreteGaussian, "Laplace": dpjax.DiscreteLaplace}
KINDS = [(top, bottom) for top in NOISES for bottom in NOISES]
WHOLE = np.arange(-6_000, 6_001)


def log_law(kind, scale):
    """The log-probability of integer noise at whole numbers, normalised over many of them."""
    terms = -np.abs(WHOLE) / scale if kind == "Laplace" else -(WHOLE**2) / (2 * scale**2)
    constant = special.logsumexp(terms)
    return lambda noise: (-np.abs(noise) / scale if kind == "Laplace" else -(noise**2) / (2 * scale**2)) - constant


def log_probability(kind, fraction, sums, scales):
    """The sum over all multiples of a fraction."""
    top, bottom = (log_law(name, scale) for name, scale in zip(kind, scales, strict=True))
    multiples = WHOLE[WHOLE != 0].astype(float)
    terms = top(multiples * fraction[0] - sums[0]) + bottom(multiples * fraction[1] - sums[1])
    return float(special.logsumexp(terms))


PLACES = [
    ((2, 1), (80, 40), (4.0, 1.0)),
    ((81, 40), (80, 39), (4.0, 3.0)),
    ((0, 1), (2, 5), (1.0, 2.0)),
    ((-3, 1), (2, 1), (1.0, 1.0)),
    ((1, 1), (40, 0), (1.0, 1.0)),
    ((1, 1), (700, 300), (2.0, 2.0)),
    ((3, 7), (1, 0), (2.0, 9.0)),
    ((50, 1), (3, 500), (5.0, 20.0)),
    ((1, 2), (-4, -9), (0.4, 30.0)),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_probability(kind):
    """Catches a piece of the sum that is forgotten: between kinks far apart, beside 0, for negative denominators."""
    found = []
    for fraction, sums, scales in PLACES:
        mechanism = WholeQuotient(*(NOISES[name](scale) for name, scale in zip(kind, scales, strict=True)))
        found.append(float(mechanism.log_density(jnp.array(fraction, float), jnp.array(sums, float))))
    expected = [log_probability(kind, *place) for place in PLACES]
    np.testing.assert_allclose(found, expected, rtol=1e-5 if FLOAT32 else 1e-10, atol=1e-5 if FLOAT32 else 1e-12)


@pytest.mark.parametrize("kind", KINDS[1:], ids=str)
def test_draws_are_fractions_in_lowest_terms_with_those_probabilities(kind):
    """Catches draws that are not reduced, and a probability that is no probability."""
    mechanism = WholeQuotient(NOISES[kind[0]](1.0), NOISES[kind[1]](0.7))
    sums = jnp.array([3.0, 4.0])
    drawn = np.asarray(jax.vmap(mechanism.sample, (0, None))(jax.random.split(jax.random.key(2), 20_000), sums))
    drawn = drawn[drawn[:, 1] > 0]
    assert np.all(np.gcd(*drawn.astype(int).T) == 1)
    fractions, found = np.unique(drawn, axis=0, return_counts=True)
    density = jax.jit(jax.vmap(mechanism.log_density, (0, None)))
    law = np.exp(np.asarray(density(jnp.asarray(fractions), sums), float))
    zero = np.exp(log_law(kind[1], 0.7)(-4.0))
    often = law > 2e-4
    expected = law[often] / (1 - zero) * len(drawn)
    rest = len(drawn) - expected.sum()
    counts = np.append(found[often], len(drawn) - found[often].sum())
    assert stats.chisquare(counts, np.append(expected, rest)).pvalue > 1e-4


def release_of(kind, value=(2 / 3,)):
    noises = {"numerator_noise": NOISES[kind[0]](0.9), "denominator_noise": NOISES[kind[1]](0.8)}
    return dpjax.releases.quotient(list(value), NUMERATOR, DENOMINATOR, **noises, n=N)


def test_posterior_is_that_of_an_enumeration_of_all_tables():
    """Catches a quotient that is read as another fraction, or as a real number with a density."""
    kind = ("Laplace", "Laplace")
    release = release_of(kind)
    assert release.value.tolist() == [2.0, 3.0]
    run = {"num_warmup": 300, "num_samples": 2_000, "progress": False}
    posterior = dpjax.sample(jax.random.key(1), MODEL, release, imputation=dpjax.imwg(), **run)
    scales = (0.9, 0.8)

    def exact(table):
        return log_probability(kind, (2, 3), (float(table[2]), float(table[1] + table[2])), scales)

    check(posterior.draws["probabilities"], moments(exact, [N]))
    again = dpjax.from_json(release.to_json())
    assert again.mechanism == release.mechanism
    assert "discrete Laplace of scale 0.9" in dpjax.describe(release)


def test_quotients_that_are_none_of_whole_numbers_are_refused_or_said():
    """Catches a rounded mean that is taken for a fraction of another denominator, and real noise beside whole noise."""
    with pytest.raises(ValueError, match=r"value: given 0.31830988618\d*; expected a quotient of whole numbers"):
        release_of(KINDS[3], [0.3183098861837907])
    with pytest.warns(UserWarning, match="value: 0.31 has few decimals, and is taken to be 31/100"):
        release_of(KINDS[3], [0.31])
    assert release_of(KINDS[3], [1234567 / 98765]).value.tolist() == [1234567.0, 98765.0]
    with pytest.raises(TypeError, match="numerator: given DiscreteLaplace"):
        dpjax.releases.quotient(
            [0.5],
            NUMERATOR,
            DENOMINATOR,
            numerator_noise=dpjax.DiscreteLaplace(1.0),
            denominator_noise=dpjax.Laplace(1.0),
            n=N,
        )
    mechanism = WholeQuotient(dpjax.DiscreteLaplace(1.0), dpjax.DiscreteLaplace(1.0))
    with pytest.raises(ValueError, match=r"value: given .*; expected numerators, then denominators, in lowest terms"):
        dpjax.Release([2.0, 4.0], mechanism, statistics.stacked(NUMERATOR, DENOMINATOR), N)
