"""Convolutions, and their gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics.convolution import convolve


@pytest.mark.x64
def test_sums_of_products_are_convolutions_with_their_gradient():
    rng = np.random.default_rng(0)
    one, other = rng.random(50), rng.random(40)
    whole = np.concatenate([np.zeros(5), np.convolve(one, other), np.zeros(10)])
    for start, size in ((0, 89), (30, 5), (88, 1), (-2, 6), (86, 6)):
        np.testing.assert_allclose(convolve(one, other, jnp.array(start), size), whole[start + 5 :][:size], rtol=1e-12)
    weights = rng.random(20)

    def by_rows(one: Any, other: Any) -> Any:
        return jnp.sum(weights * jnp.log(1 + jnp.convolve(one, other)[30:50]))

    def found(one: Any, other: Any) -> Any:
        return jnp.sum(weights * jnp.log(1 + convolve(one, other, jnp.array(30), 20)))

    for mine, right in zip(jax.grad(found, (0, 1))(one, other), jax.grad(by_rows, (0, 1))(one, other), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(jax.hessian(found)(one, other), jax.hessian(by_rows)(one, other), rtol=1e-9, atol=1e-13)
