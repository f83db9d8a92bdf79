"""A hook of MkDocs for links that differ between the checkout and the site.

Docstrings name pages by their files, such as `docs/scaling.md`; on the site these are links. Pages link to the scripts
of notebooks, such as `../notebooks/reporting.py`; on the site these are links to the gallery.
"""

import re
from typing import Any

from mkdocs.utils import get_relative_url

NAME = re.compile(r"\bdocs/([\w/-]+)\.md\b")

SCRIPT = re.compile(r"\]\(\.\./((?:\.\./)*)notebooks/(?:(\w+)\.py)?\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs: the page with links to the gallery in place of those to notebooks."""
    return SCRIPT.sub(lambda found: f"]({found[1]}gallery/{found[2] or 'index'}.md)", markdown)


def on_page_content(html: str, page: Any, files: Any, **_: Any) -> str:
    """Called by MkDocs: the page with a link for each file of a page that it names."""

    def link(found: re.Match[str]) -> str:
        file = files.get_file_from_path(f"{found[1]}.md")
        return f'<a href="{get_relative_url(file.url, page.url)}">{found[0]}</a>' if file else found[0]

    return NAME.sub(link, html)
