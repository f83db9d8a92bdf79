"""A release of one value per record, each seen through the same channel."""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Key, Records
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.composite import temper_mechanism
from dpjax.release import json
from dpjax.release.base import OwnRelease
from dpjax.release.estimated import EstimatedNoise, is_unknown
from dpjax.release.fields import FieldValues
from dpjax.release.levels import in_words
from dpjax.release.microdata import Microdata
from dpjax.release.printing import release_in_lines


@names_methods
@frozen_pytree
@dataclass(frozen=True, eq=False, repr=False, init=False)
class LocalRelease(FieldValues, OwnRelease):
    """One released value per record, independent of each other given the records.

    A dict of fields in place of the values makes `dpjax.Microdata` of them.

    Parameters
    ----------
    values : [n] or [n, k]
        What was released, in the order of the records: integers for randomized response. Or a dict of fields, each with
        its values and its channel, as in `Microdata`.
    channel
        The mechanism that was applied to each record's field; none beside a dict. Its parameters may be one for each
        record: `dpjax.Gaussian` of standard deviations [n] for values [n], for values [n, k] of [k] or [n, k].
    field
        The name of that record field.
    levels
        The names of its categories, in the order of their numbers. The values may then be names. A categorical Series
        of pandas has names of its own. Summaries show them.
    missing
        Beside a dict of fields: which of their values are missing, as in `Microdata`.
    weights
        Survey weights [n], as in `Microdata`, which the release then is.

    Raises
    ------
    TypeError, ValueError
        If the values are not finite, not of that shape or not possible for the channel; or a name is not in `levels`.

    Notes
    -----
    A pytree: values and channel are data, the names of the field and its categories are static.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.LocalRelease([0, 1, 1], dpjax.RandomizedResponse(keep=0.75, num_categories=2))
    >>> release.n
    3
    >>> answer = dpjax.RandomizedResponse(keep=0.75, num_categories=2)
    >>> dpjax.LocalRelease(["yes", "no", "yes"], answer, "smokes", levels=["no", "yes"]).values.tolist()
    [1, 0, 1]
    """

    @names_arguments
    def __new__(
        cls,
        values: Any,
        channel: Any = None,
        field: str = "cell",
        *,
        levels: Any = None,
        missing: Any = None,
        weights: Any = None,
    ) -> Any:
        """A release of one field, or `Microdata` of several; with noise that is not known `EstimatedNoise`."""
        if not isinstance(values, dict) and is_unknown(channel):
            return EstimatedNoise.of_fields({field: (values, channel, levels)}, missing, weights)
        if isinstance(values, dict) and channel is None and any(map(has_unknown_noise, values.values())):
            return EstimatedNoise.of_fields(values, missing, weights)
        for name, given in values.items() if isinstance(values, dict) else ():
            if isinstance(given, list) and any(map(has_unknown_noise, given)):
                remedy = "Pass one report of each record, or known noise."
                fail(f"fields[{name!r}]", "reports in parts, with noise that is not known", "one report", remedy)
        if not isinstance(values, dict):
            if missing is not None:
                remedy = "Pass LocalRelease({field: (values, channel)}, missing={field: mask})."
                fail("missing", name_of(missing), "None beside the values of one field", remedy)
            if weights is not None:
                alone = cls(values, channel, field, levels=levels)
                return Microdata(alone.fields, weights=weights)
            return super().__new__(cls)
        if channel is not None or field != "cell" or levels is not None:
            given_beside = {"channel": channel, "field": None if field == "cell" else field, "levels": levels}
            argument, value = next((name, one) for name, one in given_beside.items() if one is not None)
            given = name_of(value) if argument == "channel" else repr(value)
            remedy = "Pass channel and levels beside the values of each field: {field: (values, channel, levels)}."
            fail(f"values, {argument}", f"a dict of fields and {given}", "one of the two", remedy)
        return Microdata(values, missing, weights=weights)

    def __init__(
        self,
        values: Any,
        channel: Any,
        field: str = "cell",
        *,
        levels: Any = None,
        missing: None = None,
        weights: None = None,
    ) -> None:
        del missing, weights  # None, as `__new__` has checked
        super().__init__(values, channel, field, levels=levels)

    def __getnewargs__(self) -> tuple[Any, ...]:
        """What a copy is made with, before it gets its fields."""
        return (self.values,)

    def _name(self, part: str) -> str:
        return part

    def _check_channel(self) -> None:
        if self.channel.sums.known:
            remedy = "Pass known fields beside others: LocalRelease({field: (values, dpjax.Exact()), ...})."
            fail("channel", name_of(self.channel), "a channel that hides the record", remedy)

    def __repr__(self) -> str:
        what = f"{in_words(self.field, self.levels)} of each record"
        return release_in_lines("LocalRelease", what, self.channel, self.values, self.n)

    @property
    def is_of_records(self) -> bool:
        """True: each value is of one."""
        return True

    @property
    def missing(self) -> dict[str, Array]:
        """Which values of each field are missing: of none."""
        return {}

    @property
    def fields(self) -> dict[str, FieldValues]:
        """What was released of each record by itself: this field."""
        return {self.field: self}

    @property
    def local(self) -> "LocalRelease":
        """The release as one of a value of each record alone: itself."""
        return self

    @property
    def microdata(self) -> Microdata:
        """The release as fields of each record: this one."""
        return Microdata(self.fields)

    def noisy_parts(self, name: str) -> dict[str, FieldValues]:
        """What was released of a field through channels: the values, if it is their field."""
        return {name: self} if name == self.field else {}

    def with_mechanism(self, mechanism: Mechanism) -> "LocalRelease":
        """The same values as if another channel had released them."""
        return replace(self, channel=mechanism)

    def tempered(self, power: Array) -> "LocalRelease":
        """The release with its density raised to a power []."""
        return self.with_mechanism(temper_mechanism(self.mechanism, power))

    def observing(self, observed: Array) -> "LocalRelease":
        """As if other values had been released."""
        return replace(self, values=observed)

    def log_likelihood(self, records: Records) -> Array:
        """The log-density [] of all values given the records."""
        return jnp.sum(self.log_densities(records))

    def sample(self, key: Key, records: Records) -> "LocalRelease":
        """A release of other records [n] through the same channel: only the values are new."""
        return self.observing(self.sample_values(key, records))

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
            "levels": self.levels,
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
        channel = json.decode_mechanism(content["channel"])
        return cls(values, channel, content["field"], levels=content["levels"])


def has_unknown_noise(given: Any) -> bool:
    """Whether the values of a field have a channel that is not known."""
    return isinstance(given, tuple) and len(given) > 1 and is_unknown(given[1])
