"""What the program of a function shows of it, whatever values it is called with."""

from collections.abc import Callable
from typing import Any

import jax


def reads(function: Callable[..., Any], argument: Any, *others: Any) -> bool:
    """Whether anything that a function returns depends on its first argument, by its traced program.

    Parameters
    ----------
    argument
        The one that is asked about: an array, a tree of them or their shapes.
    others
        The other arguments, likewise. A value that is computed and not used does not count; a function within the
        function counts as a whole.
    """
    program = jax.make_jaxpr(function)(argument, *others).jaxpr
    needed = set(map(id, program.outvars))
    for equation in reversed(program.eqns):
        if any(id(variable) in needed for variable in equation.outvars):
            needed.update(map(id, equation.invars))
    return any(id(variable) in needed for variable in program.invars[: len(jax.tree.leaves(argument))])
