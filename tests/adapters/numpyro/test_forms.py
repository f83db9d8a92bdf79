"""Every family's noise: it gives its values back, and its density is what the form says."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.distributions import transforms

from dpjax.adapters.numpyro import from_numpyro
from dpjax.adapters.numpyro.form import CENTRED
from dpjax.adapters.numpyro.forms import form_of
from dpjax.base import Array

CONTINUOUS: dict[str, Callable[[Array, Array], Any]] = {
    "Normal": lambda a, b: dist.Normal(a, b),
    "LogNormal": lambda a, b: dist.LogNormal(a, b),
    "Laplace": lambda a, b: dist.Laplace(a, b),
    "Cauchy": lambda a, b: dist.Cauchy(a, b),
    "Logistic": lambda a, b: dist.Logistic(a, b),
    "Gumbel": lambda a, b: dist.Gumbel(a, b),
    "StudentT": lambda a, b: dist.StudentT(3 + a, a, b),
    "HalfNormal": lambda a, b: dist.HalfNormal(b),
    "HalfCauchy": lambda a, b: dist.HalfCauchy(b),
    "Uniform": lambda a, b: dist.Uniform(a, a + b),
    "Exponential": lambda a, b: dist.Exponential(b),
    "Weibull": lambda a, b: dist.Weibull(b, 1 + a),
    "Kumaraswamy": lambda a, b: dist.Kumaraswamy(1 + a, b),
    "Pareto": lambda a, b: dist.Pareto(b, 1 + a),
    "Gamma": lambda a, b: dist.Gamma(1 + a, b),
    "Chi2": lambda a, b: dist.Chi2(2 + a),
    "InverseGamma": lambda a, b: dist.InverseGamma(1 + a, b),
    "Beta": lambda a, b: dist.Beta(1 + a, b),
    "TruncatedNormal": lambda a, b: dist.TruncatedNormal(a, b, low=a - 1, high=a + 2),
    "affine": lambda a, b: dist.TransformedDistribution(dist.StudentT(5.0), transforms.AffineTransform(a, b)),
    "SoftLaplace": lambda a, b: dist.SoftLaplace(a, b),
}
FREE = {name for name in CONTINUOUS if name not in ("StudentT", "Gamma", "Chi2", "InverseGamma", "Beta", "affine")}

DISCRETE: dict[str, Any] = {
    "Bernoulli": dist.Bernoulli(probs=0.3),
    "Bernoulli logits": dist.Bernoulli(logits=-0.4),
    "Categorical": dist.Categorical(probs=jnp.array([0.2, 0.5, 0.0, 0.3])),
    "Categorical logits": dist.Categorical(logits=jnp.array([0.1, -0.5, 1.0])),
    "DiscreteUniform": dist.DiscreteUniform(2, 6),
    "Poisson": dist.Poisson(2.5),
    "Binomial": dist.Binomial(5, probs=0.4),
    "Geometric": dist.Geometric(probs=0.3),
    "NegativeBinomial": dist.NegativeBinomial2(3.0, 2.0),
    "ZeroInflatedPoisson": dist.ZeroInflatedPoisson(0.3, 2.0),
}

POINTS = 4_000


def normalised_density(build: Callable, a: Array, b: Array, score: Array) -> tuple[Array, Array, Array]:
    """For a score v: the round trip of its noise, log f(T(u)) + log |T'(u)| - log g(u), and that in terms of v."""
    form = form_of(build(a, b).expand((1,)))
    scores = form.scores
    noise = score if scores is None else scores.noise(score)

    def value(noise: Array) -> Array:
        return form.value(noise[None])[0]

    record = value(noise)
    slope = jnp.log(jnp.abs(jax.grad(value)(noise)))
    density = build(a, b).log_prob(record) + slope
    if form.log_density is not None:
        density = density - form.log_density(noise[None])[0]
    spread = 0.0 if scores is None else jnp.log(jnp.abs(jax.grad(scores.noise)(score)))
    return form.noise(jax.random.key(0), record[None])[0] - noise, density, density + spread


