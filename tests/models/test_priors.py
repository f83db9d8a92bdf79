"""Draws from the priors."""

import jax
import numpy as np
from scipy import stats

from dpjax.models import GammaPrior, InverseGammaPrior, NormalPrior
from tests.models.cases import INVERSE_GAMMA_COEF, INVERSE_WISHART

NUM_DRAWS = 20_000


REJECT = 1e-4


def smallest(p_values: list[float]) -> float:
    return min(p_values) * len(p_values)


def keys(seed: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), NUM_DRAWS)


def test_priors_take_the_shape_of_their_parameters() -> None:
    assert NormalPrior([1.0, -2.0], 3.0).sample(jax.random.key(49)).shape == (2,)
    assert GammaPrior(2.0, [3.0, 1.0, 2.0]).sample(jax.random.key(49)).shape == (3,)


def test_single_priors() -> None:
    normal = jax.jit(lambda key: NormalPrior([1.0, -2.0], 3.0).sample(key, (NUM_DRAWS, 2)))
    draws = np.asarray(normal(jax.random.key(44)))
    p_values = [stats.kstest(draws[:, i], stats.norm(mean, 3.0).cdf).pvalue for i, mean in enumerate((1.0, -2.0))]
    gamma = jax.jit(lambda key: GammaPrior(2.5, 4.0).sample(key, (NUM_DRAWS,)))(jax.random.key(45))
    p_values.append(stats.kstest(gamma, stats.gamma(2.5, scale=1 / 4.0).cdf).pvalue)
    inverse = jax.jit(jax.vmap(InverseGammaPrior(2.5, 4.0).sample))(keys(46))
    p_values.append(stats.kstest(inverse, stats.invgamma(2.5, scale=4.0).cdf).pvalue)
    assert smallest(p_values) > REJECT


def joint_p_value(precision: np.ndarray) -> float:
    """Whitened coefficients are standard Normal and the variance inverse Gamma, for this prior precision."""
    coef, variance = (
        np.asarray(part) for part in jax.jit(jax.vmap(lambda k: INVERSE_GAMMA_COEF.sample(k, 3)))(keys(47))
    )
    centred = (coef - np.asarray(INVERSE_GAMMA_COEF.mean)) / np.sqrt(variance)[:, None]
    whitened = centred @ np.linalg.cholesky(precision)
    p_values = [stats.kstest(column, stats.norm.cdf).pvalue for column in whitened.T]
    correlations = np.corrcoef(whitened.T)[np.triu_indices(3, 1)]
    p_values += [*2 * stats.norm.sf(np.abs(correlations) * np.sqrt(NUM_DRAWS))]
    p_values.append(stats.kstest(variance, stats.invgamma(4.0, scale=3.0).cdf).pvalue)
    return smallest(p_values)


def test_normal_inverse_gamma_prior() -> None:
    precision = np.asarray(INVERSE_GAMMA_COEF.precision)
    assert joint_p_value(precision) > REJECT
    assert joint_p_value(np.diag(np.diag(precision))) < REJECT


def wishart_p_value(degrees: float) -> float:
    """Marginals of the covariance's inverse and of the whitened mean, and the mean of the covariance."""
    mean, covariance = (np.asarray(part) for part in jax.jit(jax.vmap(INVERSE_WISHART.sample))(keys(48)))
    scale = np.asarray(INVERSE_WISHART.scale)
    diagonal = np.linalg.inv(covariance)[:, [0, 1], [0, 1]] / np.diag(np.linalg.inv(scale))
    centred = (mean - np.asarray(INVERSE_WISHART.mean))[:, :, None]
    whitened = np.linalg.solve(np.linalg.cholesky(covariance / 2.0), centred)[:, :, 0]
    p_values = [stats.kstest(column, stats.chi2(degrees).cdf).pvalue for column in diagonal.T]
    p_values += [stats.kstest(column, stats.norm.cdf).pvalue for column in whitened.T]
    error = covariance[:, 0, 1] - scale[0, 1] / (degrees - 3)
    p_values.append(2 * stats.norm.sf(np.abs(error.mean()) / error.std() * np.sqrt(NUM_DRAWS)))
    return smallest(p_values)


def test_normal_inverse_wishart_prior() -> None:
    assert wishart_p_value(7.0) > REJECT
    assert wishart_p_value(6.0) < REJECT
