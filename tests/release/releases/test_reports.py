"""Reports of single persons: channels by matrix and by likelihoods, against enumeration of each person's category."""

from itertools import combinations, product
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from tests.tools.category_oracle import MODEL, PRIOR, Moments, check

N = 5
MATRIX = np.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.6, 0.1, 0.2], [0.25, 0.0, 0.25, 0.5]])
RUN = {"num_warmup": 300, "num_samples": 4_000, "progress": False}


def exact(likelihood: np.ndarray) -> Moments:
    """Of the probabilities given likelihoods [n, c], by all ways to give each person a category."""
    total, weights, first, second = PRIOR.sum(), [], [], []
    for cells in product(range(3), repeat=len(likelihood)):
        counts, seen = np.zeros(3), 1.0
        for person, cell in enumerate(cells):
            seen *= likelihood[person, cell] * (PRIOR[cell] + counts[cell]) / (total + person)
            counts[cell] += 1
        shape, size = PRIOR + counts, total + len(likelihood)
        weights.append(seen)
        first.append(shape / size)
        second.append(shape * (shape + 1) / (size * (size + 1)))
    weight = np.array(weights) / np.sum(weights)
    mean = weight @ np.array(first)
    return Moments(mean, np.sqrt(weight @ np.array(second) - mean**2))


def log_of(matrix: np.ndarray) -> np.ndarray:
    return np.log(matrix, out=np.full(matrix.shape, -np.inf), where=matrix > 0)


CHANNEL = dpjax.LocalChannel(log_of(MATRIX))
REPORTS = np.array([0, 3, 3, 1, 2])
BITS = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]])
KEEP, FLIP = 0.7, 0.2
HASHES, HASHED = np.array([[0, 1, 1], [2, 0, 1], [1, 1, 1], [2, 2, 0], [0, 2, 1]]), np.array([0, 0, 2, 2, 1])
SUBSETS = np.array(list(combinations(range(3), 2)))


def unary_likelihood() -> np.ndarray:
    """The probability of all bits of a person, in each category."""
    found = np.ones(BITS.shape)
    for cell in range(3):
        chance = np.where(np.arange(3) == cell, KEEP, FLIP)
        found[:, cell] = np.prod(np.where(BITS == 1, chance, 1 - chance), axis=1)
    return found


def hash_likelihood() -> np.ndarray:
    return np.where(HASHED[:, None] == HASHES, 0.6, 0.2)


def subset_matrix(inside: float) -> np.ndarray:
    """Subset selection: a report is a set of two of three categories, with the true one in it with this probability."""
    held = (np.arange(3)[:, None, None] == SUBSETS[None]).any(axis=2)
    return np.where(held, inside / comb(2, 1), (1 - inside) / comb(2, 2))


