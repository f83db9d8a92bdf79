"""Many records: the sum taken to be Normal, and counts."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax import models, statistics
from dpjax.likelihood.intervals import lay_path

N, MEAN = 100_000, 0.13
MODEL = models.normal(models.NormalPrior(0.0, 2.0), variance=1.0)
TOTAL = statistics.total("y", -20.0, 20.0)


def fit(release: dpjax.Release, model: dpjax.Model = MODEL, **settings):
    return dpjax.maximum_likelihood(jax.random.key(1), model, release, progress=False, **settings)


@pytest.fixture(scope="module")
def gaussian():
    return fit(dpjax.Release([MEAN * N], dpjax.Gaussian(300.0), TOTAL, N))


@pytest.mark.x32
def test_normal_noise_in_closed_form(gaussian) -> None:
    spread = np.sqrt(N + 300.0**2)
    assert gaussian.method == "the sum taken to be Normal"
    assert gaussian.estimate["mean"] == pytest.approx(MEAN, abs=1e-3 * spread / N)
    assert gaussian.standard_errors["mean"] == pytest.approx(spread / N, rel=1e-3)
    assert gaussian.log_likelihood == pytest.approx(stats.norm.logpdf(0, 0, spread), abs=1e-3)
    assert gaussian.log_likelihood_error == gaussian.mcse_estimate["mean"] == 0.0


def test_profile_and_wald_agree_where_the_likelihood_is_normal(gaussian) -> None:
    wald, profile = (gaussian.confidence_interval(0.95, method) for method in ("wald", "profile"))
    width = gaussian.standard_errors["mean"]
    assert profile.lower["mean"] == pytest.approx(wald.lower["mean"], abs=0.01 * width)
    assert profile.upper["mean"] == pytest.approx(wald.upper["mean"], abs=0.01 * width)


def test_a_constant_has_a_profile_of_one_value() -> None:
    """No other profile has a quantity that does not vary: of x ~ N(0, 1), it is beside x and x², which is flat at 0."""

    def natural(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = vectors[..., :1]
        return np.concatenate([x, 0 * x, x**2], axis=-1), np.stack([x**0, 0 * x, 2 * x], axis=-2)

    fitted = SimpleNamespace(vectors=np.zeros((1, 1)), solution=SimpleNamespace(covariance=np.ones((1, 1, 1))))
    path = lay_path(SimpleNamespace(natural=natural), fitted, 1.645)
    ends = path.find_ends(np.zeros(3), -path.held, 1.645**2 / 2)
    np.testing.assert_allclose(ends, [[-1.645, 1.645], [0, 0], [-np.inf, np.inf]], atol=1e-3)


@pytest.mark.x32
def test_laplace_noise_by_quadrature() -> None:
    """log p(s | mean) is one integral over the noise; its second difference is the information."""
    scale, value = 400.0, MEAN * N
    found = fit(dpjax.Release([value], dpjax.Laplace(scale), TOTAL, N))
    grid = np.linspace(-40 * scale, 40 * scale, 400_001)

    def density(shift: float) -> float:
        return integrate.simpson(stats.laplace.pdf(grid, 0, scale) * stats.norm.pdf(grid, shift, np.sqrt(N)), x=grid)

    step = 50.0
    second = (np.log(density(step)) + np.log(density(-step)) - 2 * np.log(density(0.0))) / step**2
    assert abs(found.estimate["mean"] - MEAN) < 0.05 * found.standard_errors["mean"]
    assert found.standard_errors["mean"] == pytest.approx(np.sqrt(-1 / second) / N, rel=0.05)
    assert found.log_likelihood == pytest.approx(np.log(density(0.0)), abs=max(0.01, 5 * found.log_likelihood_error))


@pytest.mark.x64
def test_a_table_of_many_records() -> None:
    counted = np.array([20_000.0, 30_000.0, 50_000.0])
    release = dpjax.Release(counted, dpjax.DiscreteGaussian(50.0), statistics.cells("cell", 3), N)
    found = fit(release, models.categorical(np.ones(3)))
    shares = counted / N
    # Given that the counts add up to n the noise of each share is 50² · 2/3 in place of 50².
    errors = np.sqrt(shares * (1 - shares) / N + 50.0**2 * (2 / 3) / N**2)
    assert found.method == "imputation of counts"
    assert np.max(np.abs(found.estimate["probabilities"] - shares) / errors) < 0.15
    np.testing.assert_allclose(found.standard_errors["probabilities"], errors, rtol=0.15)
