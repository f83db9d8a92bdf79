"""Which levels features can have in each class: structural zeros of naive-Bayes records."""

from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from dpjax._util.validation import fail, read_numbers
from dpjax.base import Array, Parameters, Records
from dpjax.domain import LARGEST_DOMAIN
from dpjax.models.bijections import SIMPLEX, Bijection
from dpjax.numerics.dirichlet import dirichlet_log_density, dirichlet_log_powers, share_features

__all__ = ["Levels", "read_levels"]


@dataclass(frozen=True)
class Levels:
    """Which levels each feature can have in each class: the others are structural zeros.

    Parameters
    ----------
    shape
        The numbers K of features, I of classes and J of levels.
    impossible
        The places of the structural zeros among all K I J levels.
    """

    shape: tuple[int, ...]
    impossible: tuple[int, ...] = ()

    @property
    def flags(self) -> np.ndarray:
        """Which levels are possible [K, I, J]."""
        flags = np.ones(prod(self.shape), bool)
        flags[list(self.impossible)] = False
        return flags.reshape(self.shape)

    @property
    def is_short(self) -> bool:
        """Whether there are few enough records of a class and K levels to list them."""
        num_features, num_classes, num_levels = self.shape
        return num_classes * num_levels**num_features <= LARGEST_DOMAIN

    def __call__(self) -> Records:
        """Every possible record [c]."""
        num_features, num_classes, num_levels = self.shape
        classes, *levels = np.indices((num_classes, *(num_levels,) * num_features)).reshape(1 + num_features, -1)
        features = np.stack(levels, axis=1)
        found = np.all(self.flags[np.arange(num_features), classes[:, None], features], axis=1)
        return {"class": jnp.asarray(classes[found], int), "features": jnp.asarray(features[found], int)}

    @property
    def is_whole(self) -> bool:
        """Whether every level is possible."""
        return not self.impossible

    @property
    def free(self) -> np.ndarray:
        """The levels [K, I, J] whose log-ratios are coordinates: the possible ones but the last of each row."""
        return self.flags & (np.arange(self.shape[2]) != self.last)

    @property
    def last(self) -> np.ndarray:
        """The last possible level of each feature and class [K, I, 1]."""
        return self.shape[2] - 1 - np.argmax(self.flags[..., ::-1], axis=2)[..., None]

    @property
    def bijection(self) -> Bijection:
        """The possible probabilities on the unconstrained scale."""
        if self.is_whole:
            return SIMPLEX
        return Bijection(self.to_real, lambda ratios: jax.nn.softmax(self.rows(ratios), axis=-1), self.log_jacobian)

    def to_real(self, probabilities: Array) -> Array:
        """The log-ratios of the free levels to the last possible one of their row, as a vector."""
        logs = jnp.log(probabilities)
        return (logs - jnp.take_along_axis(logs, self.last, axis=-1))[self.free]

    def rows(self, ratios: Array) -> Array:
        """The log-ratios [K, I, J] of all levels: 0 of the last possible ones, -∞ of impossible ones."""
        start = jnp.where(self.flags, jnp.zeros((), ratios.dtype), -jnp.inf)
        return start.at[self.free].set(ratios)

    def log_jacobian(self, ratios: Array) -> Array:
        """log |det| for the free probabilities: the sum of the logarithms of all that are possible."""
        return jnp.sum(jax.nn.log_softmax(self.rows(ratios), axis=-1)[self.flags])

    def within(self, parameters: Parameters) -> Parameters:
        """The parameters; what multiplies the slope of a logarithm at 0 does not reach impossible levels."""
        if self.is_whole:
            return parameters
        tables = parameters["feature_probabilities"]
        return parameters | {"feature_probabilities": jnp.where(self.flags, tables, 0.0)}

    def ones_beyond(self, concentration: Array) -> Array:
        """The concentrations [K, I, J] with 1 at impossible levels, where a Dirichlet density then has no factor."""
        return concentration if self.is_whole else jnp.where(self.flags, concentration, 1.0)

    def less_beyond(self, logs: Array) -> Array:
        """Logarithms [K, I, J] with -∞ at impossible levels."""
        return logs if self.is_whole else jnp.where(self.flags, logs, -jnp.inf)

    def total(self, concentration: Array) -> Array:
        """The sums [K, I] over possible levels."""
        return jnp.sum(concentration if self.is_whole else jnp.where(self.flags, concentration, 0.0), axis=2)

    def log_density(self, concentration: Array, value: Array) -> Array:
        """The Dirichlet log-densities [K, I] of the possible levels."""
        if self.is_whole:
            return dirichlet_log_density(concentration, value)
        held = self.ones_beyond(concentration)
        normaliser = gammaln(self.total(held)) - jnp.sum(gammaln(held), axis=-1)
        return normaliser + dirichlet_log_powers(held, share_features(value))


def read_levels(possible: Any, shape: tuple[int, ...]) -> Levels:
    """The levels that features can have, or an error unless there is a flag for each and one is set in each row."""
    if possible is None:
        return Levels(shape)
    expected = f"flags {list(shape)}, at least one True for each feature and class"
    remedy = "Pass True for the levels that a feature can have in a class."
    flags = read_numbers("possible", possible, expected, remedy)
    if flags.dtype != bool or flags.shape != shape:
        fail("possible", f"{flags.dtype}{list(flags.shape)}", expected, remedy)
    rows = np.argwhere(~flags.any(axis=2))
    if len(rows):
        fail("possible", f"no level of feature {rows[0, 0]} in class {rows[0, 1]}", expected, remedy)
    return Levels(shape, tuple(np.flatnonzero(~flags).tolist()))
