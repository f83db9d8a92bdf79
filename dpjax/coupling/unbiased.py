"""Unbiased estimates of posterior expectations from coupled chains."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import check_count, check_function
from dpjax.base import Key
from dpjax.coupling.meetings import Meetings, check_run, meetings_of
from dpjax.coupling.pairs import CoupledKernel
from dpjax.coupling.pool import Lane, PairSettings
from dpjax.coupling.run import run_pairs
from dpjax.runtime.devices import Devices
from dpjax.runtime.progress import ShowProgress

__all__ = ["Estimate", "UnbiasedEstimates", "unbiased_estimates"]


@dataclass(frozen=True)
class Estimate:
    """A mean, its standard error and its cost.

    Parameters
    ----------
    mean
        The mean, of the structure that the function returns.
    standard_error
        Its standard error, likewise.
    cost
        The total number of steps of single chains.
    inefficiency
        The mean cost of a pair times the variance of its estimate: the smaller, the better the setting.

    Examples
    --------
    >>> import dpjax
    >>> estimate = dpjax.coupling.Estimate(mean=1.2, standard_error=0.1, cost=5_000, inefficiency=0.5)
    >>> estimate.mean - 2 * estimate.standard_error, estimate.mean + 2 * estimate.standard_error
    (1.0, 1.4)
    """

    mean: Any
    standard_error: Any
    cost: int
    inefficiency: Any


@names_methods
@dataclass(frozen=True)
class UnbiasedEstimates:
    """The estimates H_{k:m} of all pairs.

    Parameters
    ----------
    values
        The estimates, leaves [pairs, ...].
    averages
        Their uncorrected part, the average over k..m of the first chain, leaves [pairs, ...].
    cost
        The number of steps of single chains for each pair [pairs]: L + 2 (τ − L) + max(0, m − τ).
    meetings
        The meeting times of the pairs.

    Examples
    --------
    >>> from dpjax.coupling import UnbiasedEstimates
    >>> import numpy as np
    >>> from dpjax.coupling import Meetings
    >>> meetings = Meetings(np.array([3, 5]), np.array([True, True]), lag=1, max_steps=9)
    >>> run = UnbiasedEstimates(np.array([1.0, 3.0]), np.array([1.5, 2.5]), cost=np.array([5, 9]), meetings=meetings)
    >>> estimate = run.estimate()
    >>> float(estimate.mean), float(estimate.standard_error), estimate.cost
    (2.0, 1.0, 14)
    """

    values: Any
    averages: Any
    cost: np.ndarray
    meetings: Meetings

    def estimate(self) -> Estimate:
        """The mean over pairs.

        Raises
        ------
        ValueError
            If a pair was censored: the mean would be biased without it or with its unfinished sum.
        """
        self.meetings.require_all("an unbiased mean")
        size = len(self.cost)
        mean, variance = (jax.tree.map(lambda leaf, f=f: f(leaf), self.values) for f in (mean_of, variance_of))
        error = jax.tree.map(lambda leaf: np.sqrt(leaf / size), variance)
        cost = float(self.cost.mean())
        return Estimate(mean, error, int(self.cost.sum()), jax.tree.map(lambda leaf: cost * leaf, variance))


@names_arguments
def unbiased_estimates(
    key: Key,
    kernel: CoupledKernel,
    function: Callable[[Any], Any],
    *,
    k: int,
    m: int,
    lag: int = 1,
    num_pairs: int,
    max_steps: int,
    batch_size: int = 1024,
    devices: Devices = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: ShowProgress = True,
) -> UnbiasedEstimates:
    """Unbiased estimates H_{k:m} of E h under the chain's limit, one from each pair.

    H_{k:m} is the average of h(X_t) over t = k, ..., m, plus a correction. For every t from k + L to τ − 1 it adds the
    difference h(X_t) − h(Y_{t−L}) times the number of telescoping sums it belongs to, divided by m − k + 1. See Jacob,
    O'Leary and Atchadé (2020), equation (2.1), and for lags L Biswas, Jacob and Vanetti (2019), Appendix A.

    Parameters
    ----------
    key
        As in `meeting_times`.
    kernel
        As in `meeting_times`.
    function
        h, ``position -> pytree of numbers``; with relabelled pairs it must not depend on the order of the records.
        Define it once: programs are compiled for it.
    k
        The first step of the averaging window; see `suggest_k_m`.
    m
        Its last step, at least k.
    lag
        As in `meeting_times`.
    num_pairs
        As in `meeting_times`.
    max_steps
        As in `meeting_times`.
    batch_size
        As in `meeting_times`.
    devices
        As in `meeting_times`.
    checkpoint
        As in `meeting_times`.
    progress
        As in `meeting_times`.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import coupling
    >>> def step(key, pair):
    ...     new, other, same = coupling.reflection_maximal(key, pair[0] / 2, pair[1] / 2, jnp.eye(1))
    ...     return (new, other, same), None
    >>> kernel = coupling.CoupledKernel(
    ...     sample_start=lambda key: jax.random.normal(key, (1,)),
    ...     join=lambda first, second, met: (first, second, jnp.asarray(met)),
    ...     step=step,
    ...     met=lambda pair: pair[2],
    ...     first=lambda pair: pair[0],
    ...     second=lambda pair: pair[1],
    ... )
    >>> run = dpjax.coupling.unbiased_estimates(
    ...     jax.random.key(1), kernel, lambda x: x[0], k=2, m=6, num_pairs=8, max_steps=50, progress=False
    ... )
    >>> run.values.shape
    (8,)
    """
    check_run(key, kernel, lag, num_pairs, max_steps, batch_size, progress)
    check_function("function", function, "position -> numbers")
    check_count("k", k, least=0)
    check_count("m", m, "The window k..m holds at least k.", least=k)
    check_count("max_steps", max_steps, "Pairs run to m at least.", least=m)
    settings = PairSettings(kernel, function, lag, k, m, max_steps)
    return collect(settings, run_pairs(key, settings, num_pairs, batch_size, devices, checkpoint, progress))


def collect(settings: PairSettings, lanes: Lane) -> UnbiasedEstimates:
    """The estimates from the final lanes."""
    meetings = meetings_of(np.asarray(lanes.meeting), settings.lag, settings.max_steps)
    size = settings.m - settings.k + 1
    cost = 2 * meetings.times - settings.lag + np.maximum(0, settings.m - meetings.times)
    unravel = unravel_of(settings)
    averages = unravel(np.asarray(lanes.average) / size)
    return UnbiasedEstimates(unravel(np.asarray(lanes.average + lanes.correction) / size), averages, cost, meetings)


def unravel_of(settings: PairSettings) -> Callable[[np.ndarray], Any]:
    """The map of vectors [pairs, q] to leaves [pairs, ...]."""
    kernel, function = settings.kernel, settings.function
    assert function is not None
    position = jax.eval_shape(kernel.sample_start, jax.eval_shape(jax.random.key, 0))
    shapes = jax.eval_shape(function, position)
    unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, float), shapes))[1]
    return lambda vectors: jax.tree.map(np.asarray, jax.vmap(unravel)(jnp.asarray(vectors)))


def mean_of(values: np.ndarray) -> np.ndarray:
    """The mean over pairs."""
    return np.mean(values, axis=0)


def variance_of(values: np.ndarray) -> np.ndarray:
    """The variance over pairs, unbiased."""
    return np.var(values, axis=0, ddof=1)
