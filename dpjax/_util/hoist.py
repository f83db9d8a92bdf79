"""What of a function does not depend on its first argument is computed once, before the function is called often."""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

__all__ = ["hoist"]


def hoist(function: Callable[..., Any], argument: Any, *others: Any) -> Callable[[Any], Any]:
    """The function ``argument -> function(argument, *others)``, in which only what depends on the argument is left.

    A loop that calls it, such as that of a trajectory, would otherwise compute the rest at each step: for instance the
    log-factorials of known numbers.

    Parameters
    ----------
    argument
        A tree of arrays, or their shapes, like those that the function will be called with.
    others
        The other arguments, whose values are used now.
    """
    program, results = jax.make_jaxpr(function, return_shape=True)(argument, *others)
    whole, number = program.jaxpr, len(jax.tree.leaves(argument))
    if whole.effects:
        return lambda one: function(one, *others)
    fixed, moving = split(whole, number)
    known = [*whole.constvars, *whole.invars[number:]]
    made = {var for equation in fixed for var in equation.outvars} | set(known)
    read = [*(atom for equation in moving for atom in equation.invars), *whole.outvars]
    carried = list(dict.fromkeys(atom for atom in read if not isinstance(atom, core.Literal) and atom in made))
    before = core.Jaxpr([], known, carried, fixed, debug_info=named(whole, len(known), len(carried)))
    inputs = [*whole.invars[:number], *carried]
    after = core.Jaxpr([], inputs, whole.outvars, moving, debug_info=named(whole, len(inputs), len(whole.outvars)))
    values = core.jaxpr_as_fun(core.ClosedJaxpr(before, []))(*program.consts, *jax.tree.leaves(others))
    rest = core.jaxpr_as_fun(core.ClosedJaxpr(after, []))

    def call(one: Any) -> Any:
        return jax.tree.unflatten(jax.tree.structure(results), rest(*jax.tree.leaves(one), *values))

    return call


def split(program: core.Jaxpr, number: int) -> tuple[list[Any], list[Any]]:
    """The equations that do not depend on the first inputs of a program, so many, and those that do."""
    reached = set(program.invars[:number])
    fixed: list[Any] = []
    moving: list[Any] = []
    for equation in program.eqns:
        depends = any(not isinstance(atom, core.Literal) and atom in reached for atom in equation.invars)
        (moving if depends else fixed).append(equation)
        reached |= set(equation.outvars) if depends else set()
    return fixed, moving


def named(program: core.Jaxpr, num_inputs: int, num_results: int) -> Any:
    """The names of a part of a program in JAX's messages: those of the whole, with none for inputs and results."""
    return program.debug_info._replace(arg_names=("",) * num_inputs, result_paths=("",) * num_results)
