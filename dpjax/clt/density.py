"""The density of a release under the normal approximation of the sum (Bernstein and Sheldon 2018, 2019).

Given θ the sum S of n contributions of mean μ(θ) and covariance Σ(θ) is approximately N(n μ, n Σ). All is in units of
√n. The residual y = √n (s / n − μ) is N(0, V) with V = Σ + D / n, for Normal noise of variances D. The cost does not
depend on n. An unknown n is integrated out with two of its values at a time; see `dpjax.clt.number`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import Obstacle, name_of
from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.moments import Moments, Source, build_moments
from dpjax.clt.number import find_neighbours, number_at, reference_number
from dpjax.mechanisms.base import Mechanism, parts_of
from dpjax.mechanisms.smoothed import smoothed
from dpjax.mechanisms.spread import simulated_variance
from dpjax.models.data_sets import take_number
from dpjax.numerics.linear_algebra import LOG_TWO_PI, factorize, product, solve_lower
from dpjax.numerics.scores import EXPONENTIAL_SCORES
from dpjax.release import Release
from dpjax.release.summed import log_density_at
from dpjax.release.unknown_count import is_unknown

__all__ = ["CltProblem", "build_problem", "obstacle_of_noise", "release_noise", "simulate_variance"]


class ReleaseNoise(NamedTuple):
    """The noise of all coordinates of a release.

    Attributes
    ----------
    variance
        The variance of the noise of each coordinate, or of the Normal noise in its place [d].
    scaled
        The coordinates with latent variances, that is with Laplace noise.
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


class CltProblem(NamedTuple):
    """The parts of the density.

    Attributes
    ----------
    release
        The release, with real-valued noise.
    moments
        The moments of one record's contribution.
    noise
        The noise of the release.
    """

    release: Release
    moments: Moments
    noise: ReleaseNoise

    def residual(self, parameters: Parameters) -> tuple[Array, Array]:
        """√n times the difference [d] between value / n and its mean, and the covariance [d, d] without noise."""
        offset, covariance = self.moments(parameters)
        return self.residual_at(number_at(self.release, parameters), offset), covariance

    def residual_at(self, number: Array | int, offset: Array) -> Array:
        """√n times the difference [d] between value / n and the mean, for n records."""
        root = jnp.sqrt(jnp.asarray(number, offset.dtype))
        if not is_unknown(self.release):
            return -root * offset
        about = reference_number(self.release)
        return (about - number) / root * (self.release.value / about) - root * offset

    def log_likelihood(self, parameters: Parameters, scales: Array, sums: Array) -> Array:
        """The log-density [] of the value given the parameters and the latent numbers."""
        if not is_unknown(self.release):
            return self.log_density(self.release.n, self.moments(parameters), scales, sums)
        neighbours = find_neighbours(self.release, parameters)
        return neighbours.log_sum(self.log_densities(parameters, scales, sums)) - neighbours.log_prior

    def log_densities(self, parameters: Parameters, scales: Array, sums: Array) -> Array:
        """The log-density [2] at either neighbour of an unknown number."""
        moments, numbers = self.moments(parameters), find_neighbours(self.release, parameters).numbers
        return jax.vmap(lambda number: self.log_density(number, moments, scales, sums))(numbers)

    def draw_number(self, uniform: Array, parameters: Parameters, scales: Array, sums: Array) -> Array:
        """The number of records, int [], given the place between two and all else, by a uniform number."""
        densities = self.log_densities(parameters, scales, sums)
        return find_neighbours(self.release, parameters).choose(uniform, densities)

    def log_density(self, number: Array | int, moments: tuple[Array, Array], scales: Array, sums: Array) -> Array:
        """The log-density [] of the value for n records of these moments."""
        offset, covariance = moments
        variance = self.noise.variance_at(scales) / number
        per_coordinate = LOG_TWO_PI + jnp.log(jnp.asarray(number, variance.dtype))  # as the residual is in units of √n
        factor = factorize(covariance + jnp.diag(variance))
        white = solve_lower(factor, self.residual_at(number, offset)[:, None])[:, 0]
        value = -jnp.sum(jnp.square(white) + per_coordinate) / 2 - jnp.sum(jnp.log(jnp.diagonal(factor)))
        return value + self.correction(number, factor, white, variance, sums) if self.noise.held else value

    def correction(self, number: Array | int, factor: Array, white: Array, variance: Array, sums: Array) -> Array:
        """The log ratio [] of the density of latent noise to that of the Normal noise in its place.

        Under Normal noise of variances D the noise e given the value is N(D V⁻¹ y, D − D V⁻¹ D), and e is computed from
        standard Normal numbers accordingly. The joint density of s and these numbers then only needs the factor η(s | s
        − e) over the Normal density of e.
        """
        places = self.noise.held_places
        own = variance[places]
        inverse = solve_lower(factor, jnp.eye(variance.size, dtype=variance.dtype)[:, places]) * own[None]
        slack = jnp.sqrt(jnp.finfo(own.dtype).eps) / 16  # a sum that cannot vary determines the noise
        given = jnp.diag(own * (1 + slack)) - product(inverse.T, inverse)
        noise = product(inverse.T, white) + product(factorize(given), sums)
        value, start = jnp.zeros((), own.dtype), 0
        for part, where in self.noise.held:
            stop = start + where.stop - where.start
            origin = self.release.value[where]
            scale = jnp.sqrt(jnp.asarray(number, own.dtype))
            value += log_density_at(part, origin, origin, scale * noise[start:stop])
            start = stop
        return value + jnp.sum(jnp.square(noise) / own + jnp.log(own * number) + LOG_TWO_PI) / 2


