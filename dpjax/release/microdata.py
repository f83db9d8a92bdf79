"""A release of several fields of each record: some as they are, some through a channel, some missing."""

import json as text_json
from dataclasses import dataclass, field as dataclass_field, replace
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments, names_methods
from dpjax._util.validation import check_count, describe, fail, is_traced, name_of
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Records, Statistic
from dpjax.mechanisms.base import as_mechanism
from dpjax.mechanisms.composite import temper_mechanism
from dpjax.numerics import tree_where
from dpjax.release import json
from dpjax.release.base import PrivateRelease
from dpjax.release.field_parts import FieldPart, check_withheld, split_parts
from dpjax.release.fields import FieldValues
from dpjax.release.levels import to_codes
from dpjax.release.printing import Described
from dpjax.release.summed import Release
from dpjax.release.unknown_count import check_number_known, number_in_words
from dpjax.release.weights import read_weights

__all__ = ["Microdata", "check_drawn_whole"]


@names_methods
@frozen_pytree
@dataclass(frozen=True, eq=False, repr=False)
class Microdata(Described, NamesArguments):
    """Several fields of each of n records, each field exact, perturbed by a channel of its own, or missing.

    Given the records all values are independent of each other. Exact values condition the model. Perturbed and missing
    ones are imputed, and so are fields that are not named here.

    Parameters
    ----------
    fields
        By the name of a record field: the pair of its values [n] or [n, k], in the order of the records, and its
        channel. A channel is such as `dpjax.RandomizedResponse`, or `dpjax.Exact` for what is known; its parameters may
        be one for each record, as in `dpjax.LocalRelease`. The names of a
        field's categories may follow as a third, as ``levels`` of `dpjax.LocalRelease`. A field may be released of some
        people in one way and of others in another, or more than once. Then pass a list of such tuples, with a mask [n]
        as the third entry. It is True for each person of whom this part was released. Names then follow as the fourth.
        Who is in which part must not depend on the value itself.
    missing
        By the name of a field: which of its values are missing, bool [n]. A value of NaN is missing, too, whatever the
        channel. What stands in the place of another missing value is not read. Values are taken to be missing at
        random: whether one is missing does not depend on the value itself. For values that were withheld by a rule,
        such as those below a limit, there are mechanisms.
    summed
        A release of a sum over the same records, or None. `dpjax.joint` joins the two.
    num_others
        How many of the records, the last ones, are of other people than those of the sum; see
        `dpjax.releases.with_observed`.
    weights
        Survey weights of the records [n], or None. They are scaled to sum to n, and multiply the log-likelihood of each
        record: what is then drawn is a pseudo-posterior [1]_. Its intervals are mostly too narrow; see
        `Posterior.sandwich`. Weighted records are summed out, and never imputed.

    Raises
    ------
    TypeError, ValueError
        If the fields are no dict of pairs or lists of parts; their numbers of records differ; or values are not
        possible for their channel. Or if one part of a field is of withheld values alone, and no value of another one
        lies below the limit: then the value decides on the part.

    Warns
    -----
    UserWarning
        If values are NaN of which `missing` does not say that they are missing. If weights are whole numbers with a
        mean above 1, which may be counts of equal records.

    Notes
    -----
    A pytree: values, channels, masks and the sum are data; the names of the fields and `num_others` are static.

    The parts of a field are kept as fields of their own, the second one under a name such as ``"label (2)"``. If one is
    exact, it is the first.

    References
    ----------
    .. [1] Savitsky, T. D. and Toth, D. (2016). Bayesian estimation under informative sampling. Electronic Journal of
       Statistics 10(1).

    Examples
    --------
    >>> import dpjax
    >>> kept = dpjax.RandomizedResponse(keep=0.75, num_categories=2)
    >>> gaps = {"y": [False, True, False]}
    >>> people = dpjax.Microdata({"label": ([0, 1, 1], kept), "y": ([0.3, float("nan"), 1.1], dpjax.Exact())}, gaps)
    >>> people.n, people.missing["y"].tolist()
    (3, [False, True, False])

    Only the first two persons answered at random:

    >>> asked = [([0, 1, 1], kept, [True, True, False]), ([0, 1, 1], dpjax.Exact(), [False, False, True])]
    >>> sorted(dpjax.Microdata({"label": asked}).fields)
    ['label', 'label (2)']
    """

    fields: dict[str, Any]
    missing: Any = None
    summed: Release | None = None
    num_others: int = dataclass_field(default=0, metadata={"static": True})
    weights: Any = None

    def __post_init__(self) -> None:
        if not (isinstance(self.fields, dict) and self.fields):
            remedy = "Pass {field: (values, channel), ...}."
            fail("fields", describe(self.fields), "a dict of record fields, at least one", remedy, error=TypeError)
        masks = read_masks(self.missing, self.fields)
        for name in self.fields:
            if not isinstance(name, str):
                fail("fields", f"the name {name!r}", "names of record fields", "Pass strings.", error=TypeError)
        split, masks = split_parts(self.fields, masks)
        # Sorted, as JAX sorts the entries of a dict.
        read = {name: read_field(name, given, masks.get(name)) for name, given in sorted(split.items())}
        object.__setattr__(self, "fields", {name: field for name, (field, _) in read.items()})
        object.__setattr__(self, "missing", {name: mask for name, (_, mask) in read.items() if mask is not None})
        for name, field in self.fields.items():
            if field.n != self.n:
                given, expected = f"{field.n} values", f"{self.n}, as of fields[{next(iter(self.fields))!r}]"
                fail(f"values of fields[{name!r}]", given, expected, "Pass one value for each record.")
        check_withheld(self.fields, self.missing)
        others = check_count("num_others", self.num_others, least=0)
        if self.summed is not None:
            check_sum(self.summed, self.n - others)
        elif others:
            fail("num_others", describe(others), "0 without a sum", "Leave it out.")
        if self.weights is not None and self.summed is not None:
            fail("weights", "those of records beside a sum over them", "None", "A sum counts each record once.")
        object.__setattr__(self, "weights", read_weights(self.weights, self.n))
        warn_of_gaps(self.fields, masks, self.missing)

    @property
    def n(self) -> int:
        """The number of records."""
        return int(next(iter(self.fields.values())).n)

    @property
    def is_of_records(self) -> bool:
        """Whether there is no sum beside the fields."""
        return self.summed is None

    @property
    def microdata(self) -> "Microdata":
        """The release as fields of each record: itself."""
        return self

    @property
    def observed(self) -> Array:
        """The released values [n, k], one column for each number of a field; NaN where a value is missing.

        The fields are in alphabetical order. A sum beside them is not among the values.
        """
        columns = [self._with_gaps(name).reshape(self.n, -1) for name in self.fields]
        return jnp.concatenate(columns, axis=1)

    @property
    def parts(self) -> tuple[FieldValues | Release, ...]:
        """What came through one mechanism each: the fields, and the sum if there is one."""
        return (*self.fields.values(), *(() if self.summed is None else (self.summed,)))

    @property
    def exact(self) -> dict[str, FieldValues]:
        """Those of the fields that are known exactly, or in part."""
        return {name: field for name, field in self.fields.items() if field.channel.sums.known}

    def noisy_parts(self, name: str) -> dict[str, FieldValues]:
        """What was released of a field through channels; none if it is exact, or missing for everybody."""
        return {
            key: field for key, field in self.fields.items() if field.field == name and not field.channel.sums.known
        }

    def __repr__(self) -> str:
        fields = ", ".join(f"`{name}` ({field.channel.promise.words()})" for name, field in self.fields.items())
        beside = [] if self.summed is None else ["beside: " + repr(self.summed).splitlines()[1]]
        beside += [] if self.weights is None else ["weights: survey weights, scaled to sum to n"]
        return "\n".join([f"Microdata of {number_in_words(self.n)}", f"fields: {fields}", *beside])

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories of the fields, and those that the sum has."""
        return {name: levels for part in self.parts for name, levels in part.level_names.items()}

    @property
    def is_noisy_sum(self) -> bool:
        """No sum was released, or not alone."""
        return False

    def hold(self, records: Records) -> Records:
        """The records with the exact values in their places."""
        held = {name: field.values.astype(records[name].dtype) for name, field in self.exact.items()}
        gaps = {
            name: tree_where(mask, records[name], held[name]) for name, mask in self.missing.items() if name in held
        }
        return records | held | gaps

    def contributions(self, records: Records) -> Array:
        """What each of m records adds to the released sum [d, m]; [0, m] where there is none."""
        if self.summed is None:
            return jnp.zeros((0, len(jax.tree.leaves(records)[0])))
        return self.summed.contributions(records)

    def total_and_density(self, records: Records) -> tuple[Array, Array]:
        """The sum [d] of `contributions`, and the log-density [] of all that was released given the records."""
        local = jnp.sum(self.log_densities(records))
        if self.summed is None:
            return jnp.zeros(0), local
        total, log_density = self.summed.total_and_density(self.of_sum(records))
        return total, local + log_density

    def of_sum(self, records: Records) -> Records:
        """Those of the records that are in the sum."""
        return jax.tree.map(lambda leaf: leaf[: self.n - self.num_others], records) if self.num_others else records

    def log_likelihood(self, records: Records) -> Array:
        """The log-density [] of all that was released given the records."""
        return self.total_and_density(records)[1]

    def log_densities(self, records: Records) -> Array:
        """The log-density [n] of the values of each record given that record; 0 or −∞ of exact ones."""
        return reduce(add, [self.of_seen(name, field.log_densities(records)) for name, field in self.fields.items()])

    def log_densities_of_support(self, support: Records) -> Array:
        """The log-density [n, c] of the values of each record given each of c possible records.

        Fields that the support does not list are left out.
        """
        listed = {name: field for name, field in self.fields.items() if field.field in support}
        terms = [self.of_seen(name, field.log_densities_of_support(support)) for name, field in listed.items()]
        return reduce(add, terms, jnp.zeros((self.n, 1)))

    def sample(self, key: Key, records: Records) -> "Microdata":
        """A release of other records [n] through the same channels: only the values, and that of a sum, are new."""
        keys = jax.random.split(key, len(self.fields) + 1)
        fields = {
            name: replace(field, values=field.sample_values(one, records))
            for one, (name, field) in zip(keys[1:], self.fields.items(), strict=True)
        }
        summed = None if self.summed is None else self.summed.sample(keys[0], self.of_sum(records))
        return replace(self, fields=fields, summed=summed)

    def tempered(self, power: Array) -> "Microdata":
        """The release with its density raised to a power []; what is exact stays so."""
        fields = {
            name: replace(field, channel=temper_mechanism(field.channel, power)) for name, field in self.fields.items()
        }
        return replace(self, fields=fields, summed=None if self.summed is None else self.summed.tempered(power))

    def check_records(self, records: Records) -> None:
        """Raise unless such records have all fields, and these and the sum fit them.

        Parameters
        ----------
        records
            Arrays or `jax.ShapeDtypeStruct` of any leading axis [m].

        Raises
        ------
        TypeError, ValueError
            If a field is missing, or has another shape or type than its channel takes.
        """
        for part in self.parts:
            part.check_records(records)

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """The release as JSON text; `from_json` reads it back. Missing values are ``null``.

        Parameters
        ----------
        units
            The units of the values, in words.
        **metadata
            Whatever else should be written, such as source or date; kept, but not read back.
        """
        fields = {
            name: {
                "values": self._encode(name),
                "channel": json.encode_mechanism(field.channel),
                "levels": field.levels,
            }
            | ({} if field.field == name else {"field": field.field})
            for name, field in self.fields.items()
        }
        summed = None if self.summed is None else text_json.loads(self.summed.to_json())
        content = {"fields": fields, "summed": summed, "num_others": self.num_others}
        if self.weights is not None:
            content["weights"] = json.encode_numbers("weights", self.weights, max_ndim=1)
        return json.write("microdata", content, units, metadata)

    @classmethod
    def from_json(cls, text: str, *, statistic: Statistic | None = None) -> "Microdata":
        """The release written by `to_json`.

        Parameters
        ----------
        text
            JSON text in the schema of `dpjax.release.json`.
        statistic
            The function ``record -> [d]`` of the sum, where it is not one of `dpjax.statistics`.

        Raises
        ------
        TypeError, ValueError
            If the text is of another schema or version, or holds something unknown.
        """
        content = json.read(text, "microdata")
        decoded = {name: decode_field(name, entry) for name, entry in json.check_dict("fields", content["fields"])}
        summed = content["summed"]
        return cls(
            {name: field for name, (field, _) in decoded.items()},
            {name: mask for name, (_, mask) in decoded.items() if mask.any()},
            None if summed is None else Release.from_json(text_json.dumps(summed), statistic=statistic),
            content["num_others"],
            None if content["weights"] is None else json.decode_numbers("weights", content["weights"]),
        )

    def of_seen(self, name: str, terms: Array) -> Array:
        """Terms [n, ...] of a field, 0 where its value is missing."""
        return tree_where(self.missing[name], jnp.zeros_like(terms), terms) if name in self.missing else terms

    def _with_gaps(self, name: str) -> Array:
        """The values of a field as floats, NaN where they are missing."""
        values = self.fields[name].values.astype(float)
        return (
            tree_where(self.missing[name], jnp.full_like(values, jnp.nan), values) if name in self.missing else values
        )

    def _encode(self, name: str) -> Any:
        """The values of a field as nested lists, None where they are missing."""
        listed = json.encode_numbers(f"values of fields[{name!r}]", self.fields[name].values, max_ndim=2)
        gaps = np.asarray(self.missing.get(name, np.zeros(self.n, bool)))
        return [None if gap else value for gap, value in zip(gaps, listed, strict=True)]


def check_drawn_whole(release: PrivateRelease) -> None:
    """Raise if fields are exact, which records that a model draws as a whole do not have."""
    if release.exact:
        given = f"Microdata whose fields {list(release.exact)} are exact"
        fail("release", given, "fields with noise, as records are drawn from the model", "Use dpjax.sample.")


def read_masks(missing: Any, fields: dict[str, Any]) -> dict[str, Array]:
    """Which values of each field are missing, for the fields of which it is said."""
    remedy = "Pass {field: mask}, with True where its value is missing."
    if missing is None:
        return {}
    if not isinstance(missing, dict):
        fail("missing", name_of(missing), "a dict of masks", remedy, error=TypeError)
    for name, mask in missing.items():
        argument = f"missing[{name!r}]"
        if name not in fields:
            fail(argument, f"no field {name!r} among {list(fields)}", "a field with values", remedy)
        if not is_traced(mask) and (np.ndim(mask) != 1 or np.asarray(mask).dtype != bool):
            fail(argument, describe(mask), "an array of booleans [n]", remedy, error=TypeError)
    return {name: jnp.asarray(mask) for name, mask in missing.items()}


def read_field(name: str, given: Any, mask: Array | None) -> tuple[FieldValues, Array | None]:
    """The values of a field with their channel, and which of them are missing; None if it is said of none."""
    name = getattr(given, "field", name)
    if isinstance(given, FieldValues):
        given = given.values, given.channel, given.levels
    is_pair = isinstance(given, (tuple, list)) and len(given) == 2
    if not (is_pair or (isinstance(given, tuple) and len(given) == 3)):
        remedy = "Pass (values, channel); dpjax.Exact() for what is known."
        fail(f"fields[{name!r}]", name_of(given), "a pair of values and their channel", remedy, error=TypeError)
    values, channel, levels = (*given, None)[:3]
    if not is_traced(values, mask):
        values, levels = to_codes(f"values of fields[{name!r}]", values, levels)
        values, mask = fill_gaps(name, values, channel, mask)
    field = FieldValues(values, channel, name, levels=levels)
    check_length(name, mask, field.n)
    return field, mask


def check_length(name: str, mask: Array | None, n: int) -> None:
    """Raise unless a mask, if there is one, has an entry for each record."""
    if mask is not None and mask.shape != (n,):
        given, remedy = f"shape {list(mask.shape)}", "Pass one boolean for each value."
        fail(f"missing[{name!r}]", given, f"shape [{n}]", remedy)


def fill_gaps(name: str, values: Any, channel: Any, mask: Array | None) -> tuple[Any, Array | None]:
    """Values with one that was released in each place where one is missing, and which places these are."""
    array = as_numbers(values)
    if array is None:
        return values, mask
    check_length(name, mask, len(array))
    absent = np.isnan(array)
    rows = absent.reshape(len(array), -1).all(axis=1)
    if np.any(absent.reshape(len(array), -1).any(axis=1) != rows):
        remedy = "A value [k] is missing as a whole: name its coordinates as fields of their own."
        fail(f"values of fields[{name!r}]", "rows that are NaN in part", "whole rows of NaN, or none", remedy)
    gaps = rows if mask is None else rows | np.asarray(mask)
    if not gaps.any():
        return values, mask
    filled = np.array(values)
    if not gaps.all():
        filled[gaps] = min(filled[~gaps], key=np.sum)  # most likely to be possible for other records
        persons = as_mechanism(channel).sums.num_records
        filled = filled if persons is None else np.where(gaps, np.minimum(filled, persons), filled)
    else:
        filled[gaps] = 0
    # Whole numbers with gaps come as floats from most tables.
    is_coded = hasattr(as_mechanism(channel), "num_categories") and np.all(filled == np.round(filled))
    return filled.astype(int) if is_coded else filled, jnp.asarray(gaps)


def warn_of_gaps(fields: dict[str, FieldValues], said: dict[str, Array], found: dict[str, Array]) -> None:
    """Say what is assumed of values that are NaN, where masks that were given do not say that they are missing."""
    if is_traced(found):
        return
    unsaid = {
        fields[name].field: int(np.sum(np.asarray(mask) & ~np.asarray(said.get(name, False))))
        for name, mask in found.items()
    }
    gaps = [f"{number} of {name!r}" for name, number in unsaid.items() if number]
    if gaps:
        warn_at_the_call(
            f"fields: values that are NaN, {', '.join(gaps)}, are taken to be missing at random: whether one is "
            "missing does not depend on the value. If so, pass missing={field: mask}. If they were withheld by a rule, "
            "pass the rule: dpjax.releases.suppressed_units or thresholded_units, or dpjax.mechanisms.Censored noise."
        )


def as_numbers(values: Any) -> np.ndarray | None:
    """The values as floats [n, ...], or None if they are none: later checks say what is wrong."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        return None
    return array.astype(float) if array.dtype.kind in "biuf" and array.ndim and array.size else None


