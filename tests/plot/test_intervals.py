"""The forest shows the quantiles of each answer, in rows that have one name in all of them."""

import numpy as np
import pytest

import dpjax
from dpjax import plot
from dpjax.importance import ImportanceSample
from dpjax.plot.intervals import MAX_ROWS
from dpjax.plot.style import INK, KNOWN, MARKS, NAIVE, POSTERIOR, SERIES, ZERO, styles_of
from dpjax.smc.result import SMCSample
from tests.plot.axes import new_axes
from tests.plot.results import make_posterior

RNG = np.random.default_rng(2)
DRAWS = {"mean": RNG.normal(size=(2, 500)), "coef": RNG.normal([1.0, 2.0], size=(2, 500, 2))}


def bars(axes):
    """The ends of the lines, in the order drawn, [line, 2]."""
    return [np.array(lines.get_segments())[:, :, 0] for lines in axes.collections]


def test_rows_are_numbers_and_bars_quantiles():
    own = new_axes()
    axes = plot.forest({"naive": DRAWS}, level=0.9, axes=own)
    assert axes is own
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["mean", "coef[0]", "coef[1]"]
    columns = np.stack([DRAWS["mean"], *np.moveaxis(DRAWS["coef"], -1, 0)]).reshape(3, -1)
    wide, narrow = bars(axes)
    # Quantiles of equal weights are order statistics: no further off than one draw.
    np.testing.assert_allclose(wide, np.quantile(columns, [0.05, 0.95], axis=1, method="inverted_cdf").T, atol=0.02)
    np.testing.assert_allclose(narrow, np.quantile(columns, [0.25, 0.75], axis=1, method="inverted_cdf").T, atol=0.02)
    assert axes.get_legend() is None
    axes.figure.draw_without_rendering()


def test_answers_lie_beside_each_other_and_share_rows():
    axes = make_posterior().plot_forest({"non-private": DRAWS, "naive": {"mean": DRAWS["mean"] + 1}}, axes=new_axes())
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["mean"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["non-private", "naive", "dpjax"]
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    places = [line.get_ydata()[0] for line in lines]
    assert places == sorted(places)
    assert [line.get_color() for line in lines] == [INK, NAIVE, POSTERIOR]
    top = plot.forest({"a": DRAWS, "b": DRAWS}, names=["coef[1]", "mean"], axes=new_axes())
    assert [tick.get_text() for tick in top.get_yticklabels()] == ["coef[1]", "mean"]


@pytest.mark.parametrize(("shift", "number"), [(0.0, 1), (100.0, 0)])
def test_zero_has_a_line_where_it_is_in_sight(shift, number):
    axes = plot.forest({"dpjax": {"mean": np.linspace(-1.0, 1.0, 50)[None] + shift}}, axes=new_axes())
    assert sum(line.get_color() == ZERO for line in axes.lines) == number


def test_weights_count():
    """A sample that is uniform on 0, …, 9, by its weights or by repeated draws."""
    log_weights = np.log(np.repeat([0.16, 0.04], 5))
    weighted = ImportanceSample({"mean": np.arange(10.0)}, log_weights, 9.0, 0.1, 0.0, 0.1)
    repeated = {"mean": np.repeat(np.arange(10.0), np.repeat([4, 1], 5))[None]}
    islands = SMCSample({"mean": np.arange(10.0).reshape(2, 5)}, np.log([0.8, 0.2]), 0.0, 0.1, *(np.zeros((2, 1)),) * 5)
    one, two, three = (
        bars(plot.forest({"a": answer}, level=0.7, axes=new_axes())) for answer in (weighted, repeated, islands)
    )
    np.testing.assert_allclose(one, two)
    np.testing.assert_allclose(one, three)


def test_things_beside_each_other_differ_in_colour_and_mark():
    looks = styles_of(["dpjax", "first", "naive", "second", "third", "fourth"])
    assert len({look["color"] for look in looks.values()}) == 6
    assert [look["marker"] for look in looks.values()] == list(MARKS)
    assert {name: looks[name]["color"] for name in ("dpjax", "naive")} == {n: KNOWN[n] for n in ("dpjax", "naive")}
    assert len(styles_of(map(str, range(20)))) == 20
    assert len(set(SERIES)) == len(SERIES)


@pytest.mark.parametrize(
    ("answers", "options", "error", "message"),
    [
        ([DRAWS], {}, TypeError, "answers: given list; expected a dict of answers by name"),
        ({}, {}, ValueError, "answers: given none"),
        ({"a": 3}, {}, TypeError, r"answers\['a'\]: given 3; expected draws by name"),
        (
            {"a": {"mean": np.zeros(5)}},
            {},
            ValueError,
            r"answers\['a'\]\['mean'\]: given shape \[5\]; expected .* draws\[None\]",
        ),
        ({"a": {"mean": [[np.nan]]}}, {}, ValueError, "not all finite"),
        ({"a": DRAWS, "b": {"other": [[1.0]]}}, {}, ValueError, "answers: given answers to different questions"),
        (
            {"a": DRAWS},
            {"names": ["slope"]},
            ValueError,
            r"names: given 'slope'; expected some of mean, coef\[0\], coef\[1\]",
        ),
        ({"a": DRAWS}, {"names": []}, ValueError, "names: given none"),
        ({"a": {"x": np.zeros((1, 2, MAX_ROWS + 1))}}, {}, ValueError, "names: given 61 numbers; expected at most 60"),
        ({"a": DRAWS}, {"level": 95}, ValueError, "level: given 95"),
        ({"a": DRAWS}, {"axes": 3}, TypeError, "axes: given 3; expected one Matplotlib Axes"),
    ],
)
def test_what_has_no_forest_is_refused_by_name(answers, options, error, message):
    with pytest.raises(error, match=message):
        plot.forest(answers, **options)


def test_a_new_figure_is_one_of_pyplot(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    axes = plot.forest({"a": DRAWS})
    assert pyplot.gcf() is axes.figure
    pyplot.close(axes.figure)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install arviz matplotlib"):
        dpjax.plot.forest({"a": DRAWS})
