"""Which results of a function depend on which arguments, according to the program that JAX traces."""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

from dpjax._util.traced import propagate

__all__ = ["dependent_results", "depends_on", "used_arguments"]


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
    flags = follow(program, [place < number for place in range(len(inputs))])
    return jax.tree.unflatten(jax.tree.structure(results), flags)


def used_arguments(function: Callable[..., Any], argument: Any) -> Any:
    """Which arrays of a tree any result of a function depends on: flags in the form of the argument."""
    program = jax.make_jaxpr(function)(argument)
    places = range(len(program.jaxpr.invars))
    flags = [any(follow(program, [place == other for other in places])) for place in places]
    return jax.tree.unflatten(jax.tree.structure(argument), flags)


def follow(program: core.ClosedJaxpr, given: list[bool]) -> list[bool]:
    """Which results of a program depend on those of its inputs that are given."""

    def rule(equation: core.JaxprEqn, operands: list[bool]) -> list[bool]:
        return [any(operands)] * len(equation.outvars)

    return propagate(program, given, rule, lambda value: False)
