"""Derivatives of the complete-data likelihood, and the move that keeps a likelihood of the noise as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models
from dpjax.base import Latent
from dpjax.likelihood.imputed import build_derivatives, build_move, decide_refresh
from dpjax.models.simulation import init_latent

RNG = np.random.default_rng(3)


NORMAL = models.normal(models.NormalPrior(0.0, 2.0), variance=models.InverseGammaPrior(2.0, 2.0))


@pytest.mark.x64
def test_derivatives_of_normal_records_in_closed_form() -> None:
    y, mean, log_variance = RNG.normal(size=7), 0.4, -0.3
    found = build_derivatives(NORMAL)(jnp.array([mean, log_variance]), {"y": jnp.asarray(y)})
    precision, off = np.exp(-log_variance), y - mean
    squares = precision * np.sum(off**2) / 2
    score = np.array([precision * off.sum(), squares - 3.5])
    curvature = np.array([[7 * precision, precision * off.sum()], [precision * off.sum(), squares]])
    np.testing.assert_allclose(found.score, score, atol=1e-10)
    np.testing.assert_allclose(found.square, np.outer(score, score), atol=1e-10)
    np.testing.assert_allclose(found.curvature, curvature, atol=1e-10)


@pytest.mark.x64
def test_records_without_a_summary_have_the_same_derivatives() -> None:
    records, vector = {"y": jnp.asarray(RNG.normal(size=5))}, jnp.array([0.4, -0.3])
    plain = NORMAL._replace(summarize=None, log_likelihood=None)
    for one, other in zip(*(build_derivatives(model)(vector, records) for model in (NORMAL, plain)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def first(record: dict) -> jax.Array:
    return record["y"][None]


@pytest.mark.keys
def test_the_move_keeps_the_noise_as_it_is() -> None:
    """From records and a release drawn together the implied noise stays Laplace; new records taken always would not."""
    model, parameters = models.normal(models.NormalPrior(0.0, 1.0), 1.0), {"mean": jnp.asarray(0.3)}
    release = dpjax.Release([0.0], dpjax.Laplace(1.0), first, 4)

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        record_key, release_key, move_key, wrong_key = jax.random.split(key, 4)
        records = model.sample_records(record_key, parameters, 4)
        released = release.sample(release_key, records)
        move = build_move(model, released, dpjax.imwg(), refresh=True)
        latent = init_latent(released, records)
        for one in jax.random.split(move_key, 2):
            latent = move(one, latent, parameters)
        proposed = init_latent(released, model.sample_records(wrong_key, parameters, 4))
        wrong = decide_refresh(latent, proposed, -jnp.ones_like(latent.log_density) * jnp.inf)
        return (released.value - latent.statistic)[0], (released.value - wrong.statistic)[0]

    right, wrong = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(4), 4_000))
    assert stats.kstest(np.asarray(right), stats.laplace.cdf).pvalue > 1e-4
    assert stats.kstest(np.asarray(wrong), stats.laplace.cdf).pvalue < 1e-4


def test_a_ratio_that_is_not_finite_is_a_rejection() -> None:
    old = Latent({"y": jnp.zeros(2)}, jnp.zeros(1), jnp.zeros(()))
    for records, density in ((jnp.zeros(2), jnp.nan), (jnp.array([0.0, jnp.nan]), 1.0), (jnp.ones(2), jnp.inf)):
        proposed = Latent({"y": records}, jnp.ones(1), jnp.asarray(density))
        assert decide_refresh(old, proposed, jnp.asarray(-1.0)).statistic[0] == 0.0
