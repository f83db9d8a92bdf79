"""Published numbers against the moments and ratios of the mechanism that they stand for."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Privacy
from dpjax.release import CONVENTIONS, mechanism_from_published

SUPPORT = np.arange(-2_000, 2_001)


def probabilities(mechanism):
    return np.exp(np.asarray(mechanism.log_noise(jnp.asarray(SUPPORT, float)), float))


@pytest.mark.parametrize(
    ("convention", "published", "sensitivity", "expected"),
    [
        ("laplace_scale", 2.0, None, Laplace(2.0)),
        ("laplace_variance", 8.0, None, Laplace(2.0)),
        ("laplace_standard_deviation", 8.0**0.5, None, Laplace(2.0)),
        ("laplace_epsilon", 0.5, 3.0, Laplace(6.0)),
        ("gaussian_standard_deviation", 2.0, None, Gaussian(2.0)),
        ("gaussian_variance", 4.0, None, Gaussian(2.0)),
        ("gaussian_rho", 0.125, 3.0, Gaussian(6.0)),
        ("discrete_laplace_scale", 2.0, None, DiscreteLaplace(2.0)),
        ("discrete_laplace_epsilon", 0.5, 1.0, DiscreteLaplace(2.0)),
        ("geometric_alpha", np.exp(-0.5), None, DiscreteLaplace(2.0)),
        ("discrete_gaussian_scale", 2.0, None, DiscreteGaussian(2.0)),
        ("discrete_gaussian_squared_scale", 4.0, None, DiscreteGaussian(2.0)),
        ("discrete_gaussian_rho", 0.125, 1.0, DiscreteGaussian(2.0)),
    ],
)
def test_each_convention_gives_its_scale(convention, published, sensitivity, expected):
    mechanism = mechanism_from_published(convention, published, sensitivity=sensitivity)
    assert type(mechanism) is type(expected)
    assert mechanism.scale == pytest.approx(expected.scale, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "accuracy", "alpha"),
    [(kind, *place) for kind in ("laplace", "gaussian") for place in ((9.0, 0.05), (0.3, 0.9))]
    + [
        (f"discrete_{kind}", *place) for kind in ("laplace", "gaussian") for place in ((9, 0.05), (1, 0.5), (300, 0.01))
    ],
)
def test_noise_is_beyond_its_accuracy_with_the_probability_that_was_stated(kind, accuracy, alpha):
    """Catches a half width of integer noise that is read by the formula of real noise, and one tail for two."""
    mechanism = mechanism_from_published(f"{kind}_accuracy", accuracy, alpha=alpha)
    scale = float(mechanism.scale)
    if mechanism.integer_noise:
        law = np.exp(-np.abs(SUPPORT) / scale if kind == "discrete_laplace" else -(SUPPORT**2) / (2 * scale**2))
        beyond = law[np.abs(SUPPORT) >= accuracy].sum() / law.sum()
    else:
        beyond = 2 * (stats.laplace if kind == "laplace" else stats.norm).sf(accuracy, scale=scale)
    assert beyond == pytest.approx(alpha, rel=1e-9)


def test_an_accuracy_needs_its_level():
    """Catches a half width that is read at some level by default."""
    with pytest.raises(ValueError, match=r"alpha: given None; expected the alpha\. It is needed for accuracies only"):
        mechanism_from_published("laplace_accuracy", 9.0)
    with pytest.raises(ValueError, match=r"alpha: given 0\.05; expected none, for 'laplace_scale'"):
        mechanism_from_published("laplace_scale", 9.0, alpha=0.05)
    with pytest.raises(ValueError, match=r"published: given .*; expected whole numbers above 0"):
        mechanism_from_published("discrete_gaussian_accuracy", 9.5, alpha=0.05)


def test_every_convention_is_documented():
    assert set(CONVENTIONS) == set(re.findall(r'``"(\w+)"``', mechanism_from_published.__doc__))


@pytest.mark.parametrize("variance", [0.05, 1.0, 40.0])
def test_discrete_laplace_variance_is_that_of_the_law(variance):
    law = probabilities(mechanism_from_published("discrete_laplace_variance", variance))
    assert np.sum(law * SUPPORT**2) == pytest.approx(variance, rel=1e-5)


@pytest.mark.parametrize("variance", [1e-6, 0.05, 1.0, 8.9, 40.0])
@pytest.mark.parametrize("kind", ["discrete_gaussian", "discrete_laplace"])
def test_the_noise_has_the_variance_that_was_published(kind, variance):
    for name, published in (("variance", variance), ("standard_deviation", np.sqrt(variance))):
        law = probabilities(mechanism_from_published(f"{kind}_{name}", published))
        assert np.sum(law * SUPPORT.astype(float) ** 2) == pytest.approx(variance, rel=1e-4)


def test_a_variance_of_no_noise_is_refused():
    with pytest.raises(ValueError, match=r"published: given .*; expected numbers above .* dpjax.Exact"):
        mechanism_from_published("discrete_gaussian_variance", 1e-300)


def test_geometric_alpha_is_the_ratio_of_the_law():
    law = probabilities(mechanism_from_published("geometric_alpha", 0.6))
    middle = len(SUPPORT) // 2
    assert law[middle + 1] / law[middle] == pytest.approx(0.6, rel=1e-5)
    assert law.sum() == pytest.approx(1, rel=1e-5)


def test_one_number_for_each_coordinate():
    privacy = Privacy("pure", "replace-one", epsilon=1.0)
    mechanism = mechanism_from_published("laplace_variance", [2.0, 8.0], privacy=privacy)
    np.testing.assert_allclose(mechanism.scale, [1.0, 2.0], rtol=1e-6)
    assert mechanism.scale.dtype == jnp.result_type(float)
    assert mechanism.privacy == privacy
