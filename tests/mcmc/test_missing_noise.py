"""A mechanism whose sampler returns what is no number."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest

import dpjax


@dataclass(frozen=True)
class Broken:
    """Laplace noise whose draws are NaN."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.abs(value - statistic)) / 2

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return statistic * jnp.nan


@pytest.mark.x64
def test_predictions_that_are_no_numbers_are_refused() -> None:
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    release = dpjax.Release([3.0], Broken(), dpjax.statistics.total("y", -5.0, 5.0), n=5)
    posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=20, num_samples=20, progress=False)
    for predict in (
        lambda: posterior.predict(jax.random.key(2), 5),
        lambda: dpjax.sample_prior_predictive(jax.random.key(2), model, release, 5),
    ):
        with pytest.raises(
            ValueError, match=r"^release.mechanism: given a sampler that returned NaN in 100% of releases"
        ):
            predict()
