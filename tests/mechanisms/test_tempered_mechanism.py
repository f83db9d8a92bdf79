"""A mechanism raised to a power: sweeps under it are those of the mechanism whose law has that shape.

Laplace(b)^λ is Laplace(b / λ), Gaussian(σ)^λ is Gaussian(σ / √λ), and randomized response with another share kept, each
up to a constant. With the same key the kernels of both must agree, proposal by proposal.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.base import Latent
from dpjax.mechanisms.base import draws_latent_normal
from dpjax.mechanisms.composite import temper_mechanism
from dpjax.models.simulation import init_latent

N = 8
POWER = 0.3
NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
PARAMETERS = {"mean": jnp.array(0.4)}
SCALES = jnp.array([2.0, 0.7])


def two_moments(record: dict) -> jax.Array:
    return jnp.stack([record["y"], record["y"] ** 2])


def summed(mechanism: object) -> dpjax.Release:
    return dpjax.Release([7.0, 9.0], mechanism, two_moments, N)


@partial(jax.jit, static_argnames=("model", "imputation"))
def sweeps(release: object, model: dpjax.Model, parameters: dict, imputation: dpjax.base.Imputation) -> Latent:
    """The records after ten sweeps."""
    kernel = imputation(model, release)
    latent = init_latent(release, model.sample_records(jax.random.key(1), parameters, N))

    def sweep(latent: Latent, index: jax.Array) -> tuple[Latent, None]:
        return kernel(jax.random.fold_in(jax.random.key(2), index), latent, parameters)[0], None

    return jax.lax.scan(sweep, latent, jnp.arange(10))[0]


def same(one: Latent, other: Latent) -> bool:
    return all(np.allclose(one.records[name], other.records[name], rtol=1e-6) for name in one.records)


@pytest.mark.x64
@pytest.mark.parametrize(
    "imputation",
    [dpjax.imwg(), dpjax.imwg("random"), dpjax.soma(), dpjax.soma(3)],
    ids=lambda imputation: repr(imputation),
)
def test_sweeps_of_a_summed_release(imputation: dpjax.base.Imputation) -> None:
    tempered = sweeps(summed(dpjax.Laplace(SCALES)).tempered(jnp.array(POWER)), NORMAL, PARAMETERS, imputation)
    assert same(tempered, sweeps(summed(dpjax.Laplace(SCALES / POWER)), NORMAL, PARAMETERS, imputation))
    assert not same(tempered, sweeps(summed(dpjax.Laplace(SCALES)), NORMAL, PARAMETERS, imputation))


@pytest.mark.x64
def test_exact_draws_of_finitely_many_local_records() -> None:
    model, keep = models.categorical(np.ones(3)), 0.8
    other = ((1 - keep) / 2) ** POWER
    kept = keep**POWER / (keep**POWER + 2 * other)
    parameters = {"probabilities": jnp.array([0.2, 0.3, 0.5])}

    def release(keep: float) -> dpjax.LocalRelease:
        return dpjax.LocalRelease(np.arange(N) % 3, dpjax.RandomizedResponse(keep, 3))

    tempered = sweeps(release(keep).tempered(jnp.array(POWER)), model, parameters, dpjax.imwg())
    assert same(tempered, sweeps(release(kept), model, parameters, dpjax.imwg()))
    assert not same(tempered, sweeps(release(keep), model, parameters, dpjax.imwg()))


@pytest.mark.x64
def test_local_normal_records_move_by_metropolis_steps() -> None:
    """Exact draws through the untempered noise would be wrong, so there must be none."""

    def release(scale: float) -> dpjax.LocalRelease:
        return dpjax.LocalRelease(np.linspace(-2.0, 2.0, N), dpjax.Gaussian(scale), field="y")

    tempered = release(0.3).tempered(jnp.array(POWER))
    assert draws_latent_normal(release(0.3).channel)
    assert not draws_latent_normal(tempered.channel)
    metropolis = NORMAL._replace(normal_field=None)
    wide = sweeps(release(0.3 * POWER**-0.5), metropolis, PARAMETERS, dpjax.imwg())
    assert same(sweeps(tempered, NORMAL, PARAMETERS, dpjax.imwg()), wide)
    assert not same(sweeps(release(0.3), metropolis, PARAMETERS, dpjax.imwg()), wide)


class Opaque:
    """A user's mechanism of plain attributes, with terms that cannot be taken columnwise."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.sum(self.log_density_terms(value, statistic))

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jax.scipy.stats.norm.logpdf(value, statistic, SCALES)

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return statistic + SCALES * jax.random.normal(key, statistic.shape)


@pytest.mark.parametrize(
    "mechanism",
    [dpjax.Gaussian(SCALES), dpjax.Censored(dpjax.Laplace(SCALES), lower=0.0), Opaque()],
    ids=["additive", "censored", "opaque"],
)
def test_densities_of_columns_are_raised(mechanism: object) -> None:
    residuals = jnp.linspace(-3.0, 10.0, 10).reshape(2, 5)
    plain, tempered = summed(mechanism), summed(mechanism).tempered(jnp.array(POWER))
    expected = POWER * plain.log_densities_at(residuals)
    np.testing.assert_allclose(tempered.log_densities_at(residuals), expected, rtol=1e-6)
    np.testing.assert_allclose(tempered.log_density_at(residuals[:, 1]), expected[1], rtol=1e-6)
    np.testing.assert_allclose(tempered.log_density(plain.value - residuals[:, 1]), expected[1], rtol=1e-6)


def test_impossible_values_stay_impossible() -> None:
    release = dpjax.Release([1.0], dpjax.DiscreteLaplace(2.0), statistics.total("y", -3.0, 3.0), N)
    power = jax.vmap(lambda power: release.tempered(power).log_density(jnp.array([0.5])))(jnp.array([0.1, 1.0]))
    assert np.all(np.isneginf(power)) == np.isneginf(release.log_density(jnp.array([0.5])))
    assert temper_mechanism(dpjax.Laplace(1.0), jnp.array(0.5)).sample(jax.random.key(0), jnp.zeros(2)).shape == (2,)


def test_draws_given_a_histogram() -> None:
    """More values than bins: the power leaves the value's size as the mechanism's."""
    histogram = statistics.histogram("y", [0.0, 0.5, 1.0])
    release = dpjax.Release([0.2, 0.7, 0.9], dpjax.SmoothedHistogram(0.5, 3), histogram, N)
    tempered, counts = release.tempered(jnp.array(POWER)), jnp.array([5.0, 3.0])
    np.testing.assert_allclose(tempered.log_density_at(-counts), POWER * release.log_density(counts), rtol=1e-6)
