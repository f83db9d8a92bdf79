"""What is known of each result of a program that JAX traced, from what is known of each of its inputs."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from jax.extend import core

__all__ = ["propagate"]

Fact = TypeVar("Fact")


def propagate(
    program: core.Jaxpr | core.ClosedJaxpr,
    inputs: Sequence[Fact],
    rule: Callable[[core.JaxprEqn, list[Fact]], Sequence[Fact]],
    of_constant: Callable[[Any], Fact],
    follows: Callable[[list[Fact]], bool] = lambda operands: True,
) -> list[Fact]:
    """What is known of each result of a program; programs that it calls once are followed.

    Parameters
    ----------
    inputs
        What is known of each input.
    rule
        ``(equation, operands) -> results``: what is known of each result of an operation, loop or branch.
    of_constant
        What is known of a constant by its value.
    follows
        ``operands -> bool``: whether a program that is called with these is followed, or is one operation.
    """
    whole = program if isinstance(program, core.ClosedJaxpr) else core.ClosedJaxpr(program, [])
    known = dict(zip(whole.jaxpr.constvars, map(of_constant, whole.consts), strict=True))
    known |= zip(whole.jaxpr.invars, inputs, strict=True)

    def look_up(atom: Any) -> Fact:
        return of_constant(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for equation in whole.jaxpr.eqns:
        operands, called = [look_up(atom) for atom in equation.invars], called_program(equation)
        if called is None or not follows(operands):
            found = rule(equation, operands)
        else:
            found = propagate(called, operands, rule, of_constant, follows)
        known |= zip(equation.outvars, found, strict=True)
    return [look_up(atom) for atom in whole.jaxpr.outvars]


def called_program(equation: core.JaxprEqn) -> core.Jaxpr | core.ClosedJaxpr | None:
    """The program that an equation calls once, with its own inputs; None if it is no such call."""
    programs = [value for value in equation.params.values() if isinstance(value, (core.Jaxpr, core.ClosedJaxpr))]
    if len(programs) != 1 or equation.primitive.name in ("scan", "while"):
        return None
    called = programs[0]
    invars = called.jaxpr.invars if isinstance(called, core.ClosedJaxpr) else called.invars
    return called if len(invars) == len(equation.invars) else None
