"""The slope of a model adds those of its parameters."""

import numpy as np
import pytest

from dpjax.models.bijections import COVARIANCE
from tests.models.cases import CASES, draw, unconstrained


@pytest.mark.x64
def test_log_jacobian_of_a_model_adds_its_parameters() -> None:
    name = "regression, covariates"
    point = unconstrained(name, draw(name, seed=9)[0])
    expected = COVARIANCE.log_jacobian(point["covariate_cov"])
    np.testing.assert_allclose(CASES[name].log_jacobian(point), expected, atol=1e-10)
