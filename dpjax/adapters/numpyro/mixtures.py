"""The form of a mixture of Normal distributions: the component, and the value standardised by it.

The component is drawn given the value whenever noise is asked for, so that it is summed over in the end. While the
noise is held, records move with the location and scale of their component, whose weights are its density.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro import distributions as dist

from dpjax.adapters.numpyro.form import Form, per_record
from dpjax.adapters.numpyro.trace import unwrap
from dpjax.base import Array, Key


def is_normal_mixture(inner: Any) -> bool:
    """Whether a distribution is a mixture of Normal distributions of single numbers."""
    if inner.event_shape or not isinstance(inner, (dist.MixtureSameFamily, dist.MixtureGeneral)):
        return False
    return all(type(unwrap(part)) is dist.Normal for part in distributions_of(inner))


def distributions_of(inner: Any) -> list[Any]:
    """The components of a mixture, or the one distribution that holds them all along its last axis."""
    return inner.component_distributions if isinstance(inner, dist.MixtureGeneral) else [inner.component_distribution]


class Components(NamedTuple):
    """The components of each value of some shape, each [k, ...]."""

    log_weights: Array
    locations: Array
    scales: Array

    def log_shares(self, value: Array) -> Array:
        """The log-probability [k, ...] of each component given the value [...], up to a constant."""
        standard = (value - self.locations) / self.scales
        return self.log_weights - jnp.square(standard) / 2 - jnp.log(self.scales)

    def at(self, places: Array) -> "Components":
        """The component [...] at each place [...]."""
        return Components(*(jnp.take_along_axis(part, places[None], axis=0)[0] for part in self))


def mixture_form(inner: Any) -> Form:
    """The form of a mixture of Normal distributions, of noise [..., 2]: a component and a standard number."""

    def noise(key: Key, value: Array) -> Array:
        components = components_of(inner, value)
        places = jax.random.categorical(key, components.log_shares(value), axis=0)
        own = components.at(places)
        return jnp.stack([places.astype(value.dtype), (value - own.locations) / own.scales], axis=-1)

    def own_of(noise: Array) -> Components:
        return components_of(inner, noise[..., 1]).at(noise[..., 0].astype(int))

    def value(noise: Array) -> Array:
        own = own_of(noise)
        return own.locations + own.scales * noise[..., 1]

    def log_density(noise: Array) -> Array:
        return per_record(own_of(noise).log_weights)

    return Form("standardised by its component, which is drawn", noise, value, log_density)


def components_of(inner: Any, value: Array) -> Components:
    """The components [k, ...] of values [...]."""
    weights = jax.nn.log_softmax(inner.mixing_distribution.logits)
    parts = [unwrap(part) for part in distributions_of(inner)]

    def components_first(parameter: Array) -> Array:
        whole = jnp.broadcast_to(parameter.astype(value.dtype), (*value.shape, weights.shape[-1]))
        return jnp.moveaxis(whole, -1, 0)

    def of_parts(name: str) -> Array:
        found = [jnp.asarray(getattr(part, name)) for part in parts]
        if isinstance(inner, dist.MixtureGeneral):
            return components_first(jnp.stack(jnp.broadcast_arrays(*found), axis=-1))
        return components_first(found[0])

    return Components(components_first(weights), of_parts("loc"), of_parts("scale"))
