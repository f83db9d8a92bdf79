"""Alternates exact draws of records and of a parameter on a grid: the parameter's uniform prior must come back."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from dpjax.base import Model

N = 6
CHAINS = 3_000
ROUNDS = 3


def build(model: Model) -> Callable[[Any, Any], Any]:
    """The compiled ``(key, grid) -> indices [chains]``; the grid is a dict of parameters with a leading axis."""
    form = model.noncentred

    def choose(key: Any, grid: Any, log_density: Callable[[Any], Any]) -> Any:
        weights = jax.vmap(lambda one: jnp.sum(log_density(one)))(grid)
        return jax.random.categorical(key, jnp.where(jnp.isnan(weights), -jnp.inf, weights))

    def round_of(key: Any, index: Any, grid: Any) -> Any:
        keys = jax.random.split(key, 4)
        at = lambda place: jax.tree.map(lambda leaf: leaf[place], grid)  # noqa: E731
        records = model.sample_records(keys[0], at(index), N)
        if form is not None:
            noise = form.noise(keys[1], at(index), records)
            weights = jax.vmap(lambda one: noise_weight(form, one, noise))(grid)
            # Where the noise of the records has no density they stay, as they do in the interweaving step.
            stays = ~jnp.isfinite(weights[index])
            moved = jax.random.categorical(keys[2], jnp.where(jnp.isfinite(weights), weights, -jnp.inf))
            index = jnp.where(stays, index, moved)
            records = jax.tree.map(lambda old, new: jnp.where(stays, old, new), records, form.records(at(index), noise))
        return choose(keys[3], grid, lambda parameters: model.log_density(parameters, records))

    def chain(key: Any, grid: Any) -> Any:
        size = len(jax.tree.leaves(grid)[0])
        start = jax.random.randint(jax.random.fold_in(key, ROUNDS), (), 0, size)
        step = lambda index, number: (round_of(jax.random.fold_in(key, number), index, grid), None)  # noqa: E731
        return jax.lax.scan(step, start, jnp.arange(ROUNDS))[0]

    return jax.jit(lambda key, grid: jax.vmap(chain, (0, None))(jax.random.split(key, CHAINS), grid))


def noise_weight(form: Any, parameters: Any, noise: Any) -> Any:
    """The log-density of noise at given parameters, up to a constant; -inf where it gives no record."""
    weight = 0.0 if form.log_density is None else jnp.sum(form.log_density(parameters, noise))
    fine = True if form.possible is None else jnp.all(form.possible(parameters, noise))
    return jnp.where(fine, weight, -jnp.inf)


def p_value(indices: Any, size: int) -> float:
    """That of the chi-squared test of a uniform law on 0..size - 1."""
    return float(stats.chisquare(np.bincount(np.asarray(indices), minlength=size)).pvalue)
