"""Draws from Gamma distributions over all scales of their shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.gamma import draw_log_gamma, draw_raised as draw_without_boost

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
