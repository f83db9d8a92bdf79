"""A hook of MkDocs: what code printed is wrapped if it is sentences. Tables scroll, so that columns stay."""

import re

BLOCK = re.compile(r"^```text\n(.*?)^```", re.M | re.S)
COLUMNS = re.compile(r"\S  +\S")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs: the page with a class for the blocks without columns."""
    return BLOCK.sub(lambda found: found[0] if COLUMNS.search(found[1]) else marked(found[1]), markdown)


def marked(text: str) -> str:
    """A block of sentences."""
    return f"``` {{ .text .prose }}\n{text}```"
