"""The result of the invariance test: parameters before and after exact sweeps, p-values, and a description."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from dpjax._util.lazy import implemented_by
from dpjax._util.spelling import names_methods
from dpjax.diagnostics.summary import Summary, entry_names
from dpjax.sampler_tests.drifts import (
    TAIL,
    are_constant,
    columns,
    covariance_over,
    rank_scores,
    ratio,
    score_drifts,
)

SIGNIFICANT = 0.01
"""Level of the test: correct draws are rejected in at most one of a hundred runs."""

MAX_CORRELATION = 0.5
"""Largest correlation of ends with starts for a conclusive result: above, most of an error would remain."""

POWER = 0.9
"""Probability of detecting a drift of the reported size."""

TESTS = ("mean", "spread", "lower", "upper")


class Estimates(NamedTuple):
    """Differences of unbiased estimates of the means and mean squares from those of the draws, and errors [2, row].

    The parameters are standardised by the mean and sd of the draws.
    """

    drift: np.ndarray
    error: np.ndarray


@names_methods
@dataclass(frozen=True, eq=False, repr=False)
class InvarianceTestResult:
    """Parameters of chains before and after sweeps of an exact kernel, and whether their distribution has changed.

    Parameters
    ----------
    draws
        The tested draws by name [chain, draw, ...].
    before
        The draws at which exact chains started [start, ...].
    after
        The ends of these chains [start, ...].
    num_sweeps
        Number of exact sweeps per chain.
    num_warmup
        Number of imputation sweeps before them, with the parameters fixed.
    settled
        Whether these were enough for the records to converge. If not, a drift may come from the records.
    unbiased
        The differences of the exact means and mean squares, by coupled chains; None if not requested.

    Examples
    --------
    >>> from dpjax.sampler_tests.invariance_test_result import InvarianceTestResult
    >>> import numpy as np
    >>> draws = np.random.default_rng(2).normal(size=(4, 500))
    >>> before, after = draws[:, :100].ravel(), draws[:, 400:].ravel()
    >>> sweeps = {"num_sweeps": 50, "num_warmup": 10, "settled": True}
    >>> InvarianceTestResult({"mean": draws}, {"mean": before}, {"mean": after}, **sweeps).outcome
    'no drift'
    >>> InvarianceTestResult({"mean": draws}, {"mean": before}, {"mean": after + 1.0}, **sweeps).outcome
    'wrong'
    """

    draws: dict[str, np.ndarray]
    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    num_sweeps: int
    num_warmup: int
    settled: bool
    unbiased: Estimates | None = None

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The names of the scalar parameters."""
        return tuple(row for name, draws in self.after.items() for row in entry_names(name, {name: draws[0]}))

    @cached_property
    def standardised(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draws [chain, draw, row], starts and ends [start, row], less the mean of the draws and over their sd.

        Constants, such as the diagonal of a correlation matrix, are 0.
        """
        draws, before, after = columns(self.draws, 2), columns(self.before, 1), columns(self.after, 1)
        centre, scale = np.mean(draws, axis=(0, 1)), np.std(draws, axis=(0, 1))
        # Constant draws have no scale.
        scale = np.where(scale > 0, scale, np.where(np.ptp(after, axis=0) > 0, np.std(after, axis=0), 1.0))
        draws, before, after = (
            (each - centre) / np.where(self.fixed, np.inf, scale) for each in (draws, before, after)
        )
        return draws, before, after

    @cached_property
    def fixed(self) -> np.ndarray:
        """Which scalar parameters are equal at all draws and ends, up to rounding [row]."""
        return are_constant(self.draws, self.after)

    @cached_property
    def comparison(self) -> tuple[np.ndarray, np.ndarray]:
        """The differences of the means of functions between ends and draws, and their errors, each [test, row].

        The functions are the standardised parameter; its square; and whether it is below the 10 %, or above the 90 %,
        quantile of the draws.
        """
        return score_drifts(*self.standardised)

    @cached_property
    def scores(self) -> np.ndarray:
        """The test statistics, drifts of functions of ranks over their errors [test, row]; see `rank_scores`."""
        return rank_scores(*self.standardised)

    @property
    def p_values(self) -> np.ndarray:
        """The p-values of t tests that the means of ranks have not changed [test, row], without correction."""
        return 2 * scipy.stats.t.sf(np.abs(self.scores), self.num_starts - 2)

    @property
    def p_value(self) -> float:
        """The smallest p-value times the number of tests (Bonferroni), including those of unbiased estimates."""
        smallest = np.min(self.p_values)
        if self.unbiased is not None:
            smallest = min(smallest, 2 * scipy.stats.norm.sf(np.max(np.abs(ratio(*self.unbiased)))))
        return float(min(1.0, smallest * self.num_tests))

    @property
    def num_tests(self) -> int:
        """The number of tests."""
        return self.scores.size + (0 if self.unbiased is None else self.unbiased.drift.size)

    @property
    def num_starts(self) -> int:
        """The number of chains."""
        return len(self.standardised[1])

    @cached_property
    def correlation(self) -> np.ndarray:
        """The correlation of ends with starts [row]: near 1 if chains have hardly moved, NaN for constants."""
        _, before, after = self.standardised
        correlation = covariance_over(before.std(axis=0) * after.std(axis=0), before, after)
        return np.where(self.fixed, np.nan, correlation)

    @property
    def detectable(self) -> np.ndarray:
        """The shift of a mean, in standard deviations of the draws, that is detected with probability 0.9 [row].

        A shift decays as chains forget their starts, so that a fraction of 1 - correlation of it appears as a drift.
        """
        significant = scipy.stats.t.isf(SIGNIFICANT / (2 * self.num_tests), self.num_starts - 1)
        critical = significant + scipy.stats.norm.ppf(POWER)
        left = 1 - np.maximum(self.correlation, 0.0)
        return critical * self.comparison[1][0] / np.where(left > 0, left, np.nan)

    @property
    def outcome(self) -> Literal["no drift", "wrong", "inconclusive"]:
        """``"wrong"`` if the distribution has changed; ``"inconclusive"`` if a change could not have been detected."""
        if not self.settled:
            return "inconclusive"
        if self.p_value < SIGNIFICANT:
            return "wrong"
        still = np.all(self.fixed) or np.nanmax(self.correlation) > MAX_CORRELATION
        return "inconclusive" if still else "no drift"

    @property
    def passed(self) -> bool:
        """Whether no drift was detected, by chains that moved enough to show one."""
        return self.outcome == "no drift"

    @property
    def table(self) -> Summary:
        """Mean and sd of draws and ends, the drift, the four test statistics, and the correlation of ends with starts.

        The drift of the mean, its standard error and the detectable shift are in standard deviations of the draws. The
        test statistics are those of ranks: normal scores, their squares, and the lowest and highest fifths. The p-value
        is the smallest of the four, times the number of all tests. With unbiased estimates, their difference from the
        mean of the draws is given in the same unit.
        """
        draws, after = columns(self.draws, 2), columns(self.after, 1)
        figures = {
            "mean": draws.mean(axis=(0, 1)),
            "sd": draws.std(axis=(0, 1), ddof=1),
            "mean_after": after.mean(axis=0),
            "sd_after": after.std(axis=0, ddof=1),
            "drift": self.comparison[0][0],
            "se_drift": self.comparison[1][0],
            **{f"z_{test}": score for test, score in zip(TESTS, self.scores, strict=True)},
            "p_value": np.minimum(1.0, np.min(self.p_values, axis=0) * self.num_tests),
            "correlation": self.correlation,
            "detectable": self.detectable,
        }
        if self.unbiased is not None:
            figures |= {"unbiased": self.unbiased.drift[0], "se_unbiased": self.unbiased.error[0]}
        return Summary(self.rows, figures)

    def describe(self) -> str:
        """A description of the result."""
        made = f"{self.num_starts} chains, {self.num_sweeps} exact sweeps each"
        if not self.settled:
            return (
                f"Inconclusive: with the parameters held, the records had not settled after {self.num_warmup} sweeps. "
                f"Pass a larger num_warmup, or another imputation. ({made})"
            )
        if self.outcome == "wrong":
            return f"The draws are wrong: {self.describe_drift()} (p = {self.p_value:.1g}; {made})."
        if np.all(self.fixed):
            return f"Inconclusive: neither draws nor ends differ from each other. ({made})"
        slowest = int(np.nanargmax(self.correlation))
        if self.outcome == "inconclusive":
            return (
                f"Inconclusive: chains have moved too little; the ends of {self.rows[slowest]} still correlate by "
                f"{self.correlation[slowest]:.2f} with the starts. Pass a larger num_sweeps. ({made})"
            )
        return (
            f"No drift was seen: any shift of a mean above {np.nanmax(self.detectable):.2g} sd would have been, nine "
            f"times in ten ({made}; p = {self.p_value:.2g})."
        )

    def describe_drift(self) -> str:
        """A description of the most significant change."""
        if self.unbiased is not None:
            scores = np.abs(ratio(*self.unbiased))
            test, row = np.unravel_index(np.argmax(scores), scores.shape)
            if scores[test, row] > np.max(np.abs(self.scores)):
                what = ("mean", "mean square")[test]
                drift, error = (each[test, row] for each in self.unbiased)
                return f"an unbiased estimate of the {what} of {self.rows[row]} is off by {drift:.2g} ± {error:.1g} sd"
        test, row = np.unravel_index(np.argmax(np.abs(self.scores)), self.scores.shape)
        name, drift, error = self.rows[row], *(each[test, row] for each in self.comparison)
        if test == 0:
            return f"the mean of {name} moved by {drift:.2g} ± {error:.1g} sd"
        if test == 1:
            return f"the mean square of {name}, about its mean in units of its sd, changed by {drift:.2g} ± {error:.1g}"
        side = f"below the {TAIL:.0%}" if test == 2 else f"above the {1 - TAIL:.0%}"
        return f"the share of {name} {side} quantile changed by {100 * drift:.2g} ± {100 * error:.1g} percentage points"

    __repr__ = describe

    @implemented_by("dpjax.plot.sampler_tests.plot_verdict")
    def plot(self, *, axes: Any = None) -> Any:
        """A plot of the medians and central 90 % of draws and ends, a row for each of up to 40 scalar parameters.

        Parameters
        ----------
        axes
            Matplotlib axes to draw into; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed, by ``pip install matplotlib``.
        """
