"""Posterior predictive checks: the released values and their predictions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpjax._util.validation import check_count, check_key, check_share, fail
from dpjax.base import Key
from dpjax.mechanisms.base import Mechanism
from dpjax.plot.style import (
    BAND,
    INK,
    OUTSIDE,
    POSTERIOR,
    ZERO,
    check_labels,
    choose_places,
    legend_above,
    name_places,
    new_axes,
    tidy,
)
from dpjax.posterior.posterior import Posterior
from dpjax.release import LocalRelease

MAX_DRAWS = 400
"""Default largest number of predicted releases."""

MIN_DRAWS = 20
"""Smallest number of predicted releases."""

MAX_BINS = 40
"""Largest number of bins of a histogram."""


def plot_predictive(
    posterior: Posterior,
    key: Key,
    *,
    num_samples: int | None,
    level: float,
    show: Sequence[int] | None,
    labels: Sequence[str] | None,
    axes: Any,
) -> Any:
    """The axes with the released values and their predictions; see `Posterior.plot_predictive`."""
    check_key("key", key)
    check_share("level", level)
    available = posterior.info["acceptance_rate"].size
    wanted = min(MAX_DRAWS, available) if num_samples is None else check_count("num_samples", num_samples)
    if wanted < MIN_DRAWS:
        fail("num_samples", wanted, f"at least {MIN_DRAWS} predicted releases", "Ask for more, or sample more.")
    if posterior.release.fields and posterior.release.local is None:
        expected, remedy = "a release of one field, or of sums", "Compare the columns of posterior.predict."
        fail("posterior", "the posterior of Microdata", expected, remedy)
    if posterior.release.fields:
        check_one_column(posterior.release.local, show, labels)
        axes = new_axes(axes)
        values, released = posterior.predict(key, wanted)
        numbers, noted = mark_withheld(posterior, np.reshape(values, (wanted, -1)), np.ravel(released), level)
        draw_values(axes, *numbers, level, noted)
        return axes
    size = len(posterior.released)
    names, (places,) = check_labels(labels, posterior.release, size), choose_places(show, [slice(0, size)])
    axes = new_axes(axes, min(max(4.5, 0.3 * len(places) + 2), 14.0))
    values, released = (np.asarray(each, float) for each in posterior.predict(key, wanted))
    (values, released), noted = mark_withheld(posterior, values, released, level)
    draw_numbers(axes, values[:, places], released[places], level, noted)
    name_places(axes, names[places])
    return axes


def mark_withheld(
    posterior: Posterior, values: np.ndarray, released: np.ndarray, level: float
) -> tuple[tuple[np.ndarray, np.ndarray], str]:
    """The predictions [draw, d] and released values [d] with NaN for withheld ones, and the shares of these in words.

    A withheld value is a code or a bound, which is no number to be compared.
    """
    values, released = np.asarray(values, float), np.asarray(released, float)
    mechanism: Mechanism | None = getattr(posterior.release, "mechanism", None)  # a release of one's own may have none
    if mechanism is None:
        return (values, released), ""
    drawn, own = mechanism._withheld(values), mechanism._withheld(released)
    if not (np.any(drawn) or np.any(own)):
        return (values, released), ""
    low, high = np.quantile(np.mean(drawn, axis=1), [(1 - level) / 2, (1 + level) / 2])
    text = f"withheld: {np.mean(own):.0%}, predicted {low:.0%} to {high:.0%}"
    return (np.where(drawn, np.nan, values), np.where(own, np.nan, released)), text


def note(axes: Any, text: str) -> None:
    """A line of the legend without a mark."""
    if text:
        axes.plot([], [], linestyle="none", label=text)


def check_one_column(release: LocalRelease, show: Any, labels: Any) -> None:
    """Raise unless each record released one number, and `show` and `labels` are None."""
    if np.prod(np.shape(release.values)[1:]) != 1:
        given = f"a local release of values {list(np.shape(release.values))}"
        fail("posterior", given, "one released number for each record", "Compare the columns of posterior.predict.")
    for argument, value in {"show": show, "labels": labels}.items():
        if value is not None:
            expected = "None, as a local release is shown as a whole"
            fail(argument, repr(value), expected, "Leave it out; posterior.predict has the values of each record.")


def draw_numbers(axes: Any, values: np.ndarray, released: np.ndarray, level: float, noted: str = "") -> None:
    """Bars of predicted numbers [draw, d], standardised, and marks of the released ones [d]; none where they are NaN.

    A number is compared with predictions that are not withheld either. If all are, its mark is outside.
    """
    hidden = np.all(np.isnan(values), axis=0)
    compared = np.where(hidden, np.nan_to_num(released), values)
    middle, deviation = np.nanmean(compared, axis=0), np.nanstd(compared, axis=0)
    # Exactly known numbers are predicted without error.
    unit = np.where(deviation > 0, deviation, 1.0)
    ends = np.nanquantile(compared, [(1 - level) / 2, 0.25, 0.75, (1 + level) / 2], axis=0)
    low, lower, upper, high = np.where(hidden, np.nan, (ends - middle) / unit)
    mark = (released - middle) / unit
    places = np.arange(len(released))
    axes.vlines(places, low, high, color=BAND, linewidth=9, label=f"predicted, {100 * level:g} %")
    axes.vlines(places, lower, upper, color=POSTERIOR, alpha=0.45, linewidth=9, label="predicted, 50 %")
    outside = (mark < low) | (mark > high) | (hidden & ~np.isnan(released))
    for chosen, colour, sign, text in ((~outside, INK, "o", "released"), (outside, OUTSIDE, "D", "outside")):
        chosen = chosen & ~np.isnan(released)
        if np.any(chosen):
            label = text if text == "released" else "released, outside"
            axes.plot(places[chosen], mark[chosen], sign, color=colour, markersize=5, label=label)
    note(axes, noted)
    axes.axhline(0, color=ZERO, linewidth=1, zorder=0)
    axes.set(xlim=(-0.6, len(places) - 0.4), ylabel="sd from the mean prediction")
    tidy(axes, "bottom")
    legend_above(axes)


def draw_values(axes: Any, values: np.ndarray, released: np.ndarray, level: float, noted: str = "") -> None:
    """The histogram of the released values [n] of a local release, over the band of predictions [draw, n].

    Those that are NaN are in no bin.
    """
    together = np.concatenate([values.ravel(), released])
    shown = together[~np.isnan(together)]
    edges = bins_of(shown if len(shown) else np.zeros(1))
    counts = np.array([np.histogram(row[~np.isnan(row)], edges)[0] for row in values])
    low, high = np.quantile(counts, [(1 - level) / 2, (1 + level) / 2], axis=0)
    axes.stairs(high, edges, baseline=low, fill=True, color=BAND, label=f"predicted, {100 * level:g} %")
    axes.stairs(np.mean(counts, axis=0), edges, color=POSTERIOR, linewidth=1.4, label="predicted, mean")
    middles = (edges[1:] + edges[:-1]) / 2
    own = np.histogram(released[~np.isnan(released)], edges)[0]
    axes.plot(middles, own, "o", color=INK, markersize=4, label="released")
    note(axes, noted)
    axes.set(xlabel="released value", ylabel="records", xlim=(edges[0], edges[-1]), ylim=(0, None))
    tidy(axes)
    legend_above(axes)


def bins_of(values: np.ndarray) -> np.ndarray:
    """The edges of the bins: one for each integer if values are integers of a small range, else `MAX_BINS`."""
    low, high = np.min(values), np.max(values)
    if np.all(values == np.round(values)) and high - low < MAX_BINS:
        return np.arange(low - 0.5, high + 1)
    return np.linspace(low, high if high > low else low + 1, MAX_BINS + 1)
