"""A hook of MkDocs: the gallery's front page, and a page for each notebook.

A page shows the outputs of ``notebooks/executed/NAME.ipynb`` where ``make notebooks`` has written it, or else those of
the copy in ``gallery/executed``. Without either it shows the script alone, below its thumbnail.
"""

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gallery.copies import ROOT, executed, kept, read, with_outputs
from gallery.purposes import PURPOSES
from gallery.rendering import Page, to_page

NOT_EXECUTED = "*Outputs are not shown: run `make notebooks`, then `make docs`.*"
FRONT = """# Gallery

Each notebook answers one question from beginning to end, in a few minutes on two cores, and asserts in its own cells
what its text says of its numbers. The sources are scripts in `notebooks/`; `make notebooks` executes them and
writes `.ipynb` files for Jupyter and Colab to `notebooks/executed/`.
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the notebooks below the navigation's entry of the gallery."""
    titles = {name: read_page(name).title for name in names()}
    pages = ["gallery/index.md", *({titles[name]: f"gallery/{name}.md"} for name in names())]
    config.nav = [{"Gallery": pages} if entry == {"Gallery": "gallery/index.md"} else entry for entry in config.nav]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, their pictures and the executed notebooks."""
    pages = {name: read_page(name) for name in names()}
    files.append(File.generated(config, "gallery/index.md", content=front_page(pages)))
    for name, page in pages.items():
        files.append(File.generated(config, f"gallery/{name}.md", content=whole_page(name, page)))
        for file, content in page.pictures.items():
            files.append(File.generated(config, f"gallery/{name}/{file}", content=content))
        if page.has_outputs:
            source = executed(name) if executed(name).exists() else kept(name)
            files.append(File.generated(config, f"gallery/{name}.ipynb", abs_src_path=str(source)))
    return files


def names() -> list[str]:
    """The notebooks in the order of the gallery."""
    return [name for purpose in PURPOSES.values() for name in purpose]


def read_page(name: str) -> Page:
    """The page of a notebook, with its outputs if there are any."""
    if executed(name).exists():
        return to_page(name, read(executed(name))["cells"])
    script = jupytext.read(ROOT / "notebooks" / f"{name}.py", fmt="py:percent")["cells"]
    shown = with_outputs(name, script)
    return to_page(name, shown or script, has_outputs=shown is not None)


def front_page(pages: dict[str, Page]) -> str:
    """Thumbnails with a sentence each, by purpose."""
    blocks = [FRONT]
    for purpose, members in PURPOSES.items():
        cards = "\n".join(card(name, pages[name]) for name in members)
        blocks += [f"## {purpose}", '<div class="grid cards" markdown>', cards, "</div>"]
    return "\n\n".join(blocks) + "\n"


def card(name: str, page: Page) -> str:
    """One notebook in the list."""
    image = f"![{page.alt}](../images/gallery/{name}.png){{ loading=lazy }}"
    picture = f"[{image}]({name}.md)\n\n    " * has_thumbnail(name)
    return f"-   {picture}**[{page.title}]({name}.md)**\n\n    {page.summary}\n"


def has_thumbnail(name: str) -> bool:
    """Whether there is a picture of a notebook for the front page."""
    return (ROOT / "docs" / "images" / "gallery" / f"{name}.png").exists()


def whole_page(name: str, page: Page) -> str:
    """A page with where its source is, and a picture where its own are missing."""
    heading, _, rest = page.body.partition("\n")
    if page.has_outputs:
        note = f"[Download this notebook]({name}.ipynb)"
    else:
        picture = f"\n\n![{page.alt}](../images/gallery/{name}.png)" * has_thumbnail(name)
        note = NOT_EXECUTED + picture
    return f"{heading}\n\n{note}\n{rest}"