def build_problem(model: Model, release: Release, source: Source, rule: Any, simulated: Array) -> CltProblem:
    """The problem of a model and a release; see `build_moments` and `release_noise` for the rest."""
    moments = build_moments(model, release, source, rule)
    return CltProblem(
        release, lambda parameters: moments(take_number(parameters)[0]), release_noise(release, simulated)
    )


def obstacle_of_noise(mechanism: Any, d: int) -> Obstacle | None:
    """A part of the mechanism that does not add noise that can be approximated by real numbers."""
    for part, _ in parts_of(mechanism, d):
        inner = part._innermost
        if inner.noise is None or part.sums.period or not becomes_real(inner):
            given = f"a release by {name_of(part)}"
            expected = "one whose mechanism adds noise, such as dpjax.Laplace or dpjax.DiscreteGaussian"
            return Obstacle("release", given, expected, "Use dpjax.sample.", TypeError)
    return None


def becomes_real(mechanism: Mechanism) -> bool:
    """Whether the noise is real, or can be replaced by real noise."""
    try:
        smoothed(mechanism)
    except NotImplementedError:
        return False
    return True


def release_noise(release: Release, simulated: Array) -> ReleaseNoise:
    """The noise of a release.

    Parameters
    ----------
    simulated
        Variances [d] for mechanisms of unknown variance; see `simulate_variance`.
    """
    variance, scaled, held = simulated, [], []
    for part, where in parts_of(release.mechanism, release.value.size):
        noise = part.noise
        if noise is not None and noise.is_normal:
            variance = variance.at[where].set(jnp.square(jnp.asarray(noise.scale(), variance.dtype)))
        elif noise is not None and is_known(part):
            variance = variance.at[where].set(jnp.asarray(noise.variance(), variance.dtype))
            scaled += [where] if noise.is_scale_mixture else []
        else:
            held.append((part, where))
    return ReleaseNoise(variance, places_of(scaled), tuple(held))


def is_known(part: Mechanism) -> bool:
    """Whether the noise is Normal, given a scale for each coordinate if they have a distribution."""
    noise = part.noise
    return noise is not None and (noise.is_normal or part.sums.known or noise.is_scale_mixture)


def places_of(slices: list[slice]) -> np.ndarray:
    """The coordinates of all slices."""
    return np.concatenate([np.arange(where.start, where.stop) for where in slices] or [np.arange(0)])


def simulate_variance(key: Key, release: Release) -> Array:
    """The variance [d] of the mechanism's noise, estimated by simulation; 0 if it is known."""
    variance = jnp.zeros_like(release.value)
    for place, (part, where) in enumerate(parts_of(release.mechanism, release.value.size)):
        if is_known(part):
            continue
        own = simulated_variance(jax.random.fold_in(key, place), part, release.value[where])
        variance = variance.at[where].set(own)
    return variance
