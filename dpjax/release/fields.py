"""One field of the records, as it was released: one value of each record, and the channel that it came through."""

from collections.abc import Callable
from dataclasses import dataclass, field as dataclass_field
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_array, fail, summarize_error
from dpjax.base import Array, Key, Records
from dpjax.mechanisms.base import Mechanism, as_floating, convert_mechanisms
from dpjax.mechanisms.by_record import channel_of, over_records, record_axes
from dpjax.mechanisms.largest_density import largest_density
from dpjax.release.checks import (
    as_local_values,
    check_is_mechanism,
    check_mechanism,
    check_sampler,
    check_value,
    one_record,
    warn_where_coarse_locally,
)
from dpjax.release.levels import check_number_of, to_codes


@names_methods
@frozen_pytree
@dataclass(frozen=True, eq=False)
class FieldValues:
    """The values [n] or [n, k] of one field, independent of each other given the records.

    The channel may be exact: the values are then the field itself. A parameter of the channel may have one entry for
    each record, which goes with its value.
    """

    values: Array
    channel: Mechanism | Any
    field: str = dataclass_field(default="cell", metadata={"static": True})
    levels: Any = dataclass_field(default=None, kw_only=True, metadata={"static": True})

    def __post_init__(self) -> None:
        if not isinstance(self.field, str):
            fail("field", repr(self.field), "the name of a record field", "Pass a string.", error=TypeError)
        check_is_mechanism(self._name("channel"), self.channel)
        convert_mechanisms(self, "channel")
        self._check_channel()
        codes, levels = to_codes(self._name("values"), self.values, self.levels)
        check_number_of(levels, self.channel)
        values = as_local_values(codes, self.channel, self._name("values"))
        check_mechanism(self._name("channel"), self.channel, values.shape[1:], len(values))
        check_value(self._name("values"), values, self.channel)
        warn_where_coarse_locally(values, self.channel)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "levels", levels)

    def _name(self, part: str) -> str:
        """What errors call a part of the field."""
        return f"{part} of fields[{self.field!r}]"

    def _check_channel(self) -> None:
        """Raise if the channel is none that this kind of release has."""

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the field's categories, if they have names."""
        return {} if self.levels is None else {self.field: self.levels}

    @property
    def n(self) -> int:
        """The number of records."""
        return self.values.shape[0]

    @property
    def observed(self) -> Array:
        """The released values [n] or [n, k]."""
        return self.values

    @property
    def mechanism(self) -> Mechanism:
        """The channel."""
        return self.channel

    @property
    def parts(self) -> "tuple[FieldValues, ...]":
        """What came through one mechanism each: the field alone."""
        return (self,)

    def log_densities(self, records: Records) -> Array:
        """The log-density [n] of each value given its record."""
        truth = self._truth(records)
        return self.over_records(log_density, self._released_as(truth), truth)

    def log_densities_of_support(self, support: Records) -> Array:
        """The log-density [n, c] of each value given each of c possible records."""
        truth = self._truth(support)
        over_support = jax.vmap(log_density, in_axes=(None, None, 0))
        return self.over_records(lambda channel, value: over_support(channel, value, truth), self._released_as(truth))

    def largest_densities(self, low: Array, high: Array) -> Array:
        """A bound [n] of the log-density of each value, whatever its number from `low` to `high` [n]."""

        def of_record(channel: Any, value: Array, first: Array, last: Array) -> Array:
            bound = largest_density(channel)
            assert bound is not None, "it is asked before whether there is one"
            return jnp.sum(bound(value, first, last))

        return self.over_records(of_record, as_floating(self.values), low, high)

    def possible_ends(self) -> tuple[Array, Array]:
        """The least and the greatest number [n] or [n, k] that can have given each value; ±∞ where none is excluded."""
        values = as_floating(self.values)
        if self.channel.sums.bounds is None:
            return jnp.full_like(values, -jnp.inf), jnp.full_like(values, jnp.inf)
        return self.channel.sums.bounds(values)

    def over_records(self, function: Callable[..., Any], *arrays: Array) -> Any:
        """What ``function(channel, *rows)`` returns for the channel of each record and its rows of arrays [n, ...]."""
        return over_records(self.channel, self.values.ndim - 1, function, *arrays)

    @property
    def largest(self) -> Array:
        """The value [] or [k] of largest size, which noise that leaves small ones alone has changed."""
        sizes = jnp.max(jnp.abs(self.values.reshape(self.n, -1)), axis=1)
        return self.values[jnp.argmax(sizes)]

    @property
    def varies(self) -> bool:
        """Whether a parameter of the channel has one entry for each record."""
        return 0 in record_axes(self.channel, self.values.ndim - 1)

    def sample_values(self, key: Key, records: Records) -> Array:
        """New values [n] or [n, k] of other records [n], through the same channel."""
        check_sampler("channel", self.channel)
        truth = self._truth(records)
        if len(truth) != self.n:
            given = f"{len(truth)} records"
            fail(f"records[{self.field!r}]", given, f"n = {self.n}", "Release as many records as before.")
        drawn = self.over_records(sample, jax.random.split(key, self.n), truth)
        return drawn.astype(self.values.dtype) if self.channel.sums.known else drawn

    def check_records(self, records: Records) -> None:
        """Raise unless such records have the field and it fits the channel.

        Parameters
        ----------
        records
            Arrays or `jax.ShapeDtypeStruct` of any leading axis [m].

        Raises
        ------
        TypeError, ValueError
            If the field is missing, or has another shape or type than the channel takes.
        """
        one = one_record({self.field: self._truth(records)})[self.field]
        value = jax.ShapeDtypeStruct(self.values.shape[1:], self.values.dtype)
        name, given = f"record[{self.field!r}]", f"{one.dtype}{list(one.shape)}"
        expected = f"what the channel takes, for released values {value.dtype}{list(value.shape)}"
        if self.channel.sums.known:
            self._check_exact(name, one)
        channel = channel_of(self.channel, self.values.ndim - 1, 0)
        try:
            density = jax.eval_shape(lambda released, true: channel.log_density(released, true), value, one)
            drawn = value
            if channel._can_sample:
                drawn = jax.eval_shape(lambda key, true: channel.sample(key, true), jax.random.key(0), one)
        except Exception as error:  # whatever a channel of the user's own may raise
            fail(name, given, expected, f"The channel says: {summarize_error(error)}")
        if (density.shape, drawn.shape) != ((), value.shape):
            fail(name, given, expected, f"The channel turns this field into values {list(drawn.shape)}.")

    def _check_exact(self, name: str, one: jax.ShapeDtypeStruct) -> None:
        """Raise unless exact values can be those of a field [...] of whole numbers."""
        if not jnp.issubdtype(one.dtype, jnp.floating):
            remedy = f"{name} has whole numbers: pass such values."
            check_array(
                self._name("values"), self.values, lambda array: array == array.round(), "whole numbers", remedy
            )

    def _released_as(self, truth: Array) -> Array:
        """The values, which are compared in the field's own type if they are exact."""
        return self.values.astype(truth.dtype) if self.channel.sums.known else self.values

    def _truth(self, records: Records) -> Array:
        if not isinstance(records, dict):
            one_record(records)  # which says what is wrong
        if self.field not in records:
            given = f"records with fields {sorted(records)}"
            fail("field", given, f"a field {self.field!r}", "Pass field= as the model names it.")
        return records[self.field]


def log_density(channel: Any, value: Array, truth: Array) -> Array:
    """The log-density [] of the value of one record given its field."""
    return channel.log_density(value, truth)


def sample(channel: Any, key: Key, truth: Array) -> Array:
    """A value of one record given its field."""
    return channel.sample(key, truth)
