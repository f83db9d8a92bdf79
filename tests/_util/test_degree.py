"""Of what degree results are in an argument: those of functions that are known to be polynomials or not."""

import jax
import jax.numpy as jnp
import pytest
from jax.scipy.stats import norm

from dpjax._util.degree import degrees_in
from dpjax.numerics.linear_algebra import solve_lower

POLYNOMIALS = [
    (lambda x, t: 3 * t + jnp.exp(t), 0),
    (lambda x, t: jnp.sum(jnp.exp(t) * x[::-1]) - x / t, 1),
    (lambda x, t: norm.logpdf(x, t, 2.0), 2),
    (lambda x, t: jax.jit(lambda a: a * x + t)(x**2), 3),
    (lambda x, t: jnp.where(t > 0, x, x * x), 2),
    (lambda x, t: solve_lower(jnp.diag(t), x[:, None])[:, 0] ** 2, 2),
    (lambda x, t: jnp.where(jnp.isfinite(x) & (x == x), x, -jnp.inf), 1),
]
OTHERS = [
    lambda x, t: jnp.abs(x),
    lambda x, t: jnp.where(x > t, x, t),
    lambda x, t: jnp.maximum(x, 50.0),
    lambda x, t: t / x,
    lambda x, t: solve_lower(jnp.diag(x), t[:, None])[:, 0],
    lambda x, t: jnp.log1p(x * x),
    lambda x, t: t[x.astype(int)],
    lambda x, t: jax.lax.fori_loop(0, 3, lambda _, carry: carry * x, t),
]


@pytest.mark.x64
@pytest.mark.parametrize(("function", "degree"), POLYNOMIALS)
def test_polynomials_have_their_degree(function, degree):
    assert degrees_in(function, jnp.ones(3), jnp.ones(3)) == [degree]


@pytest.mark.x64
@pytest.mark.parametrize("function", OTHERS)
def test_of_functions_with_kinks_and_others_none_is_known(function):
    """Catches a hinge that is taken for a line, as its second derivative is 0 wherever it has one."""
    assert degrees_in(function, jnp.ones(3), jnp.ones(3)) == [jnp.inf]
