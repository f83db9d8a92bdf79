"""A new imputation, one file of a user's own, is taken wherever a shipped one is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling
from tests.extension.random_window import RandomWindow
from tests.extension.two_cells import CELLS, MODEL, N, agrees

SUMMED = dpjax.Release([5.0, 0.0], dpjax.Laplace(1.5), CELLS, N)
LOCAL = dpjax.LocalRelease([0, 1, 1, 0, 0, 0], dpjax.RandomizedResponse(keep=0.8, num_categories=2))
PARAMETERS = {"probabilities": jnp.array([0.4, 0.6])}


@pytest.mark.x32
@pytest.mark.parametrize(
    "release", [pytest.param(SUMMED, id="summed"), pytest.param(LOCAL, id="local", marks=pytest.mark.slow)]
)
def test_chains_agree_with_enumeration(release: dpjax.release.PrivateRelease) -> None:
    options = {"num_warmup": 50, "num_samples": 1_000, "progress": False}
    assert agrees(dpjax.sample(jax.random.key(1), MODEL, release, imputation=RandomWindow("auto"), **options))


@pytest.mark.x32
@pytest.mark.parametrize("release", [SUMMED, LOCAL], ids=["summed", "local"])
def test_known_parameters(release: dpjax.release.PrivateRelease) -> None:
    algorithm = dpjax.impute(MODEL, release, PARAMETERS, imputation=RandomWindow(2))
    latent = algorithm.init(MODEL.sample_records(jax.random.key(3), PARAMETERS, N))
    moved, info = jax.jit(algorithm.step)(jax.random.key(4), latent)
    total, log_density = release.total_and_density(moved.records)
    np.testing.assert_allclose(moved.statistic, total)
    np.testing.assert_allclose(moved.log_density, log_density)
    assert info.accepted.shape == (N,)


@pytest.mark.slow
def test_tempered_run() -> None:
    found = dpjax.sample_smc(
        jax.random.key(5), MODEL, SUMMED, imputation=RandomWindow(2), num_particles=20, num_islands=2, num_sweeps=1
    )
    assert np.all(np.isfinite(found.draws["probabilities"]))


def test_open_choices_need_a_warm_up() -> None:
    with pytest.raises(ValueError, match=r"imputation: given RandomWindow.*only the warm-up"):
        dpjax.gibbs(MODEL, SUMMED, imputation=RandomWindow("auto"))


def test_it_has_no_coupling() -> None:
    with pytest.raises(TypeError, match=r"imputation: given RandomWindow.*; expected an imputation whose coupling is"):
        coupling.coupled_gibbs(MODEL, SUMMED, RandomWindow(2))
