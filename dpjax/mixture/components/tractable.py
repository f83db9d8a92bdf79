"""Pairs of a channel and a component whose marginal is known, so that records can be drawn exactly."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.validation import describe, fail, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms import Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism, is_mechanism
from dpjax.mixture.base import Component, NormalRecords, Theta, Tractable
from dpjax.mixture.components.gaussian import NormalInverseGamma
from dpjax.mixture.components.multivariate import NormalInverseWishart, centred_log_density
from dpjax.numerics.linear_algebra import factorize, product, solve_lower, solve_upper

__all__ = ["find_tractable", "register_tractable"]

Build = Callable[[Any, Any], Tractable]

PAIRS: dict[tuple[type, type], Build] = {}


def register_tractable(channel: type, component: type) -> Callable[[Build], Build]:
    """A decorator that registers the known marginal of a channel and a component with the samplers.

    The decorated function takes an instance of each and returns a `Tractable`.

    Parameters
    ----------
    channel
        The channel's type.
    component
        The component's type.

    Examples
    --------
    >>> import dpjax
    >>> class Silent(dpjax.Gaussian):
    ...     pass
    >>> normal = dpjax.mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> known = dpjax.mixture.find_tractable(dpjax.Gaussian(1.0), normal)
    >>> @register_tractable(Silent, dpjax.mixture.NormalInverseGamma)
    ... def as_of_gaussian(channel):
    ...     return known
    """
    for name, kind in {"channel": channel, "component": component}.items():
        if not isinstance(kind, type):
            fail(name, describe(kind), "a class", "Pass the type, not an instance of it.", error=TypeError)

    def register(build: Build) -> Build:
        PAIRS[channel, component] = build
        return build

    return register


def find_tractable(channel: Mechanism, component: Component) -> Tractable | None:
    """The known marginal of a channel and a component, or None.

    Parameters
    ----------
    channel
        A mechanism.
    component
        A component.

    Examples
    --------
    >>> import dpjax
    >>> normal = dpjax.mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> find_tractable(dpjax.Laplace(1.0), normal) is not None
    True
    >>> find_tractable(dpjax.mechanisms.HaarWavelet(1.0, resolution=3), normal) is None
    True
    """
    if not is_mechanism(channel):
        fail("channel", name_of(channel), "a mechanism", "Pass such as dpjax.Gaussian(scale).", error=TypeError)
    if not isinstance(component, Component):
        fail("component", name_of(component), "a component", "Pass one of dpjax.mixture.", error=TypeError)
    build = PAIRS.get((type(channel), type(component)))
    return None if build is None else build(channel, component)


@register_tractable(Laplace, NormalInverseGamma)
@register_tractable(Gaussian, NormalInverseGamma)
def normal_behind_noise(channel: Any, component: NormalRecords) -> Tractable:
    """The marginal of a Normal record behind Laplace or Gaussian noise."""
    return Tractable(
        lambda value, theta: channel.noise.log_marginal_normal(value, *component.normal_field(theta)),
        lambda key, values, theta: channel.noise.sample_latent_normal(key, values, *component.normal_field(theta)),
    )


@register_tractable(Gaussian, NormalInverseWishart)
def normal_vector_behind_noise(channel: Any, component: Any) -> Tractable:
    """The marginal of a Normal vector behind Gaussian noise: the released value is N(μ, Σ + diag(η²))."""

    def total(theta: Theta) -> Array:
        cholesky = theta["cholesky"]
        noise = jnp.broadcast_to(jnp.square(jnp.asarray(channel.scale, cholesky.dtype)), cholesky.shape[:1])
        return factorize(product(cholesky, cholesky.T) + jnp.diag(noise))

    def log_marginal(value: Array, theta: Theta) -> Array:
        return centred_log_density(value - theta["mean"], total(theta))

    def shift(gap: Array, theta: Theta) -> Array:
        """Σ (Σ + diag(η²))⁻¹ times a gap [d]."""
        factor, cholesky = total(theta), theta["cholesky"]
        weights = solve_upper(factor, solve_lower(factor, gap[:, None]))
        return product(cholesky, product(cholesky.T, weights))[:, 0]

    def sample_latent(key: Key, values: Array, theta: Theta) -> Array:
        # A record and noise from their prior, shifted so that they sum to the value.
        key_record, key_noise = jax.random.split(key)
        records = component.sample(key_record, theta)
        gaps = values - records - channel.noise.sample(key_noise, records.shape, records.dtype)
        return records + jax.vmap(shift)(gaps, theta)

    return Tractable(log_marginal, sample_latent)
