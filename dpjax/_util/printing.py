"""How results and their parts are shown: in a few lines, and in notebooks as a small table of them."""

from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

__all__ = ["MAX_LINES", "MOST_SHOWN", "Printed", "ShownByEnds"]

MAX_LINES = 5
"""The most lines of the `repr` of anything that a user holds."""

MOST_SHOWN = 16
"""The most entries of an array or a tuple that the `repr` of a part shows."""


class Printed:
    """A value whose `repr` is at most five lines of the form ``name: text``."""

    def _repr_html_(self) -> str:
        head, *lines = repr(self).splitlines()
        cells = [line.partition(": ") for line in lines]
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
            for name, _, text in cells
        )
        return f"<table><caption>{escape(head)}</caption><tbody>{rows}</tbody></table>"


class ShownByEnds:
    """A base class of dataclasses whose `repr` has the first and the last entries of long tuples."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class its `repr`, which a dataclass then keeps, unless it has one of its own."""
        super().__init_subclass__(**options)
        if cls.__repr__ in (object.__repr__, ShownByEnds.__repr__):
            cls.__repr__ = ShownByEnds.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        if not is_dataclass(self):
            return object.__repr__(self)
        entries = (f"{one.name}={by_ends(getattr(self, one.name))}" for one in fields(self) if one.repr)
        return f"{type(self).__qualname__}({', '.join(entries)})"


def by_ends(value: Any) -> str:
    """A value as text, a long tuple by its two first and two last entries."""
    if type(value) is not tuple:
        return repr(value)
    texts = [by_ends(entry) for entry in (value if len(value) <= MOST_SHOWN else (*value[:2], *value[-2:]))]
    if len(value) > MOST_SHOWN:
        return f"({', '.join(texts[:2])}, ..., {', '.join(texts[2:])}; length {len(value)})"
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
