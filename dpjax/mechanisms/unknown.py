"""A number of a mechanism that is not known, but estimated."""

from typing import Any, NoReturn

import jax

from dpjax._util.validation import fail

__all__ = ["UnknownNumber", "unknown_numbers"]


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
