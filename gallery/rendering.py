"""The cells of a notebook as Markdown, with its pictures as files."""

import base64
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

WIDTH = 0.6
"""Of a picture on its page, in pixels for one of the file's: with one scale for all, their letters have one size."""


class Page(NamedTuple):
    """A notebook as a page.

    title, summary
        Its first heading, and the paragraph below it.
    body
        Markdown, with pictures as ``NAME/figure-1.png`` and so on.
    pictures
        PNG files by their names.
    alt
        What the main picture shows, in words.
    has_outputs
        Whether it shows what the notebook printed and drew.
    """

    title: str
    summary: str
    body: str
    pictures: dict[str, bytes]
    alt: str
    has_outputs: bool


def to_page(name: str, cells: list[Any], has_outputs: bool = True) -> Page:
    """The page of a notebook of this name."""
    pictures: dict[str, bytes] = {}
    blocks = [block for cell in cells for block in blocks_of(cell, name, pictures)]
    title, summary = re.match(r"# (.+?)\n+(.+?)(?:\n\n|$)", cells[0]["source"], re.S).groups()
    return Page(title, " ".join(summary.split()), "\n\n".join(blocks) + "\n", pictures, main_alt(cells), has_outputs)


def main_alt(cells: list[Any]) -> str:
    """What the picture marked ``thumbnail=true`` shows, or else the first one."""
    marked = [cell["metadata"] for cell in cells if "alt" in cell["metadata"]]
    return min(marked, key=lambda data: not data.get("thumbnail", False), default={"alt": ""})["alt"]


def blocks_of(cell: Any, name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """A cell's text or code, and what it put out; pictures are added to those found before."""
    if cell["cell_type"] != "code":
        yield cell["source"]
        return
    yield f"```python\n{cell['source']}\n```"
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/png" in data:
            file = f"figure-{len(pictures) + 1}.png"
            pictures[file] = base64.b64decode(data["image/png"])
            columns = int.from_bytes(pictures[file][16:20], "big")  # from the header of a PNG
            yield f"![{cell['metadata'].get('alt', 'figure')}]({name}/{file}){{ width={round(WIDTH * columns)} }}"
        elif "text/html" in data:
            yield f'<div class="output">\n{data["text/html"]}\n</div>'
        elif text := output.get("text", data.get("text/plain", "")).strip("\n"):
            yield f"```text\n{text}\n```"
