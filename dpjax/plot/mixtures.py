"""Figures of mixture posteriors."""

from typing import Any

import numpy as np

from dpjax._util.validation import fail
from dpjax.mixture.partition import Partition
from dpjax.mixture.posterior import MixturePosterior
from dpjax.plot.style import INK, POSTERIOR, legend_above, new_axes, tidy


def plot_density(posterior: MixturePosterior, grid: Any, *, level: float, axes: Any) -> Any:
    """The axes with the posterior mean of the density on a line, and its pointwise band."""
    if np.ndim(grid) != 1:
        fail("grid", f"shape {list(np.shape(grid))}", "points [points]", "A density on a line can be drawn.")
    density = posterior.density(grid, level=level)
    axes = new_axes(axes)
    axes.fill_between(
        density.grid,
        density.lower,
        density.upper,
        color=POSTERIOR,
        alpha=0.25,
        linewidth=0,
        label=f"{level:.0%} pointwise",
    )
    axes.plot(density.grid, density.mean, color=POSTERIOR, label="posterior mean")
    axes.set(xlabel="record", ylabel="density", xlim=(density.grid[0], density.grid[-1]), ylim=(0, None))
    axes.legend(frameon=False)
    tidy(axes)
    return axes


def plot_num_clusters(posterior: MixturePosterior, *, axes: Any) -> Any:
    """The axes with the posterior probability of each number of clusters."""
    axes, num_clusters = new_axes(axes), posterior.draws["num_clusters"]
    numbers = np.arange(num_clusters.min(), num_clusters.max() + 1)
    of_chains = np.array([[np.mean(chain == number) for number in numbers] for chain in num_clusters])
    axes.bar(numbers, of_chains.mean(axis=0), color=POSTERIOR, alpha=0.5, label="all chains")
    for place, shares in enumerate(of_chains):
        axes.plot(numbers, shares, "_", color=INK, markersize=9, label=None if place else "single chains")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="clusters", ylabel="posterior probability")
    legend_above(axes)
    tidy(axes)
    return axes


def plot_co_clustering(posterior: MixturePosterior, partition: Partition, *, axes: Any) -> Any:
    """The axes with the probability [n, n] that two records share a cluster, in the order of a partition.

    Larger clusters come first; within a cluster, records that share it most often.
    """
    shared = posterior.co_clustering()
    labels = check_partition(partition, len(shared))
    axes = new_axes(axes)
    sizes = np.bincount(labels)
    own = np.mean(np.where(labels[:, None] == labels[None, :], shared, 0), axis=1)
    order = np.lexsort((-own, labels, -sizes[labels]))
    image = axes.imshow(shared[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
    ends = np.flatnonzero(np.diff(labels[order])) + 0.5
    axes.hlines(ends, -0.5, len(labels) - 0.5, color="black", linewidth=0.6)
    axes.vlines(ends, -0.5, len(labels) - 0.5, color="black", linewidth=0.6)
    axes.set(xticks=[], yticks=[], title="probability of a shared cluster")
    axes.figure.colorbar(image, ax=axes)
    return axes


def check_partition(partition: Any, n: int) -> np.ndarray:
    """The labels [n] of a partition of n records, or an error."""
    if not isinstance(partition, Partition) or len(partition.labels) != n:
        given = f"{len(partition.labels)} labels" if isinstance(partition, Partition) else type(partition).__name__
        fail("partition", given, f"a Partition of {n} records", "Pass what posterior.partition(key) returns.")
    return partition.labels
