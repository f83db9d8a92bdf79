"""Releases that are draws given the statistic, not the statistic with noise: shapes, residuals, imputation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics, models, statistics
from dpjax.base import Imputation
from dpjax.data_augmentation.records.imwg import systematic_sweep
from tests.mixture.global_release import loop

N = 12
BINS = statistics.histogram("y", np.linspace(0, 1, 5))
VALUE = [0.1, 0.2, 0.15, 0.7, 0.9, 0.3]
RELEASE = dpjax.Release(VALUE, dpjax.SmoothedHistogram(0.05, 6), BINS, N)


def test_the_density_is_the_mechanism_s_at_the_counts() -> None:
    records = {"y": jnp.linspace(0.05, 0.6, N)}
    counts = np.histogram(records["y"], BINS.edges)[0].astype(float)
    expected = np.log(0.95 * 4 * counts / N + 0.05)[[0, 0, 0, 2, 3, 1]].sum()
    np.testing.assert_allclose(RELEASE.log_likelihood(records), expected, rtol=1e-5)
    residual = RELEASE.noisy_sum - RELEASE.total(records)
    np.testing.assert_allclose(RELEASE.log_density_at(residual), expected, rtol=1e-5)
    np.testing.assert_allclose(RELEASE.log_densities_at(residual[:, None]), [expected], rtol=1e-5)


def test_imputation_takes_what_the_whole_density_says() -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    records, proposals, uniforms = (
        jax.random.uniform(key, (N,)) ** power for key, power in zip(keys, (1, 1, 0.25), strict=True)
    )
    latent, info = jax.jit(systematic_sweep)(RELEASE, {"y": records}, {"y": proposals}, uniforms)
    taken = loop(RELEASE, records, proposals, np.log(uniforms))
    np.testing.assert_array_equal(info.accepted, taken)
    np.testing.assert_allclose(latent.statistic, RELEASE.total(latent.records))
    assert 0 < taken.sum() < N


@pytest.mark.parametrize(
    ("value", "statistic", "argument"),
    [(VALUE[:5], BINS, "value"), (VALUE, lambda record: jnp.ones(4) * record["y"], "statistic")],
)
def test_what_does_not_fit_is_refused(value, statistic, argument: str) -> None:
    with pytest.raises(ValueError, match=rf"^{argument}: given"):
        dpjax.Release(value, dpjax.SmoothedHistogram(0.2, 6), statistic, N)


@pytest.mark.slow
@pytest.mark.parametrize("imputation", [dpjax.imwg(), dpjax.soma()])
def test_a_model_is_sampled_from(imputation: Imputation) -> None:
    """The posterior mean of a shape against importance sampling."""
    model = models.beta(models.GammaPrior(4.0, 2.0), models.GammaPrior(4.0, 2.0))
    posterior = dpjax.sample(
        jax.random.key(2), model, RELEASE, imputation=imputation, num_samples=3_000, progress=False
    )
    exact = dpjax.importance_sample(jax.random.key(3), model, RELEASE, 50_000).summary()
    for name in ("a", "b"):
        error = np.hypot(diagnostics.mcse_mean(posterior.draws[name]), exact[name]["se_mean"])
        assert abs(posterior.draws[name].mean() - exact[name]["mean"]) < 5 * error
