"""Every notebook runs from top to bottom."""

import runpy
from pathlib import Path

import jax
import matplotlib
import pytest
from matplotlib import pyplot

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path) -> None:
    matplotlib.use("Agg")
    x64 = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)  # as whoever opens it runs it; some choose otherwise
    try:
        # NumPyro's own code promotes ranks and types.
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            names = runpy.run_path(str(path))
    finally:
        jax.config.update("jax_enable_x64", x64)
        pyplot.close("all")
    assert names["posterior"].draws
