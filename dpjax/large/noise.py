"""The noise of a release as Normal noise: with a known variance, with latent ones, or with latent sums.

Laplace noise of scale b is N(0, 2 b² E) with E standard Exponential. Other additive noise is held as such, and the
closed form of Normal noise is only the law that its latent numbers are standardised by.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Independent, Laplace
from dpjax.mechanisms.base import (
    Mechanism,
    Parts,
    Wrapper,
    adds_noise,
    has_integer_noise,
    innermost,
    is_normal,
    parts_of,
)
from dpjax.mechanisms.spread import simulated_variance
from dpjax.numerics.scores import EXPONENTIAL_SCORES
from dpjax.numerics.theta import integer_variance
from dpjax.release import Release
from dpjax.validation import fail, name_of

__all__ = ["NoiseLaw", "check_noise", "noise_law", "simulate_variance", "smooth"]


class NoiseLaw(NamedTuple):
    """The noise of all coordinates.

    Attributes
    ----------
    variance
        Of the noise of each coordinate, or of the Normal law that stands in for it [d].
    scaled
        The coordinates with latent variances, those of Laplace noise.
    held
        The mechanisms with latent noise, and their coordinates.
    """

    variance: Array
    scaled: np.ndarray
    held: tuple[tuple[Mechanism, slice], ...]

    def variance_at(self, scores: Array) -> Array:
        """The variance [d] of the noise given the Normal scores of the latent ones [m]."""
        if not self.scaled.size:
            return self.variance
        factors = EXPONENTIAL_SCORES.noise(scores)
        return self.variance * jnp.ones_like(self.variance).at[self.scaled].set(factors)

    @property
    def held_places(self) -> np.ndarray:
        """The coordinates with latent noise."""
        return places_of([where for _, where in self.held])


def smooth(mechanism: Any) -> Any:
    """The mechanism with whole noise replaced by real noise of the same variance, as the sum is by a Normal one."""
    if isinstance(mechanism, Parts):
        parts = [(smooth(part), size) for part, size in mechanism.parts]
        return Independent(*zip(*parts, strict=True))
    if isinstance(mechanism, Wrapper):
        return replace(mechanism, mechanism=smooth(mechanism.mechanism))  # type: ignore[type-var]
    if isinstance(mechanism, DiscreteGaussian):
        return Gaussian(jnp.sqrt(integer_variance(mechanism.scale)))
    if isinstance(mechanism, DiscreteLaplace):
        return Laplace(0.5 / jnp.sinh(0.5 / jnp.asarray(mechanism.scale)))
    return mechanism


def check_noise(mechanism: Any, d: int) -> None:
    """Raise unless every part of the mechanism adds noise that can be taken for real numbers."""
    for part, _ in parts_of(mechanism, d):
        known = isinstance(innermost(part), (DiscreteGaussian, DiscreteLaplace))
        if not adds_noise(part) or (has_integer_noise(part) and not known):
            given = f"a release by {name_of(part)}"
            expected = "one whose mechanism adds noise, such as dpjax.Laplace or dpjax.DiscreteGaussian"
            fail("release", given, expected, "Use dpjax.sample.", error=TypeError)


def noise_law(release: Release, simulated: Array) -> NoiseLaw:
    """The law of a release's noise.

    Parameters
    ----------
    simulated
        Variances [d] for the mechanisms whose own is not known; see `simulate_variance`.
    """
    variance, scaled, held = simulated, [], []
    for part, where in parts_of(release.mechanism, release.value.size):
        if is_normal(part):
            variance = variance.at[where].set(jnp.square(jnp.asarray(part.scale, variance.dtype)))
        elif isinstance(part, Exact):
            variance = variance.at[where].set(0.0)
        elif isinstance(part, Laplace):
            variance = variance.at[where].set(2 * jnp.square(jnp.asarray(part.scale, variance.dtype)))
            scaled.append(where)
        else:
            held.append((part, where))
    return NoiseLaw(variance, places_of(scaled), tuple(held))


def places_of(slices: list[slice]) -> np.ndarray:
    """The coordinates of all slices."""
    return np.concatenate([np.arange(where.start, where.stop) for where in slices] or [np.arange(0)])


def simulate_variance(key: Key, release: Release) -> Array:
    """The variance [d] of Normal noise as wide as the mechanism's, 0 where it is known."""
    variance = jnp.zeros_like(release.value)
    for place, (part, where) in enumerate(parts_of(release.mechanism, release.value.size)):
        inner = innermost(part)
        if part is inner and isinstance(part, (Gaussian, Laplace, Exact)):
            continue
        own = simulated_variance(jax.random.fold_in(key, place), part, release.value[where])
        variance = variance.at[where].set(own)
    return variance
