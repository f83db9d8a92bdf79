"""The elliptical slice move (Murray, Adams and MacKay 2010), as a proposal of BlackJAX's slice kernel.

BlackJAX's own elliptical sampler has no bound on its shrinking, so a likelihood that is flat to the last bit can hold
it for ever; its slice kernel has the bound, and its proposals are open.
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
    """The candidates at each angle on the ellipse through the position and a standard normal draw."""
    momentum = jax.random.normal(rng_key, position.shape)

    return within_support(lambda angle: position * jnp.cos(angle) + momentum * jnp.sin(angle), log_density)


def within_support(point: Callable[[Array], Array], log_density: Callable[[Array], Array]) -> Callable:
    """The candidates at each place on a line or ellipse, valid where their density is positive and finite.

    A level of log-density −∞, from a state of zero density or a uniform draw of 0, would else accept anything.
    """

    def candidate(place: Array) -> tuple[SliceState, Array]:
        position = point(place)
        density = log_density(position)
        return SliceState(position, density), jnp.isfinite(density)

    return candidate


def whole_turn(rng_key: Key, in_slice: Callable, width: float, max_expansions: int) -> tuple:
    """The bracket of one whole turn, placed at random around the angle 0."""
    del in_slice, max_expansions  # the ellipse is closed: there is nothing to step out to
    left = -width * jax.random.uniform(rng_key)
    return left, left + width, jnp.array(0), lambda angle: jnp.array(True)
