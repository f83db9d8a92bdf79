"""Records in a plate within plates: one after another, with NumPyro's own density."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.infer.util import log_density

import dpjax

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
TOLERANCE = 1e-4 if jnp.zeros(()).dtype == jnp.float32 else 1e-10

LAWS = {
    "counts": lambda effect: dist.Poisson(jnp.exp(effect)),
    "overdispersed counts": lambda effect: dist.NegativeBinomial2(jnp.exp(effect), 2.0),
    "successes": lambda effect: dist.Binomial(5, logits=effect),
    "categories": lambda effect: dist.Categorical(logits=jnp.stack([effect, -effect, 0.0 * effect], axis=-1)),
    "numbers": lambda effect: dist.StudentT(5.0, effect, 2.0),
    "one law": lambda effect: dist.Normal(0.5, 2.0),
}


def grouped(law: Any, outer: int, inner: int, x: Any, y: Any = None) -> None:
    """Records of groups, with an effect of each group, and the axes of both plates."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    groups = numpyro.plate("groups", 3, dim=outer)
    with groups:
        effect = numpyro.sample("effect", dist.Normal(mean, 1.0))
    with groups, numpyro.plate("people", 4, dim=inner):
        numpyro.sample("y", LAWS[law](effect + x), obs=y)


@pytest.mark.parametrize("law", LAWS)
def test_records_of_groups_have_the_density_of_the_program(law):
    """Notices records in another order than the covariates, and a group's effect at other records."""
    model: Any = dpjax.from_numpyro(grouped, records=["y"], law=law, outer=-2, inner=-1, x=X)
    parameters = {"mean": jnp.asarray(0.5, float), "effect": jnp.array([[0.3], [-0.8], [1.2]], float)}
    records = model.sample_records(jax.random.key(1), parameters, 12)
    density = model.log_density(parameters, records)
    whole = parameters | {"y": records["y"].reshape(3, 4)}
    expected = log_density(grouped, (law, -2, -1, X), {}, whole)[0]
    np.testing.assert_allclose(model.log_prior(parameters) + jnp.sum(density), expected, rtol=TOLERANCE)
    places = jnp.array([2, 7])
    some = model.log_density(parameters, {"y": records["y"][places]}, places)
    np.testing.assert_allclose(some, density[places], rtol=TOLERANCE)
    assert model.num_records == 12


def test_the_last_axis_varies_fastest_whatever_plate_it_is_of():
    model: Any = dpjax.from_numpyro(grouped, records=["y"], law="numbers", outer=-1, inner=-2, x=X.T)
    parameters = {"mean": jnp.asarray(0.5, float), "effect": jnp.array([0.3, -0.8, 1.2], float)}
    values = np.arange(12.0)
    expected = dist.StudentT(5.0, parameters["effect"] + X.T, 2.0).log_prob(values.reshape(4, 3)).ravel()
    found = model.log_density(parameters, {"y": jnp.asarray(values, float)})
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)


def test_other_families_in_plates_within_plates_are_refused():
    def program(y: Any = None) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("groups", 3), numpyro.plate("people", 4):
            numpyro.sample("y", dist.TruncatedNormal(mean, 1.0, low=0.0), obs=y)

    with pytest.raises(ValueError, match="inside the plates"):
        dpjax.from_numpyro(program, records=["y"])
