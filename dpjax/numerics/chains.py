"""Sums along a chain in time: forward over what was seen, and backward draws of what is hidden.

A chain of states is summed over by the forward recursion of hidden Markov models. A chain of Normal numbers is
integrated over by Kalman's. Both take what was seen at each time, and chains that are independent stand side by side
in an axis [m]. Draws go back in time: each state given the one after it and all that was seen up to then.
"""

from collections.abc import Callable
from math import log, pi
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from dpjax.base import Array, Key
from dpjax.numerics.linear_algebra import product
from dpjax.numerics.selection import select_indices

__all__ = ["HiddenNormals", "HiddenStates", "log_of"]

Seen = tuple[Array, Array, Array]
"""Mean and variance of a number given what was seen up to its time, and the log-density of that."""


class HiddenStates(NamedTuple):
    """A Markov chain of states 0, ..., k - 1.

    Attributes
    ----------
    initial
        The probability of each state at the first time [m or 1, k].
    transition
        That of each state given the one before it, rows by the one before: [m or 1, t - 1 or 1, k, k]. With one table
        it is the same at all times.
    values
        The number that each state shows [1, k].
    """

    initial: Array
    transition: Array
    values: Array

    @property
    def work(self) -> int:
        """How many numbers are added up from one time to the next."""
        return int(self.values.shape[1] ** 2)

    def log_density(self, log_seen: Array) -> Array:
        """The log-density [m] of what was seen, given that of each time and state [m, t, k]."""
        return log_density_of(self.initial, self.transition, log_seen)

    def draw(self, key: Key, log_seen: Array) -> Array:
        """The values [m, t] of states drawn given what was seen, whose log-density [m, t, k] is known for each."""
        forward = jnp.moveaxis(both_ways(self.initial, self.transition, log_seen).forward, 1, 0)
        tables = log_of(jnp.moveaxis(self.transition, 1, 0))
        uniforms = jax.random.uniform(key, forward.shape[:2], forward.dtype)
        rows = jnp.arange(forward.shape[1]) % len(self.transition)

        def back(after: Array, now: tuple[Array, Array, Array | None]) -> tuple[Array, Array]:
            weights, uniform, own = now
            into = (tables[0] if own is None else own)[rows, :, after]
            state = select_indices((weights + into).T, uniform)[0]
            return state, state

        last = select_indices(forward[-1].T, uniforms[-1])[0]
        own = None if len(tables) == 1 else tables
        before = jax.lax.scan(back, last, (forward[:-1], uniforms[:-1], own), reverse=True)[1]
        return self.values[0][jnp.concatenate([before, last[None]]).T]


class BothWays(NamedTuple):
    """What the two recursions of a chain of states say.

    Attributes
    ----------
    seen
        The log-density of what was seen of each time, less that of the state that says it best [m, t, k].
    forward
        The log-density of each state, together with all that was seen up to its time [m, t, k].
    backward
        That of all that was seen after it, given the state [m, t, k].
    total
        That of all that was seen [m].
    """

    seen: Array
    forward: Array
    backward: Array
    total: Array


