"""Records known through one release of the number of records in each bin."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, fail, is_traced, name_of
from dpjax.base import Array
from dpjax.mechanisms.base import Mechanism
from dpjax.release import Release
from dpjax.release.unknown_count import check_number_known
from dpjax.statistics import Histogram

__all__ = ["Binned", "bin_release"]


@frozen_pytree
@dataclass(frozen=True, eq=False)
class Binned:
    """The density η of a release as a product over bins, each factor a function of the bin's number of records.

    Parameters
    ----------
    gains : [m, n]
        The change of log η when bin j, which holds c records, gets one more.
    histogram
        The bins.
    n
        The number of records.
    """

    gains: Array
    histogram: Histogram = field(metadata={"static": True})
    n: int = field(metadata={"static": True})

    def decide(self, records: Array, proposals: Array, thresholds: Array) -> Array:
        """Whether each record accepts its proposal [n], in order: a scan that carries only the counts of the bins.

        Proposal i is accepted if ``thresholds[i]`` is below the change of log η, which costs O(1) to compute because
        only the counts of two bins change. With log-uniform thresholds these are Metropolis steps.
        """
        old, new = self.histogram.bin(records), self.histogram.bin(proposals)
        counts = jnp.sum(old[:, None] == jnp.arange(len(self.gains), dtype=old.dtype)[None, :], axis=0, dtype=old.dtype)

        def attempt(counts: Array, proposal: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            source, target, threshold = proposal
            change = self.gains[target, counts[target]] - self.gains[source, counts[source] - 1]
            taken = threshold < jnp.where(source == target, 0, change)
            moved = taken.astype(counts.dtype)
            return counts.at[source].add(-moved).at[target].add(moved), taken

        return jax.lax.scan(attempt, counts, (old, new, thresholds))[1]


def bin_release(release: Release) -> Binned:
    """The release as a function of the bins' counts.

    Raises
    ------
    TypeError, ValueError
        If it is not a release of a histogram of a known number of records, or its mechanism's log-density is not a sum
        over bins.
    """
    if not isinstance(release.statistic, Histogram):
        remedy = "Mixtures read the release of dpjax.statistics.histogram(field, edges)."
        fail("statistic", type(release.statistic).__name__, "a histogram", remedy, error=TypeError)
    if release.mechanism.sums.log_density_by_bin is not None:
        check_equal_bins(release.statistic.edges)
    check_number_known(release, "Mixtures have none for it: pass the number of records, if it is public.")
    gains = jnp.diff(tabulate(release.mechanism, release.value, release.statistic.dimension, release.n), axis=1)
    if not is_traced(gains):
        remedy = "Use a mechanism that can release any value whatever the counts."
        check_array("mechanism", gains, np.isfinite, "finite densities of the released value at all counts", remedy)
    return Binned(gains, release.statistic, release.n)


def tabulate(mechanism: Any, value: Array, num_bins: int, n: int) -> Array:
    """The contribution of each bin to the log-density when it holds 0, ..., n records, [m, n + 1]."""
    counts = jnp.arange(n + 1, dtype=value.dtype)
    each = jax.vmap(add_up(mechanism, value, n), out_axes=1)
    return each(jnp.broadcast_to(counts[:, None], (n + 1, num_bins)))


def add_up(mechanism: Mechanism, value: Array, n: int) -> Any:
    """The function ``counts [m] -> [m]`` that gives each bin's contribution to the log-density."""
    by_bin = mechanism.sums.log_density_by_bin
    if by_bin is not None:
        total = jnp.asarray(n, value.dtype)
        return lambda counts: by_bin(value, counts, total)
    if mechanism._is_opaque or not mechanism._is_elementwise:
        remedy = "Use mechanisms.SmoothedHistogram, additive noise such as dpjax.Laplace, or give it log_density_terms."
        fail("mechanism", name_of(mechanism), "one whose log-density is a sum over bins", remedy, error=TypeError)
    return lambda counts: mechanism.log_density_terms(value, counts)


def check_equal_bins(edges: tuple[float, ...]) -> None:
    """Raise unless these are the bins of a mechanism that has `log_density_by_bin`."""
    if not np.allclose(edges, np.linspace(0, 1, len(edges)), rtol=0, atol=1e-9):
        remedy = "Pass numpy.linspace(0, 1, m + 1) as edges, and records in units of the interval."
        fail("statistic", f"edges from {edges[0]:g} to {edges[-1]:g}", "equal bins of [0, 1]", remedy)
