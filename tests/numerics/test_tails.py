"""The tail of the standard Normal distribution and its inverse, far out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from dpjax.numerics.tails import log_mills, normal_excess

jitted_excess = jax.jit(normal_excess)


@pytest.mark.x64
def test_mills_ratio_matches_scipy():
    threshold = np.concatenate([np.linspace(-30, 30, 121), [9.999, 10.001, 1e3, 1e8]])
    expected = np.log(special.erfcx(threshold / np.sqrt(2))) + np.log(np.pi / 2) / 2
    np.testing.assert_allclose(jax.jit(log_mills)(jnp.asarray(threshold)), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.x64)])
@pytest.mark.parametrize("exponential", [1e-3, 0.7, 6.0, 40.0])
def test_excess_inverts_the_survival_function(dtype, exponential):
    """P(X > c + e) = exp(-exponential) P(X > c), in log space; thirty standard deviations out is nothing special."""
    threshold = jnp.array([-300.0, -30.0, -3.0, 0.0, 1.99, 2.01, 9.99, 10.01, 30.0], dtype)
    excess = jitted_excess(jnp.full_like(threshold, exponential), threshold)
    start, end = np.asarray(threshold, float), np.asarray(threshold, float) + np.asarray(excess, float)
    log_ratio = special.log_ndtr(-end) - special.log_ndtr(-start)
    rtol, atol = (1e-10, 1e-12) if dtype == jnp.float64 else (1e-5, 1e-5)
    # Rounding of c + e moves the log-ratio by (c + e) eps |c|; inversion in float32 is as good as that.
    slack = np.finfo(dtype).eps * (np.maximum(end, 0) + 1) * np.abs(start)
    assert np.all(np.abs(log_ratio + exponential) <= atol + rtol * exponential + slack)


def test_excess_is_finite_and_not_negative_at_the_ends():
    threshold = jnp.array([-1e6, -9.0, 0.0, 5.0, 1e6], jnp.float32)
    for exponential in (0.0, 1e-9, 100.0):
        excess = jitted_excess(jnp.full_like(threshold, exponential), threshold)
        assert np.all(np.isfinite(excess))
        assert np.all(excess >= 0)
