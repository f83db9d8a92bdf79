"""Every public function refuses every bad input of the kind of each of its arguments, by the argument's name.

A new function is covered without anybody thinking of it. What it takes is seen from a valid argument of
``tests/bad_inputs/calls.py``, or else from its annotation.
"""

import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import pytest

from dpjax._util.validation import is_refusal
from tests.bad_inputs.calls import OWN, USUAL, public_functions


class Anything:
    """An object of a class that dpjax does not know."""


class Unreadable:
    """An array of another library that cannot be read, as one that requires a gradient."""

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        raise RuntimeError("call detach first")


KEY = jax.random.key(0)
RAGGED = [[1.0], [1.0, 2.0]]
NOTHING = {"None": None, "an object": Anything(), "a dict": {"q": 1}, "a key": KEY, "a class": int}
NOTHING |= {"a table": pd.DataFrame({"q": ["a", "b"]}), "not available": pd.NA}
NO_NUMBER = NOTHING | {
    "a text": "1",
    "NaN": float("nan"),
    "complex": 1j,
    "beyond floats": 10**400,
    "of 5,000 digits": 10**5000,
    "a function": np.sqrt,
    "ragged": RAGGED,
    "long doubles": np.array([0.5, 0.5], np.longdouble),
    "masked": np.ma.masked_array([0.5, 0.5], [True, False]),
    "an unreadable array": Unreadable(),
}
BAD: dict[str, dict[str, Any]] = {
    "number": NO_NUMBER,
    "count": NOTHING
    | {
        "a text": "1",
        "NaN": float("nan"),
        "a fraction": 2.5,
        "a whole float": 3.0,
        "negative": -1,
        "True": True,
        "a list": [1],
        "a duration": np.timedelta64(3, "s"),
        "beyond floats": 10**400,
        "of 5,000 digits": 10**5000,
    },
    "array": NO_NUMBER | {"NaN": [float("nan")] * 2, "objects": np.array([None, 1.0]), "complex": [1j, 1j]},
    "text": NOTHING | {"a number": 3, "bytes": b"y", "a list": [3], "numbers": np.zeros(2)},
    "function": NOTHING | {"a number": 3, "a text": "f"},
    "key": {
        "None": None,
        "a number": 0,
        "an old key": np.zeros(2, np.uint32),
        "keys": jax.random.split(KEY),
        "an object": Anything(),
        "a text": "0",
    },
    "flag": {
        "None": None,
        "a text": "yes",
        "a number": 2,
        "a list": [],
        "texts": np.array(["a", "b"]),
        "not available": pd.NA,
    },
    "other": NOTHING
    | {
        "a number": 3.5,
        "a text": "nonsense",
        "nothing": [],
        "unlike names": {"q": 1.0, 1: 2.0},
        "texts": np.array(["a", "b"]),
    },
}
"""By kind: what no function takes for such an argument. None stands apart where it is a default."""

TAKEN = {
    ("dpjax.models.formula", "fields", "nothing"): "no column is read, as by default",
    ("dpjax.releases.suppressed", "value", "NaN"): "a count that was suppressed",
    ("dpjax.mixture.register_tractable", "channel", "a class"): "what it asks for",
    ("dpjax.mixture.register_tractable", "component", "a class"): "what it asks for",
    ("dpjax.private.make_kernel", "queries", "nothing"): "a kernel that protects nobody",
    ("dpjax.private.model_target", "public_arrays", "nothing"): "no array is public, as by default",
    ("dpjax.private.target", "public_arrays", "nothing"): "no array is public, as by default",
    ("dpjax.private.target", "position", "NaN"): "it has a shape, and nothing else is taken from it",
    ("dpjax.private.target", "position", "ragged"): "a tree of numbers",
    ("dpjax.private.target", "position", "masked"): "it has a shape, and nothing else is taken from it",
    ("dpjax.private.target", "public_arrays", "texts"): "only its shape is compared",
    ("dpjax.private.model_target", "public_arrays", "texts"): "only its shape is compared",
    ("dpjax.private.numpyro_target", "public_arrays", "texts"): "only its shape is compared",
    ("dpjax.releases.thresholded_units", "values", "NaN"): "units whose values were withheld",
    ("dpjax.releases.thresholded", "keys", "texts"): "keys that are named",
    ("dpjax.releases.thresholded", "all_keys", "texts"): "keys that are named",
}
"""By function, argument and input: why it is right there."""

