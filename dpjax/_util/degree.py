"""The degree of the results of a function in an argument, according to the program that JAX traces."""

from collections.abc import Callable
from math import inf, isinf
from typing import Any

import jax
from jax.extend import core

from dpjax._util.dependence import called_program

__all__ = ["degrees_in"]

LINEAR = frozenset(
    (
        *("add", "add_any", "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "cumsum", "neg", "pad"),
        *("reduce_sum", "reshape", "rev", "slice", "squeeze", "sub", "transpose"),
    )
)
"""Primitives whose results have the largest degree of their operands."""

FIRST_ONLY = ["div", "dynamic_slice", "gather"]
"""Those that are linear in their first operand if the others are constant."""

PRODUCTS = ["mul", "dot_general"]


def degrees_in(function: Callable[..., Any], argument: Any, *others: Any) -> list[float]:
    """The degree in its first argument of each result of a function, a polynomial; ``inf`` if that is not known.

    Parameters
    ----------
    argument
        The first argument: an array, a tree of arrays, or their shapes.
    others
        The other arguments, likewise.
    """
    program = jax.make_jaxpr(function)(argument, *others).jaxpr
    number = len(jax.tree.leaves(argument))
    return follow(program, [float(place < number) for place in range(len(program.invars))])


def follow(program: core.Jaxpr, given: list[float]) -> list[float]:
    """The degrees of the results of a program whose inputs have those that are given."""
    known = dict(zip(program.invars, given, strict=True))

    def degree(atom: Any) -> float:
        return 0.0 if isinstance(atom, core.Literal) else known.get(atom, 0.0)

    for equation in program.eqns:
        found = follow_equation(equation, [degree(atom) for atom in equation.invars])
        known |= dict(zip(equation.outvars, found, strict=True))
    return [degree(atom) for atom in program.outvars]


def follow_equation(equation: Any, given: list[float]) -> list[float]:
    """The degrees of the results of an equation whose operands have those that are given."""
    called = called_program(equation, len(given))
    if not any(given):
        return [0.0] * len(equation.outvars)
    return [of_primitive(equation, given)] * len(equation.outvars) if called is None else follow(called, given)


def of_primitive(equation: Any, given: list[float]) -> float:
    """The degree of the results of an operation that calls no program."""
    name, first, others = equation.primitive.name, given[0], given[1:]
    if asks_for_finite(equation):
        return 0.0
    if name in LINEAR:
        return max(given)
    if name in PRODUCTS:
        return sum(given)
    if name in FIRST_ONLY and not any(others):
        return first
    if name == "select_n" and not first:
        return max(others)
    if name == "square":
        return 2 * first
    power = equation.params.get("y", -1) if name == "integer_pow" else -1
    return power * first if power >= 0 else inf


def asks_for_finite(equation: Any) -> bool:
    """Whether an operation asks whether numbers are finite, as checks of a support do; of those here all are."""
    name, first, second = equation.primitive.name, *(*equation.invars, None)[:2]
    if name == "ne":
        return isinstance(second, core.Literal) and isinf(second.val)
    return name == "is_finite" or (name == "eq" and first is second)
