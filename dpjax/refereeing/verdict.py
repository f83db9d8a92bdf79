"""What the referee found: parameters before and after exact sweeps, tests that their law is the same, and words."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import stats

from dpjax.summary import Summary, entry_names, tabulate

SIGNIFICANT = 0.01
"""Draws of the right posterior are called wrong in one of a hundred runs at most."""

MAX_CORRELATION = 0.5
"""Chains whose ends correlate more with their starts have kept most of what may be wrong with these."""

POWER = 0.9
"""The probability with which a drift of the size reported would have been seen."""

TAIL = 0.1
TESTS = ("mean", "spread", "lower", "upper")


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Parameters of chains before and after sweeps of an exact kernel, and whether their law has changed.

    Parameters
    ----------
    before, after
        The parameters by name [draw, ...]: the draws that chains began at, and where these chains ended.
    num_sweeps
        Exact sweeps that each chain made.
    num_warmup
        Sweeps before them, with the parameters held, that brought the records to p(records | parameters, release).
    settled
        Whether those were enough. If not, a drift may come from the records.
    """

    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    num_sweeps: int
    num_warmup: int
    settled: bool

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The names of the scalar parameters."""
        return tuple(row for name, draws in self.before.items() for row in entry_names(name, {name: draws[0]}))

    @cached_property
    def standardised(self) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends of each scalar parameter [draw, row], less the mean of the starts and over their sd."""
        before, after = columns(self.before), columns(self.after)
        centre, scale = np.mean(before, axis=0), spread(before, after)
        return (before - centre) / scale, (after - centre) / scale

    @cached_property
    def changes(self) -> np.ndarray:
        """The changes of four functions of each scalar parameter, chain by chain [test, draw, row].

        They are the standardised parameter; its square; and whether it is below the 10 %, or above the 90 %, quantile
        of the starts.
        """
        before, after = self.standardised
        low, high = np.quantile(before, (TAIL, 1 - TAIL), axis=0)

        def functions(scores: np.ndarray) -> np.ndarray:
            return np.stack([scores, scores**2, (scores < low).astype(float), (scores > high).astype(float)])

        return functions(after) - functions(before)

    @cached_property
    def scores(self) -> np.ndarray:
        """The mean changes divided by their standard errors [test, row]; 0 where nothing has changed."""
        mean, error = np.mean(self.changes, axis=1), self.errors
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(mean == 0, 0.0, mean / error)

    @property
    def errors(self) -> np.ndarray:
        """The standard errors of the mean changes [test, row]."""
        return np.std(self.changes, axis=1, ddof=1) / np.sqrt(self.num_draws)

    @property
    def p_values(self) -> np.ndarray:
        """The p-values of paired t tests that the means have not changed [test, row], each by itself."""
        return 2 * stats.t.sf(np.abs(self.scores), self.num_draws - 1)

    @property
    def p_value(self) -> float:
        """The smallest p-value times the number of tests (Bonferroni)."""
        return float(min(1.0, np.min(self.p_values) * self.p_values.size))

    @property
    def num_draws(self) -> int:
        """How many chains there were."""
        return self.changes.shape[1]

    @cached_property
    def correlation(self) -> np.ndarray:
        """The correlation of ends with starts [row]: near 1 where chains have hardly moved."""
        before, after = columns(self.before), columns(self.after)
        still = np.all(before == after, axis=0)
        covariance = np.mean((before - before.mean(axis=0)) * (after - after.mean(axis=0)), axis=0)
        product = before.std(axis=0) * after.std(axis=0)
        return np.where(still, 1.0, covariance / np.where(product > 0, product, 1.0))

    @property
    def detectable(self) -> np.ndarray:
        """The shift of a mean, in standard deviations of the draws, that would have been seen nine times in ten [row].

        A shift fades as chains forget their starts, so that a share of 1 - correlation of it is seen as a drift.
        """
        critical = stats.t.isf(SIGNIFICANT / (2 * self.scores.size), self.num_draws - 1) + stats.norm.ppf(POWER)
        left = 1 - np.maximum(self.correlation, 0.0)
        return critical * self.errors[0] / np.where(left > 0, left, np.nan)

    @property
    def outcome(self) -> Literal["no drift", "wrong", "inconclusive"]:
        """``"wrong"`` if the law has changed; ``"inconclusive"`` if it could not have been seen to change."""
        if not self.settled:
            return "inconclusive"
        if self.p_value < SIGNIFICANT:
            return "wrong"
        return "inconclusive" if np.max(self.correlation) > MAX_CORRELATION else "no drift"

    @property
    def passed(self) -> bool:
        """Whether no drift was seen, by chains that moved enough to show one."""
        return self.outcome == "no drift"

    @property
    def table(self) -> Summary:
        """Mean and sd before and after, the drift, the scores of the four tests, and how far the chains have moved.

        The drift of the mean, its standard error and the shift that would have been seen are in standard deviations of
        the draws. The scores are of the mean, the mean square, and the shares below and above the 10 % and 90 %
        quantiles of the starts; the p-value is the smallest of the four, times the number of all tests.
        """
        before, after = columns(self.before), columns(self.after)
        p_values = np.minimum(1.0, np.min(self.p_values, axis=0) * self.p_values.size)
        figures = {
            "mean": before.mean(axis=0),
            "sd": before.std(axis=0, ddof=1),
            "mean_after": after.mean(axis=0),
            "sd_after": after.std(axis=0, ddof=1),
            "drift": np.mean(self.changes[0], axis=0),
            "se_drift": self.errors[0],
            **{f"z_{test}": score for test, score in zip(TESTS, self.scores, strict=True)},
            "p_value": p_values,
            "correlation": self.correlation,
            "detectable": self.detectable,
        }
        return tabulate({row: {name: column[i] for name, column in figures.items()} for i, row in enumerate(self.rows)})

    def describe(self) -> str:
        """The verdict in words."""
        made = f"{self.num_draws} chains, {self.num_sweeps} exact sweeps each"
        if not self.settled:
            return (
                f"Inconclusive: with the parameters held, the records had not settled after {self.num_warmup} sweeps. "
                f"Pass a larger num_warmup, or another imputation. ({made})"
            )
        if self.outcome == "wrong":
            return f"The draws are wrong: {self.say_drift()} (p = {self.p_value:.1g}; {made})."
        slowest = int(np.argmax(self.correlation))
        if self.outcome == "inconclusive":
            return (
                f"Inconclusive: chains have moved too little; the ends of {self.rows[slowest]} still correlate by "
                f"{self.correlation[slowest]:.2f} with the starts. Pass a larger num_sweeps. ({made})"
            )
        return (
            f"No drift was seen: any shift of a mean above {np.max(self.detectable):.2g} sd would have been, nine "
            f"times in ten ({made}; p = {self.p_value:.2g})."
        )

    def say_drift(self) -> str:
        """The clearest of the changes in words."""
        test, row = np.unravel_index(np.argmax(np.abs(self.scores)), self.scores.shape)
        name, change, error = self.rows[row], np.mean(self.changes[test, :, row]), self.errors[test, row]
        if test == 0:
            return f"the mean of {name} moved by {change:.2g} ± {error:.1g} sd"
        if test == 1:
            return (
                f"the mean square of {name}, about its mean in units of its sd, changed by {change:.2g} ± {error:.1g}"
            )
        side = f"below the {TAIL:.0%}" if test == 2 else f"above the {1 - TAIL:.0%}"
        return (
            f"the share of {name} {side} quantile changed by {100 * change:.2g} ± {100 * error:.1g} percentage points"
        )

    __repr__ = describe

    def plot(self) -> Any:
        """A Matplotlib figure: for each parameter, the median and central 90 % of the starts and of the ends.

        Raises
        ------
        ImportError
            If matplotlib is not installed; it comes with ``pip install "dpjax[plots]"``.
        """
        from dpjax.adapters.verdicts import plot_verdict

        return plot_verdict(self)


def columns(parameters: dict[str, np.ndarray]) -> np.ndarray:
    """All scalar parameters side by side, float64 [draw, row]."""
    return np.concatenate([draws.reshape(len(draws), -1).astype(np.float64) for draws in parameters.values()], axis=1)


def spread(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The unit of each column [row]: the standard deviation of the starts, or of the ends where all starts are one."""
    scale = np.where(np.ptp(before, axis=0) > 0, before.std(axis=0, ddof=1), after.std(axis=0, ddof=1))
    return np.where(scale > 0, scale, 1.0)
