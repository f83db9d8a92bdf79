"""The result of maximum likelihood: estimates, standard errors and intervals, each with its Monte Carlo error."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import jax
import numpy as np

from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_count, check_share, fail
from dpjax.base import Key, Model
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import Summary, tabulate
from dpjax.likelihood.evidence import estimate_log_likelihood
from dpjax.likelihood.intervals import (
    ConfidenceIntervals,
    IntervalEnds,
    bootstrap_ends,
    check_resampling,
    profile_ends,
    wald_ends,
)
from dpjax.likelihood.newton import Optimum, jackknife
from dpjax.likelihood.surface import Surface
from dpjax.release import PrivateRelease

__all__ = ["Fitted", "MaximumLikelihood", "ResultKeys", "report"]

IntervalMethod = Literal["wald", "profile", "bootstrap"]

LEVEL = 0.95
"""That of the intervals in a summary."""

Named = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class ResultKeys:
    """The keys of what is computed when it is asked for."""

    log_likelihood: Key
    profile: Key
    simulate: Key
    refit: Key


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a result is made of, and what else can be computed from it.

    Parameters
    ----------
    model
        As the user knows it.
    release
        As the user knows it.
    surface
        The likelihood.
    climb
        Where the climb ended.
    keys
        For what is computed later.
    num_steps
        The largest number of sweeps of each chain in every fit.
    """

    model: Model
    release: PrivateRelease
    surface: Surface
    climb: Optimum
    keys: ResultKeys
    num_steps: int


@names_methods
@dataclass(frozen=True, eq=False)
class MaximumLikelihood:
    """The maximum-likelihood estimate from a release, for parameters and what is derived from them.

    Parameters
    ----------
    estimate
        The estimates, by name.
    standard_errors
        Roots of the diagonal of `covariance`, by name.
    covariance
        The inverse of the observed information [p, p] on the natural scale, for all numbers in the order of `rows`.
    rows
        Their names, such as ``"coef[0]"``, with the names of levels where these are known.
    mcse_estimate
        The Monte Carlo errors of the estimates.
    mcse_standard_errors
        Those of the standard errors.
    mcse_covariance
        Those of the covariance [p, p].
    num_parameters
        The number of free parameters.
    method
        How the likelihood was computed, in words.
    num_steps
        The sweeps that each chain made.
    remarks
        What is to be known: missing precision, flat directions, boundaries. Each was a warning, too.
    fitted
        What else is computed from.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> fit = dpjax.maximum_likelihood(jax.random.key(1), model, release, progress=False)
    >>> fit.rows, fit.covariance.shape, fit.num_parameters
    (('mean',), (1, 1), 1)
    >>> bool(fit.mcse_estimate["mean"] < 0.05 * fit.standard_errors["mean"])
    True
    """

    estimate: Named
    standard_errors: Named
    covariance: np.ndarray
    rows: tuple[str, ...]
    mcse_estimate: Named
    mcse_standard_errors: Named
    mcse_covariance: np.ndarray
    num_parameters: int
    method: str
    num_steps: int
    remarks: tuple[str, ...]
    fitted: Fitted

    @property
    def labels(self) -> Labels:
        """The names of the entries of the estimates, one tuple for each axis, where levels have names."""
        model, release = self.fitted.model, self.fitted.release
        return model.entry_labels(release.level_names | model.level_names)

    @property
    def log_likelihood(self) -> float:
        """The log-density of the release at the estimate; computed when it is first asked for, and then kept.

        By imputation it is an estimate by particles that are tempered from the model's records to the release.
        """
        return self._log_likelihood[0]

    @property
    def log_likelihood_error(self) -> float:
        """The standard error of `log_likelihood` by simulation."""
        return self._log_likelihood[1]

    @cached_property
    def _log_likelihood(self) -> tuple[float, float]:
        made = self.fitted
        parts = made.keys.log_likelihood, made.surface, made.model, made.release, made.climb.vectors[0]
        return estimate_log_likelihood(*parts)

    def confidence_interval(
        self, level: float = LEVEL, method: IntervalMethod = "wald", *, num_refits: int = 200
    ) -> ConfidenceIntervals:
        """Confidence intervals of every number.

        Parameters
        ----------
        level
            The probability of coverage aimed at.
        method
            ``"wald"`` is the estimate plus and minus standard errors. ``"profile"`` has the values that the
            likelihood-ratio test does not reject, by fits that hold one quantity. ``"bootstrap"`` has quantiles of the
            estimates from releases that are simulated at the estimate.
        num_refits
            How many releases are simulated for the bootstrap.

        Raises
        ------
        TypeError, ValueError
            If the level is no share, there is no such method, or totals are known, which no bootstrap can redraw.
        """
        check_share("level", level)
        if method not in get_args(IntervalMethod):
            expected = " or ".join(map(repr, get_args(IntervalMethod)))
            fail("method", repr(method), expected, "Leave it out for 'wald'.")
        check_count("num_refits", num_refits, "Pass a whole number of at least 20.", least=20)
        ends = self._ends(level, method, num_refits)
        lower, upper, lower_error, upper_error = (self.fitted.surface.unravel(part) for part in ends[:4])
        return ConfidenceIntervals(
            lower, upper, lower_error, upper_error, level, method, ends.remarks, labels=self.labels
        )

    def _ends(self, level: float, method: IntervalMethod, num_refits: int) -> IntervalEnds:
        made = self.fitted
        if method == "wald":
            return wald_ends(*natural_scale(made.surface, made.climb), level)
        if method == "profile":
            return profile_ends(made.surface, made.keys.profile, made.climb, level, made.num_steps)
        check_resampling(made.release)
        keys = made.keys.simulate, made.keys.refit
        return bootstrap_ends(made.surface, keys, made.climb, level, num_refits, made.num_steps)

    def summary(self) -> Summary:
        """A table with one row for each number: estimate, standard error, 95 % Wald interval, and Monte Carlo errors.

        The likelihood is printed below the table once it was asked for.
        """
        wald = self.confidence_interval(LEVEL)
        ends = f"{50 * (1 - LEVEL):g}%", f"{50 * (1 + LEVEL):g}%"
        columns = {"estimate": self.estimate, "se": self.standard_errors, ends[0]: wald.lower, ends[1]: wald.upper}
        columns |= {"mcse_estimate": self.mcse_estimate, "mcse_se": self.mcse_standard_errors}
        figures = {name: {column: named[name] for column, named in columns.items()} for name in self.estimate}
        note = "\n".join([f"maximum likelihood, {self.method}", *self._told(), *self.remarks])
        return tabulate(figures, note, self.labels)

    def _told(self) -> list[str]:
        if "_log_likelihood" not in self.__dict__:
            return []
        return [f"log-likelihood {self.log_likelihood:.2f} (Monte Carlo error {self.log_likelihood_error:.2g})"]

    def __repr__(self) -> str:
        return f"MaximumLikelihood\n{self.summary()}"


