"""A number of a mechanism that is not known, but estimated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import jax

from dpjax._util.validation import fail

__all__ = ["UnknownChannel", "UnknownNumber", "numbers_of", "unknown_numbers"]


@dataclass(frozen=True, eq=False)
class UnknownChannel:
    """A mechanism as a function of the parameters, some of which have priors of their own."""

    function: Callable[[Mapping[str, Any]], Any]
    priors: dict[str, Any]


class UnknownNumber(float):
    """A number of a mechanism that is not known: a float, at a draw from its prior, so that mechanisms can check it.

    A mechanism that computes with it, or keeps it as another type, would take it for a known number. So it refuses.
    """

    name: str
    prior: Any

    def __new__(cls, value: float, name: str, prior: Any) -> "UnknownNumber":
        """The number at this value."""
        made = super().__new__(cls, value)
        made.name, made.prior = name, prior
        return made

    def refuse(self, *others: Any) -> NoReturn:
        """An error that says what to pass in its place."""
        del others
        remedy = f"Pass dpjax.unknown(lambda p: ..., {{{self.name!r}: prior}}) in the place of the mechanism."
        fail("mechanism", f"the unknown number {self.name!r}", "a number that is computed with", remedy)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = refuse


def unknown_numbers(tree: Any) -> list[UnknownNumber]:
    """The numbers of a mechanism, or of a list, that are not known."""
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, UnknownNumber)]


def numbers_of(mechanism: Any) -> str | None:
    """Which numbers of a mechanism are not known, in words; None if all are."""
    if isinstance(mechanism, UnknownChannel):
        return f"the unknown numbers {sorted(mechanism.priors)}"
    numbers = unknown_numbers(mechanism)
    return f"the unknown number {numbers[0].name!r}" if numbers else None
