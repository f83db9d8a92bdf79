"""Sums along a chain in time: forward over what was seen, and backward draws of what is hidden.

A chain of states is summed over by the forward recursion of hidden Markov models. A chain of Normal numbers is
integrated over by Kalman's. Both take what was seen at each time, and chains that are independent stand side by side
in an axis [m]. Draws go back in time: each state given the one after it and all that was seen up to then.
"""

from math import log, pi
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics.selection import select_indices

__all__ = ["HiddenNormals", "HiddenStates", "log_of"]

Seen = tuple[Array, Array, Array]
"""Mean and variance of a number given what was seen up to its time, and the log-density of that."""


class HiddenStates(NamedTuple):
    """A Markov chain of states 0, ..., k - 1.

    Attributes
    ----------
    log_initial
        The log-probability of each state at the first time [m or 1, k].
    log_transition
        That of each state given the one before it, rows by the one before: [m or 1, t - 1 or 1, k, k]. With one table
        it is the same at all times.
    values
        The number that each state shows [1, k].
    """

    log_initial: Array
    log_transition: Array
    values: Array

    def log_density(self, log_seen: Array) -> Array:
        """The log-density [m] of what was seen, given that of each time and state [m, t, k]."""
        return log_add_up(self._forward(log_seen)[-1], axis=-1)

    def draw(self, key: Key, log_seen: Array) -> Array:
        """The values [m, t] of states drawn given what was seen, whose log-density [m, t, k] is known for each."""
        forward = self._forward(log_seen)
        uniforms = jax.random.uniform(key, forward.shape[:2], forward.dtype)
        rows = jnp.arange(forward.shape[1]) % len(self.log_transition)

        def back(after: Array, now: tuple[Array, Array, Array | None]) -> tuple[Array, Array]:
            weights, uniform, table = now
            into = self._table(table)[rows, :, after]
            state = select_indices((weights + into).T, uniform)[0]
            return state, state

        last = select_indices(forward[-1].T, uniforms[-1])[0]
        before = jax.lax.scan(back, last, (forward[:-1], uniforms[:-1], self._tables), reverse=True)[1]
        return self.values[0][jnp.concatenate([before, last[None]]).T]

    def _forward(self, log_seen: Array) -> Array:
        """The log-density [t, m, k] of each state together with all that was seen up to its time."""
        seen = jnp.moveaxis(log_seen, 1, 0)

        def step(before: Array, now: tuple[Array, Array | None]) -> tuple[Array, Array]:
            log_seen, table = now
            after = log_add_up(before[:, :, None] + self._table(table), axis=1) + log_seen
            return after, after

        first = self.log_initial + seen[0]
        return jnp.concatenate([first[None], jax.lax.scan(step, first, (seen[1:], self._tables))[1]])

    @property
    def _tables(self) -> Array | None:
        """The tables of all times, first axis t - 1; None if there is one for all."""
        return None if self.log_transition.shape[1] == 1 else jnp.moveaxis(self.log_transition, 1, 0)

    def _table(self, own: Array | None) -> Array:
        """The table of one time [m or 1, k, k]."""
        return self.log_transition[:, 0] if own is None else own


class HiddenNormals(NamedTuple):
    """Numbers ``mean + x + nugget * noise``, where x is an autoregression of order 1 and all noise is Normal.

    Attributes
    ----------
    mean
        The mean of each number [m or 1, t].
    start
        The standard deviation of the first x [m or 1].
    coefficient
        What is left of x from one time to the next [m or 1]; 1 for a random walk.
    step
        The standard deviation of what is added to it [m or 1].
    nugget
        The standard deviation of what each time has of its own [m or 1].
    """

    mean: Array
    start: Array
    coefficient: Array
    step: Array
    nugget: Array

    def log_density(self, seen: Array, variance: Array) -> Array:
        """The log-density [m] of numbers [m, t] that were seen with Normal noise of these variances [m, t]."""
        _, _, terms = self._filter(seen, variance + self.nugget[:, None] ** 2)
        return jnp.sum(terms, axis=0)

    def draw(self, key: Key, seen: Array, variance: Array) -> Array:
        """Numbers [m, t] drawn given noisy ones, with noise of these variances [m, t]: infinite where none is seen."""
        own = jnp.broadcast_to(self.nugget[:, None] ** 2, variance.shape)
        means, variances, _ = self._filter(seen, variance + own)
        walk_key, own_key = jax.random.split(key)
        normals = jax.random.normal(walk_key, means.shape, means.dtype)

        def back(after: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            mean, variance, normal = now
            gain = self.coefficient * variance / (self.coefficient**2 * variance + self.step**2)
            left = variance * self.step**2 / (self.coefficient**2 * variance + self.step**2)
            here = mean + gain * (after - self.coefficient * mean) + jnp.sqrt(left) * normal
            return here, here

        last = means[-1] + jnp.sqrt(variances[-1]) * normals[-1]
        before = jax.lax.scan(back, last, (means[:-1], variances[:-1], normals[:-1]), reverse=True)[1]
        level = self.mean + jnp.concatenate([before, last[None]]).T
        share = share_of(own, variance)
        own_normals = jax.random.normal(own_key, level.shape, level.dtype)
        return level + share * (seen - level) + jnp.sqrt(own * (1 - share)) * own_normals

    def _filter(self, seen: Array, variance: Array) -> Seen:
        """Mean and variance [t, m] of x given what was seen up to each time, and the log-densities [t, m] of that."""
        rest = (seen - self.mean).T
        is_seen = jnp.isfinite(variance.T)

        def step(before: tuple[Array, Array], now: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Seen]:
            (mean, spread), (value, noise, is_seen) = before, now
            noise = jnp.where(is_seen, noise, 1.0)
            total = spread + noise
            miss = jnp.where(is_seen, value - mean, 0.0)
            term = jnp.where(is_seen, -(log(2 * pi) + jnp.log(total) + miss**2 / total) / 2, 0.0)
            mean = mean + spread / total * miss
            spread = jnp.where(is_seen, spread * noise / total, spread)
            after = self.coefficient * mean, self.coefficient**2 * spread + self.step**2
            return after, (mean, spread, term)

        first = jnp.zeros_like(rest[0]), jnp.broadcast_to(self.start**2, rest[0].shape).astype(rest.dtype)
        return jax.lax.scan(step, first, (rest, variance.T, is_seen))[1]


def share_of(own: Array, variance: Array) -> Array:
    """The share of what is left over that is a number's own, beside noise of this variance, which may be infinite."""
    seen = jnp.isfinite(variance) & (own > 0)
    return jnp.where(seen, own / (own + jnp.where(seen, variance, 1.0)), 0.0)


def log_of(probabilities: Array) -> Array:
    """The logarithms of probabilities; −∞ with a slope of 0 for a probability of 0."""
    positive = probabilities > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, probabilities, 1.0)), -jnp.inf)


def log_add_up(logs: Array, axis: int) -> Array:
    """The logarithm of a sum along an axis; −∞ with a slope of 0 where all that is added up is 0."""
    largest = jax.lax.stop_gradient(jnp.max(logs, axis=axis, keepdims=True))
    largest = jnp.where(jnp.isfinite(largest), largest, 0.0)
    return log_of(jnp.sum(jnp.exp(logs - largest), axis=axis)) + jnp.squeeze(largest, axis)
