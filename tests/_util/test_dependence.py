"""Which results of a function read an argument: no other test looks into calls, loops and branches one by one."""

import jax
import jax.numpy as jnp
import pytest

from dpjax._util.dependence import dependent_results, depends_on

ARRAY = jax.ShapeDtypeStruct((3,), float)


@jax.jit
def swap(one: jax.Array, other: jax.Array) -> tuple[jax.Array, jax.Array]:
    return other + 1, one + 1


def branch(x: jax.Array, y: jax.Array) -> jax.Array:
    return jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, y)


def carried(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first result has read the second after one step more."""
    return jax.lax.fori_loop(0, 3, lambda _, pair: (pair[1], pair[1]), (y, x))


CASES = {
    "itself": (lambda x, y: {"a": x, "b": y}, {"a": True, "b": False}),
    "a number": (lambda x, y: (y, 2.0), (False, False)),
    "unused": (lambda x, y: ((x * 2, y)[1],), (False,)),
    "a call": (swap, (False, True)),
    "a call in a call": (lambda x, y: jax.jit(swap)(y, x), (True, False)),
    "a derivative": (lambda x, y: (jax.grad(lambda z: jnp.sum(z * y))(x),), (False,)),
    "a branch": (lambda x, y: (branch(x, y),), (True,)),
    "a loop": (carried, (True, True)),
    "a map": (lambda x, y: (jax.vmap(jnp.multiply)(x, y), jax.vmap(jnp.square)(y)), (True, False)),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", CASES)
def test_results_are_followed_through_the_program(name: str) -> None:
    function, expected = CASES[name]
    assert dependent_results(function, ARRAY, ARRAY) == expected
    assert depends_on(function, ARRAY, ARRAY) == any(jax.tree.leaves(expected))


def test_all_leaves_of_the_argument_count() -> None:
    assert dependent_results(lambda pair, z: (pair[1], z), (ARRAY, ARRAY), ARRAY) == (True, False)