SIGNS = np.array([[1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
HADAMARD = np.where(SIGNS == 1, 0.7, 0.3) / 2

MEMBERS = np.array([[j in subset for j in range(3)] for subset in SUBSETS], int)
CHANNEL_OF_SUBSETS = dpjax.LocalRelease([0, 2, 1, 1, 0], dpjax.LocalChannel(np.log(subset_matrix(0.8))))
PEOPLE = np.array([0, 1, 1, 0, 2])  # who made each of five reports

CASES = {
    "hadamard": (
        dpjax.releases.hadamard_response([0, 3, 1, 1, 2], keep=0.7, num_categories=3),
        HADAMARD[:, [0, 3, 1, 1, 2]].T,
    ),
    "matrix": (dpjax.LocalRelease(REPORTS, CHANNEL), MATRIX[:, REPORTS].T),
    "unary": (dpjax.releases.unary_encoding(BITS, keep=KEEP, flip=FLIP), unary_likelihood()),
    "hashing": (dpjax.releases.local_hashing(HASHED, HASHES, keep=0.6, num_values=3), hash_likelihood()),
    "subsets": (
        dpjax.releases.subset_selection(MEMBERS[[0, 2, 1, 1, 0]], keep=0.8),
        subset_matrix(0.8)[:, [0, 2, 1, 1, 0]].T,
    ),
    "several each": (
        dpjax.releases.unary_encoding(BITS, keep=KEEP, flip=FLIP, people=PEOPLE),
        np.stack([np.prod(unary_likelihood()[person == PEOPLE], axis=0) for person in range(3)]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_likelihoods(name: str) -> None:
    """Of every person, up to a factor of their own, by the definition of each protocol."""
    release, likelihood = CASES[name]
    found = np.asarray(release.channel.log_probabilities, np.float64)[:, np.asarray(release.values)].T
    expected = log_of(likelihood)
    np.testing.assert_allclose(
        np.exp(found - found.max(axis=1, keepdims=True)),
        np.exp(expected - expected.max(axis=1, keepdims=True)),
        rtol=1e-5,
    )


def test_reports_of_one_person_are_not_those_of_several() -> None:
    """A mutation: as if every report were that of another person."""
    several, apart = CASES["several each"][1], CASES["unary"][1]
    assert np.max(np.abs(exact(several).mean - exact(apart).mean)) > 0.01


def largest_ratio(law: np.ndarray) -> float:
    """Of a law [c, m] of all reports, which sums to 1 in each category: how far two categories can be apart."""
    np.testing.assert_allclose(law.sum(axis=1), 1)
    return float(np.max(np.ptp(np.log(law), axis=0)))


def test_the_promise_is_the_largest_ratio_over_all_reports() -> None:
    every = np.array(list(product([0, 1], repeat=3)))
    chances = np.where(np.eye(3, dtype=bool)[:, None], KEEP, FLIP)
    laws = {
        "unary": np.prod(np.where(every == 1, chances, 1 - chances), axis=2),
        "subsets": subset_matrix(0.8),
        "hadamard": HADAMARD,
        "hashing": np.array([[0.6 if hashed == report else 0.2 for report in range(3)] for hashed in (0, 1, 1)]),
    }
    for name, law in laws.items():
        kept = CASES[name][0].channel.promise.local(1).epsilon
        np.testing.assert_allclose(kept, largest_ratio(law), rtol=1e-5)
    twice = CASES["several each"][0].channel.promise.local(1).epsilon
    np.testing.assert_allclose(twice, 2 * largest_ratio(laws["unary"]), rtol=1e-5)


@pytest.mark.x32
@pytest.mark.parametrize(
    "name",
    [name if name in ("hadamard", "several each") else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_posterior(name: str) -> None:
    release, likelihood = CASES[name]
    posterior = dpjax.sample(jax.random.key(1), MODEL, release, **RUN)
    check(posterior.draws["probabilities"], exact(likelihood))


def test_bits_of_other_categories_left_out_as_they_should_be() -> None:
    """A mutation: the likelihood of a bit without that of its being flipped is another posterior."""
    wrong = np.where(BITS == 1, KEEP, 1 - KEEP)
    assert np.max(np.abs(exact(wrong).mean - exact(unary_likelihood()).mean)) > 0.01


def test_draws() -> None:
    for category, row in enumerate(MATRIX):
        drawn = np.asarray(CHANNEL.sample(jax.random.key(category), jnp.full(20_000, category)))
        counts = np.bincount(drawn, minlength=4)
        assert counts[row == 0].sum() == 0
        assert stats.chisquare(counts[row > 0], 20_000 * row[row > 0]).pvalue > 1e-4


def test_outside_the_matrix_is_impossible() -> None:
    for report, category in ((4, 0), (-1, 0), (0, 3), (0, -1), (1, 2)):
        assert np.isneginf(CHANNEL.log_density(jnp.array(report), jnp.array(category)))


def test_a_channel_by_matrix_is_randomized_response() -> None:
    square = np.array([[0.6, 0.3, 0.1], [0.05, 0.9, 0.05], [0.1, 0.15, 0.75]])
    given = jnp.array([0, 1, 2, 2]), jnp.array([0, 1, 1, 2])
    found = dpjax.LocalChannel(np.log(square)).log_density_terms(*given)
    np.testing.assert_allclose(found, dpjax.RandomizedResponse(matrix=square).log_density_terms(*given), rtol=1e-5)


def test_words_promises_and_text() -> None:
    for release, _ in CASES.values():
        again = dpjax.from_json(release.to_json())
        np.testing.assert_allclose(again.channel.log_probabilities, release.channel.log_probabilities)
        assert again.channel.complete == release.channel.complete
        assert again.channel.largest_ratio == release.channel.largest_ratio
    words = dpjax.describe(CHANNEL_OF_SUBSETS)
    assert "one of 3 possible reports, by its probability in each of 3 categories" in words
    assert f"ε = {np.log(0.4 / 0.2):.4g}" in words
    assert "give them away" in dpjax.describe(CASES["matrix"][0])
    assert "ε = 2.234" in dpjax.describe(CASES["unary"][0])
    unknown = dpjax.releases.likelihoods(np.log(hash_likelihood()))
    assert "Reports that did not occur are not listed" in dpjax.describe(unknown)
    with pytest.raises(TypeError, match=r"^channel: given LocalChannel, which has no `sample`"):
        CASES["unary"][0].sample(jax.random.key(0), {"cell": jnp.zeros(N, int)})
