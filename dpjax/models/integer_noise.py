"""A check that statistics with integer noise are integers.

A release of a real sum with integer noise would reveal its fraction exactly, and a sampler could never change that
fraction. A statistic is accepted as integer only in three cases. Its jaxpr shows that it is, or it is integer on every
possible record, or it is computed from fields that are integers in records drawn from the model.

The jaxpr comes first, as it takes no compilation. To draw records of a Poisson model in NumPyro takes 20 times as long.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from dpjax._util.jit import jit_unoptimized
from dpjax._util.traced import propagate
from dpjax._util.validation import fail, is_traced, name_of
from dpjax.base import Array, Model, Records
from dpjax.mechanisms.base import Mechanism, parts_of
from dpjax.models.simulation import draw_position
from dpjax.release import PrivateRelease
from dpjax.release.unknown_count import is_unknown
from dpjax.statistics import Stacked
from dpjax.statistics.base import statistic_at

Contribution = Callable[[Records], Array]

WholeSum = tuple[Any, slice | None]
"""A mechanism with integer noise, and the coordinates that must be whole; None for all."""

NUM_PARAMETERS, MAX_RECORDS = 16, 1024
"""Number of draws from the prior, and of records for each, to decide whether a field is integer."""

MAX_NUMBERS = 2**22
"""Largest number of values that are computed at once."""


class Kind(IntEnum):
    """What a jaxpr shows of a number that it computes.

    REAL
        It depends on a real number that was not rounded.
    FROM_INTEGERS
        It is computed from integers alone, but may be a fraction.
    INTEGER
        It is an integer for every record.
    """

    REAL = 0
    FROM_INTEGERS = 1
    INTEGER = 2


INTEGER_PRESERVING = frozenset(
    {
        *("abs", "add", "add_any", "clamp", "cummax", "cummin", "cumsum", "dot_general", "max", "min", "mul", "neg"),
        *("reduce_max", "reduce_min", "reduce_sum", "rem", "scatter-add", "scatter_add", "square", "sub"),
        *("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "dynamic_slice", "expand_dims"),
        *("dynamic_update_slice", "gather", "pad", "reshape", "rev", "scatter", "select_n", "slice", "sort", "split"),
        *("squeeze", "stop_gradient", "transpose"),
    }
)
"""The operations whose results are integers if their arguments are."""

ROUNDING = frozenset({"ceil", "floor", "round", "sign"})
"""The operations whose results are always integers."""


def check_integer_noise(model: Model, release: PrivateRelease) -> None:
    """Raise if a mechanism adds integer noise to a statistic or a field that is not integer on the model's records."""
    for part in release.fields.values():
        whole = whole_sums_of(part.channel, part.values.shape[-1])
        check_whole(model, part, whole, "channel", itemgetter(part.field), f"the field {part.field!r}")
    if summed := release.summed:
        contribution = statistic_at(summed.statistic, summed.value)
        whole = whole_sums_of(summed.mechanism, summed.noisy_sum.size)
        check_whole(model, summed, whole, "mechanism", contribution, "a statistic")


def check_whole(
    model: Model, part: Any, whole: list[WholeSum], argument: str, contribution: Contribution, what: str
) -> None:
    """Raise unless those coordinates of a part's contribution are integers to which integer noise is added."""
    if not whole:
        return
    record = jax.eval_shape(partial(draw_records, model, 1, 1), jax.eval_shape(jax.random.key, 0))
    record = {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in record.items()}
    num_records = MAX_RECORDS if is_unknown(part) else part.n
    for mechanism, where in whole:
        pieces = [contribution] if where is None else functions_of(contribution, where, record)
        if not all(is_integer(model, num_records, piece, record) for piece in pieces):
            refuse_whole_noise(argument, mechanism, what)


def whole_sums_of(mechanism: Mechanism, size: int) -> list[WholeSum]:
    """The mechanisms with integer noise, and the coordinates of the statistic [size] that must be whole."""
    parts, found = parts_of(mechanism, size), []
    for part, where in parts:
        for place in part.sums.whole(where.stop - where.start):
            is_all = len(parts) == 1 and place == slice(0, where.stop)
            found.append((part, None if is_all else slice(where.start + place.start, where.start + place.stop)))
    return found


def functions_of(contribution: Contribution, where: slice, record: Records) -> list[Contribution]:
    """Functions of a record that return these coordinates of a contribution, by parts of a stacked statistic."""
    if not isinstance(contribution, Stacked):
        return [lambda record: contribution(record)[..., where]]
    pieces, start = [], 0
    for statistic in contribution.statistics:
        size = jax.eval_shape(statistic, record).shape[0]
        first, last = max(where.start - start, 0), min(where.stop - start, size)
        if first < last:
            pieces += [statistic] if last - first == size else functions_of(statistic, slice(first, last), record)
        start += size
    return pieces


