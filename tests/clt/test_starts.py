"""The search for modes of a Normal sum."""

import re

import jax
import pytest

import dpjax
from dpjax.clt.starts import find_starts
from dpjax.models import hyper_dirichlet


@pytest.mark.x64
def test_triangular_systems_are_solved_chain_by_chain():
    """On few cores jaxlib 0.10 waits forever for two batches of large systems: no test with small ones ends so."""
    model = hyper_dirichlet({"A": 2, "B": 2}, [("A", "B")], 4.0)
    statistic = dpjax.statistics.cells(("A", "B"), [2, 2])
    release = dpjax.Release([30.0, 20.0, 10.0, 40.0], dpjax.Laplace(3.0), statistic, 100)
    likelihood = dpjax.normal_sum().sum_out(model, release)
    given = likelihood.release, likelihood.source, likelihood.rules[0], likelihood.simulated
    text = str(jax.make_jaxpr(lambda key: find_starts(key, model, *given, num_chains=3))(jax.random.key(1)))
    shapes = re.findall(r"f64\[([\d,]+)\] = triangular_solve", text)
    assert shapes
    assert all(shape.count(",") == 1 for shape in shapes)
