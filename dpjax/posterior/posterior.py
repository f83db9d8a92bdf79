"""Draws from a posterior and what can be asked of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpjax._util.lazy import implemented_by
from dpjax._util.printing import Printed
from dpjax._util.spelling import names_methods, takes_num_draws
from dpjax._util.validation import check_count, check_key, describe, fail, summarize_error
from dpjax.base import Key, Model, Parameters
from dpjax.data_augmentation.counts.table import COUNTS
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.problem import Problem, problem_of
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.diagnostics.frames import flatten, to_frame, write_csv
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.models.data_sets import NUMBER
from dpjax.models.simulation import GibbsState, draw_values, parameter_shapes
from dpjax.posterior.checks import Statistics, check_predictions
from dpjax.posterior.completed import DataSets, complete, default_size, synthesize
from dpjax.posterior.concatenate import join_runs
from dpjax.posterior.margins import Margins
from dpjax.posterior.odds import HasLogOdds, tabulate_odds
from dpjax.posterior.pictures import Pictures
from dpjax.posterior.prediction import Prediction, make_prediction
from dpjax.posterior.ranks import tabulate_ranks
from dpjax.posterior.reports import advise, describe_posterior, labels_of, level_names_of, note_of, warn_of
from dpjax.posterior.saving import Saved
from dpjax.posterior.survey import Survey
from dpjax.release import PrivateRelease
from dpjax.release.unknown_count import is_unknown

Predictor = Callable[[Key, Model, Any, Parameters], np.ndarray]
"""``(key, model, release, parameters [draw, ...]) -> values [draw, ...]``."""


@names_methods
@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Printed, Margins, Pictures, Saved, Survey):
    """Draws from p(parameters | release).

    It can be pickled. A pickle holds what can be built again of model, release and plan. A part with functions that are
    not at the top of a module is left out, and what needs it says so.

    Parameters
    ----------
    draws
        Arrays [chain, draw, ...] by name: the parameters, and the model's derived quantities.
    info
        Reports of the sampler. ``"acceptance_rate"`` of the imputation [chain, draw] is averaged over the steps between
        draws. ``"num_nonfinite"`` [chain, draw] counts the proposals and moves that were undone in them because a
        density, parameter or record was not finite. ``"acceptance_rate_per_record"`` [chain, n] has the proposals
        accepted per sweep of sampling. Reports of the parameter kernels [chain, draw] are under ``"centred_..."`` and
        ``"interweaving_..."``. With refreshes also ``"refresh_acceptance_rate"``, ``"num_sweeps"`` and
        ``"num_refreshes"`` [chain, draw]; a draw for which none was made has the rates of the latest one.
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
        The adapted tuning, for `dpjax.gibbs`; None if no step of the sweep uses one.
    plan
        The sweep that the draws were made by, with what was left to the warm-up; for `dpjax.gibbs`.
    approximate
        Whether the draws are from the posterior under the Normal approximation of the sum, by `dpjax.sample_clt`. No
        records were then imputed: states, tuning and plan are None, and `info` has the reports of that function.
    predictor
        ``(key, model, release, parameters [draw, ...]) -> values [draw, ...]``: how releases are predicted; None if
        records are drawn for them.
    keys
        Texts that identify the key of each chain [chain], for `concat`.
    ended
        Why the run ended where it did, if `until` was given.
    settings
        What the run was asked for, by name, such as the imputation before warm-up chose what that left open and `thin`;
        for `concat`.
    refresh
        What refreshes propose from, and how often they and sweeps were made; None if there are none.

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
    settings: Mapping[str, Any] = field(default_factory=dict)
    refresh: RefreshTuning | None = None
    _problem: Problem | None = field(default=None, init=False)
    """That of the run, whose form of the latent data is not derived again."""

    PARTS = ("model", "release", "plan")

    @staticmethod
    def concat(posteriors: Sequence["Posterior"]) -> "Posterior":
        """The posterior of independent runs, such as those of a job array, with the chains of all.

        Parameters
        ----------
        posteriors
            Of runs that differ in the key alone. What the warm-up chose may differ too; `plan` and `tuning` are those
            of the first. A run with a checkpoint need not be sent around: if it has ended, `dpjax.sample` with the
            same arguments reads its posterior from the file.

        Raises
        ------
        TypeError, ValueError
            If two chains have the same key, and so are one chain. If model, release, what the runs were asked for
            (kernels with their options, warm-up, thinning), the numbers of draws or what was collected differ.
        """
        joined: Posterior = join_runs(posteriors, Posterior)
        return joined

    def describe(self) -> str:
        """How many draws there are, of what, and the sweep that they were made by."""
        return describe_posterior(self)

    def __repr__(self) -> str:
        return f"Posterior: {self.describe()}"

    def summary(
        self,
        *,
        names: Sequence[str] | None = None,
        quantiles: Sequence[float] = QUANTILES,
        columns: Sequence[str] | None = None,
        transform: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> Summary:
        """Mean, sd, quantiles, their Monte Carlo standard errors, effective sample sizes and R-hat of every parameter.

        Parameters
        ----------
        names
            The parameters or entries of them to show, such as ``["coef[1]", "variance"]``; by default all. What is
            warned of is looked for in all.
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.
        columns
            The columns to show, such as ``["mean", "2.5%", "97.5%"]``; by default all.
        transform
            Functions by the names of parameters, whose results are shown in place of these: ``{"rate": jnp.exp}``, or
            ``{"risk": lambda risk: 1e5 * risk}`` for rates per 100,000. They take and return arrays of one shape.

        Raises
        ------
        TypeError, ValueError
            If `quantiles` are not numbers between 0 and 1, in rising order, or no parameter or column has such a name.
            If a function returns another shape.

        Warns
        -----
        UserWarning
            If some R-hat is above 1.01, or some effective sample size is below 400 or smaller than that of the first
            half of the draws. If a chain never moved, or many proposals or moves were undone because something was not
            finite. Do not trust the numbers then.

        Notes
        -----
        Good values do not prove convergence: chains may all have missed the same region.
        """
        shown = transformed(self.draws, {} if transform is None else transform)
        figures = {name: summarize(draws, quantiles) for name, draws in shown.items()}
        table = tabulate(figures, note_of(self), self.labels)
        warn_of(self, table)
        return (table if names is None else table.take(names)).choose(columns)

    def odds_ratios(self, reference: str | Mapping[str, str] | None = None) -> Summary:
        """Odds ratios of the first two fields of a table, and their logarithms, against one level of each field.

        The draws named ``odds_ratio`` compare adjacent levels instead. A regression by `dpjax.models.formula` of the
        family ``"bernoulli"`` or ``"binomial"`` has those of its coefficients, for one unit more of each column.

        Parameters
        ----------
        reference
            The level that all others of its field are compared with, such as ``"none"`` or ``{"smoker": "none"}``. By
            default, and for the field that is not named, the first one.

        Returns
        -------
        Summary
            With rows such as ``odds_ratio[heavy/none,yes/no]``, one set for each level of all other fields, or one row
            for each coefficient.

        Raises
        ------
        TypeError, ValueError
            If the model is neither `dpjax.models.categorical` of two or more fields nor such a regression, or there is
            no such level.
        """
        if reference is None and isinstance(self.model, HasLogOdds) and self.model.log_odds:
            ratios = {name: summarize(np.exp(self.draws[name])) for name in self.model.log_odds}
            return tabulate(ratios, labels=self.labels)
        return tabulate_odds(self.model, self.draws, level_names_of(self), reference)

    def ranks(self, name: str, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """The posterior of the ranks of several numbers, such as group effects; the highest has rank 1.

        Parameters
        ----------
        name
            The parameter or derived quantity, such as ``"1|county"``.
        quantiles
            The probabilities of the quantiles.

        Returns
        -------
        Summary
            For each number the mean and quantiles of its rank, and the probabilities that it is the ``highest`` and the
            ``lowest`` of all.

        Raises
        ------
        TypeError, ValueError
            If there is no such quantity, it is one number, or the quantiles are none.
        """
        return tabulate_ranks(self.draws, name, quantiles, self.labels)

    @property
    def remedy(self) -> str:
        """What may help if chains mix poorly, beyond what is already done."""
        return advise(self)

    @implemented_by("dpjax.adapters.arviz.to_arviz")
    def to_arviz(
        self, key: Key | None = None, *, groups: str | Sequence[str] = (), units: Sequence[str] | None = None
    ) -> Any:
        """The draws, reports and released value for ArviZ: InferenceData for arviz 0.23, a DataTree from 1.0 on.

        Parameters
        ----------
        key
            One typed key, for the groups that are drawn.
        groups
            What to compute beside `posterior`, `sample_stats` and `observed_data`. ``"log_likelihood"`` has what
            ``arviz.loo``, ``waic`` and ``compare`` need: the log-density of what was released of each record, given the
            parameters alone. A sum over the records has none; see `dpjax.compare`. ``"posterior_predictive"``
            is `predict`, for ``plot_ppc`` and ``plot_loo_pit``. ``"prior"`` and ``"prior_predictive"`` are drawn
            from the model. ``"constant_data"`` has the covariates of the model. ``"all"`` has all that there are.
        units
            The names of the records [n], such as areas.

        Raises
        ------
        ImportError
            If arviz is not installed, by ``pip install arviz``.
        TypeError, ValueError
            If there is no such group, a group is drawn and there is no key, or names do not fit.
        """

    def to_frame(self) -> Any:
        """The draws as a pandas DataFrame: a row for each draw, a column for each number; an ImportError without it."""
        return to_frame(dict(self.draws), 2, self._places(), self.labels)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the draws as CSV, for R and other programs: the table of `to_frame`, without pandas."""
        write_csv(path, self._places() | flatten(dict(self.draws), 2, self.labels))

    def _places(self) -> dict[str, np.ndarray]:
        """The chain and the number of each draw, by name."""
        chain, draw = np.indices(self.info["acceptance_rate"].shape)
        return {"chain": chain.ravel(), "draw": draw.ravel()}

    def completed(self, key: Key, num: int) -> DataSets:
        """Completed data sets: the confidential records as imputed, draws from p(parameters, records | release).

        The chains continue by the sweeps and refreshes that the draws were made by. A pilot run measures how many steps
        give about one effective draw of the slowest parameter, and of moments and contrasts of the records. So many are
        made between two data sets; a warning says if that is more than 1,000. What is published of such data reveals no
        more than the release. Analyses of them are put together by ``data.combine(estimates, covariances)``.

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
        return synthesize(key, self.model, parameters, default_size(self) if n is None else n, level_names_of(self))

    @takes_num_draws
    def predict(self, key: Key, num_samples: int | None = None) -> Prediction:
        """Releases drawn from the posterior predictive: for each draw new records, and a new release of them.

        If the number of records is unknown, there are as many as in the draw. Of an approximate posterior their sum is
        drawn. If the released value is far out among the predicted ones, the model or the mechanism does not fit.

        Parameters
        ----------
        key
            One typed key.
        num_samples
            How many draws to use, evenly spaced among those of all chains; by default all.
        """
        check_key("key", key)
        chosen, parameters = self._take_parameters(num_samples)
        if is_unknown(self.release):
            if NUMBER not in self.draws:
                given = "one by a likelihood that draws no number of records"
                fail("posterior", given, "draws of the unknown number", "Use posterior.synthetic, of n records.")
            parameters[NUMBER] = merge(self.draws[NUMBER])[chosen]
        if self.predictor is not None:
            return make_prediction(self.predictor(key, self.model, self.release, parameters), self.released)
        source = self if self.plan is None else self.problem
        values = draw_values(key, source.model, source.release, parameters, len(chosen))
        # The count form fills a value up to the length of the sums.
        return make_prediction(values[:, : len(self.released)], self.released)

    def check(
        self, key: Key, statistic: Statistics, *, by: Sequence[Any] | None = None, num_samples: int | None = None
    ) -> Summary:
        """Bayesian p-values: the share of predicted releases in which a statistic is above that of what was released.

        Near 0 or 1 the model, the prior or the mechanism does not fit in this respect. The p-values of a model that
        fits are not uniform, but nearer to one half.

        Parameters
        ----------
        key
            One typed key, for `predict`.
        statistic
            A function of released values [d], or [n, ...], that returns a number, such as ``numpy.max``; or several
            functions by name. A value that was withheld has its code there, such as -1.
        by
            The group of each released value, such as a region; the statistic is then of the values of each group.
        num_samples
            How many releases to predict; by default one for each draw.

        Returns
        -------
        Summary
            A row for each statistic and group: that of what was released, mean, sd and quantiles of the predicted ones,
            and the share ``p_value``.

        Raises
        ------
        TypeError, ValueError
            If the statistic is no function or returns no finite number, or there is not one group for each value.

        Examples
        --------
        >>> import dpjax, jax
        >>> import numpy as np
        >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
        >>> release = dpjax.LocalRelease([1.0, 2.0, 9.0], dpjax.Laplace(1.0), field="y")
        >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_samples=200, progress=False)
        >>> bool(posterior.check(jax.random.key(2), np.ptp)["ptp"]["p_value"] < 0.2)
        True
        """
        return check_predictions(self, key, statistic, by, num_samples)

    @property
    def labels(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The names of the entries of the draws, one tuple for each axis, where levels have names."""
        return labels_of(self)

    @property
    def counts(self) -> np.ndarray:
        """How many records took each possible value, as imputed [chain, draw, c]; cells of a table are in C order.

        Raises
        ------
        TypeError
            If they were not kept: `dpjax.sample` keeps them with ``collect="counts"``.
        """
        collected = self.collected
        if not (isinstance(collected, dict) and COUNTS in collected):
            fail("counts", "draws without them", "imputed counts", 'Sample with collect="counts".', error=TypeError)
        return np.asarray(collected[COUNTS])

    @property
    def released(self) -> np.ndarray:
        """The value of the release [d], or [n, ...]."""
        return np.asarray(self.release.observed)

    @cached_property
    def problem(self) -> Problem:
        """Model, release and plan, with the form of the latent data; of an approximate posterior there is none."""
        if self._problem is not None:
            return self._problem
        assert self.plan is not None, "an approximate posterior has no latent data"
        return problem_of(self.model, self.release, self.plan)

    def _carry(self, problem: Problem) -> "Posterior":
        """The posterior, with the problem that it was drawn from."""
        object.__setattr__(self, "_problem", problem)
        return self

    def _take_parameters(self, num_samples: int | None) -> tuple[np.ndarray, Parameters]:
        """The numbers [draw] of evenly spaced draws among those of all chains, and their parameters [draw, ...]."""
        draws = {name: merge(self.draws[name]) for name in parameter_shapes(self.model)}
        chosen = self.choose_draws(num_samples)
        return chosen, {name: leaf[chosen] for name, leaf in draws.items()}

    def choose_draws(self, num_samples: int | None) -> np.ndarray:
        """The numbers [draw] of evenly spaced draws among those of all chains."""
        available = self.info["acceptance_rate"].size
        wanted = available if num_samples is None else check_count("num_samples", num_samples)
        if wanted > available:
            fail("num_samples", wanted, f"at most {available}, the draws there are", "Ask for fewer, or sample more.")
        return np.linspace(0, available - 1, wanted).round().astype(int)


def merge(draws: np.ndarray) -> np.ndarray:
    """Draws [chain, draw, ...] of all chains on one axis."""
    return draws.reshape(-1, *draws.shape[2:])


def transformed(draws: Mapping[str, np.ndarray], transform: Any) -> dict[str, np.ndarray]:
    """The draws [chain, draw, ...], with functions of some by name in their places, or an error."""
    remedy = f"Pass functions by name, such as {{{next(iter(draws), 'rate')!r}: jnp.exp}}."
    if not isinstance(transform, Mapping) or not all(callable(function) for function in transform.values()):
        fail("transform", describe(transform), "a dict of functions", remedy, error=TypeError)
    found = dict(draws)
    for name, function in transform.items():
        if name not in draws:
            fail("transform", repr(name), f"names among {', '.join(map(repr, draws))}", remedy)
        try:
            found[name] = np.asarray(function(draws[name]))
        except Exception as error:  # whatever a function of the user's own may raise
            given = f"a function that failed with {summarize_error(error)}"
            several = "It is given all draws [chain, draw, ...] at once: write jnp.exp in place of math.exp, say."
            fail(f"transform[{name!r}]", given, "a function of arrays", several)
        shape, expected = (list(leaf[name].shape) for leaf in (found, draws))
        if shape != expected:
            fail(f"transform[{name!r}]", f"a result of shape {shape}", f"shape {expected}", remedy)
    return found
