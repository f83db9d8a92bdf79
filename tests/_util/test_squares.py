"""What a quadratic function squares, by the program that JAX traces: against functions whose squares are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from dpjax._util.squares import replace_squares

X, T = np.array([1.0, -2.0, 0.5]), np.array([0.3, 4.0, 2.0])


@jax.custom_jvp
def halved(t):
    return t / 2


halved.defjvp(lambda given, turned: (halved(*given), 7.0 * turned[0]))

FUNCTIONS = [
    (lambda x: norm.logpdf(x, T, 2.0), [X - T]),
    (lambda x: jax.jit(lambda a: (a - T) ** 2 + a)(3 * x), [3 * X - T]),
    (lambda x: (x + T) * T - jnp.square(x), [X]),
    (lambda x: jnp.where(jnp.isfinite(x), -x * T, 0) + jnp.exp(T), []),
    (lambda x: jnp.sum(jnp.stack([x, x - T]) ** 2, axis=0), [np.stack([X, X - T])]),
    (lambda x: x * (x - T), [None]),
]


@pytest.mark.parametrize(("function", "squared"), FUNCTIONS)
def test_squares_are_found_and_replaced(function, squared):
    """Catches squares of what does not depend on the argument, and those in programs that are called."""
    at = jnp.asarray(X)
    value, found = replace_squares(function, at, None)
    np.testing.assert_allclose(value, function(at), rtol=1e-6)
    assert [one is None for one in found] == [one is None for one in squared]
    for one, expected in zip(found, squared, strict=True):
        if expected is not None:
            np.testing.assert_allclose(one, expected, rtol=1e-6)
    if all(one is not None for one in squared):
        own = [jnp.asarray(one, float) ** 2 for one in squared]
        np.testing.assert_allclose(replace_squares(function, at, own)[0], function(at), rtol=1e-6)


def test_functions_of_other_numbers_keep_their_own_derivatives():
    slope = jax.grad(lambda t: replace_squares(lambda x: x**2 + halved(t), jnp.ones(()), None)[0])(1.0)
    assert slope == 7.0
