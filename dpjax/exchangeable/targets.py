"""Densities of n exchangeable records as the weights of proposals: in general, and for a function of a sum."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax._util.validation import fail
from dpjax.base import Array
from dpjax.data_augmentation.records.placed import ExchangeableTarget, SummedTarget, Window

__all__ = ["make_target"]


Function = Callable[[Any], Array]


def make_target(
    log_density: Function, log_proposal: Function, statistic: Function | None, records: Any
) -> ExchangeableTarget:
    """The target with weights π(x) / Π q(x_j), Xiong and Ju (2025), Corollary 6, for records of these shapes."""
    n = check_records(records)
    if statistic is None:
        return GeneralTarget(log_density, log_proposal, records, n)
    return SummedTarget(SumDensity(log_density, log_proposal, statistic, n), n)


def check_records(records: Any) -> int:
    """The number of records, or an error unless all their arrays have one leading axis."""
    shapes = [np.shape(leaf)[:1] for leaf in jax.tree.leaves(records)]
    if len(set(shapes)) != 1 or shapes[0] in ((), (0,)):
        given = f"leading axes {sorted(map(list, set(shapes)))}" if shapes else type(records).__name__
        fail("records", given, "arrays of one leading axis [n], n at least 1", "Pass one row a record.")
    return int(shapes[0][0])


class SumDensity:
    """π(x) / Π q(x_j) as a function of Σ (t(x_j), log q(x_j)), in the form of a release of that sum."""

    def __init__(self, log_density: Function, log_proposal: Function, statistic: Function, n: int) -> None:
        self.log_density, self.log_proposal, self.statistic, self.n = log_density, log_proposal, statistic, n
        self.noisy_sum = jnp.zeros((), float)

    def contributions(self, records: Any) -> Array:
        """The statistic and log q of each record [d + 1, m]."""

        def column(record: Any) -> Array:
            return jnp.append(self.statistic(record), self.log_proposal(record))

        return jax.vmap(column, out_axes=1)(records)

    def log_density_at(self, residual: Array) -> Array:
        """The log-weight [] if the sum is minus the residual [d + 1]."""
        return self.log_density(-residual[:-1]) + residual[-1]

    def log_densities_at(self, residuals: Array) -> Array:
        """The log-weight [m] at each column of residuals [d + 1, m]."""
        return jax.vmap(self.log_density_at, in_axes=1)(residuals)


class GeneralTarget:
    """π(x) / Π q(x_j) with one evaluation of the density for each place; columns hold the records themselves."""

    def __init__(self, log_density: Function, log_proposal: Function, records: Any, n: int) -> None:
        self.log_density, self.log_proposal, self.n = log_density, log_proposal, n
        one = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), records)
        self.dtypes = jax.tree.map(lambda leaf: leaf.dtype, one)
        self.unravel = ravel_pytree(as_floats(one))[1]

    def columns(self, records: Any) -> Array:
        """The numbers of each record and log q [d + 1, m]."""

        def column(record: Any) -> Array:
            return jnp.append(ravel_pytree(as_floats(record))[0], self.log_proposal(record))

        return jax.vmap(column, out_axes=1)(records)

    def records(self, columns: Array) -> Any:
        """The records in columns [d + 1, n]."""

        def record(column: Array) -> Any:
            leaves = self.unravel(column[:-1])
            return jax.tree.map(lambda leaf, dtype: leaf.astype(dtype), leaves, self.dtypes)

        return jax.vmap(record, in_axes=1)(columns)

    def summarize(self, columns: Array) -> Array:
        """The sum of the columns, of which Σ log q is used."""
        return jnp.sum(columns, axis=1)

    def log_weight(self, summary: Array, columns: Array) -> Array:
        """log π − Σ log q."""
        return self.log_density(self.records(columns)) - summary[-1]

    def log_weight_with(self, summary: Array, columns: Array, place: Array, proposal: Array) -> Array:
        """log π − Σ log q with the proposal in one place."""
        changed = jnp.where((jnp.arange(self.n) == place)[None], proposal[:, None], columns)
        return self.log_density(self.records(changed)) - (summary[-1] + proposal[-1] - columns[-1, place])

    def log_weights_with(self, summary: Array, columns: Array, window: Window, proposal: Array) -> Array:
        """log π − Σ log q with the proposal in each place."""
        tried = jnp.arange(self.n) if window is None else window[0] + jnp.arange(window[1])
        return jax.vmap(lambda place: self.log_weight_with(summary, columns, place, proposal))(tried)


def as_floats(record: Any) -> Any:
    """A record with numbers of one dtype; integers stay exact up to the precision of floats."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(float), record)
