"""The Normal component behind Gaussian noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax import mixture
from tests.mixture.components.cases import CUT, NOISE, TRUNCATED


def test_the_evidence_behind_gaussian_noise_is_the_integral() -> None:
    """Two released values: the formula against quadrature over the cluster's parameters."""
    values = np.array([0.4, 2.5])
    features = jax.vmap(TRUNCATED.features)(jnp.asarray(values, float))
    found = float(TRUNCATED.log_evidence(jnp.array([2.0]), features.sum(axis=0)[None])[0])

    def given_variance(variance: float) -> float:
        covariance = variance * (np.eye(2) + 1 / 0.5)
        return stats.multivariate_normal(np.full(2, 0.5), covariance).pdf(values) * stats.invgamma.pdf(
            variance, 2.0, scale=1.5
        )

    exact = integrate.quad(given_variance, NOISE**2, np.inf)[0] / CUT
    assert found == pytest.approx(np.log(exact), rel=1e-4)


def test_the_base_measure_of_released_values_needs_gaussian_noise() -> None:
    base = mixture.TruncatedNormalInverseGamma(0.5, 0.5, 2.0, 1.5)
    with pytest.raises(TypeError, match=r"^channel: given Laplace"):
        mixture.sample(jax.random.key(0), np.zeros(3), dpjax.Laplace(1.0), component=base, concentration=1.0)
    with pytest.raises(ValueError, match=r"^shape: given"):
        mixture.TruncatedNormalInverseGamma(0.5, 0.5, 0.9, 1.5)
