"""Looks at a NumPyro model once, concretely, and refuses what is not independent records given parameters."""

import inspect as signatures
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpjax.adapters.numpyro import refusals
from dpjax.adapters.numpyro.trials import settle
from dpjax.adapters.numpyro.visit import Layout, draw, run, watch
from dpjax.base import Key
from dpjax.validation import check_count, fail, is_refusal, summarize_error

DEFAULT_SIZE = 5
"""How many records a model is looked at with that takes any number."""


def inspect(
    function: Callable[..., Any], records: Sequence[str], n: int | None, arguments: dict[str, Any]
) -> tuple[Layout, bool]:
    """The layout of a NumPyro model, and whether its records are exchangeable.

    Raises
    ------
    TypeError, ValueError
        See `dpjax.from_numpyro`.
    """
    names = check_names(function, records)
    arguments, takes_size = complete(function, names, arguments)
    size = choose_size(function, names, arguments) if n is None else check_count("n", n, "Pass a number of records.")
    statements = first_run(function, arguments | ({"n": size} if takes_size else {}), takes_size and n is None)
    refusals.check_statements(statements)
    sites = {statement["name"]: statement for statement in statements if statement["type"] == "sample"}
    known = tuple(name for name in names if name not in sites and name in arguments)
    plate = refusals.check_record_sites(sites, tuple(name for name in names if name not in known))
    refusals.check_parameters(sites, plate.name)
    fields = tuple(name for name in sites if name in names)
    layout = Layout(
        function=function,
        arguments=arguments,
        takes_size=takes_size,
        size=plate.size,
        fixed=bool(known),
        plate=plate.name,
        parameters=tuple(name for name in sites if name not in names),
        fields=fields,
        known=known,
    )
    if n is not None and plate.size != n:
        given = f"{n}, but the plate {plate.name!r} has {plate.size}"
        fail("n", given, "the size of the plate", "Leave n out, or let the plate take it.")
    refusals.check_known(layout)
    refusals.check_shapes(layout)
    return settle(layout)


def check_names(function: Any, records: Any) -> tuple[str, ...]:
    """The names of the record fields."""
    if not callable(function):
        fail("fn", type(function).__name__, "a NumPyro model, a function", "Pass the function itself.", error=TypeError)
    remedy = 'Pass the names of the record fields, such as records=("x", "y").'
    if isinstance(records, str) or not isinstance(records, Sequence) or not all(isinstance(r, str) for r in records):
        fail("records", repr(records), "a sequence of names", remedy, error=TypeError)
    if not records or len(set(records)) != len(records):
        fail("records", repr(tuple(records)), "one or more different names", remedy)
    return tuple(records)


def complete(
    function: Callable[..., Any], names: tuple[str, ...], arguments: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """The model's arguments, with None for the data, and whether it has an argument ``n``."""
    expected = signatures.signature(function).parameters
    takes_size = "n" in expected
    kinds = (signatures.Parameter.POSITIONAL_OR_KEYWORD, signatures.Parameter.KEYWORD_ONLY)
    required = {
        name for name, one in expected.items() if one.default is signatures.Parameter.empty and one.kind in kinds
    }
    data = {name: None for name in names if name in required and name not in arguments}
    missing = sorted(required - set(arguments) - set(data) - {"n"})
    if missing:
        remedy = "Call it n if it is the number of records; else pass it by keyword, or give it the default None."
        fail(f"fn's argument {missing[0]!r}", "nothing", "a value", remedy, error=TypeError)
    open_ended = any(one.kind is signatures.Parameter.VAR_KEYWORD for one in expected.values())
    unknown = sorted(set(arguments) - set(expected))
    if unknown and not open_ended:
        remedy = "Check its spelling; arguments that are not dpjax's are passed on to the NumPyro model."
        fail(
            f"argument {unknown[0]!r}", "a value", f"one of fn's arguments {sorted(expected)}", remedy, error=TypeError
        )
    return arguments | data, takes_size


def choose_size(function: Callable[..., Any], names: tuple[str, ...], arguments: dict[str, Any]) -> int:
    """How many records to look at: as many as the known fields have, else the model's own default."""
    lengths = [np.shape(arguments[name])[0] for name in names if name in arguments and np.ndim(arguments[name])]
    expected = signatures.signature(function).parameters
    default = expected["n"].default if "n" in expected else None
    return lengths[0] if lengths else default if isinstance(default, int) else DEFAULT_SIZE


def first_run(function: Callable[..., Any], arguments: dict[str, Any], made_up: bool) -> list[dict[str, Any]]:
    """The statements of the model as it stands, with a size that may be made up; nothing is computed."""

    def statements_of(key: Key) -> list[dict[str, Any]]:
        values = draw(key)
        return run(function, arguments, lambda name, law: refusals.draw_or_refuse(name, law, values), {})

    try:
        return watch(statements_of)
    except Exception as error:
        if is_refusal(error):
            raise
        if made_up and any(np.ndim(value) for value in arguments.values() if hasattr(value, "__array__")):
            remedy = "Pass n, the number of records that the arrays among the arguments have."
            given = f"nothing, and fn fails for another number than its arrays have ({summarize_error(error)})"
            fail("n", given, "the number of records to look at fn with", remedy)
        error.add_note("Raised by the NumPyro model while dpjax looked at it, with every data argument None.")
        raise