def natural_scale(surface: Surface, climb: Optimum) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Estimates [p], standard errors [p], and the replicates [group, p] of both."""
    estimate, covariance = natural_covariance(surface, climb.vectors[0], climb.solution.covariance[0])
    vectors, solutions = climb.replicates
    estimates, covariances = natural_covariance(surface, vectors[:, 0], solutions.covariance[:, 0])
    return estimate, diagonal_root(covariance), (estimates, diagonal_root(covariances))


def natural_covariance(surface: Surface, vectors: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers [..., p] on the natural scale, and their covariance [..., p, p] by the delta method."""
    values, slopes = surface.natural(vectors)
    return values, slopes @ covariances @ np.swapaxes(slopes, -1, -2)


def diagonal_root(covariance: np.ndarray) -> np.ndarray:
    """Standard errors [..., p]."""
    return np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))


def report(fitted: Fitted, method: str, rows: tuple[str, ...], remarks: tuple[str, ...]) -> MaximumLikelihood:
    """The result of a climb."""
    surface, climb = fitted.surface, fitted.climb
    vectors, solutions = climb.replicates
    estimate, covariance = natural_covariance(surface, climb.vectors[0], climb.solution.covariance[0])
    estimates, covariances = natural_covariance(surface, vectors[:, 0], solutions.covariance[:, 0])
    errors = diagonal_root(covariances)
    parts: list[Any] = [estimate, diagonal_root(covariance), jackknife(estimates), jackknife(errors)]
    named = [surface.unravel(part) for part in parts]
    return MaximumLikelihood(
        estimate=named[0],
        standard_errors=named[1],
        covariance=covariance,
        rows=rows,
        mcse_estimate=named[2],
        mcse_standard_errors=named[3],
        mcse_covariance=jackknife(covariances),
        num_parameters=climb.vectors.shape[-1],
        method=method,
        num_steps=climb.num_steps,
        remarks=remarks,
        fitted=fitted,
    )


def split_keys(key: Key) -> ResultKeys:
    """The keys of what is computed later."""
    return ResultKeys(*jax.random.split(key, 4))
