"""Mixtures of Normal distributions within a record: their noise, and a sampler that leaves the joint law as it is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax.adapters.numpyro.form import CENTRED
from dpjax.adapters.numpyro.forms import form_of
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

WEIGHTS, CENTRES, SCALES = np.array([0.3, 0.5, 0.2]), np.array([-1.0, 0.5, 2.0]), np.array([0.7, 0.4, 1.1])


def of_family() -> Any:
    return dist.MixtureSameFamily(dist.Categorical(jnp.asarray(WEIGHTS)), dist.Normal(CENTRES, SCALES))


def of_list() -> Any:
    parts = [dist.Normal(centre, scale) for centre, scale in zip(CENTRES, SCALES, strict=True)]
    return dist.MixtureGeneral(dist.Categorical(logits=jnp.log(jnp.asarray(WEIGHTS)) + 3.0), parts)


LAWS = {
    "of one family": of_family,
    "of a list": of_list,
    "each its own": lambda: dist.MixtureSameFamily(
        dist.Categorical(jnp.asarray(WEIGHTS)), dist.Normal(jnp.tile(CENTRES, (4_000, 1)), SCALES)
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_noise_is_a_component_by_its_share_and_the_value_standardised(name: str) -> None:
    """And it gives the value back; its density is the component's weight."""
    law = LAWS[name]()
    form = form_of(law if law.batch_shape else law.expand((4_000,)))
    values = jnp.full(4_000, 0.9)
    noise = form.noise(jax.random.key(1), values)
    places = np.asarray(noise[:, 0], int)
    np.testing.assert_allclose(noise[:, 1], (0.9 - CENTRES[places]) / SCALES[places], rtol=1e-5)
    np.testing.assert_allclose(form.value(noise), values, rtol=1e-5)
    np.testing.assert_allclose(form.log_density(noise), np.log(WEIGHTS[places]), rtol=1e-5)
    shares = WEIGHTS * stats.norm.pdf(0.9, CENTRES, SCALES)
    counts = np.bincount(places, minlength=3)
    assert stats.chisquare(counts, 4_000 * shares / np.sum(shares)).pvalue > 1e-3
    assert stats.chisquare(counts, 4_000 * WEIGHTS).pvalue < 1e-6  # a mutation: drawn without the value


@pytest.mark.x64
def test_values_of_noise_have_the_density_of_the_mixture() -> None:
    """The density of component and standard number, over the slope of the value, summed over components."""
    form, value = form_of(of_family().expand((3,))), jnp.array([0.4])
    own = jnp.stack([jnp.arange(3.0), (value - CENTRES) / SCALES], axis=-1)
    slopes = jax.vmap(jax.grad(lambda place, score: form.value(jnp.stack([place, score])[None])[0], argnums=1))(*own.T)
    terms = jnp.exp(form.log_density(own)) * stats.norm.pdf(own[:, 1]) / slopes
    np.testing.assert_allclose(np.sum(terms), jnp.exp(of_family().log_prob(value[0])), rtol=1e-10)


def test_other_mixtures_stay_centred() -> None:
    weights = dist.Categorical(jnp.asarray(WEIGHTS))
    law = dist.MixtureSameFamily(weights, dist.StudentT(4.0, CENTRES, SCALES)).expand((5,))
    assert form_of(law).description == CENTRED


def two_groups(n: int = 5) -> None:
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
    share = numpyro.sample("share", dist.Beta(2.0, 3.0))
    scale = numpyro.sample("scale", dist.Gamma(4.0, 4.0))
    centres = jnp.stack([centre, centre + 2.0])
    with numpyro.plate("records", n):
        weights = dist.Categorical(jnp.stack([share, 1 - share]))
        numpyro.sample("y", dist.MixtureSameFamily(weights, dist.Normal(centres, scale)))


LAWS_OF_PARAMETERS = {
    "centre": lambda centre: (centre, stats.norm()),
    "share": lambda share: (share, stats.beta(2.0, 3.0)),
    "scale": lambda scale: (scale, stats.gamma(4.0, scale=0.25)),
}


def moments(record: Any) -> jax.Array:
    """The clamped value, and whether it is high."""
    return jnp.stack([jnp.clip(record["y"], -3.0, 4.0), (record["y"] > 1.0).astype(record["y"].dtype)])


def p_values(model: dpjax.Model) -> list[float]:
    release = dpjax.Release(jnp.zeros(2), dpjax.Laplace(0.6), moments, 6)
    after = run(jax.random.key(8), model, release, dpjax.imwg(), interweave=True, num_chains=4_000, num_sweeps=4)
    return [noise_p_value(after.noise, stats.laplace(scale=0.6)), parameter_p_value(after, LAWS_OF_PARAMETERS)]


@pytest.mark.x32
def test_a_perfect_start_stays_perfect() -> None:
    assert min(p_values(dpjax.from_numpyro(two_groups, ["y"]))) > REJECT


@pytest.mark.x32
def test_components_that_are_not_drawn_are_found_out() -> None:
    """A mutation: every record is taken to be of the first component."""
    model = dpjax.from_numpyro(two_groups, ["y"])

    def first(key: jax.Array, parameters: Any, records: Any) -> Any:
        standard = (records["y"] - parameters["centre"]) / parameters["scale"]
        return {"y": jnp.stack([jnp.zeros_like(standard), standard])}

    assert min(p_values(model._replace(noncentred=model.noncentred._replace(noise=first)))) < REJECT
