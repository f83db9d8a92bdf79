"""The gallery names every notebook once, each picture has words for who cannot see it, and cells become Markdown.

A fresh checkout shows what eight of them printed and drew.
"""

import base64
import io
import re
from pathlib import Path

import pytest
from PIL import Image

from gallery import copies
from gallery.purposes import PURPOSES, SHOWN
from gallery.rendering import to_page

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
DRAWS = re.compile(r"plt\.subplots|plt\.show|\.plot\(|\.plot_\w+\(|plot\.\w+\(")


def cells_of(path: Path) -> list[tuple[str, str]]:
    """The head and the body of each cell of a script."""
    return re.findall(r"^# %%([^\n]*)\n(.*?)(?=^# %%|\Z)", path.read_text(), re.M | re.S)


def test_every_notebook_has_one_place():
    placed = [name for members in PURPOSES.values() for name in members]
    assert sorted(placed) == sorted(path.stem for path in NOTEBOOKS.glob("*.py"))


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_picture_has_words(path):
    silent = [body for head, body in cells_of(path) if DRAWS.search(body) and not re.search(r'alt="[^"]{40,}"', head)]
    assert silent == []
    assert sum("thumbnail=true" in head for head, _ in cells_of(path)) <= 1


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_notebook_begins_with_a_title_and_a_summary(path):
    head, body = cells_of(path)[0]
    assert head == " [markdown]"
    assert re.match(r"# # .+\n#\n# \w", body)


def test_cells_become_markdown():
    picture = bytes(16) + (900).to_bytes(4, "big")  # as wide as the header of a PNG would say
    png = base64.b64encode(picture).decode()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "12\n"},
        {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
        {"output_type": "execute_result", "data": {"text/html": "<table></table>", "text/plain": "a table"}},
    ]
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# Title\n\nOne\nsentence.\n\nAnother."},
        {"cell_type": "code", "metadata": {"alt": "A bar."}, "source": "draw()", "outputs": outputs},
        {"cell_type": "code", "metadata": {}, "source": "quiet()", "outputs": []},
    ]
    page = to_page("name", cells)
    assert page.has_outputs
    assert (page.title, page.summary) == ("Title", "One sentence.")
    assert page.alt == "A bar."
    assert page.pictures == {"figure-1.png": picture}
    blocks = ["```python\ndraw()\n```", "```text\n12\n```", "![A bar.](name/figure-1.png){ width=540 }"]
    blocks.append('<div class="output">\n<table></table>\n</div>')
    assert page.body.endswith("\n\n".join([*blocks, "```python\nquiet()\n```\n"]))


def test_eight_notebooks_are_shown_with_their_outputs():
    assert len(SHOWN) >= 8
    assert {path.stem for path in copies.kept(SHOWN[0]).parent.glob("*.ipynb")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_copy_has_the_code_of_its_script(name):
    """After a change of the code: `make notebooks`. A renaming may be made in script and copy alike."""
    bodies = cells_of(NOTEBOOKS / f"{name}.py")
    script = [
        {"cell_type": "markdown" if "[markdown]" in head else "code", "source": body.strip()} for head, body in bodies
    ]
    cells = copies.code_of(copies.with_outputs(name, script) or [])
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])
    assert copies.kept(name).stat().st_size < 500_000


def test_other_code_has_no_outputs():
    assert copies.with_outputs(SHOWN[0], [{"cell_type": "code", "source": "1 + 1"}]) is None


def test_copies_are_small():
    """Long texts are cut, and pictures have few colours."""
    picture = io.BytesIO()
    Image.effect_noise((60, 40), 80).convert("RGB").save(picture, "PNG")
    png = base64.b64encode(picture.getvalue()).decode()
    text = "".join(f"line {number}\n" for number in range(100))
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": text},
        {"output_type": "display_data", "data": {"image/png": png}},
    ]
    small = copies.small({"cells": [{"cell_type": "code", "id": "any", "metadata": {}, "outputs": outputs}]})
    printed, drawn = small["cells"][0]["outputs"]
    assert printed["text"].endswith(f"line {copies.MOST_LINES - 1}\n... {100 - copies.MOST_LINES} more lines\n")
    assert Image.open(io.BytesIO(base64.b64decode(drawn["data"]["image/png"]))).mode == "P"
