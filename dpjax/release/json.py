"""The JSON form of a release: one neutral, versioned schema.

``{"schema": "privatized-release", "version": 1, "kind": ..., "units": ..., "metadata": {...}}``, of which the last two
may be left out, and

* for kind ``"release"``: ``value`` [d], ``n``, ``mechanism``, ``statistic``;
* for kind ``"local-release"``: ``values`` [n] or [n, k], ``channel``, ``field``, ``levels`` (names or null);
* for kind ``"microdata"``: ``fields``, ``summed``, ``num_others``. By name, the fields have ``values``, with null where
  one is missing, ``channel`` and ``levels``. The sum is a release or null. ``num_others`` of the records are not in it.
  ``weights`` (survey weights, or null) may be left out.

An unknown ``n`` is the prior of it, ``{"name": ..., its numbers}``.

A mechanism is ``{"name": ..., its parameters, "privacy": {...}}``, a statistic ``{"name": ..., its arguments}``. Names
and parameters are those of dpjax's mechanisms and statistics; a user's function is ``{"name": "function",
"function": "module.name"}``. Numbers are written with all their digits.
"""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from dpjax._util.validation import describe, fail, is_refusal, is_traced, name_of
from dpjax.base import Array, Statistic
from dpjax.mechanisms import Mechanism, Privacy
from dpjax.mechanisms.base import is_mechanism
from dpjax.mechanisms.utilities import Utilities
from dpjax.release.unknown_count import COUNT_PRIORS, UnknownCount
from dpjax.statistics import RecordStatistic

SCHEMA = "privatized-release"
VERSION = 1
CONTENT = {
    "release": {"value", "n", "mechanism", "statistic"},
    "local-release": {"values", "channel", "field"},
    "microdata": {"fields", "summed", "num_others"},
}
HEADER = {"schema", "version", "kind"}
ABOUT: dict[str, Any] = {"units": None, "metadata": {}}
OPTIONAL = {"local-release": {"levels": None}, "microdata": {"weights": None}}
"""Entries that a text may lack, as `ABOUT` of every kind, and what then stands for them."""


