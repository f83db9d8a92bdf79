"""A hook of MkDocs: the tables of the page on the papers, made of the rows and results of ``benchmarks``."""

from typing import Any

from benchmarks.papers.page import page

MARKER = "<!-- figures and tables -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What MkDocs calls with each page."""
    return markdown.replace(MARKER, page()) if MARKER in markdown else markdown
