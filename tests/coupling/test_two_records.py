"""Two records with a released mean: estimates from coupled chains have the means that quadrature gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.coupling import UnbiasedEstimates, coupled_gibbs, unbiased_estimates
from problems.two_records import TwoRecords, two_records_posterior

EPSILON, VALUE = 20.0, 0.65


def moments(position: dpjax.data_augmentation.Position) -> dict[str, jax.Array]:
    """Functions that do not depend on the order of the two."""
    first, second = position.records["y"]
    return {"sum": first + second, "product": first * second, "squares": first**2 + second**2}


def exact() -> dict[str, float]:
    posterior = two_records_posterior("beta", EPSILON, VALUE)
    variance, covariance = posterior.covariances
    return {
        "sum": 2 * posterior.mean,
        "product": covariance + posterior.mean**2,
        "squares": 2 * (variance + posterior.mean**2),
    }


def run(imputation: dpjax.base.Imputation, relabel: bool) -> UnbiasedEstimates:
    """Beta(10, 10) records, released off the prior's mean, so that chains start where they must not stay."""
    release = dpjax.Release([VALUE], dpjax.Laplace(1 / EPSILON), statistics.mean("y", 2), 2)
    kernel = coupled_gibbs(models.beta(10.0, 10.0), release, imputation, relabel=relabel)
    options = {"num_pairs": 2_000, "max_steps": 1_000, "batch_size": 500}
    return unbiased_estimates(jax.random.key(1), kernel, moments, k=0, m=1, lag=1, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("imputation", "relabel"),
    [(dpjax.soma(), True), (dpjax.soma(), False), (dpjax.imwg(), False), (dpjax.imwg(scan="random"), True)],
)
def test_estimates_have_the_means_of_quadrature(imputation: dpjax.base.Imputation, relabel: bool) -> None:
    found = run(imputation, relabel)
    estimate = found.estimate()
    for name, expected in exact().items():
        assert abs(estimate.mean[name] - expected) < 5 * estimate.standard_error[name]
    # A mutation: the average without its correction is still near the prior, from where chains start.
    plain = found.averages["sum"]
    assert abs(plain.mean() - exact()["sum"]) > 5 * plain.std() / np.sqrt(len(plain))


def test_quadrature_has_the_right_limits() -> None:
    flat, sharp = (two_records_posterior("beta", epsilon) for epsilon in (1e-9, 1e4))
    assert flat.mean == pytest.approx(0.5)
    assert flat.covariances[0] == pytest.approx(0.25 / 21, rel=1e-3)  # the variance of Beta(10, 10)
    assert flat.correlation == pytest.approx(0.0, abs=1e-6)
    assert sharp.correlation == pytest.approx(-1.0, abs=1e-3)
    uneven = TwoRecords(np.array([0.0, 1.0]), np.array([[0.0, 0.5], [0.5, 0.0]]))
    assert uneven.correlation == pytest.approx(-1.0)
    assert bool(jnp.isfinite(two_records_posterior("exponential", 1.0).mean))
