"""Pictures of tables: the posterior of every released sum beside the release and least squares."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import scipy
from scipy import sparse

from dpjax._util.validation import check_key, check_share, fail, name_of
from dpjax.base import Array, Key, Records
from dpjax.data_augmentation.algorithm import gibbs
from dpjax.data_augmentation.counts.least_squares import estimate_counts, sums_of, variances_of
from dpjax.mechanisms.base import parts_of
from dpjax.models.simulation import GibbsState, parameter_shapes
from dpjax.plot.style import (
    NAIVE,
    POSTERIOR,
    RELEASED,
    check_labels,
    choose_places,
    name_places,
    new_panels,
    own_panels,
    tidy,
)
from dpjax.release import Release

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

FURTHER_SWEEPS = 250
"""Of each chain, where the posterior has no counts."""

STEEP = 10
"""Where the largest sum is so many times the noise, small ones are stretched."""

COLOURS = {"released": RELEASED, "least squares": NAIVE, "posterior": POSTERIOR}


class Sums(NamedTuple):
    """Released sums of a table's counts, each [d].

    Attributes
    ----------
    released
        What was published.
    spread
        The standard deviation of its noise; NaN where that is not known.
    estimate
        Least squares.
    low
        The lower end of the posterior's interval.
    mean
        The mean of the posterior.
    high
        The upper end of its interval.
    """

    released: np.ndarray
    spread: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray


def plot_table(
    posterior: "Posterior",
    key: Key | None = None,
    *,
    level: float = 0.9,
    show: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """The axes [part] with the released sums, least squares, and what was summed; see `Posterior.plot_table`."""
    if key is not None:
        check_key("key", key)
    check_share("level", level)
    release, support = check_table(posterior)
    matrix = sums_of(release, support)
    names = check_labels(labels, matrix.shape[0])
    parts = choose_places(show, [where for _, where in parts_of(release.mechanism, matrix.shape[0])])
    panels = choose_panels(axes, parts)
    what, draws = draws_of(posterior, support, matrix, key)
    sums = sums_at(release, matrix, draws, level)
    for panel, shown in zip(panels, parts, strict=True):
        draw_panel(panel, Sums(*(field[shown] for field in sums)), names[shown], what)
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    return np.array(panels)


def check_table(posterior: "Posterior") -> tuple[Release, Records]:
    """The release and the possible records [c], or an error unless it is a noisy sum and these are listed."""
    release, support = posterior.release, posterior.model.support
    if not isinstance(release, Release) or not release.is_noisy_sum:
        given = f"a {type(release).__name__} of {name_of(release.mechanism)}"
        fail("posterior", given, "the posterior of a noisy sum", "Plot tables, histograms and joint releases of them.")
    if support is None:
        given = "a model whose records are not of finitely many kinds"
        fail("posterior", given, "a model with a support", "Use posterior.to_arviz() for other quantities.")
    return release, support()


def choose_panels(axes: Any, parts: list[np.ndarray]) -> list[Any]:
    """The axes that were given, or those of a new figure: one for each part that is shown."""
    if axes is not None:
        return own_panels(axes, len(parts), "one for each part of the release")
    return new_panels(len(parts), 1, min(max(5.0, 0.3 * max(map(len, parts)) + 2), 14.0), 2.6 * len(parts) + 0.6)


def draws_of(
    posterior: "Posterior", support: Records, matrix: sparse.csr_array, key: Key | None
) -> tuple[str, np.ndarray]:
    """What there are draws [draw, d] of: sums of counts, collected or of further sweeps, else those expected."""
    counts = posterior.collected.get("counts") if isinstance(posterior.collected, dict) else posterior.collected
    if counts is not None and np.shape(counts)[-1:] == matrix.shape[1:]:
        return "posterior", np.reshape(counts, (-1, matrix.shape[1])) @ matrix.T
    if key is not None:
        return "posterior", sweep_on(posterior, key)
    parameters = {name: posterior.draws[name] for name in parameter_shapes(posterior.model)}
    merged = {name: np.reshape(leaf, (-1, *leaf.shape[2:])) for name, leaf in parameters.items()}
    log_probabilities = jax.vmap(lambda draw: posterior.model.log_density(draw, support))(merged)
    return "posterior (expected counts)", number_of(posterior) * np.exp(np.asarray(log_probabilities)) @ matrix.T


def sweep_on(posterior: "Posterior", key: Key) -> np.ndarray:
    """The released sums [draw, d] of the latent data in further sweeps of all chains."""
    if posterior.final_states is None or posterior.plan is None:
        remedy = "Leave the key out: the figure then shows the sums that the parameters expect."
        fail("key", "a key, for an approximate posterior without chains of records", "None", remedy)
    algorithm = gibbs(posterior.model, posterior.release, plan=posterior.plan, tuning=posterior.tuning)
    num_chains = len(posterior.info["acceptance_rate"])

    def step(states: GibbsState, key: Key) -> tuple[GibbsState, Array]:
        states, _ = jax.vmap(algorithm.step)(jax.random.split(key, num_chains), states)
        return states, states.latent.statistic

    sweep = jax.jit(lambda states, keys: jax.lax.scan(step, states, keys)[1])
    sums = np.asarray(sweep(posterior.final_states, jax.random.split(key, FURTHER_SWEEPS)))
    return sums.reshape(-1, sums.shape[-1])


def number_of(posterior: "Posterior") -> Any:
    """The number of records, [draw, 1] where it was drawn."""
    drawn = posterior.draws.get("num_records")
    return posterior.release.n if drawn is None else np.reshape(drawn, (-1, 1))


def sums_at(release: Release, matrix: sparse.csr_array, draws: np.ndarray, level: float) -> Sums:
    """The released sums with what is known of them."""
    released = np.asarray(release.value)
    variance = variances_of(release.mechanism, len(released))
    counts = estimate_counts(release, matrix, variance).value
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    spread = scipy.stats.norm.ppf((1 + level) / 2) * np.sqrt(variance)
    return Sums(released, spread, matrix @ counts, low, draws.mean(axis=0), high)


def draw_panel(axes: Any, sums: Sums, names: np.ndarray, what: str) -> None:
    """Released values with bars of the noise, least squares, and intervals of the posterior, side by side."""
    place = np.arange(len(names))
    draw_points(axes, place - 0.22, sums.released, (sums.spread, sums.spread), "s", "released")
    draw_points(axes, place, sums.estimate, None, "_", "least squares")
    draw_points(axes, place + 0.22, sums.mean, (sums.mean - sums.low, sums.high - sums.mean), "o", what)
    axes.axhline(0, color="0.8", linewidth=1, zorder=0)
    name_places(axes, names)
    axes.set(ylabel="count", xlim=(-0.6, len(names) - 0.4))
    tidy(axes, "bottom")
    if np.max(sums.released) > STEEP * np.nanmax(np.append(sums.spread, 1.0)):
        stretch_small(axes)


def draw_points(
    axes: Any, place: np.ndarray, height: np.ndarray, reach: tuple[np.ndarray, np.ndarray] | None, mark: str, name: str
) -> None:
    """One kind of points, with bars that reach so far below and above them."""
    colour = next(colour for way, colour in COLOURS.items() if name.startswith(way))
    bars = None if reach is None else np.maximum(reach, 0.0)
    style = {"markersize": 9 if mark == "_" else 4.5, "markeredgewidth": 1.8 if mark == "_" else 0.0, "elinewidth": 1.6}
    axes.errorbar(place, height, bars, fmt=mark, color=colour, label=name, **style)


def stretch_small(axes: Any) -> None:
    """A square root scale, on which noise of one size does not vanish beside large counts."""
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
    """Square roots that keep their sign."""
    return np.sign(numbers) * np.sqrt(np.abs(numbers))
