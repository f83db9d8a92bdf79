"""Both tails of continuous distributions in log space, and their derivatives, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dpjax.numerics.incomplete import beta_tails, gamma_tails, normal_tails, student_tails

POSITIVE = np.array([1e-8, 1e-3, 0.3, 1.0, 2.9, 8.0, 50.0, 300.0])
REAL = np.array([-1e5, -50.0, -3.0, -1e-3, 0.0, 0.2, 1.5, 40.0, 1e5])
SHARES = np.array([1e-8, 1e-3, 0.1, 0.5, 0.9, 0.9999])

CASES = {
    "Normal": (normal_tails, REAL[1:-1] / 2, (), stats.norm),
    "Gamma of a small shape": (gamma_tails, POSITIVE, (0.05,), stats.gamma),
    "Gamma": (gamma_tails, POSITIVE, (3.0,), stats.gamma),
    "Student's t of few degrees": (student_tails, REAL, (0.5,), stats.t),
    "Student's t": (student_tails, REAL[2:-2], (30.0,), stats.t),
    "Beta of a small shape": (beta_tails, SHARES, (0.1, 5.0), stats.beta),
    "Beta": (beta_tails, SHARES, (20.0, 2.0), stats.beta),
}


@pytest.mark.parametrize("case", CASES)
def test_both_tails_are_right_at_any_distance(case):
    """Finds a tail that underflows, or is the difference of 1 and the other one; no density at shown numbers does."""
    tails, places, shapes, law = CASES[case]
    value = jnp.asarray(places, float)
    lower, upper = (np.asarray(side, float) for side in tails(value, *(jnp.asarray(one) for one in shapes)))
    close = 1e-11 if value.dtype == jnp.float64 else 5e-5
    np.testing.assert_allclose(lower, law.logcdf(np.asarray(value, float), *shapes), rtol=close, atol=close)
    np.testing.assert_allclose(upper, law.logsf(np.asarray(value, float), *shapes), rtol=close, atol=close)


@pytest.mark.x64
@pytest.mark.parametrize("case", [name for name in CASES if name != "Normal"])
def test_derivatives_in_shapes_are_those_of_differences(case):
    """Finds derivatives that are zero or undefined in a shape: of the first order for NUTS, of the second at modes."""
    tails, places, shapes, law = CASES[case]
    value = jnp.asarray(places[1:-1])

    def total(first: jax.Array) -> jax.Array:
        return jnp.sum(tails(value, first, *(jnp.asarray(one) for one in shapes[1:]))[1])

    def by_scipy(first: float) -> float:
        return float(np.sum(law.logsf(places[1:-1], first, *shapes[1:])))

    step, shape = 1e-3 * shapes[0], jnp.asarray(shapes[0])
    first, second = jax.jvp(jax.grad(total), (shape,), (jnp.ones_like(shape),))
    low, middle, high = (by_scipy(shapes[0] + shift) for shift in (-step, 0.0, step))
    np.testing.assert_allclose(first, (high - low) / (2 * step), rtol=1e-4)
    np.testing.assert_allclose(second, (high - 2 * middle + low) / step**2, rtol=3e-3)


@pytest.mark.x64
def test_the_derivative_in_the_value_is_the_density_by_the_tail():
    """Finds a wrong sign, or NaN where a tail is 0 or 1: at 0 of Student's t, whose square has no slope there."""
    slopes = [jax.grad(lambda x, side=side: student_tails(x, jnp.asarray(3.0))[side])(0.0) for side in (0, 1)]
    np.testing.assert_allclose(slopes, [2 * stats.t.pdf(0.0, 3.0), -2 * stats.t.pdf(0.0, 3.0)], rtol=1e-12)
    far = jax.grad(lambda x: normal_tails(x)[1])(40.0)
    mills = integrate.quad(lambda x: np.exp(-x * 40.0 - x**2 / 2), 0.0, 1.0)[0]
    np.testing.assert_allclose(far, -1 / mills, rtol=1e-9)
