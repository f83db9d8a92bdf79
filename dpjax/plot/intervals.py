"""Forest plots: intervals of several results side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_share, describe, fail, name_of
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import entry_names
from dpjax.importance import ImportanceSample, quantile_function
from dpjax.plot.style import legend_above, line_at_zero, new_axes, styles_of, tidy
from dpjax.posterior.posterior import Posterior
from dpjax.smc.result import SMCSample

MAX_ROWS = 60
"""Largest number of rows."""

Draws = tuple[np.ndarray, np.ndarray]
"""Draws [draw] of a scalar, and their weights [draw], which sum to 1."""


@names_arguments
def forest(
    answers: Mapping[str, Any], *, names: Sequence[str] | None = None, level: float = 0.95, axes: Any = None
) -> Any:
    """A forest plot: median, 50 % and `level` interval of each scalar in several results, one row per scalar.

    Parameters
    ----------
    answers
        The results by their names in the legend: a `Posterior`, another result of dpjax with draws, or plain draws, a
        dict of arrays [chain, draw, ...] by name. ``"non-private"``, ``"naive"`` and ``"dpjax"`` have fixed colours.
    names
        The parameters or entries to show, such as ``["mean", "coef[1]"]``; by default all that every result has.
    level
        The probability of the thin lines.
    axes
        Matplotlib axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with one row for each scalar and the first on top.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If a result has no draws, or the results do not have common or the requested scalars.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> from matplotlib.figure import Figure
    >>> random = np.random.default_rng(1)
    >>> answers = {"naive": {"mean": random.normal(size=(1, 500))}, "dpjax": {"mean": random.normal(size=(4, 500))}}
    >>> axes = dpjax.plot.forest(answers, axes=Figure().subplots())
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['naive', 'dpjax']
    """
    check_share("level", level)
    labels = {
        name: axes for one in check_answers(answers).values() for name, axes in getattr(one, "labels", {}).items()
    }
    drawn = {label: entries_of(label, answer, labels) for label, answer in answers.items()}
    rows = choose_rows(drawn, names)
    axes = new_axes(axes, 6.0, 1.1 + (0.22 + 0.13 * len(drawn)) * len(rows))
    for place, (label, style) in enumerate(styles_of(drawn).items()):
        shift = (place - (len(drawn) - 1) / 2) * 0.7 / len(drawn)
        draw_intervals(axes, [drawn[label][row] for row in rows], shift, level, label, style)
    axes.set(yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.4, -0.6))
    axes.tick_params(axis="y", length=0)
    line_at_zero(axes)
    axes.set_xlabel(f"median, 50 % and {100 * level:g} %")
    tidy(axes, "left")
    if len(drawn) > 1:
        legend_above(axes)
    return axes


def plot_forest(
    posterior: Posterior,
    beside: Mapping[str, Any] | None,
    *,
    names: Sequence[str] | None,
    level: float,
    axes: Any,
) -> Any:
    """The axes with the intervals of a posterior below those of other answers; see `Posterior.plot_forest`."""
    others = {} if beside is None else check_answers(beside)
    return forest({**others, "dpjax": posterior}, names=names, level=level, axes=axes)


def check_answers(answers: Any) -> Mapping[str, Any]:
    """The results by name, or an error."""
    expected, remedy = "a dict of answers by name", 'Pass such as {"naive": draws, "dpjax": posterior}.'
    if not isinstance(answers, Mapping):
        fail("answers", name_of(answers), expected, remedy, error=TypeError)
    if not answers:
        fail("answers", "none", expected, remedy)
    return answers


def entries_of(label: str, answer: Any, labels: Labels) -> dict[str, Draws]:
    """The draws of every scalar in a result, by name."""
    draws = getattr(answer, "draws", answer)
    if not isinstance(draws, Mapping):
        remedy = "Pass a result of dpjax, or a dict of arrays [chain, draw, ...]."
        fail(f"answers[{label!r}]", name_of(answer), "draws by name", remedy, error=TypeError)
    leading = 1 if isinstance(answer, ImportanceSample) else 2
    entries: dict[str, Draws] = {}
    for name, leaf in draws.items():
        array = check_leaf(f"answers[{label!r}][{name!r}]", leaf, leading)
        flat = array.reshape(np.prod(array.shape[:leading]), -1)
        weights = weights_of(answer, array.shape[:leading])
        rows = entry_names(name, {"": array[(0,) * leading]}, labels)
        entries |= {row: (flat[:, place], weights) for place, row in enumerate(rows)}
    return entries


def check_leaf(argument: str, leaf: Any, leading: int) -> np.ndarray:
    """Draws as an array of finite numbers with the axes of chains and draws."""
    array = np.asarray(leaf)
    expected = "numbers [chain, draw, ...]" if leading == 2 else "numbers [draw, ...]"
    if array.ndim < leading or not array.size:
        fail(argument, f"shape {list(array.shape)}", expected, "Put plain draws on an axis of one chain: draws[None].")
    if array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        fail(argument, f"{array.dtype} that are not all finite numbers", expected, "Check how they were drawn.")
    return array.astype(float)


def weights_of(answer: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The weights of a result's draws on one axis, which sum to 1."""
    weights = np.ones(shape)
    if isinstance(answer, ImportanceSample):
        weights = np.exp(answer.log_weights)
    if isinstance(answer, SMCSample):
        weights = weights * np.exp(answer.log_weights)[:, None]
    return weights.ravel() / weights.sum()


def choose_rows(drawn: Mapping[str, Mapping[str, Draws]], names: Sequence[str] | None) -> list[str]:
    """The scalars to show: the requested ones, which every result must have, or all common ones."""
    first, *others = drawn.values()
    common = [row for row in first if all(row in other for other in others)]
    wanted = [names] if isinstance(names, str) else names
    if not (wanted is None or isinstance(wanted, (list, tuple))):
        fail("names", describe(names), "names of numbers", "Pass a list of texts.", error=TypeError)
    rows = common if wanted is None else [row for name in wanted for row in common if name in (row, row.split("[")[0])]
    missing = [name for name in wanted or () if not any(name in (row, row.split("[")[0]) for row in rows)]
    some = f"some of {', '.join(common[:6])}{', …' if len(common) > 6 else ''}"
    if not common:
        fail("answers", "answers to different questions", "a number that all have", "Give equal things equal names.")
    if missing or not rows:
        fail("names", ", ".join(map(repr, missing)) or "none", some, "Name what every answer has.")
    if len(rows) > MAX_ROWS:
        fail("names", f"{len(rows)} numbers", f"at most {MAX_ROWS} of them", f"Name {some}.")
    return rows


def draw_intervals(
    axes: Any, columns: Sequence[Draws], shift: float, level: float, label: str, style: Mapping[str, str]
) -> None:
    """The intervals of one result, shifted from the middle of each row."""
    levels = ((1 - level) / 2, 0.25, 0.5, 0.75, (1 + level) / 2)
    at = [quantile_function(*column) for column in columns]
    low, lower, middle, upper, high = ([of_row(np.array(each)) for of_row in at] for each in levels)
    rows = np.arange(len(columns)) + shift
    axes.hlines(rows, low, high, color=style["color"], linewidth=1.2)
    axes.hlines(rows, lower, upper, color=style["color"], linewidth=3.2)
    axes.plot(
        middle, rows, linestyle="", markersize=5, markeredgecolor="white", markeredgewidth=0.6, label=label, **style
    )
