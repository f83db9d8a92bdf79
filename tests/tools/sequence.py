"""What a program asks of an accelerator beside arithmetic: bodies of loops one after another, and bytes of constants.

Both are read off the program that JAX traced, before any compiler.
"""

from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from jax.extend import core


class Counts(NamedTuple):
    """Of a program.

    Attributes
    ----------
    bodies
        Bodies of innermost loops, one after another. One body stands for those of a loop whose length the data decide.
    constants
        Bytes of the arrays that the program holds.
    """

    bodies: int
    constants: int


def count(program: core.ClosedJaxpr) -> Counts:
    """The counts of a program, those of the programs in it included."""
    return Counts(bodies_of(program.jaxpr), sum(constants_of(program).values()))


def bodies_of(program: Any) -> int:
    """The bodies of innermost loops; of branches those of the longest."""
    return sum(map(bodies_of_equation, program.eqns))


def bodies_of_equation(equation: Any) -> int:
    """The bodies that one equation runs through, one after another."""
    inner = [bodies_of(one) for one in programs_in(equation)]
    match equation.primitive.name:
        case "scan":
            length = equation.params["length"]
            return length * sum(inner) or ceil(length / equation.params["unroll"])
        case "while":
            return max(sum(inner), 1)
        case "cond":
            return max(inner)
    return sum(inner)


def programs_in(equation: Any) -> Iterator[Any]:
    """The programs that an equation calls."""
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            one = getattr(one, "jaxpr", one)
            if hasattr(one, "eqns"):
                yield one


def constants_of(program: Any) -> dict[int, int]:
    """The bytes of the arrays of a program and of those in it, by the array's identity."""
    found = {id(array): np.asarray(array).nbytes for array in getattr(program, "consts", ()) if hasattr(array, "dtype")}
    for equation in getattr(program, "jaxpr", program).eqns:
        for value in equation.params.values():
            for one in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(getattr(one, "jaxpr", one), "eqns"):
                    found |= constants_of(one)
    return found
