"""Bounds and survival are those of the meeting times, and bounds of pairs that did not meet are refused."""

import numpy as np
import pytest

from dpjax import coupling, plot
from dpjax.coupling.meetings import Meetings
from tests.plot.axes import new_axes

TIMES = np.array([60, 70, 90, 130])
MET = Meetings(TIMES, np.full(4, True), lag=50, max_steps=1_000)
CUT = Meetings(np.append(TIMES, 1_000), np.append(np.full(4, True), False), lag=50, max_steps=1_000)


def test_bounds_are_those_of_the_theorem():
    axes = plot.total_variation({"SOMA": MET, "IMwG": MET}, target=0.3, axes=new_axes())
    times, heights = axes.lines[0].get_data()
    expected, _ = coupling.total_variation_bounds(MET, times)
    np.testing.assert_allclose(heights, np.minimum(expected, 1))
    # All gaps are 10, 20, 40 and 80 sweeps, so one pair in four is left from 40 on, and none from 80.
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "SOMA: below 0.3 from sweep 40",
        "IMwG: below 0.3 from sweep 40",
    ]
    assert axes.get_xlim()[1] >= 80
    axes.figure.draw_without_rendering()


def test_survival_falls_with_each_meeting():
    axes = plot.survival(MET, axes=new_axes())
    times, shares = axes.lines[0].get_data()
    np.testing.assert_allclose(times, [0, 10, 20, 40, 80])
    np.testing.assert_allclose(shares, [1, 0.75, 0.5, 0.25, np.nan])
    assert axes.get_legend() is None
    axes = plot.survival({"IMwG": CUT}, axes=new_axes())
    times, shares = axes.lines[0].get_data()
    np.testing.assert_allclose(times, [0, 10, 20, 40, 80, 950])
    np.testing.assert_allclose(shares, [1, 0.8, 0.6, 0.4, 0.2, 0.2])
    assert axes.get_legend().get_texts()[0].get_text() == "IMwG (1 did not meet)"
    nobody = Meetings(np.array([100]), np.array([False]), lag=50, max_steps=100)
    np.testing.assert_allclose(plot.survival(nobody, axes=new_axes()).lines[0].get_ydata(), [1, 1])
    axes.figure.draw_without_rendering()


def test_what_has_no_bound_is_refused_by_name():
    with pytest.raises(ValueError, match=r"meetings: given 1 of 5 pairs .* expected pairs .* an upper bound of IMwG"):
        plot.total_variation({"IMwG": CUT})
    with pytest.raises(TypeError, match="meetings: given list; expected a Meetings"):
        plot.survival([1, 2])
    with pytest.raises(ValueError, match="meetings: given none"):
        plot.survival({})
    with pytest.raises(ValueError, match="target: given 2"):
        plot.total_variation(MET, target=2)
