"""Axes to draw on, where Matplotlib is installed, and what a legend says."""

import pytest

figure = pytest.importorskip("matplotlib.figure")


def new_axes():
    return figure.Figure(layout="constrained").subplots()


def labels_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]