@jax.jit  # so that it is traced once
def both_ways(initial: Array, transition: Array, log_seen: Array) -> BothWays:
    """The recursions by products of matrices of probabilities, scaled at each time; by sums of logarithms if need be.

    A product loses what is below the smallest number that there is, less than ``lost`` beside the largest probability
    of its time. The other recursion bounds what that would have added to the likelihood. If it is more than a rounding
    error, all is summed in logarithms.
    """
    seen = jnp.moveaxis(log_seen - finite_largest(log_seen), 1, 0)
    tables = jnp.moveaxis(transition, 1, 0)
    is_same = len(tables) == 1

    def recur(push: Callable[[Array, Array], Array], tables: Array) -> tuple[Array, Array, Array]:
        back = jnp.swapaxes(tables[::-1], 2, 3)
        first, last = log_of(initial) + seen[0], jnp.zeros_like(seen[0])
        pairs = None if is_same else (tables, back)

        def step(before: tuple[Array, Array, Array], now: Any) -> tuple[Any, Any]:
            (forward, backward, highest), (ahead, behind, pair) = before, now
            table, table_back = (tables[0], back[0]) if pair is None else pair
            onward = backward + behind
            highest = jnp.maximum(highest, jnp.max(onward, axis=-1))
            after = push(forward, table) + ahead, push(onward, table_back), highest
            return after, (*after, jnp.max(onward, axis=-1))

        start = first, last, jnp.full_like(first[:, 0], -jnp.inf)
        forward, backward, highest, onward = jax.lax.scan(step, start, (seen[1:], seen[:0:-1], pairs))[1]
        limit = jnp.logaddexp(onward, lost + log(max(len(seen) - 1, 1)) + highest)[::-1]
        return jnp.concatenate([first[None], forward]), jnp.concatenate([backward[::-1], last[None]]), limit

    lost = log(seen.shape[-1]) - room(seen.dtype) + log(jnp.finfo(seen.dtype).tiny)
    forward, backward, limit = recur(push_scaled, tables)
    most = lost + log(seen.shape[-1]) + jnp.max(forward[:-1], axis=-1) + limit - log_add_up(forward[-1], axis=-1)[None]
    is_enough = jnp.all(jnp.sum(jnp.exp(most), axis=0) < jnp.finfo(seen.dtype).eps)

    def in_logs(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        # What does not depend on the state of a loop would be computed before it, and always.
        forward, backward, _ = recur(push_logs, log_of(jnp.where(state[0], 0.0, tables)))
        return jnp.ones((), bool), forward, backward

    # A loop of one step at most: of a choice between branches, chains that stand side by side would take both.
    _, forward, backward = jax.lax.while_loop(lambda state: ~state[0], in_logs, (is_enough, forward, backward))
    total = log_add_up(forward[-1], axis=-1)
    seen, forward, backward = (jnp.moveaxis(one, 0, 1) for one in (seen, forward, backward))
    return BothWays(seen, forward, backward, total)


def push_scaled(logs: Array, table: Array) -> Array:
    """The logarithms of sums of probabilities [m, k], given as logarithms, times those of a table [m or 1, k, k]."""
    largest = finite_largest(logs) - room(logs.dtype)
    scaled = jnp.exp(logs - largest)
    sums = product(scaled, table[0]) if len(table) == 1 else product(scaled[:, None], table)[:, 0]
    return log_of(sums) + largest


def room(dtype: DTypeLike) -> float:
    """The logarithm of the largest scaled probability, with room for sums: the higher it is, the less is lost."""
    return -0.7 * log(jnp.finfo(dtype).tiny)


def push_logs(logs: Array, log_table: Array) -> Array:
    """The same of a table of logarithms, with nothing lost: at the cost of a logarithm for each entry."""
    return log_add_up(logs[:, :, None] + log_table, axis=1)


@jax.custom_jvp
def log_density_of(initial: Array, transition: Array, log_seen: Array) -> Array:
    """See `HiddenStates.log_density`. Its slopes are expected numbers of moves, so that no step need be kept."""
    return both_ways(initial, transition, log_seen).total + jnp.sum(finite_largest(log_seen), axis=(1, 2))


@log_density_of.defjvp
def change_of(given: tuple[Array, Array, Array], changes: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """The log-density [m], and its change with the probabilities and with what was seen."""
    initial, transition, log_seen = given
    seen, forward, backward, total = both_ways(*given)
    onward = seen + backward - total[:, None, None]
    before, after = forward[:, :-1], onward[:, 1:]
    # Where before and after agree on no state, both may be tiny: each takes a half of the scale.
    half = (finite_largest(after) - finite_largest(before)) / 2
    left, right = (jnp.exp(jnp.minimum(one, room(one.dtype))) for one in (before + half, after - half))
    if transition.shape[1] == 1:
        moves = product(jnp.swapaxes(left, 1, 2), right)[:, None]
    else:
        moves = left[..., None] * right[..., None, :]
    starts, visits = jnp.exp(onward[:, 0]), jnp.exp(forward + backward - total[:, None, None])
    slopes = jnp.where(initial > 0, starts, 0.0), jnp.where(transition > 0, moves, 0.0), visits
    pairs = zip(slopes, changes, strict=True)
    change = sum((jnp.sum(slope * move, axis=range(1, slope.ndim)) for slope, move in pairs), jnp.zeros_like(total))
    return total + jnp.sum(finite_largest(log_seen), axis=(1, 2)), change


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

    @property
    def work(self) -> int:
        """How many numbers are added up from one time to the next."""
        return 1

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
    largest = finite_largest(logs, axis)
    return log_of(jnp.sum(jnp.exp(logs - largest), axis=axis)) + jnp.squeeze(largest, axis)


def finite_largest(logs: Array, axis: int = -1) -> Array:
    """The largest along an axis, which is kept; 0 if it is −∞. It has no slope, as it is only taken out of a sum."""
    largest = jax.lax.stop_gradient(jnp.max(logs, axis=axis, keepdims=True))
    return jnp.where(jnp.isfinite(largest), largest, 0.0)
