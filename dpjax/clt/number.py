"""An unknown number of records among the parameters: a real place between whole numbers stands for its neighbours.

With L(n, θ) the density of the value and p(n) the prior, chains move the parameters θ and a place y with density

    p(θ) Σ_n p(n) L(n, θ) max(0, 1 − |y − n|),

the linear interpolation of p(n) L(n, θ) between whole numbers, which is continuous. Its integral over y is Σ_n p(n)
L(n, θ), so θ has its exact marginal distribution. Given θ and y the number is one of the two on either side of y, with
probabilities from which it is drawn.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records, static
from dpjax.models.data_sets import NUMBER, take_number
from dpjax.models.same_records import SameRecords
from dpjax.release import Release
from dpjax.release.unknown_count import CountPrior, UnknownCount, expected_number, is_unknown

__all__ = ["Neighbours", "find_neighbours", "number_at", "reference_number", "with_place"]


def reference_number(release: Release) -> int:
    """The number of records, or one amid those that the prior allows: sums are taken about the value over it."""
    if not is_unknown(release):
        return int(release.n)
    low, high = prior_of(release).bounds
    return max(1, expected_number(release.n) if high is None else (low + high) // 2)


def number_at(release: Release, parameters: Parameters) -> Array | int:
    """The number of records [...], if it is unknown that of the draws or the place between two."""
    return parameters[NUMBER] if is_unknown(release) else release.n


def prior_of(release: Release) -> CountPrior:
    """The prior of an unknown number."""
    assert isinstance(release.n, UnknownCount)
    return release.n.prior


def least_number(prior: CountPrior) -> int:
    """The least number in question: without records there is no distribution of their sum."""
    return max(prior.bounds[0], 1)


def with_place(model: Model, release: Release) -> Model:
    """The model with the place among its parameters if the number is unknown, else as it is."""
    return WithPlace(model, prior_of(release)) if is_unknown(release) else model


class WithPlace(SameRecords):
    """The model of the same records as another one, with the place of an unknown number among its parameters.

    The density of the place is the linear interpolation of the number's prior probabilities.
    """

    model: Model
    prior: CountPrior = static()

    def own_parameters(self, parameters: Parameters) -> Parameters:
        """The parameters without the place."""
        return split(parameters)[0]

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from both priors, within one of the number."""
        own_key, number_key, place_key = jax.random.split(key, 3)
        shift = jnp.sum(jax.random.uniform(place_key, (2,), float)) - 1
        number = jnp.maximum(self.prior.sample(number_key), least_number(self.prior)).astype(float)
        return self.model.sample_prior(own_key) | {NUMBER: number + shift}

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of both priors."""
        own, place = split(parameters)
        return self.model.log_prior(own) + neighbours_of(self.prior, place).log_prior

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """From parameters and place to unconstrained numbers."""
        own, place = split(parameters)
        return self.model.unconstrain(own) | {NUMBER: find_ends(self.prior).unconstrain(place)}

    def constrain(self, free: Parameters) -> Parameters:
        """Its inverse."""
        own, place = split(free)
        return self.model.constrain(own) | {NUMBER: find_ends(self.prior).constrain(place)}

    def log_jacobian(self, free: Parameters) -> Array:
        """The log-determinant [] of `constrain`."""
        own, place = split(free)
        return self.model.log_jacobian(own) + find_ends(self.prior).log_slope(place)

    def derived(self, parameters: Parameters) -> Parameters:
        """The quantities that the other model derives."""
        return self.model.derived(self.own_parameters(parameters))

    def reported(self, records: Records) -> Records:
        """The number, where one was drawn."""
        return {NUMBER: records[NUMBER]} if NUMBER in records else {}


def split(parameters: Parameters) -> tuple[Parameters, Array]:
    """The model's own parameters and the place."""
    own, place = take_number(parameters)
    assert place is not None
    return own, place


class NumberEnds(NamedTuple):
    """The map between places and real numbers.

    Attributes
    ----------
    unconstrain
        From places to real numbers.
    constrain
        Its inverse.
    log_slope
        The logarithm of the derivative of ``constrain``.
    """

    unconstrain: Callable[[Array], Array]
    constrain: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]


def find_ends(prior: CountPrior) -> NumberEnds:
    """The map for places from one below the least number up to one above the greatest, if there is a greatest."""
    start, high = least_number(prior) - 1, prior.bounds[1]
    if high is None:
        return NumberEnds(lambda place: jnp.log(place - start), lambda free: start + jnp.exp(free), lambda free: free)
    width = float(high + 1 - start)

    def unconstrain(place: Array) -> Array:
        return jnp.log(place - start) - jnp.log(high + 1 - place)

    def log_slope(free: Array) -> Array:
        return jnp.log(width) - jax.nn.softplus(free) - jax.nn.softplus(-free)

    return NumberEnds(unconstrain, lambda free: start + width * jax.nn.sigmoid(free), log_slope)


class Neighbours(NamedTuple):
    """The whole numbers on either side of a place.

    Attributes
    ----------
    numbers
        The lower one and the upper one [2], as real numbers of at least 1.
    log_weights
        The logarithms [2] of prior probability times share of the place.
    """

    numbers: Array
    log_weights: Array

    def log_sum(self, log_densities: Array) -> Array:
        """The logarithm [] of the interpolated density, from that at each of the two [2]."""
        return jax.nn.logsumexp(self.log_weights + log_densities)

    @property
    def log_prior(self) -> Array:
        """The logarithm [] of the interpolated prior."""
        return jax.nn.logsumexp(self.log_weights)

    def choose(self, uniform: Array, log_densities: Array) -> Array:
        """One of the two, int [], drawn by a uniform number."""
        upper = jax.nn.sigmoid(jnp.diff(self.log_weights + log_densities)[0])
        return jnp.where(uniform < upper, self.numbers[1], self.numbers[0]).astype(int)


def find_neighbours(release: Release, parameters: Parameters) -> Neighbours:
    """The neighbours of the place among the parameters."""
    return neighbours_of(prior_of(release), parameters[NUMBER])


def neighbours_of(prior: CountPrior, place: Array) -> Neighbours:
    """The neighbours of a place."""
    lower = jnp.floor(jax.lax.stop_gradient(place))
    numbers = jnp.stack([lower, lower + 1])
    shares = jnp.maximum(1 - jnp.abs(place - numbers), jnp.finfo(place.dtype).tiny)
    known = prior.log_probability(numbers.astype(int)).astype(place.dtype)
    possible = numbers >= least_number(prior)
    return Neighbours(jnp.maximum(numbers, 1), jnp.log(shares) + jnp.where(possible, known, -jnp.inf))
