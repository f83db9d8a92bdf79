"""Beta records interweave: the joint distribution stays as it is, and chains mix where the release says little."""

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics, models
from dpjax.numerics.dirichlet import logit_moments
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

MODEL = models.beta(models.GammaPrior(1.5, 1.0), models.GammaPrior(1.5, 0.5))
RELEASE = dpjax.Release([4.0], dpjax.Laplace(0.6), dpjax.statistics.total("y", 0.0, 1.0), n=6)
LAWS = {"a": lambda a: (a, stats.gamma(1.5)), "b": lambda b: (b, stats.gamma(1.5, scale=2.0))}


def without_scale(parameters: dict[str, jax.Array], noise: jax.Array) -> jax.Array:
    _, scale = logit_moments(parameters["a"], parameters["b"])
    return MODEL.noncentred.log_density(parameters, noise) - jax.numpy.log(scale)


@pytest.mark.x32
@pytest.mark.parametrize("fault", [False, True])
def test_the_joint_distribution_is_kept(fault: bool) -> None:
    """A mutation: the Jacobian of the standardisation is left out of the density of the noise."""
    noncentred = MODEL.noncentred._replace(log_density=without_scale) if fault else MODEL.noncentred
    found = run(jax.random.key(2), MODEL._replace(noncentred=noncentred), RELEASE, dpjax.imwg(), interweave=True)
    p_value = min(noise_p_value(found.noise, stats.laplace(scale=0.6)), parameter_p_value(found, LAWS))
    assert (p_value < REJECT) == fault


@pytest.mark.slow
def test_chains_mix_better_than_without() -> None:
    release = dpjax.Release([40.0], dpjax.Laplace(20.0), dpjax.statistics.total("y", 0.0, 1.0), n=100)
    options = {"num_samples": 1_000, "refresh": False, "progress": False}
    sizes = [
        float(np.min([diagnostics.ess_bulk(draws) for draws in posterior.draws.values()]))
        for posterior in (
            dpjax.sample(jax.random.key(1), MODEL, release, interweave=on, **options) for on in (True, False)
        )
    ]
    assert sizes[0] > 5 * sizes[1]
