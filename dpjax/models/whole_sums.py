"""Integer noise needs whole sums: the released value less its noise is whole, so that any other sum is impossible.

A sum of reals under such noise would be told to its last digit, and a sampler would drift along sums whose fraction it
can never change. So a statistic is taken for whole only where its program shows that it is, where it is on every
possible record, or where it is made of fields that are whole in records drawn from the model.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from dpjax._util.validation import fail, is_traced
from dpjax.base import Array, Model, Records
from dpjax.mechanisms.base import as_mechanism, parts_of
from dpjax.models.simulation import draw_position
from dpjax.release import LocalRelease, PrivateRelease, Release
from dpjax.release.unknown_count import is_unknown
from dpjax.statistics import Stacked

Contribution = Callable[[Records], Array]

NUM_PARAMETERS, MAX_RECORDS = 16, 1024
"""Draws from the prior, and records of each, where a field's own values must tell whether it is whole."""

MAX_NUMBERS = 2**22
"""So many numbers are looked at together."""


class Kind(IntEnum):
    """What the program of a statistic tells of a number that it computes.

    REAL
        It depends on a real number, and nothing has rounded it since.
    FROM_WHOLE
        It is computed from whole numbers alone, but may be a fraction, as half of one is.
    WHOLE
        It is whole, whatever the record.
    """

    REAL = 0
    FROM_WHOLE = 1
    WHOLE = 2


KEPT_BY = frozenset(
    {
        *("abs", "add", "add_any", "clamp", "cummax", "cummin", "cumsum", "dot_general", "max", "min", "mul", "neg"),
        *("reduce_max", "reduce_min", "reduce_sum", "rem", "scatter-add", "scatter_add", "square", "sub"),
        *("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "dynamic_slice", "expand_dims"),
        *("dynamic_update_slice", "gather", "pad", "reshape", "rev", "scatter", "select_n", "slice", "sort", "split"),
        *("squeeze", "stop_gradient", "transpose"),
    }
)
"""The operations that make whole numbers of whole numbers."""

MADE_BY = frozenset({"ceil", "floor", "round", "sign"})
"""The operations that make whole numbers of any."""


def check_integer_noise(model: Model, release: PrivateRelease) -> None:
    """Raise unless noise that is whole goes with a statistic, or a field, that is whole on the model's records."""
    parts = parts_of(release.mechanism, release.observed.shape[-1])
    if not any(as_mechanism(mechanism).integer_noise for mechanism, _ in parts):
        return
    contribution: Contribution
    if isinstance(release, LocalRelease):
        argument, contribution, what = "channel", itemgetter(release.field), f"the field {release.field!r}"
    else:
        argument, contribution, what = "mechanism", statistic_of(release), "a statistic"
    record = jax.eval_shape(partial(draw_records, model, 1, 1), jax.eval_shape(jax.random.key, 0))
    record = {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in record.items()}
    num_records = MAX_RECORDS if is_unknown(release) else release.n
    for mechanism, where in parts:
        pieces = [contribution] if len(parts) == 1 else pieces_of(contribution, where, record)
        if as_mechanism(mechanism).integer_noise and not all(
            is_whole(model, num_records, piece, record) for piece in pieces
        ):
            refuse(argument, mechanism, what)


def statistic_of(release: PrivateRelease) -> Contribution:
    """The statistic of a release of a sum, of a known number of records or not."""
    assert isinstance(release, Release)
    return release.statistic


def pieces_of(contribution: Contribution, where: slice, record: Records) -> list[Contribution]:
    """Functions of a record that return some coordinates of a contribution: where it is stacked, of its parts alone."""
    if not isinstance(contribution, Stacked):
        return [lambda record: contribution(record)[..., where]]
    pieces, start = [], 0
    for statistic in contribution.statistics:
        size = jax.eval_shape(statistic, record).shape[0]
        first, last = max(where.start - start, 0), min(where.stop - start, size)
        if first < last:
            pieces += [statistic] if last - first == size else pieces_of(statistic, slice(first, last), record)
        start += size
    return pieces


def is_whole(model: Model, n: int, contribution: Contribution, record: Records) -> bool:
    """Whether a function of one record is whole: by its program, or on the model's records."""
    return kind_of(contribution, record, {}) is Kind.WHOLE or is_whole_on(model, n, contribution, record)


def is_whole_on(model: Model, n: int, contribution: Contribution, record: Records) -> bool:
    """Whether a function of one record is whole on the model's possible records, or on some that it draws."""
    support = {} if model.support is None else model.support()
    complete = set(support) == set(record)
    records = support if complete else draw_records(model, NUM_PARAMETERS, min(n, MAX_RECORDS), jax.random.key(0))
    if is_traced(records):
        return False
    whole = {name: all_whole(leaf) for name, leaf in records.items()}
    # Of drawn records nothing is concluded where a field is real: a clamp, say, may show its bounds alone.
    if not complete and kind_of(contribution, record, whole) is Kind.REAL:
        return False
    compute = jax.jit(jax.vmap(contribution))
    return all(all_whole(compute(block)) for block in blocks(records, jax.eval_shape(contribution, record).size))


def blocks(records: Records, size: int) -> Iterator[Records]:
    """The records in parts whose contributions, of `size` numbers each, fit into memory together."""
    arrays = jax.tree.map(np.asarray, records)
    step = max(1, MAX_NUMBERS // size)
    for start in range(0, len(jax.tree.leaves(arrays)[0]), step):
        yield jax.tree.map(lambda leaf, start=start: leaf[start : start + step], arrays)


@partial(jax.jit, static_argnums=(0, 1, 2))
def draw_records(model: Model, num_parameters: int, n: int, key: Array) -> Records:
    """Records [num_parameters * n] of parameters from the prior."""
    keys = jax.random.split(key, num_parameters)
    records = jax.vmap(lambda key: draw_position(key, model, n).records)(keys)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), records)


