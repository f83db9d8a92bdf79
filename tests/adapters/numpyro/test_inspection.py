"""Independence and exchangeability do not hang on the one draw at which a model is looked at."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax

COVARIATE = np.linspace(-1.0, 1.0, 6)


def by_argument(link: Callable) -> Callable:
    def model(covariate: Any) -> None:
        slope = numpyro.sample("slope", dist.Normal(-4.0, 0.5))
        with numpyro.plate("records", len(covariate)):
            numpyro.sample("y", dist.Normal(link(slope) * covariate, 1.0))

    return model


def by_place(link: Callable) -> Callable:
    def model(n: int) -> None:
        slope = numpyro.sample("slope", dist.Normal(-4.0, 0.5))
        with numpyro.plate("records", n) as place:
            numpyro.sample("y", dist.Normal(link(slope) * jnp.asarray(COVARIATE)[place], 1.0))

    return model


def by_slice(link: Callable) -> Callable:
    def model(n: int) -> None:
        slope = numpyro.sample("slope", dist.Normal(-4.0, 0.5))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(link(slope) * jnp.asarray(COVARIATE)[:n], 1.0))

    return model


LINKS = {"rectifier": jax.nn.relu, "threshold": lambda slope: jnp.where(slope > 0, slope, 0.0)}


@pytest.mark.x64
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("form", ["argument", "place", "slice"])
def test_covariates_behind_a_rectifier_give_each_record_its_own_law(form: str, link: str) -> None:
    """No draw from the prior has a positive slope, at which alone the covariates count."""
    if form == "argument":
        model = dpjax.from_numpyro(by_argument(LINKS[link]), records=("y",), covariate=jnp.asarray(COVARIATE))
    else:
        build = by_place if form == "place" else by_slice
        model = dpjax.from_numpyro(build(LINKS[link]), records=("y",), n=6)
    assert not model.exchangeable
    assert model.num_records == 6


@pytest.mark.x64
@pytest.mark.parametrize("link", [*LINKS.values(), lambda slope: 0 * slope])
def test_records_that_depend_on_each_other_behind_a_rectifier_are_refused(link: Callable) -> None:
    def model(n: int) -> None:
        slope = numpyro.sample("slope", dist.Normal(-4.0, 0.5))
        with numpyro.plate("records", n):
            x = numpyro.sample("x", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Normal(link(slope) * (x - jnp.mean(x)), 1.0))

    with pytest.raises(ValueError, match="depend on each other"):
        dpjax.from_numpyro(model, records=("x", "y"))


def test_records_with_a_known_field_keep_their_places() -> None:
    """The law does not read the covariate, but a statistic may: a record drawn for one place is not one for another."""

    def model(x: Any) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", 6):
            numpyro.sample("y", dist.Normal(mean, 1.0))

    assert not dpjax.from_numpyro(model, records=("x", "y"), x=jnp.asarray(COVARIATE)).exchangeable


def test_records_whose_law_depends_on_their_number_are_so_many() -> None:
    def model(n: int) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mean, jnp.sqrt(float(n))))

    described = dpjax.from_numpyro(model, records=("y",), n=6)
    assert not described.exchangeable
    assert described.num_records == 6


def test_a_quantity_that_reads_records_behind_a_rectifier_is_not_derived() -> None:
    def model(n: int) -> None:
        slope = numpyro.sample("slope", dist.Normal(-4.0, 0.5))
        with numpyro.plate("records", n):
            y = numpyro.sample("y", dist.Normal(slope, 1.0))
        numpyro.deterministic("largest", jax.nn.relu(slope) * jnp.max(y))
        numpyro.deterministic("twice", 2 * slope)

    described = dpjax.from_numpyro(model, records=("y",))
    assert set(described.derived({"slope": jnp.asarray(1.0)})) == {"twice"}
