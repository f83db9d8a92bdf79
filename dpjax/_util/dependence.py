"""Which results of a function depend on which arguments, according to the program that JAX traces."""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

__all__ = ["called_program", "dependent_results", "depends_on", "used_arguments"]


def depends_on(function: Callable[..., Any], argument: Any, *others: Any) -> bool:
    """Whether any result of a function depends on its first argument; see `dependent_results`."""
    return any(jax.tree.leaves(dependent_results(function, argument, *others)))


def dependent_results(function: Callable[..., Any], argument: Any, *others: Any) -> Any:
    """Which results of a function depend on its first argument: a tree of flags in the form of the result.

    At the worst a flag too many is set: a loop or a branch counts as a whole. What is computed but not used does not
    count.

    Parameters
    ----------
    argument
        The first argument: an array, a tree of arrays, or their shapes.
    others
        The other arguments, likewise.
    """
    program, results = jax.make_jaxpr(function, return_shape=True)(argument, *others)
    inputs, number = program.jaxpr.invars, len(jax.tree.leaves(argument))
    flags = follow(program.jaxpr, [place < number for place in range(len(inputs))])
    return jax.tree.unflatten(jax.tree.structure(results), flags)


def used_arguments(function: Callable[..., Any], argument: Any) -> Any:
    """Which arrays of a tree any result of a function depends on: flags in the form of the argument."""
    program = jax.make_jaxpr(function)(argument).jaxpr
    places = range(len(program.invars))
    flags = [any(follow(program, [place == other for other in places])) for place in places]
    return jax.tree.unflatten(jax.tree.structure(argument), flags)


def follow(program: core.Jaxpr, given: list[bool]) -> list[bool]:
    """Which results of a program depend on those of its inputs that are given."""
    reached = {var for var, is_given in zip(program.invars, given, strict=True) if is_given}

    def depends(atom: Any) -> bool:
        return not isinstance(atom, core.Literal) and atom in reached

    for equation in program.eqns:
        flags = follow_equation(equation, [depends(atom) for atom in equation.invars])
        reached |= {var for var, flag in zip(equation.outvars, flags, strict=True) if flag}
    return [depends(atom) for atom in program.outvars]


def follow_equation(equation: Any, given: list[bool]) -> list[bool]:
    """Which results of an equation depend on those of its inputs: of a call, by the program that it calls."""
    called = called_program(equation, len(given))
    return [any(given)] * len(equation.outvars) if called is None else follow(called, given)


def called_program(equation: Any, num_inputs: int) -> core.Jaxpr | None:
    """The program that an equation calls once, with its own inputs; None if it is no such call."""
    programs = [value for value in equation.params.values() if isinstance(value, (core.Jaxpr, core.ClosedJaxpr))]
    if len(programs) != 1 or equation.primitive.name in ("scan", "while"):
        return None
    called = programs[0].jaxpr if isinstance(programs[0], core.ClosedJaxpr) else programs[0]
    return called if len(called.invars) == num_inputs else None