def check_sum(summed: Any, n: int) -> None:
    """Raise unless a sum over the same known number of records is given."""
    if not isinstance(summed, Release):
        fail("summed", name_of(summed), "a dpjax.Release, or None", "Leave it out.", error=TypeError)
    check_number_known(summed, "Pass a sum over the records of the fields, whose number is known.")
    if summed.n != n:
        remedy = "The fields have so many records, less num_others."
        fail("summed", f"n = {summed.n}", f"n = {n}", remedy)


def decode_field(name: str, entry: Any) -> tuple[FieldPart, np.ndarray]:
    """The values of a field with their channel, and which of them are missing, from their description."""
    parts = dict(json.check_dict(f"fields[{name!r}]", entry))
    argument = f"values of fields[{name!r}]"
    field = parts.pop("field", name)
    json.check_names(argument, set(parts), {"values", "channel"}, {"levels"})
    values = parts["values"]
    if not (isinstance(values, list) and values):
        fail(argument, describe(values), "a list of numbers or null", "Write the release with to_json.")
    gaps = np.array([value is None for value in values])
    known = json.decode_numbers(argument, [value for value in values if value is not None])
    stand_in = known[0] if known else 0
    filled = [stand_in if value is None else value for value in values]
    return FieldPart(field, filled, json.decode_mechanism(parts["channel"]), parts.get("levels")), gaps
