"""The elliptical slice move (Murray, Adams and MacKay 2010), as a proposal of BlackJAX's slice kernel.

BlackJAX's own elliptical sampler does not bound how often its bracket shrinks, so a log-likelihood that is constant in
floating point can keep it in the loop for ever. Its slice kernel has a bound and takes proposals from outside.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from blackjax.mcmc import slice as blackjax_slice
from blackjax.mcmc.slice import SliceInfo, SliceState

from dpjax.base import Array, Key, SamplingAlgorithm


def elliptical_slice(log_density: Callable[[Array], Array]) -> SamplingAlgorithm:
    """Elliptical slice moves of a whitened vector [k]; they leave ``exp(log_density)`` invariant.

    The ellipse is that of a standard normal reference, whose density is divided out of the target
    (Nishihara, Murray and Adams 2014), so the target need not have a Gaussian prior.
    """

    def log_ratio(vector: Array) -> Array:
        return log_density(vector) + 0.5 * jnp.sum(vector * vector)

    kernel = blackjax_slice.build_kernel(interval=whole_turn)

    def init(position: Array, rng_key: Key | None = None) -> SliceState:
        del rng_key
        return blackjax_slice.init(position, log_ratio)

    def step(rng_key: Key, state: SliceState) -> tuple[SliceState, SliceInfo]:
        return kernel(rng_key, state, log_ratio, ellipse, 2 * jnp.pi)

    return SamplingAlgorithm(init, step)


def ellipse(rng_key: Key, position: Array, log_density: Callable[[Array], Array]) -> Callable:
    """The map from an angle to the candidate on the ellipse through the position and a standard normal draw."""
    momentum = jax.random.normal(rng_key, position.shape)

    return within_support(lambda angle: position * jnp.cos(angle) + momentum * jnp.sin(angle), log_density)


def within_support(point: Callable[[Array], Array], log_density: Callable[[Array], Array]) -> Callable:
    """The map from a place on a line or ellipse to the candidate there, valid if its density is positive and finite.

    Without this condition every candidate would be accepted at a slice level of log-density −∞, which a state of zero
    density or a uniform draw of 0 gives.
    """

    def candidate(place: Array) -> tuple[SliceState, Array]:
        position = point(place)
        density = log_density(position)
        return SliceState(position, density), jnp.isfinite(density)

    return candidate


def whole_turn(rng_key: Key, in_slice: Callable, width: float, max_expansions: int) -> tuple:
    """The first bracket: one turn [−w U, w − w U] around the current angle 0, with U uniform in (0, 1)."""
    del in_slice, max_expansions  # a whole turn holds the whole ellipse: nothing is left to step out to
    left = -width * jax.random.uniform(rng_key)
    return left, left + width, jnp.array(0), lambda angle: jnp.array(True)
