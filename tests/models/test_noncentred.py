"""The noise of the non-centred forms: its law, and that it does not depend on the parameters."""

import jax
import numpy as np
import pytest
from scipy import stats

from tests.models.cases import FREE_NOISE, LEARNED
from tests.models.replicates import NUM_REPLICATES, WRONG_NOISES, noises

NAMES = [name for name in FREE_NOISE if name in LEARNED]


LAWS = {"normal": stats.norm, "regression": stats.norm, "exponential": stats.expon}


REJECT = 1e-4


def noise_p_value(name: str, noise: jax.Array) -> float:
    """The smallest p-value that the noise has its law and no correlation with the parameters, corrected."""
    law = LAWS.get(name.split(",")[0], stats.uniform)
    values, points = np.asarray(noise, np.float64), np.asarray(noises(name).points, np.float64)
    ranks = law.cdf(values) - 0.5
    # Means over a replicate's records of the ranks and of their squares, scaled to unit variance.
    scores = np.sqrt(values.shape[1]) * np.stack([ranks * np.sqrt(12), (ranks**2 - 1 / 12) * np.sqrt(180)]).mean(axis=2)
    standardized = (points - points.mean(axis=0)) / points.std(axis=0)
    correlations = scores @ standardized / np.sqrt(NUM_REPLICATES)
    p_values = [stats.kstest(column, law.cdf).pvalue for column in values.T]
    p_values += [*2 * stats.norm.sf(np.abs(correlations)).ravel()]
    return min(p_values) * len(p_values)


@pytest.mark.x32
@pytest.mark.parametrize("name", NAMES)
def test_noise_is_free_of_the_parameters(name: str) -> None:
    assert noise_p_value(name, noises(name).noise) > REJECT


@pytest.mark.parametrize("name", WRONG_NOISES)
def test_wrong_noise_is_found(name: str) -> None:
    assert noise_p_value(name, noises(name).wrong_noise) < REJECT
