"""A mechanism of which only the density is known: enough for a posterior, too little for predictions."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.mechanisms.base import as_mechanism
from dpjax.mechanisms.spread import width_by_density

MODEL = dpjax.models.categorical([1.0, 2.0])
CELLS = dpjax.statistics.cells("cell", 2)


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class Density:
    """Laplace noise, by its density alone."""

    scale: float

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return dpjax.Laplace(self.scale).log_density(value, statistic)


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class Terms(Density):
    """The same, coordinate by coordinate."""

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return dpjax.Laplace(self.scale).log_density_terms(value, statistic)


RELEASES = {
    "sum": lambda mechanism: dpjax.Release([8.0, 13.0], mechanism, CELLS, 20),
    "joint": lambda mechanism: dpjax.joint(
        dpjax.Release([8.0, 13.0], mechanism, CELLS, 20), dpjax.Release([7.0, 12.0], dpjax.Laplace(4.0), CELLS, 20)
    ),
    "local": lambda mechanism: dpjax.LocalRelease(np.linspace(-1.0, 2.0, 20), mechanism),
}


def share(release: dpjax.Release | dpjax.LocalRelease, imputation: dpjax.base.Imputation | None) -> np.ndarray:
    posterior = dpjax.sample(
        jax.random.key(4), MODEL, release, imputation=imputation, num_warmup=200, num_samples=1_000, progress=False
    )
    return posterior.draws["probabilities"][..., 0]


@pytest.mark.x32
@pytest.mark.parametrize("kind", ["sum", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("joint", "local"))])
def test_its_posterior_is_that_of_the_mechanism_with_a_sampler(kind):
    drawn = share(RELEASES[kind](Density(2.0)), dpjax.imwg())
    known = share(RELEASES[kind](dpjax.Laplace(2.0)), dpjax.imwg())
    error = np.hypot(*(dpjax.diagnostics.mcse_mean(each) for each in (drawn, known)))
    assert abs(drawn.mean() - known.mean()) < 4 * error


@pytest.mark.x32
def test_counts_take_it_too():
    drawn, known = (share(RELEASES["sum"](each), dpjax.counts()) for each in (Terms(2.0), dpjax.Laplace(2.0)))
    error = np.hypot(*(dpjax.diagnostics.mcse_mean(each) for each in (drawn, known)))
    assert abs(drawn.mean() - known.mean()) < 4 * error


@pytest.mark.parametrize("kind", RELEASES)
def test_nothing_can_be_released_by_it(kind):
    release = RELEASES[kind](Density(2.0))
    with pytest.raises(TypeError, match=r"(mechanism|channel): given .*, which has no `sample`"):
        release.sample(jax.random.key(1), {"cell": jnp.zeros(20, int)})
    with pytest.raises(TypeError, match="which has no `sample`"):
        dpjax.sample_prior_predictive(jax.random.key(1), MODEL, release, num_samples=4)


@pytest.mark.parametrize("scale", [1e-3, 2.0, 3e5])
@pytest.mark.parametrize("kind", [Density, Terms])
def test_its_width_is_known_to_a_factor_of_two(kind, scale):
    width = np.asarray(width_by_density(as_mechanism(kind(scale)), jnp.array([3.0, -1.0])))
    number = 1 if kind is Terms else 2
    assert np.all((width * number > 0.45 * scale) & (width * number < 1.01 * scale))


def test_whole_noise_has_a_width():
    width = width_by_density(dpjax.DiscreteLaplace(5.0), jnp.array([3.0, -1.0]))
    np.testing.assert_array_equal(width, [4.0, 4.0])


def test_a_wrapper_can_sample_where_what_it_wraps_can():
    assert dpjax.Censored(dpjax.Laplace(1.0), lower=0.0)._can_sample
    assert not RELEASES["joint"](Density(2.0)).mechanism._can_sample
    assert not as_mechanism(Density(2.0))._can_sample
