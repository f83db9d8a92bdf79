"""A release of one value per record, each seen through the same channel."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.printing import Printed
from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import fail, name_of, summarize_error
from dpjax.base import Array, Key, Records
from dpjax.mechanisms.base import Mechanism, adapt
from dpjax.release import json
from dpjax.release.checks import (
    as_local_values,
    check_is_mechanism,
    check_mechanism,
    check_sampler,
    check_value,
    one_record,
    warn_where_coarse_locally,
)
from dpjax.release.printing import show


@frozen_pytree
@dataclass(frozen=True, eq=False, repr=False)
class LocalRelease(Printed):
    """One released value per record, independent of each other given the records.

    Parameters
    ----------
    values : [n] or [n, k]
        What was released, in the order of the records: integers for randomized response.
    channel
        The mechanism that was applied to each record's field.
    field
        The name of that record field.

    Raises
    ------
    TypeError, ValueError
        If the values are not finite, not of that shape or not possible for the channel.

    Notes
    -----
    A pytree: values and channel are data, the field's name is static.

    Examples
    --------
    >>> import dpjax
    >>> release = LocalRelease([0, 1, 1], dpjax.RandomizedResponse(keep=0.75, num_categories=2))
    >>> release.n
    3
    """

    values: Array
    channel: Mechanism | Any
    field: str = field(default="cell", metadata={"static": True})

    def __post_init__(self) -> None:
        if not isinstance(self.field, str):
            fail("field", repr(self.field), "the name of a record field", "Pass a string.", error=TypeError)
        check_is_mechanism("channel", self.channel)
        adapt(self, "channel")
        if self.channel.exact:
            remedy = "Records that are known need no imputation: condition the model on them."
            fail("channel", name_of(self.channel), "a channel that hides the record", remedy)
        values = as_local_values(self.values, self.channel)
        check_mechanism("channel", self.channel, values.shape[1:])
        check_value("values", values, self.channel)
        warn_where_coarse_locally(values, self.channel)
        object.__setattr__(self, "values", values)

    @property
    def n(self) -> int:
        """The number of records."""
        return self.values.shape[0]

    @property
    def observed(self) -> Array:
        """The released values [n] or [n, k]."""
        return self.values

    def __repr__(self) -> str:
        return show("LocalRelease", f"`{self.field}` of each record", self.channel, self.values, self.n)

    def describe(self) -> str:
        """What was released, by what noise, and what that promises, as by `dpjax.describe`."""
        from dpjax.release.describe import describe

        return describe(self)

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """Categories have no names here."""
        return {}

    @property
    def mechanism(self) -> Mechanism:
        """The channel."""
        return self.channel

    @property
    def is_noisy_sum(self) -> bool:
        """No sum was released."""
        return False

    def with_mechanism(self, mechanism: Mechanism) -> "LocalRelease":
        """The same values as if another channel had released them."""
        return replace(self, channel=mechanism)

    def contributions(self, records: Records) -> Array:
        """No sum of m records is released: [0, m]."""
        return jnp.zeros((0, len(self._truth(records))))

    def total_and_density(self, records: Records) -> tuple[Array, Array]:
        """The sum [0] of `contributions`, and the log-density [] of all values given the records."""
        return jnp.zeros(0), self.log_likelihood(records)

    def log_densities(self, records: Records) -> Array:
        """The log-density [n] of each value given its record."""
        return jax.vmap(self.channel.log_density)(self.values, self._truth(records))

    def log_likelihood(self, records: Records) -> Array:
        """The log-density [] of all values given the records."""
        return jnp.sum(self.log_densities(records))

    def log_densities_of_support(self, support: Records) -> Array:
        """The log-density [n, c] of each value given each of c possible records."""
        over_support = jax.vmap(self.channel.log_density, in_axes=(None, 0))
        return jax.vmap(over_support, in_axes=(0, None))(self.values, self._truth(support))

    def sample(self, key: Key, records: Records) -> "LocalRelease":
        """A release of other records [n] through the same channel: only the values are new."""
        check_sampler("channel", self.channel)
        truth = self._truth(records)
        if len(truth) != self.n:
            given = f"{len(truth)} records"
            fail(f"records[{self.field!r}]", given, f"n = {self.n}", "Release as many records as before.")
        return replace(self, values=jax.vmap(self.channel.sample)(jax.random.split(key, self.n), truth))

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
        one = self._truth(one_record(records))
        value = jax.ShapeDtypeStruct(self.values.shape[1:], self.values.dtype)
        name, given = f"record[{self.field!r}]", f"{one.dtype}{list(one.shape)}"
        expected = f"what the channel takes, for released values {value.dtype}{list(value.shape)}"
        try:
            density = jax.eval_shape(lambda released, true: self.channel.log_density(released, true), value, one)
            sample = value
            if self.channel.can_sample:
                sample = jax.eval_shape(lambda key, true: self.channel.sample(key, true), jax.random.key(0), one)
        except Exception as error:  # whatever a channel of the user's own may raise
            fail(name, given, expected, f"The channel says: {summarize_error(error)}")
        if (density.shape, sample.shape) != ((), value.shape):
            fail(name, given, expected, f"The channel turns this field into values {list(sample.shape)}.")

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """The release as JSON text; `from_json` reads it back.

        Parameters
        ----------
        units
            The units of the values, in words.
        **metadata
            Whatever else should be written, such as source or date; kept, but not read back.
        """
        content = {
            "values": json.encode_numbers("values", self.values, max_ndim=2),
            "channel": json.encode_mechanism(self.channel),
            "field": self.field,
        }
        return json.write("local-release", content, units, metadata)

    @classmethod
    def from_json(cls, text: str) -> "LocalRelease":
        """The release written by `to_json`.

        Raises
        ------
        TypeError, ValueError
            If the text is of another schema or version, or holds something unknown.
        """
        content = json.read(text, "local-release")
        values = json.decode_numbers("values", content["values"])
        return cls(values, json.decode_mechanism(content["channel"]), content["field"])

    def _truth(self, records: Records) -> Array:
        if self.field not in records:
            given = f"records with fields {sorted(records)}"
            fail("field", given, f"a field {self.field!r}", "Pass field= as the model names it.")
        return records[self.field]
