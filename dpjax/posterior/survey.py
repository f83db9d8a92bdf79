"""What a posterior says of a population of which the records are a survey: widths of intervals, averages over cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np

from dpjax._util.printing import Printed
from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_array, check_no_gaps, fail, name_of, plain
from dpjax.base import Model, Parameters
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.models.simulation import parameter_shapes
from dpjax.posterior.sandwich import corrected

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

__all__ = ["HasCells", "PopulationMeans", "Survey"]


@runtime_checkable
class HasCells(Protocol):
    """A model that predicts the response in cells of a population."""

    def cell_means(self, cells: Any, shares: np.ndarray, draws: Parameters) -> np.ndarray:
        """Averages [draw, group] of expected responses of cells, by shares [group, cell], at draws [draw, ...]."""


@names_methods
@dataclass(frozen=True, eq=False, repr=False)
class PopulationMeans(Printed):
    """Draws of the average of a response over a population, or over each of its groups; see `Posterior.poststratify`.

    Parameters
    ----------
    draws
        The averages [chain, draw], or [chain, draw, group].
    groups
        The names of the groups; empty without any.

    Examples
    --------
    >>> from dpjax.posterior.survey import PopulationMeans
    >>> import numpy as np
    >>> PopulationMeans(np.zeros((4, 100, 2)), ("north", "south"))
    4 chains of 100 draws of the average over north, south
    """

    draws: np.ndarray
    groups: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        chains, number = self.draws.shape[:2]
        return f"{chains} chains of {number} draws of the average over {', '.join(self.groups) or 'the population'}"

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd, quantiles, errors and effective sizes of each average.

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles.
        """
        labels = {"average": (self.groups,)} if self.groups else {}
        return tabulate({"average": summarize(self.draws, quantiles)}, labels=labels)


@names_methods
class Survey:
    """What a posterior says of the population that its records were sampled from."""

    model: Model
    draws: dict[str, np.ndarray]

    def sandwich(self, *, strata: Any = None, clusters: Any = None) -> "Posterior":
        """The posterior with its draws spread as estimates vary from sample to sample, after Williams and Savitsky.

        Intervals of a pseudo-posterior are mostly too narrow. Draws of the unconstrained parameters are mapped linearly
        about their mean, so that their covariance A⁻¹ becomes A⁻¹ (J + P) A⁻¹ [1]_. A is the curvature of the weighted
        log-posterior there, P that of the prior, and J the variance of the sum of weighted scores.

        Parameters
        ----------
        strata
            The stratum of each record [n], by name or number; by default one.
        clusters
            The cluster of each record [n], drawn with its weight as a whole, such as a household; by default each
            record is one.

        Returns
        -------
        Posterior
            Of the same run, with new draws of parameters and derived quantities. Its summary says so.

        Raises
        ------
        TypeError, ValueError
            If the records cannot be summed out or are not observations of their own, or it is corrected already. If a
            stratum has one cluster, or there are fewer clusters than parameters without a prior that holds them.

        Notes
        -----
        J is that of clusters drawn with replacement within strata, without a correction for finite populations.

        References
        ----------
        .. [1] Williams, M. R. and Savitsky, T. D. (2021). Uncertainty estimation for pseudo-Bayesian inference under
           complex sampling. International Statistical Review 89(1).

        Examples
        --------
        >>> import dpjax, jax
        >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 50.0), variance=1.0)
        >>> sample = dpjax.LocalRelease([1.0, 9.0, 2.0], dpjax.Gaussian(1.0), "y", weights=[0.5, 2.0, 0.5])
        >>> posterior = dpjax.sample(jax.random.key(1), model, sample, num_samples=200, progress=False)
        >>> bool(posterior.sandwich().draws["mean"].std() > 1.5 * posterior.draws["mean"].std())
        True
        """
        return corrected(cast("Posterior", self), strata, clusters)

    def poststratify(self, cells: Any, counts: Any, *, by: Any = None) -> PopulationMeans:
        """Averages of the expected response over the cells of a population, such as a census has them.

        Parameters
        ----------
        cells
            A data frame, or columns by name: one row for each cell, with the covariates of the formula.
        counts
            How many people each cell has: the name of a column of `cells`, or numbers [cell].
        by
            The name of a column of `cells`, or names [cell], for an average in each of these groups, such as areas.

        Returns
        -------
        PopulationMeans
            With ``draws`` [chain, draw] or [chain, draw, group], and a ``summary()``. For the family ``"binomial"`` it
            is the average share of successes.

        Raises
        ------
        TypeError, ValueError
            If the model is none of `dpjax.models.formula`, or the formula has a function of whole columns, such as
            ``scale``. If a cell has a level or group that no record has, or counts are negative, or all 0 in a group.

        Examples
        --------
        >>> import dpjax, jax
        >>> people = {"area": ["a", "a", "b"]}
        >>> model = dpjax.models.formula("y ~ 0 + area", people, response_mean=0.0, response_sd=1.0)
        >>> release = dpjax.LocalRelease([1.0, 2.0, 9.0], dpjax.Gaussian(0.1), "y")
        >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_samples=100, progress=False)
        >>> posterior.poststratify({"area": ["a", "b"], "people": [30, 70]}, "people").draws.shape
        (4, 100)
        """
        if not isinstance(self.model, HasCells):
            remedy = "Compute other averages from the draws."
            fail("model", name_of(self.model), "a model of dpjax.models.formula", remedy, error=TypeError)
        sizes = np.asarray(plain(column_of("counts", counts, cells)))
        check_array("counts", sizes, lambda array: array >= 0, "numbers of people", "Pass one for each cell.")
        names = np.zeros(sizes.shape, int) if by is None else as_names("by", column_of("by", by, cells))
        if sizes.ndim != 1 or names.shape != sizes.shape:
            given = f"shapes {list(sizes.shape)} and {list(names.shape)}"
            fail("counts, by", given, "one of each for each cell", "Name columns of cells.")
        groups = np.unique(names)
        shares = (names == groups[:, None]) * sizes.astype(float)
        if empty := [str(group) for group, own in zip(groups, shares, strict=True) if not own.sum()]:
            given = "no people" if by is None else f"no people in the group {empty[0]!r}"
            fail("counts", given, "a count above 0 in each group", "Leave cells of empty groups out.")
        own = {name: self.draws[name] for name in parameter_shapes(self.model)}
        shape = next(iter(own.values())).shape[:2]
        merged = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in own.items()}
        found = self.model.cell_means(cells, shares / shares.sum(axis=1, keepdims=True), merged)
        found = found.reshape(*shape, -1)
        return PopulationMeans(found[..., 0]) if by is None else PopulationMeans(found, tuple(map(str, groups)))


def as_names(argument: str, column: Any) -> np.ndarray:
    """The names or numbers [cell], which have an order, or an error where one is missing."""
    names = np.asarray(column)
    check_no_gaps(argument, names.ravel(), "Name the group of each cell.")
    return names.astype(str) if names.dtype == object else names


def column_of(argument: str, given: Any, cells: Any) -> Any:
    """A column of the cells by its name, or what was given."""
    if not isinstance(given, str):
        return given
    columns = list(cells) if isinstance(cells, Mapping) else list(getattr(cells, "columns", ()))
    if given not in columns:
        remedy = "Add it, or check its spelling."
        fail(argument, f"the column {given!r}, which cells does not have", f"one of {columns}", remedy)
    return cells[given]
