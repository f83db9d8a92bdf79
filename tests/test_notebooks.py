"""Every notebook runs from top to bottom."""

import runpy
from pathlib import Path

import matplotlib
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path) -> None:
    matplotlib.use("Agg")
    names = runpy.run_path(str(path))
    assert names["posterior"].draws
