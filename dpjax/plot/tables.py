"""Figures of tables: the posterior of every released sum beside the released value and least squares."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy
from scipy import sparse

from dpjax._util.validation import check_key, check_share, fail, name_of
from dpjax.base import Array, Key, Records
from dpjax.data_augmentation.counts.least_squares import estimate_counts, sums_of, variances_of
from dpjax.mechanisms.base import parts_of
from dpjax.models.simulation import GibbsState, parameter_shapes
from dpjax.plot.style import (
    OTHER,
    POSTERIOR,
    RELEASED,
    ZERO,
    check_labels,
    choose_places,
    name_places,
    new_panels,
    own_panels,
    tidy,
)
from dpjax.posterior.further import draw_further
from dpjax.posterior.posterior import Posterior
from dpjax.release import Release
from dpjax.release.summed import noisy_sum_of

FURTHER_STEPS = 250
"""Number of further steps of each chain if the posterior has no counts."""

STEEP = 10
"""Ratio of the largest sum to the noise above which a square root scale is used."""

COLOURS = {"released": RELEASED, "least squares": OTHER, "posterior": POSTERIOR}
"""Colours by the beginning of the label."""


class PanelSums(NamedTuple):
    """Released sums of a table's counts, each [d].

    Attributes
    ----------
    released
        The released values.
    half_width
        Half the width of the noise's central interval; NaN if that is not known.
    estimate
        The least-squares estimates.
    low
        The lower end of the posterior's interval.
    mean
        The mean of the posterior.
    high
        The upper end of its interval.
    """

    released: np.ndarray
    half_width: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray


def plot_table(
    posterior: Posterior,
    key: Key | None,
    *,
    level: float,
    show: Sequence[int] | None,
    labels: Sequence[str] | None,
    axes: Any,
) -> Any:
    """The axes [part] with released sums, least squares and the posterior; see `Posterior.plot_table`."""
    if key is not None:
        check_key("key", key)
    check_share("level", level)
    release, support = check_table(posterior)
    matrix = sums_of(release, support)
    names = check_labels(labels, release, matrix.shape[0])
    parts = choose_places(show, [where for _, where in parts_of(release.mechanism, matrix.shape[0])])
    panels = choose_panels(axes, parts)
    what, draws = draws_of(posterior, support, matrix, key)
    sums = sums_at(release, matrix, draws, level)
    for panel, shown in zip(panels, parts, strict=True):
        draw_panel(panel, PanelSums(*(field[shown] for field in sums)), names[shown], what)
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    return np.array(panels)


def check_table(posterior: Posterior) -> tuple[Release, Records]:
    """The release and the possible records [c], or an error if it is not a noisy sum or the model has no support."""
    release, domain = posterior.release, posterior.model.domain
    summed = noisy_sum_of(release)
    if summed is None:
        given = f"a {type(release).__name__} of {', '.join(name_of(part.mechanism) for part in release.parts)}"
        fail("posterior", given, "the posterior of a noisy sum", "Plot tables, histograms and joint releases of them.")
    if not domain.is_finite:
        given = "a model whose records are not of finitely many kinds"
        fail("posterior", given, "a model with a support", "Use posterior.to_arviz() for other quantities.")
    return summed, domain()


def choose_panels(axes: Any, parts: list[np.ndarray]) -> list[Any]:
    """The given axes, or those of a new figure, one for each part."""
    if axes is not None:
        return own_panels(axes, len(parts), "one for each part of the release")
    return new_panels(len(parts), 1, min(max(5.0, 0.3 * max(map(len, parts)) + 2), 14.0), 2.6 * len(parts) + 0.6)


def draws_of(
    posterior: Posterior, support: Records, matrix: sparse.csr_array, key: Key | None
) -> tuple[str, np.ndarray]:
    """A label and draws [draw, d] of the sums: of collected counts, of further sweeps, or expected sums."""
    counts = posterior.collected.get("counts") if isinstance(posterior.collected, dict) else posterior.collected
    if counts is not None and np.shape(counts)[-1:] == matrix.shape[1:]:
        return "posterior", np.reshape(counts, (-1, matrix.shape[1])) @ matrix.T
    if key is not None:
        return "posterior", draw_sums(posterior, key)
    parameters = {name: posterior.draws[name] for name in parameter_shapes(posterior.model)}
    merged = {name: np.reshape(leaf, (-1, *leaf.shape[2:])) for name, leaf in parameters.items()}
    log_probabilities = jax.vmap(lambda draw: posterior.model.log_density(draw, support))(merged)
    return "posterior (expected counts)", number_of(posterior) * np.exp(np.asarray(log_probabilities)) @ matrix.T


def draw_sums(posterior: Posterior, key: Key) -> np.ndarray:
    """The statistic [draw, d] of the latent records in further steps of all chains."""
    if posterior.final_states is None or posterior.plan is None:
        remedy = "Leave the key out: the figure then shows expected sums given the parameters."
        fail("key", "a key, for an approximate posterior without chains of records", "None", remedy)
    number = FURTHER_STEPS * len(posterior.info["acceptance_rate"])
    return np.asarray(draw_further(posterior, key, number, 1, statistic_of))


def statistic_of(state: GibbsState) -> Array:
    """The summed statistic [d]."""
    return state.latent.statistic


def number_of(posterior: Posterior) -> Any:
    """The number of records, [draw, 1] if it is unknown."""
    drawn = posterior.draws.get("num_records")
    return posterior.release.n if drawn is None else np.reshape(drawn, (-1, 1))


def sums_at(release: Release, matrix: sparse.csr_array, draws: np.ndarray, level: float) -> PanelSums:
    """The released sums with their noise, estimates and posterior intervals."""
    released = np.asarray(release.value)
    variance = variances_of(release.mechanism, len(released))
    counts = estimate_counts(release, matrix, variance).value
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    half_width = scipy.stats.norm.ppf((1 + level) / 2) * np.sqrt(variance)
    return PanelSums(released, half_width, matrix @ counts, low, draws.mean(axis=0), high)


def draw_panel(axes: Any, sums: PanelSums, names: np.ndarray, what: str) -> None:
    """Released values with bars of the noise, least squares, and posterior intervals, side by side."""
    place = np.arange(len(names))
    draw_points(axes, place - 0.22, sums.released, (sums.half_width, sums.half_width), "s", "released")
    draw_points(axes, place, sums.estimate, None, "_", "least squares")
    draw_points(axes, place + 0.22, sums.mean, (sums.mean - sums.low, sums.high - sums.mean), "o", what)
    axes.axhline(0, color=ZERO, linewidth=1, zorder=0)
    name_places(axes, names)
    axes.set(ylabel="count", xlim=(-0.6, len(names) - 0.4))
    tidy(axes, "bottom")
    if np.max(sums.released) > STEEP * np.nanmax(np.append(sums.half_width, 1.0)):
        stretch_small(axes)


def draw_points(
    axes: Any, place: np.ndarray, height: np.ndarray, errors: tuple[np.ndarray, np.ndarray] | None, mark: str, name: str
) -> None:
    """Points with error bars of these lengths below and above."""
    colour = next(colour for way, colour in COLOURS.items() if name.startswith(way))
    bars = None if errors is None else np.maximum(errors, 0.0)
    style = {"markersize": 9 if mark == "_" else 4.5, "markeredgewidth": 1.8 if mark == "_" else 0.0, "elinewidth": 1.6}
    axes.errorbar(place, height, bars, fmt=mark, color=colour, label=name, **style)


def stretch_small(axes: Any) -> None:
    """Set a square root scale, on which small counts remain visible beside large ones."""
    low, high = root(np.array([min(axes.dataLim.ymin, 0.0), axes.dataLim.ymax]))
    margin = 0.04 * (high - low)
    axes.set_yscale("function", functions=(root, lambda y: np.sign(y) * y**2))
    axes.set_ylim(*(np.sign(end) * end**2 for end in (low - margin, high + margin)))
    ticks = [0]
    for step in (sign * step * 10**power for power in range(9) for step in (1, 2, 5) for sign in (1, -1)):
        inside = low - margin <= root(step) <= high + margin
        if inside and all(abs(root(step) - root(tick)) > (high - low) / 14 for tick in ticks):
            ticks.append(step)
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_ylabel("count, root scale")


def root(numbers: Any) -> Any:
    """Square roots of absolute values, with the sign of the numbers."""
    return np.sign(numbers) * np.sqrt(np.abs(numbers))
