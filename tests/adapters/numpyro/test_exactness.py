"""The sampler of records is exact for their density, and so is the non-centred form between them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.base import Model
from tests.adapters.numpyro import alternation
from tests.adapters.numpyro.families import CONTINUOUS, DISCRETE
from tests.adapters.numpyro.family_cases import cases
from tests.adapters.numpyro.family_runs import family_of
from tests.adapters.numpyro.shipped import SHIPPED

REJECT = 1e-6

BOUNDED = ("AsymmetricLaplaceQuantile", "LogUniform")
"""The families whose last argument has bounds that neighbours of the points would overstep."""


def model_of(name: str) -> Model:
    """The model of one family; each of its arguments is a parameter."""
    family = family_of(name)
    first = family.points[0]

    def program(n: int) -> None:
        point = [
            numpyro.sample(f"p{k}", dist.Uniform(value - abs(value) / 100, value + abs(value) / 100 + 1e-6))
            for k, value in enumerate(first)
        ]
        with numpyro.plate("records", n):
            numpyro.sample("y", family.law(*point))

    return dpjax.from_numpyro(program, records=["y"], n=alternation.N)


def grids(name: str) -> list[dict[str, Any]]:
    """All points of a family; of a continuous one also the neighbours of each in its last argument."""
    points = family_of(name).at()
    found = [points]
    if name in CONTINUOUS and name not in BOUNDED:
        steps = np.geomspace(0.6, 1.6, len(points))
        found += [tuple((*point[:-1], point[-1] * step) for step in steps) for point in points]
    columns = [list(zip(*grid, strict=True)) for grid in found]
    return [{f"p{k}": jnp.array(column, float) for k, column in enumerate(one)} for one in columns]


def worst(model: Model, chosen: list[dict[str, Any]]) -> float:
    step = alternation.build(model)
    sizes = [len(jax.tree.leaves(grid)[0]) for grid in chosen]
    indices = [step(jax.random.key(seed), grid) for seed, grid in enumerate(chosen)]
    return min(alternation.p_value(one, size) for one, size in zip(indices, sizes, strict=True))


@pytest.mark.parametrize("name", cases([*CONTINUOUS, *DISCRETE], quick=()))
def test_alternation_returns_the_prior(name: str) -> None:
    assert worst(model_of(name), grids(name)) > REJECT


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_alternation_of_a_shipped_model_returns_the_prior(name: str) -> None:
    model, grid = SHIPPED[name]
    assert worst(model, [{name: jnp.array(values, float) for name, values in grid.items()}]) > REJECT


@pytest.mark.slow
def test_records_of_another_law_are_found() -> None:
    """A mutation: the form of a folded law that forgets the sign."""
    model = model_of("FoldedNormal")
    form = model.noncentred

    def noise(key: Any, parameters: Any, records: Any) -> Any:
        return {"y": (records["y"] - parameters["p0"]) / parameters["p1"]}

    assert worst(model._replace(noncentred=form._replace(noise=noise)), grids("FoldedNormal")[:1]) < REJECT
