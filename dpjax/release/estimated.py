"""A release whose noise is not known: numbers of its mechanisms are estimated with the parameters of the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Records
from dpjax.mechanisms.base import as_mechanism, is_mechanism
from dpjax.mechanisms.unknown import UnknownChannel, UnknownNumber, unknown_numbers
from dpjax.release.base import OwnRelease
from dpjax.release.levels import to_codes
from dpjax.release.microdata import Microdata
from dpjax.release.weights import read_weights

__all__ = ["EstimatedNoise", "is_unknown"]


class Numbers(dict[str, Any]):
    """Parameters by name, for a mechanism."""

    def __missing__(self, name: str) -> Any:
        remedy = "Name a parameter of the model, or give it a prior: dpjax.unknown(name, prior)."
        fail("channel", f"a parameter {name!r} that no prior has", f"one of {sorted(self)}", remedy)


@frozen_pytree
@dataclass(frozen=True, eq=False, repr=False)
class EstimatedNoise(OwnRelease):
    """Fields of each record behind mechanisms of which some numbers are parameters.

    `dpjax.LocalRelease` makes it of a mechanism with a `dpjax.unknown` number, and of a function of the parameters that
    returns a mechanism.

    Attributes
    ----------
    values
        What was released of each field.
    missing
        Which values are missing, by field.
    channels
        The mechanism of each field, None where it is a function.
    priors
        The priors of the numbers that the model does not have.
    functions
        The functions by field.
    numbers
        Which numbers of mechanisms are parameters: the field, the place among the numbers, and the name.
    levels
        The names of categories by field.
    n
        The number of records.
    weights
        Their survey weights, or None.
    """

    values: dict[str, Any]
    missing: dict[str, Any]
    channels: dict[str, Any]
    priors: dict[str, Any]
    functions: tuple[tuple[str, Any], ...] = field(metadata={"static": True})
    numbers: tuple[tuple[str, int, str], ...] = field(metadata={"static": True})
    levels: tuple[tuple[str, Any], ...] = field(metadata={"static": True})
    n: int = field(metadata={"static": True})
    weights: Any = None

    @classmethod
    def of_fields(cls, fields: dict[str, Any], missing: Any = None, weights: Any = None) -> "EstimatedNoise":
        """The release of fields, each with its values, its mechanism and maybe the names of its levels."""
        values, channels, priors, functions, numbers, levels = {}, {}, {}, [], [], []  # type: ignore[var-annotated]
        for name, given in fields.items():
            if not (isinstance(given, tuple) and len(given) in (2, 3)):
                expected = "a pair of values and their channel, beside noise that is not known"
                remedy = "Pass (values, channel), or the names of levels as a third."
                fail(f"fields[{name!r}]", name_of(given), expected, remedy, error=TypeError)
            released, channel, names = (*given, None)[:3]
            codes, names = to_codes(f"values of fields[{name!r}]", released, names)
            values[name] = codes if isinstance(codes, jax.Array) else np.asarray(codes)
            levels.append((name, names))
            found = channel if isinstance(channel, UnknownChannel) else None
            if found is None and callable(channel) and not is_mechanism(channel):
                found = UnknownChannel(channel, {})
            if found is not None:
                channels[name], functions = None, [*functions, (name, found.function)]
                add_priors(priors, found.priors)
                continue
            leaves, structure = jax.tree.flatten(channel)
            places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, UnknownNumber)]
            numbers += [(name, place, leaves[place].name) for place in places]
            add_priors(priors, {leaves[place].name: leaves[place].prior for place in places})
            plain = [float(leaf) if isinstance(leaf, UnknownNumber) else leaf for leaf in leaves]
            channels[name] = jax.tree.unflatten(structure, plain)
        (n, *_) = {len(array): None for array in values.values()}
        static = tuple(functions), tuple(numbers), tuple(levels)
        return cls(values, missing or {}, channels, priors, *static, n, read_weights(weights, n))

    def channel_at(self, name: str, parameters: Mapping[str, Any]) -> Any:
        """The mechanism of a field at parameters."""
        named, functions = Numbers(parameters), dict(self.functions)
        if name in functions:
            made = functions[name](named)
            if not is_mechanism(made):
                given = f"a function that returns {name_of(made)}"
                fail("channel", given, "a mechanism", "Return one, such as dpjax.Gaussian(p['tau']).", error=TypeError)
            return as_mechanism(made)
        leaves, structure = jax.tree.flatten(self.channels[name])
        for field_name, place, number in self.numbers:
            if field_name == name:
                leaves[place] = named[number]
        return as_mechanism(jax.tree.unflatten(structure, leaves))

    def at(self, parameters: Mapping[str, Any]) -> Microdata:
        """The release as it is at parameters."""
        levels = dict(self.levels)
        fields = {
            name: (values, self.channel_at(name, parameters), levels[name]) for name, values in self.values.items()
        }
        return Microdata(fields, self.missing or None, weights=self.weights)

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """The fields whose mechanisms depend on parameters."""
        found = {name for name, _ in self.functions} | {name for name, _, _ in self.numbers}
        return tuple(sorted(found))

    def with_channels(self, people: Microdata, parameters: Mapping[str, Any]) -> Microdata:
        """Rows of the release with the mechanisms at parameters, which a program may trace."""
        made = {
            name: replace(people.fields[name], channel=self.channel_at(name, parameters))
            for name in self.unknown_fields
        }
        return replace(people, fields=people.fields | made)

    @property
    def observed(self) -> Array:
        """The released values of the first field."""
        return next(iter(self.values.values()))

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories of the fields, if they have names."""
        return {name: names for name, names in self.levels if names is not None}

    @property
    def is_of_records(self) -> bool:
        """True: each value is of one."""
        return True

    @property
    def is_estimated(self) -> bool:
        """True: numbers of the noise are."""
        return True

    @property
    def remark(self) -> str:
        """Which numbers are estimated."""
        own = f": {', '.join(sorted(self.priors))}" if self.priors else " with the parameters of the model"
        return f"Numbers of the noise are estimated{own}"

    def check_records(self, records: Records) -> None:
        """Raise unless such records have all fields; the mechanisms are checked where parameters are known."""
        for name in self.values:
            if name not in records:
                fail(
                    "field", f"records with fields {sorted(records)}", f"a field {name!r}", "Name it as the model does."
                )

    def log_likelihood(self, records: Records) -> Array:
        """An error: without the numbers of the noise there is no density."""
        del records
        expected = "known noise, where records are imputed or a method needs its density"
        remedy = "Use dpjax.sample without an imputation, or dpjax.marginal_likelihood: they sum the records out."
        return fail("release", "noise that is not known", expected, remedy)

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """An error: priors and functions have no neutral description.

        Raises
        ------
        TypeError
            Always: it says what can be written.
        """
        del units, metadata
        numbers = dict.fromkeys(sorted(self.priors), "...")
        remedy = f"Write release.at({numbers}).to_json(prior='...'), with a number in the place of each, and its prior."
        return fail("release", "noise that is not known", "known noise", remedy, error=TypeError)

    def __repr__(self) -> str:
        functions = dict(self.functions)
        noise = [
            f"`{name}` ({'a function of the parameters' if name in functions else name_of(self.channels[name])})"
            for name in self.values
        ]
        return f"EstimatedNoise of n = {self.n:,} records\nfields: {', '.join(noise)}\n{self.remark}."


def add_priors(priors: dict[str, Any], more: dict[str, Any]) -> None:
    """Add priors by name, of which each name has one."""
    for name, prior in more.items():
        if name in priors and priors[name] is not prior and priors[name] != prior:
            remedy = "Make it once, and pass it twice; or give the second another name."
            fail("channel", f"two priors of {name!r}", "one", remedy)
        priors[name] = prior


def is_unknown(channel: Any) -> bool:
    """Whether a channel has numbers that are not known, or is a function of the parameters."""
    if is_mechanism(channel):
        return bool(unknown_numbers(channel))
    return isinstance(channel, UnknownChannel) or (callable(channel) and not isinstance(channel, type))
