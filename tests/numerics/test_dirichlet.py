"""Draws from Dirichlet distributions."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from dpjax.numerics.dirichlet import draw_dirichlet

NUM_DRAWS = 20_000


REJECT = 1e-4


def smallest(p_values: list[float]) -> float:
    return min(p_values) * len(p_values)


def test_dirichlet_rows_follow_their_own_concentrations() -> None:
    concentration = jnp.asarray([[0.5, 1.0, 2.0], [3.0, 0.2, 1.0]])
    draws = jax.jit(jax.vmap(lambda key: draw_dirichlet(key, concentration)))(keys(43))
    laws = np.asarray(concentration)
    p_values = [
        stats.kstest(draws[:, i, j], stats.beta(laws[i, j], laws[i].sum() - laws[i, j]).cdf).pvalue
        for i in range(2)
        for j in range(3)
    ]
    assert smallest(p_values) > REJECT


def keys(seed: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), NUM_DRAWS)
