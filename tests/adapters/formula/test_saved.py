"""Models of formulas in files: read as they were written, or left out with the reason."""

import json

import pytest
from numpyro import distributions as dist

from dpjax.models import formula
from dpjax.posterior.saving import Writer, read

DATA = {"x": [0.5, 1.5, -1.0, 0.0], "g": ["a", "b", "b", "a"], "m": [3, 4, 5, 6]}


@pytest.mark.parametrize("priors", [{}, {"1|g_sigma": dist.LogNormal(0.5, 0.25)}], ids=["default", "given"])
def test_a_file_holds_columns_levels_and_priors(priors):
    """So that what is loaded predicts: a saved formula once came back without its model."""
    model = formula("p(y, m) ~ x + (1 | g)", DATA, "binomial", priors, fields=["g"], weights=[0.5, 1.5, 1.2, 0.8])
    written = Writer()
    again = read(written.arrays, json.loads(json.dumps(written.part("model", model))))
    assert again == model
    assert again.describe() == model.describe()
    assert again.level_names == {"g": ("a", "b")}


def test_a_prior_that_is_more_than_numbers_is_named():
    model = formula("y ~ x", DATA, "poisson", {"Intercept": dist.Normal(0.0, 1.0), "x": dist.TruncatedNormal(low=0.0)})
    why = Writer().part("model", model)["missing"]
    assert why == "it could not be written: the prior LeftTruncatedDistribution, which is more than its numbers"