def all_whole(values: Any) -> bool:
    """Whether all numbers are finite and whole, and small enough for their type to tell."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return True
    told = np.abs(array) < 2 / jnp.finfo(array.dtype).eps
    return bool(np.all(told & (array == np.round(array))))


def kind_of(function: Callable[[Records], Any], record: Records, whole: dict[str, bool]) -> Kind:
    """What is known of all numbers that a function returns, given that integer fields and those named are whole."""
    program = jax.make_jaxpr(function)(record)
    kinds = [Kind.WHOLE if whole.get(name) else kind_of_type(leaf) for name, leaf in sorted(record.items())]
    return min(follow(program.jaxpr, [kind_of_constant(const) for const in program.consts], kinds))


def follow(program: core.Jaxpr, constants: Sequence[Kind], inputs: Sequence[Kind]) -> list[Kind]:
    """What is known of each result of a program, found operation by operation from its constants and inputs."""
    known = dict(zip((*program.constvars, *program.invars), (*constants, *inputs), strict=True))

    def look_up(atom: Any) -> Kind:
        return kind_of_constant(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for equation in program.eqns:
        kinds = kinds_after(equation, [look_up(atom) for atom in equation.invars])
        for variable, kind in zip(equation.outvars, kinds, strict=True):
            known[variable] = max(kind, kind_of_type(variable.aval))
    return [look_up(atom) for atom in program.outvars]


def kinds_after(equation: core.JaxprEqn, inputs: list[Kind]) -> list[Kind]:
    """What is known after one operation."""
    name, least = equation.primitive.name, min(inputs, default=Kind.FROM_WHOLE)
    inner = [value for value in equation.params.values() if isinstance(value, (core.Jaxpr, core.ClosedJaxpr))]
    if len(inner) == 1 and name not in ("scan", "while") and len(inputs) == len(open_program(inner[0])[0].invars):
        return follow(*open_program(inner[0]), inputs)
    if name == "cond":
        results = [follow(*open_program(branch), inputs[1:]) for branch in equation.params["branches"]]
        return [min(kinds) for kinds in zip(*results, strict=True)]
    kept = name in KEPT_BY or (name == "integer_pow" and equation.params["y"] >= 0)
    kind = Kind.WHOLE if name in MADE_BY else least if kept else min(least, Kind.FROM_WHOLE)
    return [kind] * len(equation.outvars)


def open_program(program: Any) -> tuple[core.Jaxpr, list[Kind]]:
    """A program and what is known of its constants."""
    if isinstance(program, core.ClosedJaxpr):
        return program.jaxpr, [kind_of_constant(const) for const in program.consts]
    return program, []


def kind_of_type(array: Any) -> Kind:
    """Whole for integers and flags."""
    return Kind.WHOLE if np.dtype(array.dtype).kind in "biu" else Kind.REAL


def kind_of_constant(value: Any) -> Kind:
    """Whole if it is; else at least no record's real number: twice a factor of 1 / 2 is whole again."""
    return Kind.WHOLE if not is_traced(value) and all_whole(value) else Kind.FROM_WHOLE


def refuse(argument: str, mechanism: Any, what: str) -> NoReturn:
    """Raise for integer noise on real numbers, which `what` names."""
    remedy = (
        "Integer noise would tell a real sum's fraction exactly. Use Laplace or Gaussian; or, if the values were "
        "rounded record by record before they were summed, say so in the statistic with jnp.round."
    )
    given = f"{type(mechanism).__name__}, whose noise is whole, on {what} that is not"
    fail(argument, given, "whole numbers under it", remedy)