def is_integer(model: Model, n: int, contribution: Contribution, record: Records) -> bool:
    """Whether a function of one record is integer, by its jaxpr or on the model's records."""
    return kind_of(contribution, record, {}) is Kind.INTEGER or is_integer_on_records(model, n, contribution, record)


def is_integer_on_records(model: Model, n: int, contribution: Contribution, record: Records) -> bool:
    """Whether a function of one record is integer on the possible records, or on drawn ones."""
    support = model.domain()
    complete = set(support) == set(record)
    records = support if complete else draw_records(model, NUM_PARAMETERS, min(n, MAX_RECORDS), jax.random.key(0))
    if is_traced(records):
        return False
    integer_fields = {name: all_integer(leaf) for name, leaf in records.items()}
    # Drawn records prove nothing if a field is real: a clamp, for instance, may return only its bounds.
    if not complete and kind_of(contribution, record, integer_fields) is Kind.REAL:
        return False
    compute = jax.jit(jax.vmap(contribution))
    return all(all_integer(compute(block)) for block in blocks(records, jax.eval_shape(contribution, record).size))


def blocks(records: Records, size: int) -> Iterator[Records]:
    """The records in blocks whose contributions, `size` numbers each, fit in memory."""
    arrays = jax.tree.map(np.asarray, records)
    step = max(1, MAX_NUMBERS // size)
    for start in range(0, len(jax.tree.leaves(arrays)[0]), step):
        yield jax.tree.map(lambda leaf, start=start: leaf[start : start + step], arrays)


@partial(jit_unoptimized, static_argnames=("model", "num_parameters", "n"))
def draw_records(model: Model, num_parameters: int, n: int, key: Array) -> Records:
    """Records [num_parameters * n] of parameters from the prior."""
    keys = jax.random.split(key, num_parameters)
    records = jax.vmap(lambda key: draw_position(key, model, n).records)(keys)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), records)


def all_integer(values: Any) -> bool:
    """Whether all numbers are finite integers, small enough for their dtype to resolve fractions."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return True
    resolved = np.abs(array) < 2 / jnp.finfo(array.dtype).eps
    return bool(np.all(resolved & (array == np.round(array))))


def kind_of(function: Callable[[Records], Any], record: Records, integer_fields: dict[str, bool]) -> Kind:
    """The kind of all numbers that a function returns, given which fields are integers."""
    program = jax.make_jaxpr(function)(record)
    kinds = [Kind.INTEGER if integer_fields.get(name) else kind_of_type(leaf) for name, leaf in sorted(record.items())]
    return min(propagate(program, kinds, kinds_after, kind_of_constant))


def kinds_after(equation: core.JaxprEqn, inputs: list[Kind]) -> list[Kind]:
    """The kinds of the results of one operation."""
    name, least = equation.primitive.name, min(inputs, default=Kind.FROM_INTEGERS)
    if name == "cond":
        branches = equation.params["branches"]
        found = [propagate(branch, inputs[1:], kinds_after, kind_of_constant) for branch in branches]
    else:
        preserves = name in INTEGER_PRESERVING or (name == "integer_pow" and equation.params["y"] >= 0)
        kind = Kind.INTEGER if name in ROUNDING else least if preserves else min(least, Kind.FROM_INTEGERS)
        found = [[kind] * len(equation.outvars)]
    return [max(min(kinds), kind_of_type(each.aval)) for *kinds, each in zip(*found, equation.outvars, strict=True)]


def kind_of_type(array: Any) -> Kind:
    """The kind of an array by its dtype."""
    return Kind.INTEGER if np.dtype(array.dtype).kind in "biu" else Kind.REAL


def kind_of_constant(value: Any) -> Kind:
    """The kind of a constant by its value; constants that are not integers do not come from real fields."""
    return Kind.INTEGER if not is_traced(value) and all_integer(value) else Kind.FROM_INTEGERS


def refuse_whole_noise(argument: str, mechanism: Any, what: str) -> NoReturn:
    """Raise for integer noise on real numbers, described by `what`."""
    remedy = (
        "Integer noise would reveal a real sum's fraction exactly. Use Laplace or Gaussian; or, if the values were "
        "rounded record by record before they were summed, say so in the statistic with jnp.round."
    )
    given = f"{name_of(mechanism)}, whose noise is whole, on {what} that is not"
    fail(argument, given, "whole numbers", remedy)
