"""Small executed copies of notebooks, kept in the repository so that a fresh checkout shows their outputs.

``python -m gallery.copies`` makes them of what ``make notebooks`` has executed. A copy counts as long as its code is
that of the script: the text of a page always comes from the script.
"""

import base64
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from gallery.purposes import SHOWN

ROOT = Path(__file__).parents[1]
MOST_LINES = 40
"""Lines of one text output that a copy keeps."""


def main() -> None:
    """Write a copy of each notebook to be shown that has been executed."""
    for name in SHOWN:
        if executed(name).exists():
            kept(name).parent.mkdir(exist_ok=True)
            kept(name).write_text(json.dumps(small(read(executed(name))), indent=1, ensure_ascii=False) + "\n")


def executed(name: str) -> Path:
    """Where `make notebooks` writes a notebook."""
    return ROOT / "notebooks" / "executed" / f"{name}.ipynb"


def kept(name: str) -> Path:
    """Where the copy of a notebook is."""
    return ROOT / "gallery" / "executed" / f"{name}.ipynb"


def read(path: Path) -> dict[str, Any]:
    """A notebook from its file, with each text in one piece."""
    notebook: dict[str, Any] = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", []):
            for holder in (output, output.get("data", {})):
                holder.update({kind: "".join(text) for kind, text in holder.items() if isinstance(text, list)})
    return notebook


def small(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook with long texts cut and pictures of 128 colours; the cells have the same names each time."""
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        for output in cell.get("outputs", []):
            for holder in (output, output.get("data", {})):
                holder.update({kind: cut(holder[kind]) for kind in ("text", "text/plain") if kind in holder})
                holder.update({kind: fewer_colours(holder[kind]) for kind in ("image/png",) if kind in holder})
    return notebook


def cut(text: str) -> str:
    """The first lines of a text, and how many more there were."""
    lines = text.splitlines(keepends=True)
    more = len(lines) - MOST_LINES
    return text if more <= 0 else "".join([*lines[:MOST_LINES], f"... {more} more lines\n"])


def fewer_colours(png: str) -> str:
    """A picture, as a PNG in base64, with a palette."""
    file = io.BytesIO()
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def with_outputs(name: str, cells: list[Any]) -> list[Any] | None:
    """The cells of a script with the outputs of its copy; None if there is no copy with the same code."""
    copied = code_of(read(kept(name))["cells"]) if kept(name).exists() else []
    if [cell["source"] for cell in copied] != [cell["source"] for cell in code_of(cells)]:
        return None
    outputs = iter(copied)
    return [cell | {"outputs": next(outputs)["outputs"]} if cell["cell_type"] == "code" else cell for cell in cells]


def code_of(cells: list[Any]) -> list[Any]:
    """The cells with code."""
    return [cell for cell in cells if cell["cell_type"] == "code"]


if __name__ == "__main__":
    main()
