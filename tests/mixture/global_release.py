"""Three records, two possible parameters, three bins: the posterior given one release, by enumeration."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import dpjax
from dpjax import statistics
from tests.mixture.crp import PARTITIONS, partition_probability
from tests.mixture.two_points import MEANS, PRIOR, SCALE

HISTOGRAM = statistics.histogram("y", [-6.0, -0.6, 0.9, 6.0])
UNIT_HISTOGRAM = statistics.histogram("y", np.linspace(0, 1, 4))
RELEASES = {
    "noisy counts": dpjax.Release([1.9, -0.4, 1.2], dpjax.Laplace(0.8), HISTOGRAM, 3),
    "whole noise": dpjax.Release([2.0, 0.0, 2.0], dpjax.DiscreteLaplace(0.7), HISTOGRAM, 3),
    "clamped": dpjax.Release([1.9, 0.0, 1.2], dpjax.Censored(dpjax.Gaussian(0.6), lower=0.0), HISTOGRAM, 3),
    "smoothed": dpjax.Release([0.1, 0.2, 0.3, 0.9], dpjax.SmoothedHistogram(0.15, 4), UNIT_HISTOGRAM, 3),
}


def shares_of_bins(histogram: statistics.Histogram) -> np.ndarray:
    """P(bin | parameter) [2, 3] of a record."""
    edges = np.array([-np.inf, *histogram.edges[1:-1], np.inf])
    return np.diff(stats.norm.cdf(edges, np.array(MEANS)[:, None], SCALE), axis=1)


def joint_posterior(release: dpjax.Release, concentration: float, discount: float = 0.0) -> np.ndarray:
    """P(partition, bins of the three records | release), [5, 3, 3, 3]."""
    shares, prior = shares_of_bins(release.statistic), np.array(PRIOR)
    likelihood = np.zeros((3, 3, 3))
    for bins in product(range(3), repeat=3):
        counts = jnp.asarray(np.bincount(bins, minlength=3), float)
        likelihood[bins] = np.exp(float(release.log_density(counts)))
    weights = np.zeros((len(PARTITIONS), 3, 3, 3))
    for number, labels in enumerate(PARTITIONS):
        blocks = [[i for i in range(3) if labels[i] == label] for label in sorted(set(labels))]
        urn = partition_probability([len(block) for block in blocks], concentration, discount)
        for bins in product(range(3), repeat=3):
            of_blocks = [prior @ shares[:, [bins[i] for i in block]].prod(axis=1) for block in blocks]
            weights[number][bins] = urn * np.prod(of_blocks) * likelihood[bins]
    return weights / weights.sum()


def loop(release: dpjax.Release, records: jax.Array, proposals: jax.Array, thresholds: np.ndarray) -> np.ndarray:
    """Which proposals [n] are taken one after another, by the release's whole density."""
    held, taken = np.array(records), np.zeros(len(records), bool)
    density = jax.jit(lambda records: release.log_likelihood({release.statistic.field: records}))
    for i in range(len(held)):
        moved = np.where(np.arange(len(held)) == i, np.asarray(proposals), held)
        taken[i] = thresholds[i] < density(moved) - density(held)
        held = moved if taken[i] else held
    return taken
