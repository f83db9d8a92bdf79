"""The squares of affine functions that a quadratic function adds up, according to the program that JAX traces.

A sum of squares has lost the digits of small ones beside large ones. The numbers that are squared have not.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import core

from dpjax._util.degree import of_primitive
from dpjax._util.hoist import named
from dpjax._util.traced import propagate

__all__ = ["replace_squares"]


class Number(NamedTuple):
    """A number of a program, and its degree in the argument."""

    value: Any
    degree: float


def replace_squares(function: Callable[[Any], Any], argument: Any, squares: Sequence[Any] | None) -> tuple[Any, list]:
    """The value of a function with other numbers in the place of its squares, and the affine functions squared.

    A product of two different affine functions stays, and has None in the place of what is squared.

    Parameters
    ----------
    function
        A function of one tree of arrays, with one array as its result, a polynomial of degree 2.
    squares
        What stands in the place of each square; None for the squares themselves.
    """
    program = jax.make_jaxpr(function)(argument)
    squared: list[Any] = []

    def rule(equation: Any, given: list[Number]) -> list[Number]:
        found = evaluate(equation, [number.value for number in given], program.jaxpr)
        degrees = [number.degree for number in given]
        degree = of_primitive(equation, degrees) if any(degrees) else 0.0
        if degree == 2 and max(degrees) == 1:
            squared.append(given[0].value if is_square(equation) else None)
            found = found if squares is None else [squares[len(squared) - 1]]
        return [Number(value, degree) for value in found]

    given = [Number(leaf, 1.0) for leaf in jax.tree.leaves(argument)]
    (result,) = propagate(program, given, rule, lambda value: Number(value, 0.0), depends)
    return result.value, squared


def depends(given: Sequence[Number]) -> bool:
    """Whether one of some numbers depends on the argument; a program of others keeps its own derivatives."""
    return any(number.degree > 0 for number in given)


def is_square(equation: core.JaxprEqn) -> bool:
    """Whether a product of affine functions is the square of one, entry by entry."""
    name, operands = equation.primitive.name, equation.invars
    return name in ("square", "integer_pow") or (name == "mul" and operands[0] is operands[1])


def evaluate(equation: core.JaxprEqn, values: list[Any], whole: core.Jaxpr) -> list[Any]:
    """The results of an operation of a program, as a program of its own."""
    given = {atom: value for atom, value in zip(equation.invars, values, strict=True) if isinstance(atom, core.Var)}
    debug_info = named(whole, len(given), len(equation.outvars))
    program = core.Jaxpr([], list(given), equation.outvars, [equation], debug_info=debug_info)
    return list(core.jaxpr_as_fun(core.ClosedJaxpr(program, []))(*given.values()))
