"""The degree of the results of a function in an argument, according to the program that JAX traces."""

from collections.abc import Callable
from math import inf, isinf
from typing import Any

import jax
from jax.extend import core

from dpjax._util.traced import propagate

__all__ = ["degrees_in"]

LINEAR = frozenset(
    (
        *("add", "add_any", "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "cumsum", "neg", "pad"),
        *("reduce_sum", "reshape", "rev", "slice", "split", "squeeze", "stack", "sub", "transpose"),
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
    program = jax.make_jaxpr(function)(argument, *others)
    number = len(jax.tree.leaves(argument))
    given = [float(place < number) for place in range(len(program.jaxpr.invars))]
    return propagate(program, given, rule, lambda value: 0.0)


def rule(equation: core.JaxprEqn, given: list[float]) -> list[float]:
    """The degrees of the results of an operation whose operands have those that are given."""
    return [of_primitive(equation, given) if any(given) else 0.0] * len(equation.outvars)


def of_primitive(equation: Any, given: list[float]) -> float:
    """The degree of the results of an operation."""
    name, first, others = equation.primitive.name, given[0], given[1:]
    if asks_for_finite(equation):
        return 0.0
    if name in LINEAR:
        return max(given)
    if name in PRODUCTS:
        return sum(given)
    if name in FIRST_ONLY and not any(others):
        return first
    if name == "triangular_solve" and not first:
        return others[0]
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
