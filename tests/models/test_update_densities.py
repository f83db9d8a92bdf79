"""`update_log_density` is, up to what depends on the records alone, the prior times the likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.models.cases import CASES, UPDATED

BLOCKED = {name for name in UPDATED if name.endswith(", variance")}


@pytest.mark.x64
@pytest.mark.parametrize("name", UPDATED)
def test_the_density_of_an_update_is_that_of_its_law(name: str) -> None:
    """For one exact draw by Bayes; for draws in blocks, each block by Bayes where the others are held."""
    model = CASES[name]

    @jax.jit
    def compare(key: jax.Array) -> dict:
        keys = jax.random.split(key, 4)
        one, other, old = (model.sample_prior(key) for key in keys[:3])
        records = model.sample_records(keys[3], old, model.num_records or 6)
        # Blocks (a | b) then (b | a): with b′ = b the first is p(a′ | b).
        moved = one | {"variance": other["variance"]} if "variance" in one else one

        def density(new: dict, given: dict) -> jax.Array:
            return model.update_log_density(new, given, records)

        def joint(parameters: dict) -> jax.Array:
            return model.log_prior(parameters) + jnp.sum(model.log_density(parameters, records))

        return {
            "reads": density(one, old) - density(one, other),
            "exact": density(one, old) - density(other, old) - joint(one) + joint(other),
            "blocks": density(one, one) - density(moved, one) - joint(one) + joint(moved),
        }

    gaps = compare(jax.random.key(2))
    exact = abs(gaps["reads"]) < 1e-9
    assert exact == (name not in BLOCKED)
    np.testing.assert_allclose(gaps["exact" if exact else "blocks"], 0.0, atol=1e-8)
