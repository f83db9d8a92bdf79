"""Confidence intervals: by the normal approximation, by the profile of the likelihood, and by the parametric bootstrap.

Fits that hold one quantity, and fits to simulated releases, are each made as one batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_methods
from dpjax._util.validation import fail
from dpjax.base import Key
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import Summary, tabulate
from dpjax.likelihood.imputed import Imputed
from dpjax.likelihood.newton import Constraint, Optimum, apply, climb, jackknife
from dpjax.likelihood.surface import Surface
from dpjax.mechanisms.base import parts_of
from dpjax.release import PrivateRelease

__all__ = ["ConfidenceIntervals", "IntervalEnds", "bootstrap_ends", "check_resampling", "profile_ends", "wald_ends"]

REACHES = (0.5, 1.0, 1.5, 2.2)
"""The points of a profile, in half widths of the normal approximation on each side."""

PROFILE_PRECISION, REFIT_PRECISION = 0.1, 0.2
"""Monte Carlo errors in standard errors: a fifth adds two per cent to the spread of bootstrap estimates."""

REFIT_CHAINS = 8
"""Chains of each of many fits side by side."""

PROFILE_STEPS, REFIT_STEPS = 8_192, 4_096
"""How many sweeps each of them makes at most."""


class IntervalEnds(NamedTuple):
    """The ends [p] of intervals, their Monte Carlo errors, and remarks.

    Attributes
    ----------
    lower
        The lower ends.
    upper
        The upper ends.
    mcse_lower
        The errors of the lower ends.
    mcse_upper
        Those of the upper ends.
    remarks
        What is to be known of them.
    """

    lower: np.ndarray
    upper: np.ndarray
    mcse_lower: np.ndarray
    mcse_upper: np.ndarray
    remarks: tuple[str, ...] = ()


@names_methods
@dataclass(frozen=True, eq=False)
class ConfidenceIntervals:
    """Confidence intervals of every parameter and derived quantity.

    Parameters
    ----------
    lower
        The lower ends, by name.
    upper
        The upper ends.
    mcse_lower
        The Monte Carlo errors of the lower ends.
    mcse_upper
        Those of the upper ends.
    level
        The probability of coverage that is aimed at.
    method
        ``"wald"``, ``"profile"`` or ``"bootstrap"``.
    remarks
        What is to be known of them.
    labels
        The names of the entries, where levels have names.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> fit = dpjax.maximum_likelihood(jax.random.key(1), model, release, progress=False)
    >>> intervals = fit.confidence_interval(0.9)
    >>> bool(intervals.lower["mean"] < fit.estimate["mean"] < intervals.upper["mean"])
    True
    """

    lower: dict[str, np.ndarray]
    upper: dict[str, np.ndarray]
    mcse_lower: dict[str, np.ndarray]
    mcse_upper: dict[str, np.ndarray]
    level: float
    method: str
    remarks: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict, kw_only=True)

    def summary(self) -> Summary:
        """A table with one row for each number."""
        columns = {part: getattr(self, part) for part in ("lower", "upper", "mcse_lower", "mcse_upper")}
        figures = {name: {part: column[name] for part, column in columns.items()} for name in self.lower}
        note = "\n".join((f"{100 * self.level:g} % intervals, {self.method}", *self.remarks))
        return tabulate(figures, note, self.labels)

    def __repr__(self) -> str:
        return str(self.summary())


def wald_ends(
    estimate: np.ndarray, errors: np.ndarray, replicates: tuple[np.ndarray, np.ndarray], level: float
) -> IntervalEnds:
    """Estimates [p] plus and minus so many standard errors [p], with replicates [group, p] of both."""
    factor = scipy.stats.norm.ppf((1 + level) / 2)
    estimates, widths = replicates
    ends = (estimate - factor * errors, estimate + factor * errors)
    return IntervalEnds(*ends, jackknife(estimates - factor * widths), jackknife(estimates + factor * widths))


class Path(NamedTuple):
    """Fits that hold one quantity each.

    Attributes
    ----------
    places
        Which quantity each fit holds [fit].
    held
        At which value [fit].
    starts
        The start of each fit [fit, k].
    constant
        Which quantities are the same at all starts [p], such as structural zeros.
    """

    places: np.ndarray
    held: np.ndarray
    starts: np.ndarray
    constant: np.ndarray

    def hold(self, surface: Surface) -> Callable[[np.ndarray], Constraint]:
        """What each fit holds, for `climb`."""

        def hold(vectors: np.ndarray) -> Constraint:
            values, slopes = surface.natural(vectors)
            fits = np.arange(len(self.places))
            return Constraint(slopes[fits, self.places], self.held - values[fits, self.places])

        return hold

    def find_ends(self, estimate: np.ndarray, slopes: np.ndarray, drop: float) -> np.ndarray:
        """The ends [p, 2] around an estimate [p], by the slopes of the profile [fit]."""
        own = [self.places == place for place in range(len(estimate))]
        ends = [find_ends(one, self.held[at], slopes[at], drop) for one, at in zip(estimate, own, strict=True)]
        return np.where(self.constant[:, None], estimate[:, None], ends)


def profile_ends(surface: Surface, key: Key, fitted: Optimum, level: float, num_steps: int) -> IntervalEnds:
    """The ends of the values that a likelihood-ratio test of this level does not reject.

    The slope of the profile log-likelihood in a quantity is the multiplier of the fits that hold it. It is interpolated
    between them, and its integral from the estimate on is the log-likelihood lost.
    """
    path, few = lay_path(surface, fitted, np.sqrt(scipy.stats.chi2.ppf(level, 1))), with_few_chains(surface)
    count = len(path.places)
    found = climb(
        few,
        key,
        surface.repeat(count),
        path.starts,
        few.copy(fitted.chains, count),
        **few.settings(PROFILE_PRECISION, min(num_steps, PROFILE_STEPS)),
        hold=path.hold(surface),
        nearby=np.linalg.inv(fitted.solution.covariance[0]),
    )
    estimate, _ = surface.natural(fitted.vectors[0])
    drop = scipy.stats.chi2.ppf(level, 1) / 2
    ends = path.find_ends(estimate, found.solution.multiplier, drop)
    others = np.array([path.find_ends(estimate, each, drop) for each in found.replicates[1].multiplier])
    known = np.isfinite(ends)
    middle = np.where(known, ends, 0.0)
    errors = np.where(known, jackknife(np.where(known & np.isfinite(others), others, middle)), np.nan)
    (lower, upper), (lower_error, upper_error) = ends.T, errors.T
    return IntervalEnds(lower, upper, lower_error, upper_error, remarks_of(ends, found))


def with_few_chains(surface: Surface) -> Surface:
    """The likelihood with as few chains as many fits side by side have."""
    return replace(surface, num_chains=REFIT_CHAINS) if isinstance(surface, Imputed) else surface


def remarks_of(ends: np.ndarray, found: Optimum) -> tuple[str, ...]:
    """What is to be known of ends [p, 2] and of the fits that they come from."""
    remarks = []
    if not np.all(np.isfinite(ends)):
        remarks.append("Where an end is infinite the likelihood does not fall enough within the range looked at.")
    if not np.all(found.settled):
        missing = f"{np.sum(~found.settled)} of {len(found.settled)} fits"
        remarks.append(f"{missing} did not reach the precision asked for: pass more num_steps.")
    return tuple(remarks)


def lay_path(surface: Surface, fitted: Optimum, half_width: float) -> Path:
    """Fits on both sides of the estimate, along the directions in which the normal approximation has its profile."""
    vector, covariance = fitted.vectors[0], fitted.solution.covariance[0]
    centre, slopes = surface.natural(vector)
    along = apply(covariance[None], slopes)
    size = np.sqrt(np.maximum(np.sum(along * slopes, axis=-1, keepdims=True), 1e-300))
    reaches = half_width * np.array([sign * reach for sign in (-1, 1) for reach in REACHES])
    starts = vector + reaches[None, :, None] * (along / size)[:, None]
    places = np.repeat(np.arange(len(slopes)), len(reaches))
    starts = starts.reshape(-1, starts.shape[-1])
    values = surface.natural(starts)[0]
    held = values[np.arange(len(places)), places]
    # Far out numbers may overflow: such a fit is made at the estimate, where it says nothing.
    fine = np.isfinite(held)
    constant = np.max(np.abs(values - centre), axis=0) <= 8 * jnp.finfo(float).eps * np.abs(centre)
    return Path(places, np.where(fine, held, centre[places]), np.where(fine[:, None], starts, vector), constant)


def find_ends(estimate: float, held: np.ndarray, slopes: np.ndarray, drop: float) -> tuple[float, float]:
    """Where the integral of the slopes has fallen by `drop` on both sides; infinite if it does not fall so far."""
    places, order = np.unique(np.append(held, estimate), return_index=True)
    if len(places) == 1:
        return -np.inf, np.inf
    lost = scipy.interpolate.PchipInterpolator(places, np.append(slopes, 0.0)[order]).antiderivative()
    excess = [float(lost(estimate) - lost(place) - drop) for place in (places[0], places[-1])]

    def end(last: float, beyond: float, infinite: float) -> float:
        if beyond < 0:
            return infinite
        return float(
            scipy.optimize.brentq(lambda place: lost(estimate) - lost(place) - drop, *sorted((estimate, last)))
        )

    return end(places[0], excess[0], -np.inf), end(places[-1], excess[1], np.inf)


def check_resampling(release: PrivateRelease) -> None:
    """Raise if releases like this one cannot be simulated, as totals are known."""
    summed = release.summed
    if summed is None:
        return
    parts = [mechanism for mechanism, _ in parts_of(summed.mechanism, len(summed.observed))]
    if any(part.sums.known or part.sums.reveals for part in parts):
        remedy = "Pass 'profile': new records would have other totals."
        fail("method", "'bootstrap' with known totals", "a release all of whose values are noisy", remedy)


def bootstrap_ends(
    surface: Surface, key: Any, fitted: Optimum, level: float, num_refits: int, num_steps: int
) -> IntervalEnds:
    """The quantiles of estimates [refit, p] from releases simulated at the estimate."""
    simulate_key, climb_key = key
    few = with_few_chains(surface)
    values, chains = few.simulate(simulate_key, fitted.vectors[0], num_refits)
    starts = np.repeat(fitted.vectors, num_refits, axis=0)
    found = climb(
        few,
        climb_key,
        values,
        starts,
        chains,
        **few.settings(REFIT_PRECISION, min(num_steps, REFIT_STEPS)),
        nearby=np.linalg.inv(fitted.solution.covariance[0]),
    )
    estimates, _ = surface.natural(found.vectors)
    tail = (1 - level) / 2
    lower, upper = (quantile_with_error(estimates, share) for share in (tail, 1 - tail))
    return IntervalEnds(lower[0], upper[0], lower[1], upper[1], remarks_of(np.zeros((1, 2)), found))


def quantile_with_error(estimates: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The quantile [p] of estimates [refit, p], and half the distance between those a standard error apart."""
    error = np.sqrt(share * (1 - share) / len(estimates))
    low, high = (np.quantile(estimates, np.clip(share + sign * error, 0, 1), axis=0) for sign in (-1, 1))
    return np.quantile(estimates, share, axis=0), (high - low) / 2
