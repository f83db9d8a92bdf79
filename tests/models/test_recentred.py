"""Group effects on scales between standard normal numbers and the linear predictor."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax.models.recentred import Recentred, find_effects
from dpjax.models.unconstrained import to_vector

pytestmark = pytest.mark.x64

KNOWN = {"x": np.array([0.3, -1.0, 0.5, 2.0, 0.1, 0.7]), "group": np.array([0, 1, 2, 0, 1, 2])}
RECORDS = {"y": jnp.arange(6)}


def standardised(known: Any, y: Any = None) -> None:
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0).expand([3]))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([2]))
    with numpyro.plate("units", 6):
        predictor = spread * deviation[known["group"]] + slope[0] + slope[1] * known["x"]
        numpyro.sample("y", dist.Poisson(jnp.exp(predictor)), obs=y)


def on_own_scale(known: Any, y: Any = None) -> None:
    level, spread = numpyro.sample("level", dist.Normal(0.0, 1.0)), numpyro.sample("spread", dist.HalfNormal(1.0))
    effect = numpyro.sample("effect", dist.Normal(level, spread).expand([3]).to_event(1))
    with numpyro.plate("units", 6):
        numpyro.sample("y", dist.Poisson(jnp.exp(effect[known["group"]] + 0.1 * known["x"])), obs=y)


def product(known: Any, y: Any = None) -> None:
    """Effects whose slopes are each other, so that neither map would be triangular."""
    one = numpyro.sample("one", dist.Normal(0.0, 1.0).expand([6]))
    other = numpyro.sample("other", dist.Normal(0.0, 1.0).expand([6]))
    with numpyro.plate("units", 6):
        numpyro.sample("y", dist.Poisson(jnp.exp(one * other)), obs=y)


def dispersed(known: Any, y: Any = None) -> None:
    """A number of each record besides the predictor."""
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    effect = numpyro.sample("effect", dist.Normal(0.0, 1.0).expand([3]))
    with numpyro.plate("units", 6):
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(spread * effect[known["group"]]), 1 / spread), obs=y)


def read(program: Any) -> dpjax.Model:
    return dpjax.from_numpyro(program, records=["y"], known=KNOWN)


@pytest.mark.parametrize(
    ("program", "names"),
    [(standardised, ("deviation",)), (on_own_scale, ("effect",)), (product, ()), (dispersed, ())],
)
def test_effects_are_those_that_a_parameter_multiplies(program, names):
    """Coefficients whose covariates are known move on one scale, and a map that is not triangular has no Jacobian."""
    model = read(program)
    assert find_effects(model, model, RECORDS, "y") == names


@pytest.mark.parametrize("program", [standardised, on_own_scale])
def test_the_jacobian_is_that_of_the_map(program):
    """A power or a slope forgotten in the determinant changes the posterior of the standard deviation."""
    model = read(program)
    (effects,) = find_effects(model, model, RECORDS, "y")
    recentred = Recentred(model, model, RECORDS, {effects: jnp.asarray([0.0, 0.4, 1.0])}, "y")
    parameters = model.sample_prior(jax.random.key(1))
    vector, unravel = to_vector(recentred, parameters)
    jax.tree.map(
        lambda new, old: np.testing.assert_allclose(new, old), recentred.constrain(unravel(vector)), parameters
    )

    def natural(vector: Any) -> Any:
        found = recentred.constrain(unravel(vector))
        return jnp.concatenate([jnp.ravel(found[name]) for name in sorted(found)])

    _, expected = np.linalg.slogdet(jax.jacobian(natural)(vector))
    np.testing.assert_allclose(recentred.log_jacobian(unravel(vector)), expected, rtol=1e-10)


def test_effects_of_power_one_are_on_the_scale_of_the_predictor():
    """Given what the data fix, such a coordinate does not move with the standard deviation."""
    model = read(standardised)
    recentred = Recentred(model, model, RECORDS, {"deviation": jnp.ones(3)}, "y")
    narrow = model.sample_prior(jax.random.key(2))
    wide = narrow | {"spread": 3 * narrow["spread"], "deviation": narrow["deviation"] / 3}
    both = [recentred.unconstrain(one)["deviation"] for one in (narrow, wide)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-10)
