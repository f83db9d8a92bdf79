"""The Laplace channel keeps its promise, and the marginal of a Normal value is the integral."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from tests.conftest import FLOAT32
from tests.mechanisms.losses import largest_loss

EPSILON = 2.0


ROUNDING = 1e-4 if FLOAT32 else 1e-9


def test_the_laplace_channel_keeps_its_promise() -> None:
    channel = dpjax.Laplace(dpjax.laplace_scale(EPSILON, 3.0))
    loss = largest_loss(channel, np.linspace(-1, 2, 31), jnp.linspace(-5, 6, 111))
    assert 0.9 * EPSILON <= loss <= EPSILON + ROUNDING


@pytest.mark.parametrize("mechanism", [dpjax.Laplace, dpjax.Gaussian])
def test_the_marginal_of_a_normal_value_is_the_integral(mechanism: type) -> None:
    noise = stats.laplace if mechanism is dpjax.Laplace else stats.norm
    density = jax.jit(lambda value, mean, scale, width: mechanism(width).noise.log_marginal_normal(value, mean, scale))
    for value, mean, scale, width in ((0.3, 0.0, 1.0, 1.0), (-4.0, 1.0, 0.5, 2.0), (9.0, 0.0, 1.5, 0.4)):

        def integrand(y: float, value=value, mean=mean, scale=scale, width=width) -> float:
            return noise.pdf(value, y, width) * stats.norm.pdf(y, mean, scale)

        exact = integrate.quad(integrand, -30, 30, points=[value, mean], limit=400)[0]
        found = float(jnp.exp(density(*map(float, (value, mean, scale, width)))))
        assert found == pytest.approx(exact, rel=1e-4 if FLOAT32 else 1e-8)
    far = density(300.0, 0.0, 1.0, 0.5)  # far out only the noise reaches
    if mechanism is dpjax.Laplace:
        assert float(far) == pytest.approx(-600 + 2.0, rel=1e-6)  # e^(v / 2b²) e^(-d/b) / (2b), b = 1/2
    assert np.isfinite(float(density(1e6, 0.0, 1.0, 1e-3)))


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: dpjax.HaarWavelet(-1.0, 2), "scale"),
        (lambda: dpjax.HaarWavelet(1.0, 2.5), "resolution"),
        (lambda: dpjax.mechanisms.haar_scale(1.0, 2, "loose"), "calibration"),
        (lambda: dpjax.mechanisms.haar_scale(0.0, 2), "epsilon"),
        (lambda: dpjax.SmoothedHistogram(0.0, 5), "weight"),
        (lambda: dpjax.SmoothedHistogram(0.5, 0), "num_draws"),
        (lambda: dpjax.mechanisms.smoothing_weight(1.0, 5, 0, 10), "num_bins"),
    ],
)
def test_unusable_channels_are_refused(build, argument: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^{argument}: given"):
        build()
