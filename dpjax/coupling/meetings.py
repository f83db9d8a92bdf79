"""Meeting times of lagged pairs, and the bounds on convergence that follow from them."""

import os
from dataclasses import dataclass

import numpy as np

from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import (
    check_array,
    check_count,
    check_generator,
    check_instance,
    check_key,
    check_number,
    check_share,
    fail,
)
from dpjax.base import Key
from dpjax.coupling.pairs import CoupledKernel
from dpjax.coupling.pool import PairSettings
from dpjax.coupling.run import run_pairs
from dpjax.runtime.devices import Devices
from dpjax.runtime.progress import ShowProgress, check_progress

__all__ = ["Meetings", "Rate", "convergence_rate", "meeting_times", "suggest_k_m", "total_variation_bounds"]


@names_methods
@dataclass(frozen=True)
class Meetings:
    """The meeting times of pairs.

    Parameters
    ----------
    times
        τ = min{t ≥ lag: X_t = Y_{t − lag}} of each pair [pairs]; `max_steps` if a pair had not met by then.
    met
        Whether a pair met [pairs]; the times of the others are censored.
    lag
        The lag of the run.
    max_steps
        The cap on the steps of the run.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> meetings = dpjax.coupling.Meetings(np.array([3, 5, 9]), np.array([True, True, False]), lag=1, max_steps=9)
    >>> meetings.num_censored
    1
    """

    times: np.ndarray
    met: np.ndarray
    lag: int
    max_steps: int

    @property
    def num_censored(self) -> int:
        """How many pairs had not met after `max_steps` steps."""
        return int(np.sum(~self.met))

    def require_all(self, what: str) -> None:
        """Raise if a pair was censored, which would make `what` wrong."""
        if self.num_censored:
            given = f"{self.num_censored} of {len(self.met)} pairs that had not met after {self.max_steps} steps"
            fail("meetings", given, f"pairs that all met, for {what}", "Run them again with a larger max_steps.")


@dataclass(frozen=True)
class Rate:
    """An estimate of a convergence rate with a bootstrap interval.

    Parameters
    ----------
    rate
        The estimate.
    lower
        The lower end of the bootstrap interval.
    upper
        Its upper end.

    Examples
    --------
    >>> import dpjax
    >>> rate = dpjax.coupling.Rate(0.98, lower=0.97, upper=0.99)
    >>> rate.rate**100 < 0.2
    True
    """

    rate: float
    lower: float
    upper: float


@names_arguments
def meeting_times(
    key: Key,
    kernel: CoupledKernel,
    *,
    lag: int = 1,
    num_pairs: int,
    max_steps: int,
    batch_size: int = 1024,
    devices: Devices = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: ShowProgress = True,
) -> Meetings:
    """The meeting times of independent pairs whose first chain is `lag` steps ahead.

    Parameters
    ----------
    key
        One typed key; pair i depends on it and on i alone.
    kernel
        Such as `coupled_gibbs(...)`.
    lag
        L, at least 1; larger lags give sharper bounds.
    num_pairs
        How many pairs.
    max_steps
        The cap on a first chain's steps. Pairs that reach it are reported as censored, never left out.
    batch_size
        How many pairs run at once; on several devices a multiple of their number, rounded down.
    devices
        The devices that share the pairs; see `dpjax.sample`.
    checkpoint
        A file in which the run is saved regularly and when it is interrupted; a call with the same arguments continues
        it, to the same results. Functions are the same if their code and all it refers to are.
    progress
        What is shown of the pairs that have ended; see `dpjax.sample`.

    Raises
    ------
    TypeError, ValueError
        If the key, the kernel, a number or what is shown is invalid, there are no such devices or fewer pairs than
        devices, or the checkpoint belongs to another run.
    RuntimeError
        If another run is using the checkpoint.
    KeyboardInterrupt
        If the run is interrupted. Nothing is returned: the pairs that met so far are those that meet early.

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
    >>> meetings = dpjax.coupling.meeting_times(jax.random.key(1), kernel, num_pairs=8, max_steps=50, progress=False)
    >>> bool(meetings.met.all())
    True
    """
    check_run(key, kernel, lag, num_pairs, max_steps, batch_size, progress)
    settings = PairSettings(kernel, None, lag, 0, 0, max_steps)
    lanes = run_pairs(key, settings, num_pairs, batch_size, devices, checkpoint, progress)
    return meetings_of(np.asarray(lanes.meeting), lag, max_steps)


def check_run(
    key: Key, kernel: CoupledKernel, lag: int, num_pairs: int, max_steps: int, batch_size: int, progress: ShowProgress
) -> None:
    """Raise if an argument of the run is invalid."""
    check_key("key", key)
    check_instance("kernel", kernel, CoupledKernel, "Pass such as dpjax.coupling.coupled_gibbs(model, release).")
    check_count("lag", lag)
    check_count("num_pairs", num_pairs)
    check_count("batch_size", batch_size)
    check_count("max_steps", max_steps, "The first chain alone makes lag steps.", least=lag + 1)
    check_progress(progress)


def meetings_of(meeting: np.ndarray, lag: int, max_steps: int) -> Meetings:
    """Meetings from the times of lanes, -1 if a pair has not met."""
    met = np.asarray(meeting) >= 0
    return Meetings(np.where(met, meeting, max_steps), met, lag, max_steps)


