"""Noise scales against the definitions of privacy that they must meet."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate

from dpjax.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_scale,
)

BUDGETS = ((0.01, 1e-3), (0.5, 1e-5), (1.0, 1e-6), (5.0, 1e-2), (20.0, 1e-4), (3.0, 0.4))


def integrated_delta(epsilon, scale, sensitivity):
    """δ from its definition: the integral of max(0, p - e^ε q) for neighbouring statistics."""
    # p exceeds e^ε q below this point, so that the integrand is smooth on the half-line.
    end = sensitivity / 2 - epsilon * scale**2 / sensitivity
    noise = np.linspace(end - 40 * scale, end, 400_001)
    log_density = Gaussian(scale).log_noise
    gap = np.exp(log_density(jnp.asarray(noise))) - np.exp(epsilon + log_density(jnp.asarray(noise - sensitivity)))
    return integrate.simpson(np.maximum(np.asarray(gap), 0), x=noise)


@pytest.mark.x64
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.1, 1), (1.0, 3), (8.0, 2)])
def test_laplace_scales_spend_the_whole_budget_and_no_more(epsilon, sensitivity):
    scale = laplace_scale(epsilon, sensitivity)
    for mechanism, noise in ((Laplace, np.linspace(-9, 9, 10_001)), (DiscreteLaplace, np.arange(-20.0, 21.0))):
        built = mechanism(scale)
        ratios = built.log_noise(jnp.asarray(noise)) - built.log_noise(jnp.asarray(noise - sensitivity))
        assert 0.999 * epsilon <= np.abs(ratios).max() <= epsilon * (1 + 1e-12)


@pytest.mark.x64
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_analytic_gaussian_delta_is_reproduced_by_integration(epsilon, delta):
    """Each calibrated scale gives its δ to 1e-6; five in a hundred less noise gives more."""
    sensitivity = 2.5
    scale = gaussian_scale(epsilon, delta, sensitivity)
    np.testing.assert_allclose(integrated_delta(epsilon, scale, sensitivity), delta, rtol=1e-6)
    assert integrated_delta(epsilon, 0.95 * scale, sensitivity) > 1.01 * delta


@settings(max_examples=200, deadline=None)
@given(
    log_epsilon=st.floats(-20, 7),
    log_delta=st.floats(-600, -1e-6),
    sensitivity=st.floats(1e-6, 1e6),
)
def test_gaussian_scale_inverts_the_privacy_profile(log_epsilon, log_delta, sensitivity):
    epsilon, delta = np.exp(log_epsilon), np.exp(log_delta)
    scale = gaussian_scale(epsilon, delta, sensitivity)
    rounding = 1e-11 + 1e-13 * scale / sensitivity
    assert gaussian_delta(epsilon, scale, sensitivity) <= delta * (1 + rounding)
    assert gaussian_delta(epsilon, scale * (1 - 1e-4), sensitivity) > delta * (1 - rounding)


def test_the_classical_formula_breaks_its_promise_at_large_epsilon():
    epsilon, delta = 10.0, 1e-5
    classical = np.sqrt(2 * np.log(1.25 / delta)) / epsilon
    assert gaussian_delta(epsilon, classical, 1.0) > 1.5 * delta
    assert classical < gaussian_scale(epsilon, delta, 1.0)


@pytest.mark.x64
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_zcdp_bounds_the_renyi_divergence_at_every_order(order):
    """D_α(P ‖ Q) = ρ α for Gaussian noise, by integration."""
    rho, sensitivity = 0.3, 4.0
    scale = zcdp_scale(rho, sensitivity)
    noise = np.linspace(-60 * scale, 60 * scale, 400_001)
    built = Gaussian(scale)
    log_p, log_q = (np.asarray(built.log_noise(jnp.asarray(noise - shift))) for shift in (0.0, sensitivity))
    moment = integrate.simpson(np.exp(order * log_p + (1 - order) * log_q), x=noise)
    np.testing.assert_allclose(np.log(moment) / (order - 1), rho * order, rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(rho=st.floats(1e-6, 1e3), sensitivity=st.floats(1e-3, 1e3), log_delta=st.floats(-80, -0.1))
def test_zcdp_conversions(rho, sensitivity, log_delta):
    scale, delta = zcdp_scale(rho, sensitivity), np.exp(log_delta)
    np.testing.assert_allclose(zcdp_rho(scale, sensitivity), rho, rtol=1e-12)
    assert gaussian_delta(zcdp_epsilon(rho, delta), scale, sensitivity) <= delta


def test_zcdp_epsilon_value():
    """ρ = 1/2, δ = e^-8: ε = 1/2 + 2 √4."""
    np.testing.assert_allclose(zcdp_epsilon(0.5, np.exp(-8.0)), 4.5, rtol=1e-12)
