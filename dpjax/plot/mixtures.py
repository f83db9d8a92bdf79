"""Figures of mixture posteriors."""

from typing import Any

import numpy as np

from dpjax.mixture.posterior import Density
from dpjax.plot.style import POSTERIOR, new_axes, tidy


def plot_density(density: Density, level: float, axes: Any) -> Any:
    """The axes with the posterior mean of a density on a line, and its pointwise band."""
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


def plot_num_clusters(num_clusters: np.ndarray, axes: Any) -> Any:
    """The axes with the posterior probability of each number of clusters, from draws [chain, draw]."""
    axes = new_axes(axes)
    numbers = np.arange(num_clusters.min(), num_clusters.max() + 1)
    of_chains = np.array([[np.mean(chain == number) for number in numbers] for chain in num_clusters])
    axes.bar(numbers, of_chains.mean(axis=0), color=POSTERIOR, alpha=0.5)
    for shares in of_chains:
        axes.plot(numbers, shares, "_", color="black", markersize=9)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="clusters (dashes: single chains)", ylabel="posterior probability")
    tidy(axes)
    return axes


def plot_co_clustering(shared: np.ndarray, labels: np.ndarray, axes: Any) -> Any:
    """The axes with the probability [n, n] that two records share a cluster, ordered by their labels [n].

    Larger clusters come first; within a cluster, records that share it most often.
    """
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
