"""Counts that are certain: values by SciPy, and derivatives of what is left when they are taken out."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

import dpjax
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.truncation import log_density

SIZES = jnp.array([0.0, 2.0])
"""The first count is certain, the second is not."""

CASES = {
    "poisson": (lambda t: dist.Poisson(t * SIZES), [0, 1], lambda t: stats.poisson.logpmf(1, 2 * t)),
    "no shares": (lambda t: dist.Binomial(3, probs=t * SIZES), [0, 1], lambda t: stats.binom.logpmf(1, 3, 2 * t)),
    "whole shares": (lambda t: dist.Binomial(3, 1 - t * SIZES), [3, 2], lambda t: stats.binom.logpmf(1, 3, 2 * t)),
    "bernoulli": (lambda t: dist.Bernoulli(t * SIZES), [0, 1], lambda t: stats.bernoulli.logpmf(1, 2 * t)),
    "geometric": (lambda t: dist.GeometricProbs(1 - t * SIZES), [0, 1], lambda t: stats.geom.logpmf(2, 1 - 2 * t)),
    "zeros beside": (
        lambda t: dist.ZeroInflatedPoisson(0.25, rate=t * SIZES),
        [0, 1],
        lambda t: np.log(0.75) + stats.poisson.logpmf(1, 2 * t),
    ),
    "zeros alone": (
        lambda t: dist.ZeroInflatedPoisson(1 - t * SIZES, rate=1.5),
        [0, 1],
        lambda t: np.log(2 * t) + stats.poisson.logpmf(1, 1.5),
    ),
}
AT = 0.125


@jax.numpy_dtype_promotion("standard")  # as NumPyro has it
def test_certain_counts_have_their_density_and_its_derivatives():
    """Catches 0 times infinity, which is NaN in a gradient though the value is right, and a wrong value at an end."""

    def terms(t):
        return jnp.stack([log_density(on_floats(law(t)), jnp.array(value)) for law, value, _ in CASES.values()])

    def impossible(t):
        return jnp.stack([log_density(on_floats(law(t)), jnp.array([1, 1]))[0] for law, _, _ in CASES.values()])

    evaluate = jax.jit(lambda t: (terms(t), jax.jacfwd(terms)(t), jax.jacfwd(jax.jacrev(terms))(t), impossible(t)))
    values, slopes, curvatures, never = (np.asarray(part) for part in evaluate(jnp.asarray(AT)))
    exact = jnp.zeros((), float).dtype == np.float64
    step = 1e-4
    for place, (name, (_, _, expected)) in enumerate(CASES.items()):
        below, here, above = (expected(AT + move) for move in (-step, 0.0, step))
        np.testing.assert_allclose(values[place, 1], here, rtol=1e-9 if exact else 1e-5, err_msg=name)
        np.testing.assert_allclose(slopes[place, 1], (above - below) / 2 / step, rtol=1e-4, err_msg=name)
        curved = (above - 2 * here + below) / step**2
        np.testing.assert_allclose(curvatures[place, 1], curved, rtol=1e-3, atol=1e-3, err_msg=name)
        assert values[place, 0] == 0, name
        assert np.all(slopes[place, 0] == 0), name
        assert np.all(curvatures[place, 0] == 0), name
    assert np.all(never == -np.inf)


POPULATIONS = np.array([0, 40, 100])


def deaths(population, y=None):
    rate = numpyro.sample("rate", dist.LogNormal(-2.0, 1.0))
    with numpyro.plate("counties", len(population)):
        numpyro.sample("y", dist.Poisson(rate * population), obs=y)


@jax.numpy_dtype_promotion("standard")  # as NumPyro has it
def test_a_county_without_people_leaves_the_gradient_as_it_is():
    """Catches a likelihood whose gradient is NaN where a unit has no people, so that no chain moves."""
    model = dpjax.from_numpyro(deaths, ["y"], population=POPULATIONS)
    released = np.array([1, 5, 14])
    likelihood = dpjax.marginal_likelihood(model, dpjax.LocalRelease(released, dpjax.DiscreteLaplace(2.0), field="y"))

    def expected(rate):
        counts = np.arange(400)
        noise = stats.dlaplace(1 / 2.0).pmf(released[:, None] - counts[None])
        return np.log((stats.poisson.pmf(counts[None], rate * POPULATIONS[:, None]) * noise).sum(axis=1)).sum()

    value, slope = jax.jit(jax.value_and_grad(lambda rate: likelihood({"rate": rate})))(0.15)
    np.testing.assert_allclose(value, expected(0.15), rtol=2e-5)
    np.testing.assert_allclose(slope, (expected(0.15 + 1e-5) - expected(0.15 - 1e-5)) / 2e-5, rtol=1e-4)
