"""Noise that leaves zeros as they are: its law, for each kind of noise, and a table against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import mechanisms
from dpjax.mechanisms import KeptZeros

ROUNDED = mechanisms.Rounded(dpjax.Laplace(1.5), step=1.0)
NOISES = {
    "whole": (dpjax.DiscreteLaplace(1.5), True),
    "rounded": (ROUNDED, True),
    "clamped at 0": (mechanisms.Censored(ROUNDED, lower=0.0), True),
    "clamped at 1": (mechanisms.Censored(ROUNDED, lower=1.0), False),
    "real": (dpjax.Laplace(1.5), False),
    "real, clamped at 0": (mechanisms.Censored(dpjax.Laplace(1.5), lower=0.0), True),
    "real, with a scale for each": (dpjax.Laplace([1.5, 2.0]), False),
}
VALUES = np.arange(-60.0, 61.0)


@pytest.mark.parametrize("case", NOISES)
def test_zeros_are_kept_and_other_counts_are_not_taken_for_them(case: str):
    """Catches a real zero that may be another count, and a rounded one that may not."""
    noise, gives_zero = NOISES[case]
    kept = KeptZeros(noise)
    assert (kept.gives_zero, kept.sums.reveals, kept.sums.tells) == (gives_zero, not gives_zero, False)
    terms = kept.log_density_terms(jnp.array([0.0, 2.0]), jnp.array([0.0, 0.0]))
    assert terms.tolist() == [0.0, -np.inf]
    other = kept.log_density_terms(jnp.array([0.0, 2.0]), jnp.array([3.0, 3.0]))
    expected = noise.log_density_terms(jnp.array([0.0, 2.0]), jnp.array([3.0, 3.0]))
    np.testing.assert_allclose(other, np.where([not gives_zero, False], -np.inf, expected))
    least, most = kept.sums.bounds(jnp.array([0.0, 2.0]))
    assert (least.tolist(), most.tolist()) == ([0.0, 1.0], [np.inf if gives_zero else 0.0, np.inf])
    drawn = jax.vmap(lambda key: kept.sample(key, jnp.array([0.0, 3.0])))(jax.random.split(jax.random.key(1), 500))
    assert np.all(np.asarray(drawn[:, 0]) == 0)
    assert np.std(drawn[:, 1]) > 1


@pytest.mark.parametrize("case", ["whole", "rounded", "clamped at 0", "clamped at 1"])
def test_probabilities_add_up_to_one(case: str):
    kept = KeptZeros(NOISES[case][0])
    possible = [value for value in VALUES if "clamped" not in case or value >= float(case[-1]) or value == 0]
    terms = kept.log_density_terms(jnp.asarray(possible), jnp.full(len(possible), 3.0))
    assert np.exp(np.asarray(terms, float)).sum() == pytest.approx(1, abs=1e-5)


def test_values_and_texts_are_those_of_the_noise():
    """Catches a 0 that is refused because the noise is clamped above it, and text that cannot be read back."""
    kept = KeptZeros(NOISES["clamped at 1"][0])
    release = dpjax.LocalRelease([0.0, 4.0], kept, "y")
    assert dpjax.from_json(release.to_json()).channel == kept
    assert "but none on counts of 0" in dpjax.describe(release)
    with pytest.raises(ValueError, match=r"^values: given .*multiples of 1"):
        dpjax.LocalRelease([0.0, 4.5], kept, "y")
    with pytest.raises(TypeError, match=r"^mechanism: given VectorLaplace"):
        KeptZeros(dpjax.VectorLaplace(1.0))


def test_a_table_with_kept_zeros_agrees_with_enumeration():
    """Catches tables whose published zeros move, or in which other cells become empty."""
    value, n = np.array([0.0, 2.0, 6.0]), 9
    release = dpjax.Release(value, KeptZeros(ROUNDED), dpjax.statistics.cells("cell", 3), n)
    model = dpjax.models.categorical(concentration=[1.0, 1.0, 1.0])
    posterior = dpjax.sample(jax.random.key(2), model, release, num_samples=2_000, progress=False)
    table = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    law = stats.laplace(scale=1.5)
    noisy = law.cdf(value - table + 0.5) - law.cdf(value - table - 0.5)
    likelihood = np.where(table == 0, (value == 0) + 0.0, noisy).prod(axis=1)
    # Under a uniform prior of the shares all tables are as likely.
    weight = likelihood / likelihood.sum()
    mean = weight @ ((table + 1) / (n + 3))
    draws = posterior.draws["probabilities"]
    error = draws.std(axis=(0, 1)) / np.sqrt(draws.shape[0] * draws.shape[1] / 8)
    np.testing.assert_array_less(np.abs(draws.mean(axis=(0, 1)) - mean), 4.5 * error)
