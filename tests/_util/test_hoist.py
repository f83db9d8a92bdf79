"""What does not depend on the argument of a function is computed once."""

import jax
import jax.numpy as jnp

from dpjax._util.hoist import hoist


def test_what_does_not_depend_on_the_argument_is_computed_once():
    def function(one: jax.Array, other: jax.Array) -> dict[str, jax.Array]:
        return {"a": one * jnp.sin(other), "b": jnp.cos(other), "c": one + 1.0}

    left = hoist(function, jnp.zeros(()), jnp.asarray(2.0))
    program = str(jax.make_jaxpr(left)(jnp.asarray(3.0)))
    assert "sin" not in program
    assert "cos" not in program
    expected = function(jnp.asarray(3.0), jnp.asarray(2.0))
    assert jax.tree.map(float, left(jnp.asarray(3.0))) == jax.tree.map(float, expected)
