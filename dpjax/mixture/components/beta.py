"""The Beta kernel on the unit interval with Gamma priors on its two shapes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_number, check_positive
from dpjax.base import Array, Key
from dpjax.mixture.base import Theta
from dpjax.models.priors import warn_of_underflow
from dpjax.numerics.dirichlet import beta_features, beta_log_density, beta_log_likelihood, draw_beta
from dpjax.numerics.gamma import draw_gamma

__all__ = ["GammaShapes"]

SWEEPS = 2
"""Number of slice moves in each direction in one update."""

WIDTHS = (4.0, 6.0)
"""Widths of the first intervals for log(a / b) and log(a b), in units of 1 / sqrt(1 + records)."""


@frozen_pytree
@dataclass(frozen=True)
class GammaShapes(NamesArguments):
    """Records y ~ Beta(a, b) with independent a, b ~ Gamma(shape, rate) as base measure.

    The parameters are named ``"a"`` and ``"b"``. Given a cluster they are updated by slice sampling along log(a / b)
    and log(a b), from five sufficient statistics.

    Parameters
    ----------
    shape : []
        The shape of the Gamma prior of each parameter.
    rate : []
        Its rate.

    Raises
    ------
    ValueError
        If a number is not finite and positive.

    Examples
    --------
    >>> import dpjax
    >>> component = dpjax.mixture.GammaShapes(shape=2.0, rate=0.5)
    """

    shape: Array | float
    rate: Array | float

    def __post_init__(self) -> None:
        check_positive("shape", self.shape)
        check_positive("rate", self.rate, "Pass the rate, that is 1 / scale.")
        check_number("shape", self.shape)
        check_number("rate", self.rate)
        warn_of_underflow("shape", self.shape)

    def sample_prior(self, key: Key, size: int) -> Theta:
        """Independent draws [size] from the base measure."""
        shapes = jnp.full((size, 2), self.shape, float)
        drawn = draw_gamma(key, shapes, jnp.full_like(shapes, self.rate))
        return {"a": drawn[:, 0], "b": drawn[:, 1]}

    def sample(self, key: Key, theta: Theta) -> Array:
        """One record [n] in the open unit interval for each set of parameters [n]."""
        return draw_beta(key, theta["a"], theta["b"])

    def log_density(self, record: Array, theta: Theta) -> Array:
        """log Beta(y | a, b), elementwise; -inf outside the open unit interval."""
        inside = (record > 0) & (record < 1)
        return jnp.where(inside, beta_log_density(record, theta["a"], theta["b"]), -jnp.inf)

    def features(self, record: Array) -> Array:
        """log y and log(1 - y) up to the end cells next to 0 and 1, and whether y lies in each of these [4]."""
        return jnp.stack(beta_features(record))

    def update(self, key: Key, theta: Theta, counts: Array, totals: Array) -> Theta:
        """Parameters [H] after slice moves given the clusters' statistics; prior draws for empty clusters."""
        key_prior, key_slice = jax.random.split(key)
        point = jnp.stack([jnp.log(theta["a"]), jnp.log(theta["b"])])

        def log_target(point: Array) -> Array:
            return self._log_posterior(point, counts, totals)

        for sweep in range(SWEEPS):
            for axis, direction in enumerate(((0.5, -0.5), (0.5, 0.5))):
                move = jax.random.fold_in(key_slice, 2 * sweep + axis)
                widths = WIDTHS[axis] / jnp.sqrt(1 + counts)
                point = slice_move(move, log_target, point, jnp.array(direction), widths)
        prior = self.sample_prior(key_prior, counts.shape[0])
        moved = {"a": jnp.exp(point[0]), "b": jnp.exp(point[1])}
        return {name: jnp.where(counts > 0, moved[name], prior[name]) for name in moved}

    def _log_posterior(self, point: Array, counts: Array, totals: Array) -> Array:
        """The log-density [H] of (log a, log b) [2, H] given the clusters' statistics, up to a constant."""
        a, b = jnp.exp(point)
        log_prior = self.shape * (point[0] + point[1]) - self.rate * (a + b)
        return beta_log_likelihood(a, b, counts, tuple(totals.T)) + log_prior


def slice_move(key: Key, log_target: Callable[[Array], Array], point: Array, direction: Array, widths: Array) -> Array:
    """A move of points [2, H] along a direction that leaves the target of each point invariant.

    Slice sampling (Neal 2003) with a randomly placed interval of fixed width, shrunk at each rejection.
    """
    key_level, key_place, key_shrink = jax.random.split(key, 3)
    shape, dtype = widths.shape, widths.dtype
    level = log_target(point) + jnp.log1p(-jax.random.uniform(key_level, shape, dtype))
    low = -widths * jax.random.uniform(key_place, shape, dtype)

    def at(step: Array) -> Array:
        return point + direction[:, None].astype(dtype) * step[None, :]

    def unfinished(carry: Any) -> Array:
        return ~jnp.all(carry[3])

    def shrink(carry: Any) -> Any:
        low, high, step, done, round_number = carry
        uniform = jax.random.uniform(jax.random.fold_in(key_shrink, round_number), shape, dtype)
        proposed = low + (high - low) * uniform
        step = jnp.where(done, step, proposed)
        # An interval shrunk to nothing is the point itself.
        done = done | (log_target(at(step)) >= level) | (high - low < jnp.finfo(dtype).eps * widths)
        return jnp.where(step < 0, step, low), jnp.where(step < 0, high, step), step, done, round_number + 1

    start = (low, low + widths, jnp.zeros(shape, dtype), jnp.zeros(shape, bool), jnp.array(0))
    step = jax.lax.while_loop(unfinished, shrink, start)[2]
    return at(step)
