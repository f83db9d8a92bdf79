"""The bars of a ledger lead from query to query to what is spent."""

import numpy as np
import pytest

from dpjax import plot, private

figure = pytest.importorskip("matplotlib.figure")
BUDGET = private.Budget(epsilon=4.0, delta=1e-6, neighbours="replace-one")


def test_bars_add_up_to_what_is_spent():
    ledger = private.Ledger(BUDGET)
    ledger.charge([private.Query("gradient", 40.0, "secure")], times=20)
    alone = ledger.privacy_spent().epsilon
    ledger.charge([private.Query("log-ratio", 60.0, "secure")], times=10)
    axes = plot.budget(ledger, axes=figure.Figure(layout="constrained").subplots())
    starts, widths = np.transpose([(bar.get_x(), bar.get_width()) for bar in axes.patches])
    spent = ledger.privacy_spent().epsilon
    np.testing.assert_allclose(starts, [0.0, alone, spent], atol=1e-6)
    np.testing.assert_allclose(starts + widths, [alone, spent, BUDGET.epsilon])
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["20 × gradient, noise 40", "10 × log-ratio, noise 60", f"left: {4 - spent:.3g}"]
    assert "secure" in axes.get_title()
    axes.figure.draw_without_rendering()


def test_a_ledger_without_queries_has_all_its_budget_left():
    axes = plot.budget(private.Ledger(BUDGET), axes=figure.Figure().subplots())
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["left: 4"]
    with pytest.raises(TypeError, match="ledger: given Budget; expected a Ledger"):
        plot.budget(BUDGET)
