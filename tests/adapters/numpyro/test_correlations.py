"""Two correlated Normal numbers under a prior of correlations, against importance sampling from the prior."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax

N = 100


def correlated(n: int) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(2.0).expand([2]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("x", dist.MultivariateNormal(mean, scale_tril=scale[:, None] * factor))


def moments(record: dict) -> jax.Array:
    one, other = jnp.clip(record["x"], -6.0, 6.0)
    return jnp.stack([one, other, one**2, one * other, other**2])


@pytest.mark.slow
def test_the_defaults_agree_with_importance_sampling() -> None:
    """At a budget of 1 for all five sums, whose sensitivity is 168; a tenth of a deviation would be noticed."""
    drawn = np.random.default_rng(0).multivariate_normal([1.0, -0.5], [[1.0, 0.6], [0.6, 1.0]], N)
    sums = np.asarray(jnp.sum(jax.vmap(moments)({"x": jnp.asarray(drawn, float)}), axis=0))
    value = sums + np.random.default_rng(1).laplace(0.0, 168.0, 5)
    model = dpjax.from_numpyro(correlated, records=["x"])
    release = dpjax.Release(value, dpjax.Laplace(168.0), moments, N)
    posterior = dpjax.sample(jax.random.key(1), model, release, num_samples=4_000, progress=False)
    found, expected = posterior.summary(), dpjax.importance_sample(jax.random.key(2), model, release, 400_000).summary()
    rows = [row for row in found if row not in ("factor[0,0]", "factor[0,1]")]
    assert len(rows) == 6
    for row in rows:
        one, other = found[row], expected[row]
        assert one["ess_bulk"] > 1_000, row
        assert one["r_hat"] < 1.01, row
        for figure in ("mean", "sd"):
            error = np.hypot(one[f"mcse_{figure}"], other[f"se_{figure}"])
            assert abs(one[figure] - other[figure]) < 5 * error, (row, figure)
            assert error < 0.02 * one["sd"], (row, figure)
