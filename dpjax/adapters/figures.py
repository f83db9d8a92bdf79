"""Matplotlib figures, made without its global state."""

from typing import Any

__all__ = ["make_figure"]


def make_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('matplotlib: not installed; expected for plots. Run pip install "dpjax[plots]".') from error
    return Figure(figsize=(width, height), layout="constrained")
