"""How far a chain has come, by pairs that met: bounds of the distance to the posterior, and meeting times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpjax._util.validation import check_share, fail
from dpjax.coupling.meetings import Meetings, check_meetings, total_variation_bounds
from dpjax.plot.style import legend_above, looks_of, new_axes, tidy

POINTS = 400
"""Of a curve."""

MARGIN = 1.1
"""A curve ends a tenth after its last event."""


def total_variation(meetings: Meetings | Mapping[str, Meetings], *, target: float = 0.01, axes: Any = None) -> Any:
    """Upper bounds of the distance between the law of a chain and the posterior, against sweeps, with ± 2 errors.

    The bound of `coupling.total_variation_bounds`: no event has a probability that is further off. It is drawn up to 1,
    as more says nothing.

    Parameters
    ----------
    meetings
        The result of `coupling.meeting_times`, or several by name, all of whose pairs met.
    target
        A small distance: the legend says after how many sweeps the estimated bound is below it.
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
        If there are no meetings, some pair did not meet, so that the bound would be too small, or the target is no
        share.

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
    for (label, found), look in zip(several.items(), looks_of(several).values(), strict=True):
        bounds, errors = total_variation_bounds(found, times)
        reached = times[np.argmax(bounds < target)]
        text = f"{label}{': ' * bool(label)}below {target:g} from sweep {reached:,}"
        axes.plot(times, np.minimum(bounds, 1), color=look["color"], linewidth=1.6, label=text)
        low, high = np.clip([bounds - 2 * errors, bounds + 2 * errors], 0, 1)
        axes.fill_between(times, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.set(xlabel="sweep", ylabel="distance to the posterior, at most", xlim=(0, times[-1]), ylim=(0, 1.02))
    legend_above(axes, stacked=True)
    tidy(axes)
    return axes


def survival(meetings: Meetings | Mapping[str, Meetings], *, axes: Any = None) -> Any:
    """The share of pairs that have not met, against the sweeps that they have made together.

    A straight line on its logarithmic scale is a geometric rate, as `coupling.convergence_rate` fits it. Where pairs
    were stopped before they met, the line ends in a cross.

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
    for (label, found), look in zip(several.items(), looks_of(several).values(), strict=True):
        together = np.sort(found.times[found.met] - found.lag)
        left = 1 - np.arange(1, len(together) + 1) / len(found.met)
        ends = np.append(together, found.max_steps - found.lag) if found.num_censored else together
        shares = np.append(left, left[-1:] if len(left) else 1.0) if found.num_censored else left
        # The last meeting leaves no pair, which a logarithmic scale has no place for.
        shares = np.where(shares > 0, shares, np.nan)
        text = f"{label}{f' ({found.num_censored} did not meet)' * bool(found.num_censored)}"
        axes.step(np.append(0, ends), np.append(1.0, shares), where="post", color=look["color"], label=text)
        if found.num_censored:
            axes.plot(ends[-1], shares[-1], "x", color=look["color"])
    axes.set(xlabel="sweeps together", ylabel="share of pairs that have not met", yscale="log", xlim=(0, None))
    if any(text for text in axes.get_legend_handles_labels()[1]):
        legend_above(axes, stacked=True)
    tidy(axes)
    return axes


def by_name(meetings: Any) -> dict[str, Meetings]:
    """Several meetings by name; single ones have the empty name."""
    if not isinstance(meetings, Mapping):
        return {"": check_meetings(meetings)}
    if not meetings:
        fail("meetings", "none", "meetings by name", 'Pass such as {"IMwG": coupling.meeting_times(...)}.')
    return {label: check_meetings(found) for label, found in meetings.items()}
