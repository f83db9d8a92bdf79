"""Numbers without noise: their law, and every place where they raise an error that names the argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling, models, statistics
from dpjax.mechanisms.base import Mechanism, scale_of
from dpjax.mechanisms.composite import temper_mechanism
from dpjax.mixture.binned import bin_release
from tests.extension.two_cells import CELLS, MAX_ERRORS, MODEL, N, enumerate_records

KNOWN = dpjax.Release([4, 2], dpjax.Exact(), CELLS, N)
MIXED = dpjax.joint(dpjax.Release([5.0, 0.0], dpjax.Laplace(2.0), CELLS, N), KNOWN)


def test_law():
    mechanism, value = dpjax.Exact(), jnp.array([4.0, 2.0, 0.0])
    assert mechanism.log_density(value, jnp.array([4, 2, 0])) == 0
    assert np.isneginf(mechanism.log_density(value, jnp.array([4, 2, 1])))
    np.testing.assert_array_equal(
        mechanism.noise.log_density(jnp.array([[0.0, -1.0], [0.5, 0.0]])), [[0, -np.inf], [-np.inf, 0]]
    )
    drawn = mechanism.sample(jax.random.key(0), jnp.array([4, 2, 0]))
    assert drawn.dtype == jnp.result_type(float)
    np.testing.assert_array_equal(drawn, value)


def test_what_it_declares():
    mechanism = dpjax.Exact()
    assert isinstance(mechanism, Mechanism)
    assert mechanism.noise is not None
    assert mechanism._is_elementwise
    assert scale_of(mechanism) is None
    assert mechanism.tails.log_cdf(jnp.array([-1.0, 0.0, 1.0])).tolist() == [-np.inf, 0.0, 0.0]
    assert not mechanism.integer_noise
    assert mechanism.sums.known
    assert dpjax.Independent([mechanism, mechanism], [1, 2]).sums.known
    others = (dpjax.Laplace(1.0), dpjax.Censored(dpjax.Laplace(1.0), lower=0.0), MIXED.mechanism)
    assert not any(other.sums.known for other in others)
    assert temper_mechanism(mechanism, jnp.array(0.3)) is mechanism
    assert jax.jit(lambda mechanism: mechanism)(mechanism) == mechanism
    with pytest.raises(TypeError, match=r"^mechanism: given Exact; expected an additive mechanism"):
        dpjax.mechanisms.Truncated(mechanism, lower=0.0)


def test_columns():
    residuals = jnp.array([[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(KNOWN.log_densities_at(residuals), [0.0, -np.inf])
    assert KNOWN.log_density_at(residuals[:, 0]) == 0


@pytest.mark.x64
def test_importance_sampling_needs_no_imputation():
    found = dpjax.importance_sample(jax.random.key(2), MODEL, MIXED, 20_000)
    error = abs(found.log_marginal_likelihood - enumerate_records(MIXED)[0])
    assert error < MAX_ERRORS * found.log_marginal_likelihood_error


@pytest.mark.parametrize("release", [KNOWN, MIXED], ids=["exact", "joint"])
@pytest.mark.parametrize("imputation", [dpjax.imwg(), dpjax.imwg("random"), dpjax.soma(), dpjax.pcn(1, 0.0)], ids=repr)
def test_records_that_move_one_by_one_are_refused(release, imputation):
    pattern = r"^imputation: given .*exact.*; expected noise on every released number.*imputation=dpjax\.counts\(\)"
    with pytest.raises(ValueError, match=pattern):
        imputation(MODEL, release)
    with pytest.raises(ValueError, match=pattern):
        dpjax.gibbs(MODEL, release, imputation)


def test_couplings_of_records_are_refused():
    for imputation in (dpjax.imwg(), dpjax.soma()):
        with pytest.raises(ValueError, match=r"^imputation: given .*exact.*dpjax\.counts\(\)"):
            coupling.coupled_gibbs(MODEL, MIXED, imputation)


def test_known_records_are_refused():
    with pytest.raises(ValueError, match=r"^channel: given Exact; expected a channel that hides the record"):
        dpjax.LocalRelease([0.5, 1.0], dpjax.Exact(), "y")


def test_mixtures_refuse_known_histograms():
    release = dpjax.Release([3, 2], dpjax.Exact(), statistics.histogram("y", [0.0, 0.5, 1.0]), 5)
    with pytest.raises(ValueError, match=r"^mechanism: given .*; expected finite densities of the released value"):
        bin_release(release)


def test_continuous_sums_are_refused_too():
    normal = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
    with pytest.raises(ValueError, match=r"^imputation: given .*exact"):
        dpjax.gibbs(normal, dpjax.Release([1.0], dpjax.Exact(), statistics.total("y"), 5))