@pytest.mark.x64
def test_continuous_noise_has_the_density_that_its_form_says() -> None:
    """It does not change with the parameters, and it is standard Normal in terms of the scores."""
    points = jnp.array([-1.7, -0.4, 0.3, 1.9])
    firsts, seconds = jnp.array([0.7, 1.1]), jnp.array([1.6, 0.8])

    @jax.jit
    def compute() -> dict[str, tuple]:
        def at_all(build: Callable) -> tuple:
            over_points = jax.vmap(partial(normalised_density, build), in_axes=(None, None, 0))
            return jax.vmap(over_points, in_axes=(0, 0, None))(firsts, seconds, points)

        return {name: at_all(build) for name, build in CONTINUOUS.items()}

    for name, (trips, (one, other), normals) in compute().items():
        np.testing.assert_allclose(trips, 0.0, atol=1e-8, err_msg=name)
        np.testing.assert_allclose(one, other, atol=1e-8, err_msg=name)
        if name in FREE:
            np.testing.assert_allclose(normals[0], jax.scipy.stats.norm.logpdf(points), atol=1e-8, err_msg=name)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_what_is_free_of_the_parameters(name: str) -> None:
    form = form_of(CONTINUOUS[name](jnp.array(0.7), jnp.array(1.6)).expand((1,)))
    assert form.description != CENTRED
    assert (form.log_density is None) == (form.scores is not None) == (name in FREE)


@pytest.mark.x64
def test_discrete_cells_have_the_widths_of_their_probabilities() -> None:
    grid = (jnp.arange(POINTS) + 0.5) / POINTS

    @jax.jit
    def compute() -> dict[str, tuple]:
        result = {}
        for name, law in DISCRETE.items():
            form = form_of(law.expand((POINTS,)))
            values = form.value(grid)
            result[name] = values, jnp.exp(law.log_prob(values)), form.value(form.noise(jax.random.key(1), values))
        return result

    for name, (values, probability, again) in compute().items():
        assert np.all(np.diff(values) >= 0), name
        levels, first, counts = np.unique(values, return_index=True, return_counts=True)
        np.testing.assert_allclose(counts / POINTS, probability[first], atol=1.5 / POINTS, err_msg=name)
        assert len(levels) > 1, name
        np.testing.assert_array_equal(again, values, err_msg=name)


@pytest.mark.x64
def test_a_vector_site_is_standardised_along_its_records() -> None:
    factor = jnp.array([[1.0, 0.0], [0.5, 2.0]])
    shared = dist.MultivariateNormal(jnp.array([1.0, -1.0]), scale_tril=factor)
    own = dist.MultivariateNormal(jnp.zeros((3, 2)), scale_tril=jnp.broadcast_to(factor, (3, 2, 2)))
    for law in (shared.expand((3,)), own, dist.Normal(jnp.zeros(2), 2.0).expand((3, 2)).to_event(1)):
        form = form_of(law)
        values = law.sample(jax.random.key(2))
        noise = form.noise(jax.random.key(3), values)
        np.testing.assert_allclose(form.value(noise), values, atol=1e-5)
        assert form.scores is not None


@pytest.mark.x64
def test_a_law_without_a_form_stays_centred() -> None:
    law = dist.Dirichlet(jnp.ones(3)).expand((4,))
    form = form_of(law)
    values = law.sample(jax.random.key(4))
    assert form.description == CENTRED
    np.testing.assert_allclose(form.log_density(values), law.log_prob(values))


def two_coins(n: int) -> None:
    chance = numpyro.sample("chance", dist.Beta(2.0, 2.0))
    with numpyro.plate("people", n):
        numpyro.sample("one", dist.Bernoulli(chance))
        numpyro.sample("other", dist.Bernoulli(chance))


def test_every_site_draws_noise_of_its_own() -> None:
    """Equal places within equal cells give each field its distribution, and not the pair."""
    model = from_numpyro(two_coins, ["one", "other"], n=6)
    assert model.has("noncentred")
    records = {"one": jnp.zeros(6, int), "other": jnp.zeros(6, int)}
    noise = model.noncentred.noise(jax.random.key(1), {"chance": jnp.array(0.4)}, records)
    assert not np.any(np.isclose(noise["one"], noise["other"]))
