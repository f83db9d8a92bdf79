"""Single chains of the regression with 100 records and ε = 30: the parameters after every iteration."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.problems import regression

N, EPSILON = 100, 30
NAMES = ("β₀", "β₁", "β₂", "σ²")


def make_chains(
    imputation: dpjax.base.Imputation, iterations: int, thinning: int = 1
) -> Callable[[jax.Array], np.ndarray]:
    """Chains as a function of their keys: parameters [chain, draw, 4], every `thinning`-th of so many iterations.

    Each starts at parameters and records from the prior. An iteration is an exact update of the parameters and a sweep
    of n proposals, without interweaving, as in the paper.
    """
    model, release = regression(N, EPSILON)
    algorithm = dpjax.gibbs(model, release, imputation, interweave=False)

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> jax.Array:
        parameter_key, records_key, run_key = jax.random.split(key, 3)
        state = algorithm.init(model.sample_prior(parameter_key), records_key)

        def step(state: Any, index: jax.Array) -> tuple:
            return algorithm.step(jax.random.fold_in(run_key, index), state)[0], None

        def draw(state: Any, index: jax.Array) -> tuple:
            state, _ = jax.lax.scan(step, state, index * thinning + jnp.arange(thinning))
            return state, jnp.append(state.parameters["coef"], state.parameters["variance"])

        return jax.lax.scan(draw, state, jnp.arange(iterations // thinning))[1]

    return lambda keys: np.asarray(run(keys))
