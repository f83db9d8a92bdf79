"""Least squares of a release: its weights, what is held exactly, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics

MODEL = models.categorical(np.ones(4))
CELLS = dpjax.Release([3.0, -2.0, 7.0, 41.0], dpjax.DiscreteGaussian(4.0), statistics.cells("cell", 4), n=50)
HALVES = statistics.grouped("cell", [0, 0, 1, 1])


def test_measurements_are_weighted_by_their_variances_and_the_number_of_records_is_held():
    rows = dpjax.Release([5.0, 45.0], dpjax.Laplace(2.0), HALVES, n=50)
    found = dpjax.least_squares(MODEL, dpjax.joint(CELLS, rows))
    design = np.vstack([np.eye(4), np.kron(np.eye(2), np.ones(2))])
    weights = np.diag(1 / np.array([16.0, 16.0, 16.0, 16.0, 8.0, 8.0]))
    ones = np.ones((4, 1))
    system = np.block([[design.T @ weights @ design, ones], [ones.T, np.zeros((1, 1))]])
    value = np.array([3.0, -2.0, 7.0, 41.0, 5.0, 45.0])
    expected = np.linalg.solve(system, np.append(design.T @ weights @ value, 50.0))[:4]
    np.testing.assert_allclose(found.value, expected, atol=1e-9)
    np.testing.assert_allclose(found.variance, np.diag(np.linalg.inv(system))[:4], atol=1e-9)


def test_an_unknown_number_of_records_is_not_held():
    unknown = dpjax.UnknownCount(models.UniformCount(20, 80))
    cells = dpjax.Release(CELLS.value, dpjax.Gaussian(4.0), statistics.cells("cell", 4), n=unknown)
    found = dpjax.least_squares(MODEL, cells)
    np.testing.assert_allclose(found.value, CELLS.value)
    np.testing.assert_allclose(found.variance, np.full(4, 16.0))


LOCAL = dpjax.LocalRelease(jnp.array([0, 1]), dpjax.RandomizedResponse(keep=0.7, num_categories=4))
TOTAL = dpjax.Release([4.0], dpjax.Laplace(1.0), statistics.total("y", 0.0, 1.0), n=9)
REAL = models.normal(models.NormalPrior(0.0, 1.0), variance=1.0)
CENSORED = dpjax.Release([4.0, 3.0], dpjax.Censored(dpjax.Laplace(1.0), lower=0.0), HALVES, n=9)


@pytest.mark.parametrize(
    ("release", "model", "error", "message"),
    [
        (LOCAL, MODEL, TypeError, "release: given a LocalRelease of RandomizedResponse; expected a noisy sum"),
        (
            TOTAL,
            models.normal(models.NormalPrior(0.0, 1.0), variance=1.0),
            ValueError,
            "expected a model with a support",
        ),
        (CENSORED, MODEL, ValueError, "release: given a release by Censored|expected a noisy sum"),
        (MODEL, CELLS, TypeError, r"release: given \w+"),
    ],
)
def test_what_has_no_least_squares_is_refused(release, model, error, message):
    with pytest.raises(error, match=message):
        dpjax.least_squares(model, release)
