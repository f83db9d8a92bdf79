"""Convergence by meeting times: bounds of the distance to the posterior, and survival curves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_share, fail
from dpjax.coupling.meetings import Meetings, check_meetings, total_variation_bounds
from dpjax.plot.style import legend_above, new_axes, styles_of, tidy

POINTS = 400
"""Number of points of a curve."""

MARGIN = 1.1
"""Ratio of the end of a curve to its last event."""


@names_arguments
def total_variation(meetings: Meetings | Mapping[str, Meetings], *, target: float = 0.01, axes: Any = None) -> Any:
    """Upper bounds of the total variation distance of a chain from the posterior, by sweep, with ± 2 standard errors.

    The bounds of `coupling.total_variation_bounds`, cut at 1.

    Parameters
    ----------
    meetings
        The result of `coupling.meeting_times`, or several by name, all of whose pairs met.
    target
        A small distance; the legend gives the sweep at which the estimated bound falls below it.
    axes
        Matplotlib axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If there are no meetings, a pair did not meet, so that the bound would be too small, or the target is not in
        (0, 1).

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> from matplotlib.figure import Figure
    >>> meetings = dpjax.coupling.Meetings(np.array([60, 70, 90, 130]), np.full(4, True), lag=50, max_steps=1_000)
    >>> axes = dpjax.plot.total_variation(meetings, axes=Figure().subplots())
    >>> axes.get_legend().get_texts()[0].get_text()
    'below 0.01 from sweep 80'
    """
    check_share("target", target)
    several = by_name(meetings)
    for label, found in several.items():
        found.require_all(f"an upper bound{f' of {label}' * bool(label)}")
    axes = new_axes(axes)
    end = max(int(MARGIN * (found.times - found.lag).max()) + 1 for found in several.values())
    times = np.unique(np.linspace(0, end, POINTS).astype(int))
    for (label, found), style in zip(several.items(), styles_of(several).values(), strict=True):
        bounds, errors = total_variation_bounds(found, times)
        reached = times[np.argmax(bounds < target)]
        text = f"{label}{': ' * bool(label)}below {target:g} from sweep {reached:,}"
        axes.plot(times, np.minimum(bounds, 1), color=style["color"], linewidth=1.6, label=text)
        low, high = np.clip([bounds - 2 * errors, bounds + 2 * errors], 0, 1)
        axes.fill_between(times, low, high, color=style["color"], alpha=0.2, linewidth=0)
    axes.set(xlabel="sweep", ylabel="distance to the posterior, at most", xlim=(0, times[-1]), ylim=(0, 1.02))
    legend_above(axes, stacked=True)
    tidy(axes)
    return axes


@names_arguments
def survival(meetings: Meetings | Mapping[str, Meetings], *, axes: Any = None) -> Any:
    """The share of pairs that have not met, by the number of sweeps since the second chain started, on a log scale.

    A straight line is a geometric rate, which `coupling.convergence_rate` estimates. A cross at the end of a line marks
    pairs that were stopped before they met.

    Parameters
    ----------
    meetings
        The result of `coupling.meeting_times`, or several by name.
    axes
        Matplotlib axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If there are no meetings.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> from matplotlib.figure import Figure
    >>> meetings = dpjax.coupling.Meetings(np.array([60, 70, 90, 130]), np.full(4, True), lag=50, max_steps=1_000)
    >>> axes = dpjax.plot.survival(meetings, axes=Figure().subplots())
    >>> axes.get_xlabel()
    'sweeps together'
    """
    several = by_name(meetings)
    axes = new_axes(axes)
    for (label, found), style in zip(several.items(), styles_of(several).values(), strict=True):
        sweeps = np.sort(found.times[found.met] - found.lag)
        left = 1 - np.arange(1, len(sweeps) + 1) / len(found.met)
        ends = np.append(sweeps, found.max_steps - found.lag) if found.num_censored else sweeps
        shares = np.append(left, left[-1:] if len(left) else 1.0) if found.num_censored else left
        # After the last meeting the share is 0, which a logarithmic scale cannot show.
        shares = np.where(shares > 0, shares, np.nan)
        text = f"{label}{f' ({found.num_censored} did not meet)' * bool(found.num_censored)}"
        axes.step(np.append(0, ends), np.append(1.0, shares), where="post", color=style["color"], label=text)
        if found.num_censored:
            axes.plot(ends[-1], shares[-1], "x", color=style["color"])
    axes.set(xlabel="sweeps together", ylabel="share of pairs that have not met", yscale="log", xlim=(0, None))
    if any(text for text in axes.get_legend_handles_labels()[1]):
        legend_above(axes, stacked=True)
    tidy(axes)
    return axes


def by_name(meetings: Any) -> dict[str, Meetings]:
    """Meetings by name; a single result has the empty name."""
    if not isinstance(meetings, Mapping):
        return {"": check_meetings(meetings)}
    if not meetings:
        fail("meetings", "none", "meetings by name", 'Pass such as {"IMwG": coupling.meeting_times(...)}.')
    return {label: check_meetings(found) for label, found in meetings.items()}
