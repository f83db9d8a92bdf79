"""Pairs of a channel and a component whose marginal is known, so that records can be drawn exactly."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import describe, fail, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms import Gaussian, Laplace, PoissonBinomial
from dpjax.mechanisms.base import Mechanism, is_mechanism
from dpjax.mixture.base import Component, NormalRecords, Theta, Tractable
from dpjax.mixture.components.beta import GammaShapes
from dpjax.mixture.components.gaussian import NormalInverseGamma
from dpjax.mixture.components.multivariate import NormalInverseWishart, centred_log_density
from dpjax.numerics.binomial_sums import log_binomial_sum
from dpjax.numerics.dirichlet import binomial_log_marginals, draw_beta
from dpjax.numerics.linear_algebra import factorize, product, solve_lower, solve_upper
from dpjax.numerics.selection import select_indices

__all__ = ["find_tractable", "register_tractable"]

Build = Callable[[Any, Any], Tractable | None]

MOST_TRIALS = 1_000
"""Largest number of trials of binomial counts behind which Beta records are integrated out."""

PAIRS: dict[tuple[type, type], Build] = {}


@names_arguments
def register_tractable(channel: type, component: type) -> Callable[[Build], Build]:
    """A decorator that registers the known marginal of a channel and a component with the samplers.

    The decorated function takes an instance of each and returns a `Tractable`; or None, if these two have none.

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
    >>> @dpjax.mixture.register_tractable(Silent, dpjax.mixture.NormalInverseGamma)
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


@names_arguments
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
    >>> dpjax.mixture.find_tractable(dpjax.Laplace(1.0), normal) is not None
    True
    >>> dpjax.mixture.find_tractable(dpjax.mechanisms.HaarWavelet(1.0, resolution=3), normal) is None
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


@register_tractable(PoissonBinomial, GammaShapes)
def beta_behind_counts(channel: PoissonBinomial, component: GammaShapes) -> Tractable | None:
    """The marginal of a Beta record behind a binomial count, if the bounds contain the unit interval.

    Each trial succeeds with probability p(1) where a hidden trial of probability y does, and with p(0) elsewhere. The
    number s of successful hidden trials is beta-binomial, and y given s is Beta(a + s, b + m - s).
    """
    del component
    m = channel.num_trials
    if not (channel.lower <= 0 and channel.upper >= 1) or m > MOST_TRIALS:
        return None
    log_released = log_released_given(channel)

    def log_terms(value: Array, theta: Theta) -> Array:
        """log P(s, z | θ) [m + 1] for all numbers s of successful hidden trials."""
        a, b = (jnp.asarray(theta[name], log_released.dtype) for name in ("a", "b"))
        return log_released[value] + binomial_log_marginals(a, b, m)

    def sample_latent(key: Key, values: Array, theta: Theta) -> Array:
        key_hidden, key_record = jax.random.split(key)
        uniforms = jax.random.uniform(key_hidden, values.shape, log_released.dtype)
        hidden = select_indices(jax.vmap(log_terms)(values, theta).T, uniforms)[0].astype(log_released.dtype)
        return draw_beta(key_record, theta["a"] + hidden, theta["b"] + (m - hidden))

    return Tractable(lambda value, theta: jax.nn.logsumexp(log_terms(value, theta)), sample_latent)


@jax.jit
def log_released_given(channel: PoissonBinomial) -> Array:
    """log P(z | s) [m + 1, m + 1] of z successes in all, if s hidden trials succeed."""
    (low, high), (_, rest) = channel.probabilities(jnp.array([0.0, 1.0]))
    number = jnp.arange(channel.num_trials + 1, dtype=low.dtype)
    total, first = number[:, None], number[None]
    possible = ((low > 0) | (total <= first)) & ((rest > 0) | (total >= first))
    # Certain trials are taken for almost certain ones: what is possible changes by rounding only.
    rounding = jnp.finfo(low.dtype).eps
    p, q = jnp.minimum(high, 1 - rounding), jnp.maximum(low, rounding)
    log_sum = log_binomial_sum(total, first, channel.num_trials - first, p, q, channel.num_trials)
    return jnp.where(possible, log_sum, -jnp.inf)
