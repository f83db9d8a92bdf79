"""`update_log_density`: p(θ′ | x) is the prior times the likelihood up to what depends on x alone, and it normalises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.models.cases import CASES, UPDATED

BLOCKED = {"normal, learned variance", "regression, inverse gamma"}


@pytest.mark.x64
@pytest.mark.parametrize("name", UPDATED)
def test_the_density_of_an_update_is_that_of_its_law(name: str) -> None:
    """For one exact draw by Bayes; for draws in blocks, each block by Bayes where the others are held."""
    model = CASES[name]
    keys = jax.random.split(jax.random.key(2), 4)
    old, *new = (model.sample_prior(key) for key in keys[:3])
    records = model.sample_records(keys[3], old, model.num_records or 6)

    def joint(parameters: dict) -> jax.Array:
        return model.log_prior(parameters) + jnp.sum(model.log_density(parameters, records))

    def gap(parameters: dict, given: dict) -> jax.Array:
        return model.update_log_density(parameters, given, records) - joint(parameters)

    one, other = new
    exact = np.allclose(model.update_log_density(one, old, records), model.update_log_density(one, other, records))
    if exact:
        np.testing.assert_allclose(gap(one, old), gap(other, old), rtol=1e-10, atol=1e-9)
        return
    # Blocks (a | b) then (b | a): with b′ = b the first is p(a′ | b), and the second is p(b′ | a′).
    moved = one | {"variance": other["variance"]}
    first_block = model.update_log_density(one, one, records) - model.update_log_density(moved, one, records)
    np.testing.assert_allclose(first_block, joint(one) - joint(moved), rtol=1e-10, atol=1e-9)
