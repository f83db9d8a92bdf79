"""Counts that are certain, as those of a population of 0: densities that have derivatives there.

A rate of 0, or a probability of 0 or 1, is an end of where a density is defined. NumPyro has the right value there, but
a derivative of 0 times infinity. Here the ends have densities of their own.
"""

from typing import Any

import jax.numpy as jnp
from numpyro import distributions as dist

from dpjax.adapters.numpyro.form import expand_as
from dpjax.base import Array

__all__ = ["with_ends"]


class EndedPoisson(dist.Poisson):
    """A Poisson distribution whose rate may be 0."""

    def log_prob(self, value: Any) -> Array:
        """The log-probability of counts."""
        counts, rate = broadcast(value, self.rate)
        certain = rate == 0
        inside = dist.Poisson(jnp.where(certain, 1.0, rate)).log_prob(counts)
        return jnp.where(certain, only(counts == 0, -rate), inside)


class EndedZeros(dist.ZeroInflatedProbs):
    """A distribution of counts with added zeros, which may be all there is."""

    def log_prob(self, value: Any) -> Array:
        """The log-probability of counts."""
        counts, gate = broadcast(value, self.gate)
        certain = gate == 1
        rest = jnp.log1p(-jnp.where(certain, 0.0, gate)) + self.base_dist.log_prob(counts)
        at_zero = jnp.log(gate + (1 - gate) * jnp.exp(self.base_dist.log_prob(jnp.zeros_like(counts))))
        return jnp.where(counts == 0, at_zero, jnp.where(certain, -jnp.inf, rest))


class EndedBinomial(dist.BinomialProbs):
    """A binomial distribution whose probability may be 0 or 1."""

    def log_prob(self, value: Any) -> Array:
        """The log-probability of counts."""
        counts, share = broadcast(value, self.probs)
        trials = expand_as(self.total_count, share)
        never, always = share == 0, share == 1
        inside = dist.BinomialProbs(jnp.where(never | always, 0.5, share), self.total_count).log_prob(counts)
        at_never = only(counts == 0, trials * jnp.log1p(-jnp.where(never, share, 0.0)))
        at_always = only(expand_as(counts, share) == trials, trials * jnp.log(jnp.where(always, share, 1.0)))
        return jnp.where(never, at_never, jnp.where(always, at_always, inside))


class EndedBernoulli(dist.BernoulliProbs):
    """A Bernoulli distribution whose probability may be 0 or 1."""

    def log_prob(self, value: Any) -> Array:
        """The log-probability of values."""
        return EndedBinomial(self.probs).log_prob(value)


class EndedGeometric(dist.GeometricProbs):
    """A geometric distribution whose probability may be 1."""

    def log_prob(self, value: Any) -> Array:
        """The log-probability of counts."""
        counts, share = broadcast(value, self.probs)
        always = share == 1
        inside = dist.GeometricProbs(jnp.where(always, 0.5, share)).log_prob(counts)
        return jnp.where(always, only(counts == 0, jnp.log(jnp.where(always, share, 1.0))), inside)


def broadcast(value: Any, parameter: Any) -> tuple[Array, Array]:
    """Counts and a parameter, a float, in their common shape."""
    counts, numbers = jnp.asarray(value), jnp.asarray(parameter, float)
    shape = jnp.broadcast_shapes(counts.shape, numbers.shape)
    return jnp.broadcast_to(counts, shape), jnp.broadcast_to(numbers, shape)


def only(possible: Array, log_density: Array) -> Array:
    """The log-density where a value is possible, else -inf."""
    return jnp.where(possible, log_density, -jnp.inf)


def with_ends(distribution: Any) -> Any:
    """The distribution with derivatives at the ends of its parameters, where it has such ends."""
    if isinstance(distribution, dist.ZeroInflatedProbs):
        return EndedZeros(with_ends(distribution.base_dist), distribution.gate)
    if type(distribution) is dist.Poisson:
        return EndedPoisson(distribution.rate)
    if isinstance(distribution, dist.BernoulliProbs):
        return EndedBernoulli(distribution.probs)
    if type(distribution) is dist.BinomialProbs:
        return EndedBinomial(distribution.probs, distribution.total_count)
    return EndedGeometric(distribution.probs) if isinstance(distribution, dist.GeometricProbs) else distribution
