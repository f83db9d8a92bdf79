"""Coupled pairs with the release as an argument, so that one program serves many releases of one shape."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax.coupling import CoupledKernel, Meetings, coupled_gibbs

Meet = Callable[[dpjax.Release, int], Meetings]


def join(key: jax.Array, kernel: CoupledKernel) -> Any:
    """A pair from independent starts whose first chain is one step ahead."""
    first_key, second_key, step_key = jax.random.split(key, 3)
    start = kernel.sample_start(first_key)
    ahead, _ = kernel.step(step_key, kernel.join(start, start, jnp.asarray(True)))
    return kernel.join(kernel.first(ahead), kernel.sample_start(second_key), jnp.asarray(False))


def make_meet(model: dpjax.Model, imputation: dpjax.base.Imputation, relabel: bool, cap: int, **options: Any) -> Meet:
    """The meeting times of so many pairs of a release, at most `cap` coupled steps each, as a function of the two."""

    @jax.jit
    def run(release: dpjax.Release, keys: jax.Array) -> tuple:
        kernel = coupled_gibbs(model, release, imputation, relabel=relabel, **options)

        def one(key: jax.Array) -> tuple:
            start_key, run_key = jax.random.split(key)

            def unfinished(carry: Any) -> jax.Array:
                return (carry[0] < cap) & ~kernel.met(carry[1])

            def step(carry: Any) -> Any:
                return carry[0] + 1, kernel.step(jax.random.fold_in(run_key, carry[0]), carry[1])[0]

            steps, pair = jax.lax.while_loop(unfinished, step, (jnp.asarray(0), join(start_key, kernel)))
            return steps, kernel.met(pair)

        return jax.vmap(one)(keys)

    def meet(release: dpjax.Release, pairs: int) -> Meetings:
        steps, met = run(release, jax.random.split(jax.random.key(2), pairs))
        return Meetings(np.asarray(steps) + 1, np.asarray(met), 1, cap + 1)

    return meet