@names_arguments
def total_variation_bounds(meetings: Meetings, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of the total variation distance of the chain from its limit, and standard errors, each [times].

    E max(0, ⌈(τ − L − t) / L⌉) bounds the distance of X_t from π: Biswas, Jacob and Vanetti (2019), Theorem 2.5. The
    mean over pairs is an unbiased estimate of the bound. With relabelled pairs it holds for the parameters and for
    functions that do not depend on the order of the records.

    Parameters
    ----------
    meetings
        Those of `meeting_times`, all met.
    times
        Steps t [times], from 0.

    Raises
    ------
    ValueError
        If a pair was censored, so that the bound would be too small, or a time is negative or not finite.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> from dpjax.coupling import Meetings
    >>> meetings = Meetings(np.array([2, 3, 5, 2]), np.ones(4, bool), lag=1, max_steps=9)
    >>> bounds, errors = dpjax.coupling.total_variation_bounds(meetings, np.arange(5))
    >>> bounds.tolist()
    [2.0, 1.0, 0.5, 0.25, 0.0]
    """
    check_meetings(meetings).require_all("an upper bound")
    remedy = "Pass how many steps the chain has made."
    check_array("times", times, lambda array: (array >= 0) & (array.ndim == 1), "numbers [times] of at least 0", remedy)
    gaps = meetings.times[:, None] - meetings.lag - np.asarray(times)[None]
    terms = np.maximum(0.0, np.ceil(gaps / meetings.lag))
    return terms.mean(axis=0), terms.std(axis=0) / np.sqrt(len(terms))


def check_meetings(meetings: Meetings) -> Meetings:
    """The meetings, or an error."""
    check_instance("meetings", meetings, Meetings, "Pass the result of dpjax.coupling.meeting_times.")
    return meetings


@names_arguments
def suggest_k_m(meetings: Meetings, *, quantile: float = 0.95, multiple: int = 10) -> tuple[int, int]:
    """The start k and end m of the averaging window: a large quantile of the meeting times, and a multiple of it.

    After k steps most pairs need no correction, and a long window makes the discarded steps a small fraction: Jacob,
    O'Leary and Atchadé (2020), Section 3.1.

    Parameters
    ----------
    meetings
        Those of `meeting_times`; censored pairs count as met later than any other.
    quantile
        The quantile of the meeting times that, less the lag, is k.
    multiple
        The ratio m / k.

    Raises
    ------
    ValueError
        If the quantile is not below the share of pairs that met.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> from dpjax.coupling import Meetings
    >>> dpjax.coupling.suggest_k_m(Meetings(np.array([2, 3, 5, 2]), np.ones(4, bool), lag=1, max_steps=9))
    (4, 40)
    """
    check_meetings(meetings)
    check_number("quantile", quantile)
    check_array("quantile", quantile, np.isfinite, "a number above 0", "Pass a share of pairs, such as 0.95.")
    check_count("multiple", multiple)
    if not 0 < quantile <= meetings.met.mean():
        remedy = "Run the pairs again with a larger max_steps."
        fail("quantile", quantile, f"a number in (0, {meetings.met.mean()}], the share of pairs that met", remedy)
    times = np.where(meetings.met, meetings.times.astype(float), np.inf)
    found = np.quantile(times, quantile, method="inverted_cdf")
    k = max(int(found) - meetings.lag, 1)
    return k, multiple * k


@names_arguments
def convergence_rate(
    meetings: Meetings,
    rng: np.random.Generator,
    *,
    num_bootstrap: int = 1000,
    level: float = 0.95,
    smallest: float = 0.01,
) -> Rate:
    """The geometric rate r at which P(τ > t) falls, by least squares of log P̂(τ > t) on t.

    As in Xiong and Ju (2025), Appendix B.2. It bounds the chain's own rate from above if τ has a geometric tail.
    Censored pairs count as not met up to the cap.

    Parameters
    ----------
    meetings
        Those of `meeting_times`.
    rng
        The generator for resampling the pairs.
    num_bootstrap
        The number of bootstrap samples.
    level
        The coverage of the percentile interval.
    smallest
        The smallest P̂(τ > t) used in the fit, as few pairs determine smaller ones.

    Raises
    ------
    TypeError, ValueError
        If `meetings` or `rng` is of another type, or a number is out of range.

    Examples
    --------
    >>> from dpjax.coupling import Meetings
    >>> from dpjax.coupling import convergence_rate
    >>> import numpy as np
    >>> waits = np.random.default_rng(1).geometric(0.2, 2_000)
    >>> rate = convergence_rate(Meetings(5 + waits, waits > 0, 5, 1_000), np.random.default_rng(2))
    >>> rate.lower < 0.8 < rate.upper
    True
    """
    check_meetings(meetings)
    check_generator(rng)
    check_count("num_bootstrap", num_bootstrap)
    check_share("level", level)
    check_share("smallest", smallest)
    rates = [slope(meetings, meetings.times, smallest)]
    for _ in range(num_bootstrap):
        rates.append(slope(meetings, rng.choice(meetings.times, len(meetings.times)), smallest))
    lower, upper = np.nanquantile(rates[1:], [(1 - level) / 2, (1 + level) / 2])
    return Rate(float(rates[0]), float(lower), float(upper))


def slope(meetings: Meetings, times: np.ndarray, smallest: float) -> float:
    """exp of the slope of log survival on t = lag, ..., by least squares."""
    last = meetings.max_steps if meetings.num_censored else int(times.max())
    grid = np.unique(np.linspace(meetings.lag, last - 1, 2048).astype(int))
    survival = 1 - np.searchsorted(np.sort(times), grid, side="right") / len(times)
    kept = survival > smallest
    if kept.sum() < 2:
        return 0.0 if not kept.any() else float("nan")
    return float(np.exp(np.polyfit(grid[kept], np.log(survival[kept]), 1)[0]))
