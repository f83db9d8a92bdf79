"""Execute a notebook's script: ``python -m gallery.execute notebooks/NAME.py notebooks/executed/NAME.ipynb``.

The cells run in a kernel of their own, in order. The notebook is written with its outputs, and its first picture, or
that of the cell that is marked ``thumbnail=true``, goes to ``docs/images/gallery`` for the gallery's front page.
"""

import base64
import resource
import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

THUMBNAILS = Path(__file__).parents[1] / "docs" / "images" / "gallery"
SET_UP = """
%matplotlib inline
import warnings
import matplotlib.pyplot as plt
plt.rcParams["figure.dpi"] = 150
warnings.filterwarnings("ignore", message="IProgress not found")
"""
TIMEOUT = 900
"""Seconds that one cell may take."""


def main() -> None:
    """Execute one script, write the notebook and its thumbnail, and print the processor's time."""
    script, target = map(Path, sys.argv[1:])
    notebook = execute(script)
    target.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, target)
    picture = thumbnail_of(notebook["cells"])
    if picture is not None:
        THUMBNAILS.mkdir(parents=True, exist_ok=True)
        (THUMBNAILS / f"{script.stem}.png").write_bytes(picture)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{script.stem}: {used.ru_utime + used.ru_stime:.0f} s of processor time")


def execute(script: Path) -> Any:
    """The notebook of a script with its outputs, without progress bars; an error if a cell fails."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SET_UP))
    resources = {"metadata": {"path": str(script.parent)}}
    NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=resources).execute()
    notebook.cells.pop(0)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        cell["outputs"] = [output for output in cell.get("outputs", []) if not is_progress(output)]
        if cell.cell_type != "code":
            del cell["outputs"]
    return notebook


def is_progress(output: Any) -> bool:
    """Whether an output is a progress bar, which rewrites its line."""
    return output["output_type"] == "stream" and output["name"] == "stderr" and "\r" in output["text"]


def thumbnail_of(cells: list[Any]) -> bytes | None:
    """The PNG of the first marked cell with a picture, else of the first cell with one; None where there is none."""
    pictures = [
        (not cell["metadata"].get("thumbnail", False), output["data"]["image/png"])
        for cell in cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    return base64.b64decode(min(pictures, key=lambda pair: pair[0])[1]) if pictures else None


if __name__ == "__main__":
    main()
