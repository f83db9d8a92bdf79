"""A model without parameters: its records are imputed, and there is nothing else to draw."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax

MODEL = dpjax.Model(
    sample_prior=lambda key: {},
    log_prior=lambda parameters: jnp.zeros(()),
    sample_records=lambda key, parameters, n: {"y": jax.random.normal(key, (n,))},
    log_density=lambda parameters, records: -(records["y"] ** 2) / 2,
)
RELEASE = dpjax.Release([3.0], dpjax.Gaussian(1.0), dpjax.statistics.total("y"), n=4)
SETTINGS = {"num_warmup": 20, "num_samples": 500, "progress": False}


def test_the_loop_imputes_the_records() -> None:
    algorithm = dpjax.gibbs(MODEL, RELEASE)
    state = algorithm.init({}, jax.random.key(1))
    state, info = algorithm.step(jax.random.key(2), state)
    assert state.parameters == {}
    assert state.latent.records["y"].shape == (4,)
    assert 0 <= float(info.imputation.acceptance_rate) <= 1


def test_collected_records_have_the_exact_mean() -> None:
    """Given s = 3 the sum of four standard Normals is N(4 / 5 · 3, 4 / 5)."""

    def sums(state: dpjax.data_augmentation.GibbsState) -> jax.Array:
        return jnp.sum(state.latent.records["y"])

    posterior = dpjax.sample(jax.random.key(3), MODEL, RELEASE, collect=sums, **SETTINGS)
    assert posterior.draws == {}
    drawn = np.asarray(posterior.collected, float)
    error = float(dpjax.diagnostics.mcse_mean(drawn[..., None])[0])
    assert abs(drawn.mean() - 2.4) < 5 * error
    assert abs(drawn.var() / 0.8 - 1) < 0.25
    assert "no parameters" in posterior.describe()
    with pytest.raises(ValueError, match=r"^until: given .*without parameters"):
        dpjax.sample(jax.random.key(3), MODEL, RELEASE, until=dpjax.until(ess=10), **SETTINGS)
