"""What `sample` does unasked, against importance sampling, on few records and extreme parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax

N = 6
DRAWS = 200_000
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])

LAWS: dict[str, tuple[Any, float]] = {
    "truncated": (lambda m: dist.TruncatedNormal(5 * m, 1.0, low=0.0), 2.0),
    "folded": (lambda m: dist.FoldedDistribution(dist.Normal(m, 0.5)), 3.0),
    "rare": (lambda m: dist.Bernoulli(logits=6 * m), 1.0),
    "counts": (lambda m: dist.Poisson(jnp.exp(2 * m)), 9.0),
    "inflated": (lambda m: dist.ZeroInflatedPoisson(jax.nn.sigmoid(m), 30.0), 20.0),
    "skewed": (lambda m: dist.AsymmetricLaplace(m, 1.0, 3.0), -5.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_default_quantiles_are_those_of_importance_sampling(name: str) -> None:
    """The share of draws below the reference's quantiles; both errors are standard errors of shares."""
    law, value = LAWS[name]

    def program(n: int) -> None:
        mean = numpyro.sample("m", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", law(mean))

    def statistic(record: Any) -> jax.Array:
        return jnp.clip(record["y"].astype(float), -10.0, 40.0)[None]

    model = dpjax.from_numpyro(program, records=["y"], n=N)
    release = dpjax.Release([value], dpjax.Laplace(2.0), statistic, n=N)
    reference = dpjax.importance_sample(jax.random.key(1), model, release, DRAWS)
    posterior = dpjax.sample(
        jax.random.key(2), model, release, num_chains=4, num_warmup=500, num_samples=4_000, progress=False
    )
    draws = np.asarray(posterior.draws["m"])
    quantiles = weighted_quantiles(np.asarray(reference.draws["m"]), np.asarray(reference.log_weights))
    below = (draws[..., None] <= quantiles).astype(float)
    error = np.asarray(dpjax.diagnostics.mcse_mean(jnp.asarray(below)))
    size = 1 / np.sum(normalised(np.asarray(reference.log_weights)) ** 2)
    allowed = 5 * np.sqrt(error**2 + LEVELS * (1 - LEVELS) / size)
    assert np.all(np.abs(below.mean(axis=(0, 1)) - LEVELS) < allowed), (below.mean(axis=(0, 1)), allowed)


def normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def weighted_quantiles(draws: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
    order = np.argsort(draws)
    cumulative = np.cumsum(normalised(log_weights)[order])
    return draws[order][np.searchsorted(cumulative, LEVELS)]
