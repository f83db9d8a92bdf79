"""The problem of the mixtures' experiments, and their measuring at small sizes."""

import numpy as np
import pytest

from benchmarks.papers.mixture import problems, speed


def test_the_problem_is_the_one_described() -> None:
    problem = problems.make_problem(60, 10.0)
    assert problem.values.shape == (60,)
    assert float(problem.channel.scale) == pytest.approx(2.0)
    exact = problems.simulate_values(3_000, 1e9)  # without noise
    shares = np.histogram(exact, [-10, -2.5, 2.5, 10])[0] / 3_000
    np.testing.assert_allclose(shares, 1 / 3, atol=0.05)


@pytest.mark.slow
def test_rows_hold_what_was_measured() -> None:
    rows = speed.measure_rows(40, "metropolis", {1: 120, 3: 40}, repeats=2)
    assert [(row["n"], row["chains"], row["sweeps"]) for row in rows] == [(40, 1, 240), (40, 3, 240)]
    for row in rows:
        assert row["sweeps_per_second"] > 0
        assert np.exp(-10) < row["acceptance"] <= 1
    result = {"epsilon": 10.0, "reference_sweeps": speed.REFERENCE, "rows": rows}
    figure = pytest.importorskip("matplotlib.figure").Figure()
    speed.draw(result, figure.subplots())
    figure.draw_without_rendering()
