"""Draws from a posterior and what can be asked of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpjax._util.validation import check_count, check_key, fail
from dpjax.base import Key, Model, Parameters
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.problem import Problem, problem_of
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.diagnostics.frames import to_frame
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.models.data_sets import NUMBER
from dpjax.models.simulation import GibbsState, draw_values, parameter_shapes
from dpjax.posterior.completed import DataSets, complete, default_size, synthesize
from dpjax.posterior.concatenate import join_runs
from dpjax.posterior.prediction import Prediction, make_prediction
from dpjax.posterior.reports import APPROXIMATE, advise, describe, warn_of
from dpjax.posterior.saving import Saved
from dpjax.posterior.streaming import StreamingDraws
from dpjax.release import PrivateRelease
from dpjax.release.unknown_count import is_unknown

NOT_KEPT = "draws were not kept: quantiles by a sketch, effective sizes and R-hat by batches"

Predictor = Callable[[Key, Model, Any, Parameters], np.ndarray]
"""``(key, model, release, parameters [draw, ...]) -> values [draw, ...]``."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Saved):
    """Draws from p(parameters | release).

    It can be pickled. Of model, release and plan a pickle holds what can be built again: a part with functions that are
    not at the top of a module is left out, and what needs it says so.

    Parameters
    ----------
    draws
        Arrays [chain, draw, ...] by name: the parameters, and the model's derived quantities.
    info
        Reports: ``"acceptance_rate"`` of the imputation [chain, draw], averaged over the steps between draws;
        ``"num_nonfinite"`` [chain, draw], how many proposals and moves were undone in them because a density, parameter
        or record was not finite; ``"acceptance_rate_per_record"`` [chain, n], proposals accepted per sweep of sampling;
        reports of the parameter kernels [chain, draw] under ``"centred_..."`` and ``"interweaving_..."``. With
        refreshes also ``"refresh_acceptance_rate"``, ``"num_sweeps"`` and ``"num_refreshes"`` [chain, draw]; a draw
        for which none was made has the rates of the latest one.
    collected
        What `collect` took, leaves [chain, draw, ...]; None if nothing was asked for.
    interrupted
        Whether the run stopped before its last draw.
    model
        The model that the draws were made from.
    release
        The release that they were made from.
    final_states
        The states of the chains after the last draw, leaves [chain, ...].
    tuning
        The adapted tuning, for `dpjax.gibbs`; None where no step of the sweep uses one.
    plan
        The sweep that the draws were made by, with what was left to the warm-up; for `dpjax.gibbs`.
    approximate
        Whether the draws are from the posterior under the Normal approximation of the sum, by `dpjax.sample_clt`. No
        records were then imputed: states, tuning and plan are None, and `info` has the reports of that function.
    predictor
        ``(key, model, release, parameters [draw, ...]) -> values [draw, ...]``: how releases are predicted; None where
        records are drawn for them.
    keys
        Texts that identify the key of each chain [chain], for `concat`.
    ended
        Why the run ended where it did, if `until` was given.
    streaming
        A summary of the draws where these were not kept, with ``keep="summary"``; whatever needs draws is then refused,
        and `info` has means and totals over the draws, [chain, 1].
    settings
        What the run was asked for, by name, such as the imputation before warm-up chose what that left open and `thin`;
        for `concat`.
    refresh
        What refreshes propose from, and how often they and sweeps were made; None where there are none.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
    >>> posterior.draws["mean"].shape, posterior.info["acceptance_rate"].shape
    ((4, 200), (4, 200))
    >>> posterior.plan.interweave
    True
    """

    draws: dict[str, np.ndarray]
    info: dict[str, np.ndarray]
    collected: Any
    interrupted: bool
    model: Model
    release: PrivateRelease
    final_states: GibbsState | None
    tuning: Tuning | None
    plan: SweepPlan | None
    approximate: bool = False
    predictor: Predictor | None = None
    keys: tuple[str, ...] = ()
    ended: str = ""
    streaming: StreamingDraws | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    refresh: RefreshTuning | None = None

    PARTS = ("model", "release", "plan")

    @staticmethod
    def concat(posteriors: Sequence["Posterior"]) -> "Posterior":
        """The posterior of independent runs, such as those of a job array, with the chains of all.

        Parameters
        ----------
        posteriors
            Of runs that differ in the key alone. What the warm-up chose may differ too; `plan` and `tuning` are those
            of the first. A run with a checkpoint need not be sent around: where it has ended, `dpjax.sample` with the
            same arguments reads its posterior from the file.

        Raises
        ------
        TypeError, ValueError
            If two chains have the same key, and so are one chain; or model, release, what the runs were asked for
            (kernels with their options, warm-up, thinning) or the numbers of draws differ, or what was collected.
        """
        joined: Posterior = join_runs(posteriors, Posterior)
        return joined

    def describe(self) -> str:
        """How many draws there are, of what, and the sweep that they were made by."""
        return describe(self)

    def __repr__(self) -> str:
        return f"Posterior: {self.describe()}"

    def summary(self, *, names: Sequence[str] | None = None, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd, quantiles, their Monte Carlo standard errors, effective sample sizes and R-hat of every parameter.

        Parameters
        ----------
        names
            The parameters or entries of them to show, such as ``["coef[1]", "variance"]``; by default all. What is
            warned of is looked for in all.
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.

        Raises
        ------
        TypeError, ValueError
            If `quantiles` are not numbers between 0 and 1, in rising order, or there is no parameter of a name.

        Warns
        -----
        UserWarning
            If some R-hat is above 1.01, some effective sample size below 400 or smaller than that of the first half of
            the draws, a chain never moved, or many proposals or moves were undone because something was not finite: do
            not trust the numbers then.

        Notes
        -----
        Good values do not prove convergence: chains may all have missed the same region. Of draws that were not kept
        the effective size is that of the mean, by batches of several widths, NaN with fewer than 640 draws a chain; and
        R-hat is without ranks.
        """
        if self.streaming is None:
            figures = {name: summarize(draws, quantiles) for name, draws in self.draws.items()}
            table = tabulate(figures, APPROXIMATE if self.approximate else "")
        else:
            table = tabulate(self.streaming.figures(quantiles), NOT_KEPT)
        warn_of(self, table)
        return table if names is None else table.take(names)

    @property
    def remedy(self) -> str:
        """What may help where chains mix poorly, beyond what is already done."""
        return advise(self)

    def to_arviz(self) -> Any:
        """The draws, reports and released value for ArviZ: InferenceData for arviz 0.23, a DataTree from 1.0 on.

        Raises
        ------
        ImportError
            If arviz is not installed; it comes with ``pip install "dpjax[plots]"``.
        """
        from dpjax.adapters.arviz import to_arviz

        return to_arviz(self)

    def to_frame(self) -> Any:
        """The draws as a pandas DataFrame: a row for each draw, a column for each number, such as ``coef[0]``.

        ``posterior.to_frame().to_csv(path)`` writes them for other programs.

        Raises
        ------
        ImportError
            If pandas is not installed.
        TypeError
            If the draws were not kept.
        """
        draws = dict(self.draws)
        chain, draw = np.indices(self.info["acceptance_rate"].shape)
        return to_frame(draws, 2, {"chain": chain.ravel(), "draw": draw.ravel()})

    def completed(self, key: Key, num: int) -> DataSets:
        """Completed data sets: the confidential records as imputed, draws from p(parameters, records | release).

        The chains go on by the sweeps and refreshes that the draws were made by, each as many steps between two data
        sets as give about one effective draw of the slowest parameter, and of moments and contrasts of the records in
        a pilot run; a warning says where that is more than 1,000. What is published of such data reveals no more than
        the release. Analyses of them are put together by ``data.combine(estimates, covariances)``.

        Parameters
        ----------
        key
            One typed key.
        num
            How many data sets. Twenty are enough for most multiple imputation of records of which little is known.

        Raises
        ------
        TypeError, ValueError
            If the posterior is approximate and has no imputed records, or the number is not positive.

        Examples
        --------
        >>> import dpjax
        >>> import jax
        >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
        >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
        >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
        >>> data = posterior.completed(jax.random.key(2), 20)
        >>> data, data[0]["y"].shape
        (20 completed data sets of y, (10,))
        >>> means = [one["y"].mean() for one in data]
        >>> low, high = data.combine(means, [one["y"].var(ddof=1) / 10 for one in data]).confidence_interval(0.9)
        """
        return complete(self, key, num)

    def synthetic(self, key: Key, num: int, n: int | None = None) -> DataSets:
        """Synthetic data sets: new records from the model at evenly spaced draws of the parameters.

        They have what the model knows of the records, and no more. Analyses of them are put together by
        ``data.combine(estimates, covariances)``.

        Parameters
        ----------
        key
            One typed key.
        num
            How many data sets, at most as many as there are draws.
        n
            How many records each has; by default as many as the confidential data. Only then `combine` is right.

        Raises
        ------
        TypeError, ValueError
            If a number is not positive, there are fewer draws, or the number of records is unknown and none is given.
        """
        check_key("key", key)
        _, parameters = self._take_parameters(check_count("num", num))
        return synthesize(key, self.model, parameters, default_size(self) if n is None else n)

    def predict(self, key: Key, num_draws: int | None = None) -> Prediction:
        """Releases drawn from the posterior predictive: for each draw new records, and a new release of them.

        Where the number of records is unknown, there are as many as in the draw.

        Where the released value is far out among the predicted ones, the model or the mechanism does not fit.

        For an approximate posterior their sum is drawn, and no records.

        Parameters
        ----------
        key
            One typed key.
        num_draws
            How many draws to use, evenly spaced among those of all chains; by default all.
        """
        check_key("key", key)
        chosen, parameters = self._take_parameters(num_draws)
        if is_unknown(self.release):
            parameters[NUMBER] = merge(self.draws[NUMBER])[chosen]
        if self.predictor is not None:
            return make_prediction(self.predictor(key, self.model, self.release, parameters), self.released)
        source = self if self.plan is None else self.problem
        values = draw_values(key, source.model, source.release, parameters, len(chosen))
        # The count form fills a value up to the length of the sums.
        return make_prediction(values[:, : len(self.released)], self.released)

    @property
    def released(self) -> np.ndarray:
        """The value of the release [d], or [n, ...]."""
        return np.asarray(self.release.observed)

    @cached_property
    def problem(self) -> Problem:
        """Model, release and plan, with the form of the latent data; of an approximate posterior there is none."""
        assert self.plan is not None, "an approximate posterior has no latent data"
        return problem_of(self.model, self.release, self.plan)

    def _take_parameters(self, num_draws: int | None) -> tuple[np.ndarray, Parameters]:
        """The numbers [draw] of evenly spaced draws among those of all chains, and their parameters [draw, ...]."""
        draws = {name: merge(self.draws[name]) for name in parameter_shapes(self.model)}
        chosen = self.choose_draws(num_draws)
        return chosen, {name: leaf[chosen] for name, leaf in draws.items()}

    def choose_draws(self, num_draws: int | None) -> np.ndarray:
        """The numbers [draw] of evenly spaced draws among those of all chains."""
        available = self.info["acceptance_rate"].size
        wanted = available if num_draws is None else check_count("num_draws", num_draws)
        if wanted > available:
            fail("num_draws", wanted, f"at most {available}, the draws there are", "Ask for fewer, or sample more.")
        return np.linspace(0, available - 1, wanted).round().astype(int)

    def plot_forest(
        self,
        beside: Mapping[str, Any] | None = None,
        *,
        names: Sequence[str] | None = None,
        level: float = 0.95,
        axes: Any = None,
    ) -> Any:
        """Median, central half and central `level` of each parameter, beside other answers; see `dpjax.plot.forest`.

        Parameters
        ----------
        beside
            Other answers by name, such as ``{"non-private": draws, "naive": draws}``, drawn above this one.
        names
            As in `dpjax.plot.forest`, which compares answers that are no `Posterior`.
        level
            As there.
        axes
            As there.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed; it comes with ``pip install "dpjax[plots]"``.
        TypeError, ValueError
            If another answer has no draws, or not of the parameters asked for.
        """
        from dpjax.plot.intervals import check_answers, forest

        others = {} if beside is None else check_answers(beside)
        return forest({**others, "dpjax": self}, names=names, level=level, axes=axes)

    def plot_predictive(
        self,
        key: Key,
        *,
        num_draws: int | None = None,
        level: float = 0.95,
        show: Sequence[int] | None = None,
        labels: Sequence[str] | None = None,
        axes: Any = None,
    ) -> Any:
        """The released value beside releases that the posterior predicts, to see whether the model fits.

        Each number of a released sum has a bar with the central half and the central `level` of the predictions, less
        their mean and in units of their standard deviation, and a mark for what was released, which is orange outside
        of its bar. The values of a local release are shown together: how many records fall in each bin, over the band
        that holds that number with probability `level`.

        Parameters
        ----------
        key
            For `predict`.
        num_draws
            How many releases to predict, at least 20; by default 400, or as many as there are draws.
        level
            The probability that each bar, or the band at each bin, holds.
        show
            The places of the numbers to show in a released sum [d]; by default the first 60.
        labels
            Names of all numbers of a released sum [d]; by default their places.
        axes
            Matplotlib axes to draw into; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed; it comes with ``pip install "dpjax[plots]"``.
        TypeError, ValueError
            If there are too few draws, places and labels do not fit the release, or a local release has several values
            for a record.

        Notes
        -----
        Of many numbers some are outside of their bars by chance: one in twenty at a level of 0.95.
        """
        from dpjax.plot.predictive import plot_predictive

        return plot_predictive(self, key, num_draws=num_draws, level=level, show=show, labels=labels, axes=axes)

    def plot_acceptance(self, *, epsilon: float | None = None, axes: Any = None) -> Any:
        """How many proposals to each record were accepted in a sweep, and the least that theory allows for their mean.

        Each record has a dot for the mean over chains, and a line from the lowest chain to the highest. The dashed line
        is e^(−ε) for IMwG and m / (m + e^ε − 1) for SOMA with m attempts (Xiong and Ju 2025, Theorem 12 and Remark 4),
        where ε bounds the log ratio of the release's density between records that differ in one.

        Parameters
        ----------
        epsilon
            ε for replacing one record. By default what follows from Laplace noise and the range of a statistic of
            dpjax, else what the mechanism's `Privacy` promises; without either no line is drawn.
        axes
            Matplotlib axes to draw into; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed; it comes with ``pip install "dpjax[plots]"``.
        TypeError, ValueError
            If no records were imputed, or ε is no positive number.
        """
        from dpjax.plot.acceptance import plot_acceptance

        return plot_acceptance(self, epsilon=epsilon, axes=axes)

    def plot_table(
        self,
        key: Key | None = None,
        *,
        level: float = 0.9,
        show: Sequence[int] | None = None,
        labels: Sequence[str] | None = None,
        axes: Any = None,
    ) -> Any:
        """A released table: the published numbers, least squares, and the posterior of what was summed.

        Each part of a joint release has a panel, and each released number three marks in it: the number with a bar of
        its noise; the estimate by weighted least squares on the whole release, which may be negative; and the
        posterior mean and interval of the sum of counts that was released.

        Parameters
        ----------
        key
            With a key the chains make 250 further steps each, whose sums are shown. It is not needed where counts were
            imputed and collected, by ``sample(imputation=dpjax.counts(), collect=lambda state: {"counts":
            state.latent.records["counts"][0]})``. Without
            either, the sums that the parameters expect stand in for them, and the legend says so.
        level
            The probability that bars and intervals hold.
        show
            The places of the numbers to show in the released value [d]; by default the first 60 of each part.
        labels
            Names of all released numbers [d]; by default their places.
        axes
            Matplotlib axes to draw into, one for each part that is shown; by default those of a new figure.

        Returns
        -------
        numpy.ndarray
            The axes [part].

        Raises
        ------
        ImportError
            If matplotlib is not installed; it comes with ``pip install "dpjax[plots]"``.
        TypeError, ValueError
            If the release is no noisy sum, the model's records are not of finitely many kinds, or places, labels and
            axes do not fit the release.
        """
        from dpjax.plot.tables import plot_table

        return plot_table(self, key, level=level, show=show, labels=labels, axes=axes)


def merge(draws: np.ndarray) -> np.ndarray:
    """Draws [chain, draw, ...] of all chains on one axis."""
    return draws.reshape(-1, *draws.shape[2:])