OTHER_NAMES = {
    "by": "field",
    "all_keys": "keys",
    "candidates": "statistic",
    "covariates": "records",
    "fit": "model",
    "high": "upper",
    "kernel": "parameter_kernel",
    "keys": "values",
    "low": "lower",
    "num_warmup": "num_samples",
    "people": "max_rows",
    "records": "people|record",
    "release_design": "release",
    "thin": "num_samples",
}
"""What an error may call an argument, as it says what is wrong with several together or with their kind."""


class Case(NamedTuple):
    """A call with one bad argument."""

    function: str
    argument: str
    label: str
    arguments: dict[str, Any]


def kind_of(good: Any, annotation: str) -> str | None:
    """The kind of an argument, by a valid one or its annotation; None for one that a run alone can make."""
    if good is None:
        found = re.match(
            r"(?:typing\.Union\[|typing\.Optional\[)?(int|float|str|bool|jax\.jaxlib\._jax\.Array)\b", annotation
        )
        names = {"int": "count", "float": "number", "str": "text", "bool": "flag"}
        return "other" if found is None else names.get(found[1], "array")
    if isinstance(good, str) and (found := re.search(r"\b(int|float)\b", annotation)):
        return {"int": "count", "float": "number"}[found[1]]
    if isinstance(good, (bool, int, float, str)):
        return {bool: "flag", int: "count", float: "number", str: "text"}[type(good)]
    if isinstance(good, jax.Array) and jax.numpy.issubdtype(good.dtype, jax.dtypes.prng_key):
        return "key"
    first = good
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if isinstance(first, (int, float, np.ndarray, jax.Array)):
        return "array"
    return "function" if inspect.isfunction(good) else "other"


def cases_of(path: str, function: Any) -> Iterator[Case]:
    """The calls of a function, each with one bad argument."""
    own = OWN.get(path, {})
    parameters = [one for one in inspect.signature(function).parameters.values() if one.kind not in (2, 4)]
    needed = {one.name for one in parameters if one.default is one.empty} | set(own)
    good = {name: own[name] if name in own else USUAL[name] for name in needed}
    out_of_reach = {name for name, value in good.items() if value is None and name in needed}
    for one in parameters:
        value = good.get(one.name, None if one.default is one.empty else one.default)
        if out_of_reach - {one.name}:
            continue
        for label, bad in BAD[kind_of(value, str(one.annotation))].items():
            if not (label == "None" and (one.default is None or "None" in str(one.annotation))):
                yield Case(path, one.name, label, good | {one.name: bad})


CASES = [case for path, function in public_functions().items() for case in cases_of(path, function)]


def outcome(function: Any, case: Case) -> str:
    """What is wrong with how a bad input was taken; nothing if it was refused by its name."""
    try:
        result = function(**case.arguments)
    except Exception as error:
        if not (is_refusal(error) and isinstance(error, (TypeError, ValueError))):
            return f"raw: {error!r}"
        head = str(error).partition(": given ")[0]
        named = re.search(rf"\b({case.argument}|{OTHER_NAMES.get(case.argument, case.argument)})\b", head)
        return "" if named else f"another name: {error}"
    if (case.function, case.argument, case.label) in TAKEN:
        return ""
    return f"accepted: {type(result).__name__}"


OF_RUNS = {"take_states", "step_lanes", "find_starts", "probe", "search_from", "simulate", "states_at"}
"""Programs with which runs begin. Single operations on the other, valid arguments JAX compiles all the same."""


def check_refusals(compilations: list[str], cases: list[Case]) -> None:
    """Raise unless each of the cases is refused by its name, before a run begins."""
    functions = public_functions()
    wrong = {(*case[:3],): found for case in cases if (found := outcome(functions[case.function], case))}
    assert wrong == {}
    assert OF_RUNS.isdisjoint(name.removeprefix("jit(").removesuffix(")") for name in compilations)


def in_turn() -> list[Case]:
    """One case for each argument, of another bad input from argument to argument; of calls with a model a third."""
    listed = [list(cases) for _, cases in groupby(CASES, lambda case: case[:2])]
    chosen = [cases[place % len(cases)] for place, cases in enumerate(listed)]
    return [case for place, case in enumerate(chosen) if "model" not in case.arguments or place % 3 == 0]


@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_each_argument_refuses_a_bad_input(compilations):
    cases = in_turn()
    assert len(cases) > 600
    check_refusals(compilations, cases)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_each_argument_refuses_every_bad_input(compilations):
    check_refusals(compilations, CASES)
