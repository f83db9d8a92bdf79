"""The number of each record through which alone a function depends on its first argument."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.extend import core

from dpjax._util.hoist import named

__all__ = ["Bottleneck", "find_bottleneck"]


class Bottleneck(NamedTuple):
    """A function ``(argument, *others) -> [n]`` in two parts: ``after(before(argument, *others), *others)``.

    Attributes
    ----------
    before
        ``(argument, *others) -> [n]``, or [] if the records share the number; it does not depend on the first of the
        others.
    after
        ``(number, *others) -> [n]``.
    shape
        That of the number.
    """

    before: Callable[..., Any]
    after: Callable[..., Any]
    shape: tuple[int, ...]


def find_bottleneck(function: Callable[..., Any], argument: Any, *others: Any) -> Bottleneck | None:
    """The earliest such number in the program of a function, or None if there is none.

    It is a real number [n] or [] through which every way from the argument to the result leads, such as the linear
    predictor of a regression.

    Parameters
    ----------
    argument
        A tree of arrays, or their shapes.
    others
        The other arguments, likewise. The number must not depend on the first of them.
    """
    traced, result = jax.make_jaxpr(function, return_shape=True)(argument, *others)
    whole, number = traced.jaxpr, len(jax.tree.leaves(argument))
    if whole.effects:
        return None
    moving, varying = whole.invars[:number], whole.invars[number : number + len(jax.tree.leaves(others[0]))]
    found = next((var for var in candidates(whole, moving, varying, result.shape) if cuts(whole, moving, var)), None)
    if found is None:
        return None
    before = part(traced, whole.invars, found)
    after = part(traced, [found, *whole.invars[number:]], whole.outvars[0])
    return Bottleneck(
        lambda argument, *others: before(*jax.tree.leaves((argument, others))),
        lambda number, *others: after(number, *jax.tree.leaves(others)),
        found.aval.shape,
    )


def candidates(whole: core.Jaxpr, moving: list[Any], varying: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The real numbers [n] or [] of a program that depend on some of its inputs and not on others, in its order."""
    depending, excluded = reached(whole, moving), reached(whole, varying)
    made: list[Any] = [*moving, *(var for equation in whole.eqns for var in equation.outvars)]
    fits = [var for var in made if var.aval.shape in ((), shape) and var.aval.dtype.kind == "f"]
    return [var for var in fits if var in depending and var not in excluded]


def cuts(whole: core.Jaxpr, moving: list[Any], var: Any) -> bool:
    """Whether the result depends on the moving inputs through this variable alone."""
    return whole.outvars[0] not in reached(whole, moving, without=var)


def reached(whole: core.Jaxpr, inputs: list[Any], without: Any = None) -> set[Any]:
    """The variables that depend on some inputs, by ways that do not lead through one of them."""
    found = {var for var in inputs if var is not without}
    for equation in whole.eqns:
        if any(not isinstance(atom, core.Literal) and atom in found for atom in equation.invars):
            found |= {var for var in equation.outvars if var is not without}
    return found


def part(traced: core.ClosedJaxpr, inputs: list[Any], result: Any) -> Callable[..., Any]:
    """The function from some variables of a program to another one."""
    whole, needed, kept = traced.jaxpr, {result}, []
    for equation in reversed(whole.eqns):
        if any(var in needed and var not in inputs for var in equation.outvars):
            kept.append(equation)
            needed |= {atom for atom in equation.invars if not isinstance(atom, core.Literal)}
    names = named(whole, len(inputs), 1)
    program = core.Jaxpr(whole.constvars, inputs, [result], kept[::-1], debug_info=names)
    compute = core.jaxpr_as_fun(core.ClosedJaxpr(program, traced.consts))
    return lambda *values: compute(*values)[0]
