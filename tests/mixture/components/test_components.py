"""Components: an update given records drawn from the prior predictive leaves the base measure as it is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import mixture
from dpjax.numerics.gamma import draw_log_cut_gamma, log_lower_gamma
from tests.conftest import FLOAT32
from tests.mixture.components.cases import COMPONENTS, NOISE
from tests.tools.perfect_start import REJECT

NUM_CLUSTERS = 4_000


NUM_RECORDS = 6


def replicate(component: Any, believed: Any) -> dict[str, np.ndarray]:
    """Parameters [clusters] after an update of prior draws given records drawn from them; half the slots are empty."""
    return {name: np.asarray(leaf) for name, leaf in update_once(component, believed).items()}


@jax.jit
def update_once(component: Any, believed: Any) -> dict[str, jax.Array]:
    prior_key, record_key, update_key = jax.random.split(jax.random.key(4), 3)
    theta = component.sample_prior(prior_key, NUM_CLUSTERS)
    many = {name: jnp.repeat(leaf, NUM_RECORDS) for name, leaf in theta.items()}
    features = jax.vmap(component.features)(component.sample(record_key, many))
    filled = jnp.arange(NUM_CLUSTERS) % 2 == 0
    totals = features.reshape(NUM_CLUSTERS, NUM_RECORDS, -1).sum(axis=1)
    totals = jnp.where(filled[:, None], totals, 0)
    return believed.update(update_key, theta, jnp.where(filled, float(NUM_RECORDS), 0.0), totals)


def smallest_p_value(theta: dict[str, np.ndarray], laws: dict[str, Any]) -> float:
    return min(stats.kstest(theta[name][half::2], law.cdf).pvalue for name, law in laws.items() for half in (0, 1))


QUICK = ("truncated",)


MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in COMPONENTS]


@pytest.mark.parametrize("name", MARKED)
def test_an_update_keeps_the_base_measure(name: str) -> None:
    component, laws = COMPONENTS[name]
    assert smallest_p_value(replicate(component, component), laws) > REJECT


WRONG = {
    "gaussian": mixture.NormalInverseGamma(0.5, 0.5, 2.5, 2.0),
    "truncated": mixture.TruncatedNormalInverseGamma(0.5, 0.5, 2.0, 1.5).behind(dpjax.Gaussian(1.25 * NOISE)),
    "beta": mixture.GammaShapes(2.4, 1.5),
}


@pytest.mark.parametrize("name", MARKED)
def test_an_update_for_another_base_measure_is_rejected(name: str) -> None:
    component, laws = COMPONENTS[name]
    assert smallest_p_value(replicate(component, WRONG[name]), laws) < REJECT


@pytest.mark.slow
def test_an_update_keeps_a_base_measure_of_small_shapes() -> None:
    """Many records are then 0 or 1 to rounding; taken for exact ones, they forbid shapes near 0."""
    laws = dict.fromkeys("ab", stats.gamma(0.5))
    component = mixture.GammaShapes(0.5, 1.0)
    assert smallest_p_value(replicate(component, component), laws) > REJECT
    assert smallest_p_value(replicate(component, mixture.GammaShapes(0.6, 1.0)), laws) < REJECT


def test_the_cut_gamma_law_is_exact_in_bulk_and_tail() -> None:
    cases = [(1.0, 0.2), (1.0, 3.0), (3.0, 0.01), (2.0, 1.0), (40.0, 30.0), (40.0, 45.0), (40.0, 5.0), (500.0, 480.0)]
    shape, cut = (jnp.repeat(jnp.array(column), 1_000) for column in zip(*cases, strict=True))
    drawn = np.exp(np.asarray(jax.jit(draw_log_cut_gamma)(jax.random.key(2), shape, cut), float)).reshape(
        len(cases), -1
    )
    for (a, c), values in zip(cases, drawn, strict=True):
        assert stats.kstest(values, lambda x, a=a, c=c: special.gammainc(a, x) / special.gammainc(a, c)).pvalue > REJECT


def test_the_lower_gamma_function_does_not_underflow() -> None:
    shape = jnp.array([2.0, 3.0, 40.0, 40.0, 300.0, 2.0, 2.0, 300.0])
    cut = jnp.array([1.0, 9.0, 35.0, 60.0, 290.0, 25.0, 1e6, 420.0])
    expected = np.log(special.gammainc(np.asarray(shape), np.asarray(cut)))
    np.testing.assert_allclose(log_lower_gamma(shape, cut), expected, rtol=1e-4, atol=1e-4 if FLOAT32 else 1e-10)
    far = log_lower_gamma(jnp.array([1_000.0]), jnp.array([1.0]))
    assert float(far[0]) == pytest.approx(-1 - special.gammaln(1_001) + np.log1p(1 / 1_001), rel=1e-5)


def test_beta_densities_are_those_of_scipy() -> None:
    component = mixture.GammaShapes(2.0, 1.5)
    theta = {"a": jnp.array(0.7), "b": jnp.array(3.0)}
    points = np.array([0.001, 0.4, 0.99])
    found = jax.jit(jax.vmap(component.log_density, in_axes=(0, None)))(jnp.asarray(points, float), theta)
    np.testing.assert_allclose(found, stats.beta.logpdf(points, 0.7, 3.0), rtol=1e-4)
    assert component.log_density(jnp.array(1.5), theta) == -jnp.inf


def test_the_target_of_beta_shapes_has_the_jacobian_of_its_logarithms() -> None:
    """Against the density of the shapes times both of them; a prior of another shape is as smooth."""
    point, records = jnp.log(jnp.array([[2.0, 0.5], [3.0, 1.2]])), jnp.array([0.2, 0.7, 0.4])
    component = mixture.GammaShapes(2.0, 1.5)
    totals = jnp.broadcast_to(jnp.sum(jax.vmap(component.features)(records), axis=0), (2, 4))
    found = component._log_posterior(point, jnp.full(2, 3.0), totals)
    shapes = np.exp(np.asarray(point, float))
    terms = stats.beta.logpdf(np.asarray(records)[:, None], *shapes[:, None]).sum(axis=0)
    terms += (stats.gamma(2.0, scale=1 / 1.5).logpdf(shapes) + np.log(shapes)).sum(axis=0)
    np.testing.assert_allclose(found[1] - found[0], terms[1] - terms[0], rtol=1e-4)