def write(kind: str, content: dict[str, Any], units: str | None, metadata: dict[str, Any]) -> str:
    """The text of a release of a kind, from its encoded content."""
    document = {"schema": SCHEMA, "version": VERSION, "kind": kind, **content, "units": units, "metadata": metadata}
    try:
        return json.dumps(document, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "Pass text, numbers, lists or dicts of them."
        fail("metadata", f"{sorted(metadata)} ({error})", "values that JSON can hold", remedy, error=TypeError)


def read(text: str, kind: str | None = None) -> dict[str, Any]:
    """The document in a text, with schema, version, kind and the names of its entries checked."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except (TypeError, ValueError, RecursionError) as error:  # no text, no JSON, or numbers of thousands of digits
        if is_refusal(error):
            raise
        fail("text", f"no JSON ({error})", "the text of a release", "Pass the text itself, not the name of its file.")
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        given = document.get("schema") if isinstance(document, dict) else type(document).__name__
        fail("schema", repr(given), repr(SCHEMA), "Write the release with to_json.")
    if type(document.get("version")) is not int or document["version"] != VERSION:
        fail("version", document.get("version"), str(VERSION), "Read it with the version of dpjax that wrote it.")
    found = str(document.get("kind"))
    if found not in (CONTENT if kind is None else (kind,)):
        remedy = "Read it with Release.from_json, LocalRelease.from_json or dpjax.release.from_json."
        fail("kind", repr(found), repr(kind) if kind else f"one of {sorted(CONTENT)}", remedy)
    optional = ABOUT | OPTIONAL.get(found, {})
    check_names("text", set(document), CONTENT[found] | HEADER, optional)
    document = optional | document
    if not isinstance(document["units"], (str, NoneType)):
        fail("units", repr(document["units"]), "a text, or null", "Give the units in words.", error=TypeError)
    check_dict("metadata", document["metadata"])
    return document


def encode_numbers(argument: str, value: Array, *, max_ndim: int | None = None) -> Any:
    """A number or nested lists of them."""
    if is_traced(value):
        fail(argument, "a traced value", "numbers", "Write the release outside jit and vmap.", error=TypeError)
    if max_ndim is not None and np.ndim(value) > max_ndim:
        fail(argument, f"shape {list(np.shape(value))}", "one release", "Write the releases of a batch one by one.")
    return np.asarray(value).tolist()


def decode_numbers(argument: str, value: Any) -> Any:
    """A number, or lists of them in the layout of an array, as it was written."""
    _check_leaves(argument, value)
    try:
        np.asarray(value, float)
    except (OverflowError, ValueError) as error:
        expected, remedy = "a number or lists of numbers of equal length", "Write the release with to_json."
        fail(argument, f"{describe(value)} ({error})", expected, remedy)
    return value


def _check_leaves(argument: str, value: Any) -> None:
    """Raise unless there are only numbers in nested lists."""
    for leaf in value if isinstance(value, list) else [value]:
        if isinstance(leaf, list):
            _check_leaves(argument, leaf)
        elif isinstance(leaf, bool) or not isinstance(leaf, (int, float)):
            fail(argument, repr(leaf), "a number or lists of numbers", "Write numbers without quotes.", error=TypeError)


def encode_number(n: int | UnknownCount) -> Any:
    """The number of records, or the name and the numbers of the prior that stands for it."""
    if not isinstance(n, UnknownCount):
        return n
    name = {kind: name for name, kind in COUNT_PRIORS.items()}.get(type(n.prior))
    if name is None:
        remedy = "A prior of your own has no neutral description: store its numbers yourself."
        fail("n.prior", type(n.prior).__name__, f"one of {sorted(COUNT_PRIORS)}", remedy, error=TypeError)
    return {"name": name, **asdict(n.prior)}  # type: ignore[call-overload]


def decode_number(entry: Any) -> Any:
    """The number of records of a description, or the prior that stands for it."""
    if not isinstance(entry, dict):
        return entry
    name, numbers = _split("n", entry, COUNT_PRIORS)
    return UnknownCount(_build(f"n {name!r}", COUNT_PRIORS[name], numbers))


def encode_mechanism(mechanism: Mechanism | Any) -> dict[str, Any]:
    """A mechanism's name in JSON, its parameters and its promise."""
    if not isinstance(mechanism, Mechanism) or mechanism.json_name is None:
        remedy = "A mechanism of your own has no neutral description: store its parameters yourself."
        expected = f"one of {sorted(Mechanism.by_json_name)}"
        fail("mechanism", name_of(mechanism), expected, remedy, error=TypeError)
    present = {key: value for key, value in mechanism._json_fields().items() if value is not None}
    return {"name": mechanism.json_name} | {key: _encode_parameter(key, value) for key, value in present.items()}


def decode_mechanism(entry: Any) -> Mechanism:
    """The mechanism of a description."""
    name, parameters = _split("mechanism", entry, Mechanism.by_json_name)
    decoded = {key: _decode_parameter(key, value) for key, value in parameters.items()}
    return _build(f"mechanism {name!r}", Mechanism.by_json_name[name]._from_json_fields, decoded)


def encode_statistic(statistic: Statistic) -> dict[str, Any]:
    """A statistic's name in JSON and its arguments, or a function's name."""
    if not isinstance(statistic, RecordStatistic) or statistic.json_name is None:
        function = getattr(statistic, "__qualname__", type(statistic).__qualname__)
        return {"name": "function", "function": f"{statistic.__module__}.{function}"}
    arguments = {key: _encode_argument(value) for key, value in statistic._json_fields().items()}
    return {"name": statistic.json_name} | arguments


def decode_statistic(entry: Any) -> Statistic:
    """The statistic of a description."""
    if isinstance(entry, dict) and entry.get("name") == "function":
        remedy = "Pass it: from_json(text, statistic=...)."
        fail("statistic", f"the function {entry.get('function')!r}, known by name only", "the function itself", remedy)
    name, arguments = _split("statistic", entry, RecordStatistic.by_json_name)
    decoded = {key: _decode_argument(value) for key, value in arguments.items()}
    return _build(f"statistic {name!r}", RecordStatistic.by_json_name[name]._from_json_fields, decoded)


def choose_statistic(entry: Any, given: Statistic | None) -> Statistic:
    """The statistic of a description, or the user's if only a name is known."""
    if given is None:
        return decode_statistic(entry)
    if encode_statistic(given) != entry and not _names_function(entry):
        remedy = "Leave statistic= out: the text describes it in full."
        fail("statistic", repr(given), f"the statistic of the text, {entry}", remedy)
    return given


def _names_function(entry: Any) -> bool:
    """Whether a description holds a function, perhaps inside another statistic."""
    parts = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ()
    return (isinstance(entry, dict) and entry.get("name") == "function") or any(map(_names_function, parts))


def _encode_parameter(name: str, value: Any) -> Any:
    if isinstance(value, Privacy):
        return {key: entry for key, entry in asdict(value).items() if entry is not None}
    if name in ("mechanisms", "numerators"):
        return [encode_mechanism(part) for part in value]
    if name == "utilities":
        return _encode_utilities(value)
    if isinstance(value, str):
        return value
    return encode_mechanism(value) if is_mechanism(value) else encode_numbers(name, value)


def _decode_parameter(name: str, value: Any) -> Any:
    if name == "privacy" and isinstance(value, dict):
        return _build("privacy", Privacy, value)
    if name in ("mechanisms", "numerators") and isinstance(value, list):
        return [decode_mechanism(part) for part in value]
    if name == "utilities":
        kind, parameters = _split("utilities", value, Utilities.by_json_name)
        return _build(f"utilities {kind!r}", Utilities.by_json_name[kind]._from_json_fields, parameters)
    if (name in ("family", "by") and isinstance(value, str)) or (name == "complete" and isinstance(value, bool)):
        return value
    return (
        decode_mechanism(value)
        if name in ("mechanism", "drawn", "on_variance", "linear_term", "numerator", "denominator")
        else decode_numbers(name, value)
    )


def _encode_utilities(utilities: Any) -> dict[str, Any]:
    """The name of utilities in JSON, and their numbers; a function has none."""
    if not isinstance(utilities, Utilities) or utilities.json_name is None:
        remedy = "A function has no neutral description: store what it computes yourself."
        expected = f"one of {sorted(Utilities.by_json_name)}"
        fail("mechanism.utilities", name_of(utilities), expected, remedy, error=TypeError)
    return {"name": utilities.json_name} | utilities._json_fields()


def _encode_argument(value: Any) -> Any:
    if callable(value):
        return encode_statistic(value)
    return [_encode_argument(entry) for entry in value] if isinstance(value, tuple) else value


def _decode_argument(value: Any) -> Any:
    if isinstance(value, dict):
        return decode_statistic(value)
    return [_decode_argument(entry) for entry in value] if isinstance(value, list) else value


def _split(argument: str, entry: Any, known: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a description, which must be known, and the rest of it."""
    name = entry.get("name") if isinstance(entry, dict) else entry
    if not isinstance(entry, dict) or not isinstance(name, str) or name not in known:
        fail(f"{argument} name", repr(name), f"one of {sorted(known)}", "Only these have a neutral description.")
    return name, {key: value for key, value in entry.items() if key != "name"}


def _build(argument: str, build: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    try:
        return build(**parameters)
    except TypeError as error:
        if is_refusal(error):
            raise
        given = f"{parameters} ({error})"
        fail(argument, given, "its own parameters", "Compare with the output of to_json.", error=TypeError)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Entries as a dict, or an error if a name comes twice, of which JSON says nothing."""
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        fail("text", f"more than one entry {twice}", "each entry once", "Write the release with to_json.")
    return dict(pairs)


def check_dict(argument: str, entry: Any) -> Iterable[tuple[str, Any]]:
    """The entries of a dict in a document, or an error where something else stands."""
    if not isinstance(entry, dict):
        fail(argument, type(entry).__name__, "named entries", "Write the release with to_json.", error=TypeError)
    return entry.items()


def check_names(argument: str, found: set[str], known: set[str], optional: Collection[str] = ()) -> None:
    """Raise unless a document has all known entries, and no others but optional ones."""
    for names, problem in ((known - found, "no"), (found - known - set(optional), "an unknown")):
        if names:
            remedy = "Put whatever else you want to keep into metadata."
            fail(argument, f"{problem} entry {sorted(names)}", f"the entries {sorted(known)}", remedy)


def _refuse_constant(name: str) -> NoReturn:
    fail("text", f"the number {name}", "finite numbers", "Leave out what is not known.")
