"""How results and their parts are shown: in a few lines, and in notebooks as a small table of them."""

from html import escape

__all__ = ["MAX_LINES", "Printed"]

MAX_LINES = 5
"""The most lines of the `repr` of anything that a user holds."""


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
