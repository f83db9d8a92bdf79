"""The posteriors of a batch of releases."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

import numpy as np

from dpjax._util.spelling import names_methods
from dpjax.base import Model
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.diagnostics.warnings import name_stuck, warn_of_nonfinite, warn_of_poor_mixing
from dpjax.models.simulation import GibbsState, free_numbers
from dpjax.numerics import take_entry
from dpjax.posterior.posterior import Posterior
from dpjax.posterior.reports import advise_starts, name_refused
from dpjax.posterior.saving import Saved
from dpjax.release import PrivateRelease

__all__ = ["BatchPosterior"]


@names_methods
@dataclass(frozen=True, eq=False, repr=False)
class BatchPosterior(Saved):
    """Draws from p(parameters | release) for each of many releases; ``batch[i]`` is the `Posterior` of one.

    Parameters
    ----------
    draws
        Arrays [release, chain, draw, ...] by name.
    info
        Reports as those of `dpjax.posterior.Posterior`, with a leading axis [release].
    collected
        What `collect` took, leaves [release, chain, draw, ...]; None if nothing was asked for.
    interrupted
        Whether the run stopped before its last draw.
    model
        What was believed about the records.
    releases
        What was released, with leading axis [release].
    final_states
        The states of the chains after the last draw, leaves [release, chain, ...].
    tuning
        As adapted to each release, leaves [release, ...]; None if no step of the sweep uses one.
    plan
        The sweep that the draws were made by.
    keys
        Texts that identify the key of each chain, ``keys[release][chain]``.
    settings
        What the run was asked for, by name; see `dpjax.posterior.Posterior`.
    refresh
        What refreshes propose from, leaves [release, ...]; None if there are none.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> releases = [release, release]
    >>> batch = dpjax.sample_batch(jax.random.key(1), model, releases, num_warmup=100, num_samples=200, progress=False)
    >>> len(batch), batch.draws["mean"].shape, batch[1].draws["mean"].shape
    (2, (2, 4, 200), (4, 200))
    """

    draws: dict[str, np.ndarray]
    info: dict[str, np.ndarray]
    collected: Any
    interrupted: bool
    model: Model
    releases: tuple[PrivateRelease, ...]
    final_states: GibbsState
    tuning: Tuning | None
    plan: SweepPlan
    keys: tuple[tuple[str, ...], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    refresh: RefreshTuning | None = None

    PARTS = ("model", "releases", "plan")

    def __len__(self) -> int:
        return len(self.releases)

    def __getitem__(self, number: int) -> Posterior:
        number = index(number)
        trees = (self.draws, self.info, self.collected, self.final_states, self.tuning, self.refresh)
        draws, info, collected, final_states, tuning, refresh = take_entry(trees, number)
        return Posterior(
            draws=draws,
            info=info,
            collected=collected,
            interrupted=self.interrupted,
            model=self.model,
            release=self.releases[number],
            final_states=final_states,
            tuning=tuning,
            plan=self.plan,
            keys=self.keys[number],
            settings=self.settings,
            refresh=refresh,
        )

    def __iter__(self) -> Iterator[Posterior]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"BatchPosterior: {len(self)} releases, each {self[0].describe()}"

    def figures(self, *, quantiles: Sequence[float] = QUANTILES) -> dict[str, dict[str, np.ndarray]]:
        """Means, sds, quantiles, their errors, effective sample sizes and R-hats of every parameter.

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.

        Returns
        -------
        dict
            ``figures["coef"]["mean"]`` is [release, ...], and so are all others; see
            `dpjax.posterior.Posterior.summary`.

        Raises
        ------
        TypeError, ValueError
            If `quantiles` are not numbers between 0 and 1, in rising order.
        """
        return {name: summarize(np.moveaxis(leaf, 0, 2), quantiles) for name, leaf in self.draws.items()}

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """A table of `figures`, with a row for each release and scalar parameter: ``"coef[7,0]"`` is of release 7.

        If categories have names, these stand for their numbers.

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.

        Warns
        -----
        UserWarning
            As `dpjax.posterior.Posterior.summary`, with the first of the rows that are not to be trusted.
        """
        table = tabulate(self.figures(quantiles=quantiles), labels=self._labels)
        nonfinite = self.info["num_nonfinite"]
        sweeps = self.settings.get("thin", 1)
        warn_of_nonfinite(nonfinite.reshape(-1, nonfinite.shape[-1]), sweeps=sweeps)
        if table.rows:
            warn_of_poor_mixing(table, self[0].remedy, self._stuck(), advise_starts(self[0]))
        return table

    @property
    def _labels(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The names of the rows: the number of the release, and then the names of the entries."""
        numbers = tuple(map(str, range(len(self))))
        return {name: (numbers, *axes) for name, axes in self[0].labels.items()} if len(self) else {}

    def _stuck(self) -> list[str]:
        """What never moved in some chain though it could: rows of the summary, and the records of releases."""
        draws = {name: np.moveaxis(leaf, 0, 2) for name, leaf in self.draws.items()}
        rates = enumerate(self.info["acceptance_rate"])
        refused = [text for number, of in rates for text in name_refused(of, self.plan, f"the records[{number}]")]
        return name_stuck(draws, free_numbers(self.model, draws), labels=self._labels) + refused
