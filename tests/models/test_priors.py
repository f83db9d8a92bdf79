"""Draws from the priors, and from Gamma laws over all scales of their shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.models import GammaPrior, InverseGammaPrior, NormalPrior
from dpjax.numerics.dirichlet import draw_dirichlet
from dpjax.numerics.gamma import draw_log_gamma, draw_raised as draw_without_boost
from tests.models.cases import INVERSE_GAMMA_COEF, INVERSE_WISHART

NUM_DRAWS = 20_000
REJECT = 1e-4
SHAPES = [0.02, 0.5, 1.0, 2.5, 100.0, 1e6]


def smallest(p_values: list[float]) -> float:
    return min(p_values) * len(p_values)


def gamma_p_value(draw: object, shapes: list[float], dtype: type) -> float:
    table = jnp.broadcast_to(jnp.asarray(shapes, dtype)[:, None], (len(shapes), NUM_DRAWS))
    logs = np.asarray(jax.jit(draw)(jax.random.key(41), table), np.float64)
    return smallest(
        [stats.kstest(row, stats.loggamma(shape).cdf).pvalue for row, shape in zip(logs, shapes, strict=True)]
    )


@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.x64), np.float32])
def test_log_gamma_draws(dtype: type) -> None:
    assert gamma_p_value(draw_log_gamma, SHAPES, dtype) > REJECT


def test_gamma_draws_of_a_raised_shape_are_found() -> None:
    assert gamma_p_value(draw_without_boost, [1.02], np.float32) > REJECT
    assert gamma_p_value(lambda key, shape: draw_without_boost(key, shape + 1), [0.02], np.float32) < REJECT


def test_gamma_draws_differ_between_entries_and_keys() -> None:
    shape = jnp.full((4, 5), 2.0)
    one, other = (np.asarray(draw_log_gamma(key, shape)) for key in jax.random.split(jax.random.key(42)))
    assert np.unique(np.concatenate([one, other])).size == 40


def test_dirichlet_rows_follow_their_own_concentrations() -> None:
    concentration = jnp.asarray([[0.5, 1.0, 2.0], [3.0, 0.2, 1.0]])
    draws = jax.jit(jax.vmap(lambda key: draw_dirichlet(key, concentration)))(keys(43))
    laws = np.asarray(concentration)
    p_values = [
        stats.kstest(draws[:, i, j], stats.beta(laws[i, j], laws[i].sum() - laws[i, j]).cdf).pvalue
        for i in range(2)
        for j in range(3)
    ]
    assert smallest(p_values) > REJECT


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
