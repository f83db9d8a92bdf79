"""Draws from the posterior of a mixture, and their summaries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.lazy import implemented_by
from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_array, check_number, fail
from dpjax.base import Array, Key
from dpjax.diagnostics import convergence
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.diagnostics.warnings import name_stuck, warn_of_nonfinite, warn_of_poor_mixing
from dpjax.mixture.base import Component, Mixing, record_density
from dpjax.mixture.partition import Loss, Partition, find_partition
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.starts import record_shape
from dpjax.numerics.linear_algebra import product

__all__ = ["Density", "MixturePosterior"]


class Density(NamedTuple):
    """The posterior of a density at points of a grid, each [points].

    Attributes
    ----------
    grid
        The points.
    mean
        The posterior mean: the density of a new record.
    lower
        The pointwise lower credible bound.
    upper
        The pointwise upper credible bound.
    mcse
        The Monte Carlo standard error of the mean.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> ones = np.ones(3)
    >>> density = dpjax.mixture.Density(np.arange(3.0), mean=ones, lower=0.8 * ones, upper=1.2 * ones, mcse=0.01 * ones)
    >>> bool(np.all(density.lower < density.upper))
    True
    """

    grid: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    mcse: np.ndarray


@names_methods
@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """Draws from the posterior of a Dirichlet-process mixture given the released values.

    Parameters
    ----------
    draws
        ``"num_clusters"`` and ``"concentration"``, [chain, draw].
    mixing
        The mixing measure: weights [chain, draw, slot], parameters [chain, draw, slot, ...] and the mass of the atoms
        beyond the slots [chain, draw].
    info
        Reports on the kept sweeps [chain, draw]: ``"acceptance_rate"``, ``"num_nonfinite"`` and ``"num_slots"``.
    collected
        What `collect` returned for each state, leaves [chain, draw, ...]: with names, a dict of ``"labels"`` [chain,
        draw, n] and ``"records"`` [chain, draw, n, ...]. None without `collect`.
    truncation_error
        A bound on the L1 error of the records' prior distribution if the process was truncated (Ishwaran and James
        2001, theorem 2, at the largest concentration drawn), else 0.
    interrupted
        Whether the run stopped before its last draw.
    problem
        The data and the model.
    final_states
        The states of the chains after the last draw, leaves [chain, ...].
    ended
        Why the run ended, if `until` was given.

    Examples
    --------
    >>> import jax
    >>> from dpjax import mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> options = {"component": component, "concentration": 1.0, "num_warmup": 20, "num_samples": 20}
    >>> posterior = mixture.sample(jax.random.key(1), [-2.0, -1.7, 1.5, 2.0], None, **options, progress=False)
    >>> posterior.draws["num_clusters"].shape, posterior.density([-2.0, 0.0, 2.0]).mean.shape
    ((4, 20), (3,))
    """

    draws: dict[str, np.ndarray]
    mixing: Mixing
    info: dict[str, np.ndarray]
    collected: Any
    truncation_error: float
    interrupted: bool
    problem: MixtureProblem
    final_states: Any
    ended: str = ""

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd, quantiles, Monte Carlo standard errors, effective sample sizes and R-hat of `draws`.

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.

        Raises
        ------
        TypeError, ValueError
            If `quantiles` are not numbers between 0 and 1, in rising order.

        Warns
        -----
        UserWarning
            If some R-hat is above 1.01, some effective sample size below 400, or proposals or moves were undone because
            of a non-finite density, parameter or record.
        """
        learnt = self.problem.learns_concentration
        draws = {name: leaf.astype(float) for name, leaf in self.draws.items() if name != "concentration" or learnt}
        table = tabulate({name: summarize(leaf, quantiles) for name, leaf in draws.items()})
        warn_of_nonfinite(self.info["num_nonfinite"])
        if table.rows:
            stuck = name_stuck(draws, {"concentration": True})
            warn_of_poor_mixing(table, "Draw more (num_samples, num_warmup), or thin more.", stuck)
        return table

    def density_draws(self, grid: Any) -> np.ndarray:
        """The density of each draw's mixture at each point of the grid, [chain, draw, points].

        Parameters
        ----------
        grid : [points] or [points, p]
            Where to evaluate it.
        """
        points = self._check_grid(grid)
        return np.asarray(mixture_densities(self.problem, points, jax.tree.map(jnp.asarray, self.mixing)))

    def density(self, grid: Any, *, level: float = 0.95) -> Density:
        """The posterior mean of the confidential records' density, with pointwise credible bounds.

        Parameters
        ----------
        grid : [points] or [points, p]
            Where to evaluate it.
        level
            The probability of the band at each point.

        Raises
        ------
        ValueError
            If the grid is no array of finite records, or the level is not between 0 and 1.
        """
        remedy = "Pass the probability of the band."
        check_number("level", level)
        check_array("level", level, lambda array: (array > 0) & (array < 1), "a number in (0, 1)", remedy)
        densities = self.density_draws(grid)
        lower, upper = np.quantile(densities, [(1 - level) / 2, (1 + level) / 2], axis=(0, 1))
        mcse = convergence.mcse_mean(densities)
        return Density(np.asarray(grid), np.mean(densities, axis=(0, 1)), lower, upper, mcse)

    def functional(self, function: Callable[[Array, dict[str, Array]], Array]) -> np.ndarray:
        """A functional of each draw's mixing measure, [chain, draw, ...].

        Parameters
        ----------
        function
            ``(weights, theta) -> array`` of the slots' weights [H], which sum to 1, and parameters [H, ...]: for
            instance ``lambda weights, theta: weights @ theta["mean"]``.

        Raises
        ------
        TypeError, ValueError
            If the function reads a parameter that does not exist, cannot be traced, or does not return an array.
        """
        mixing = jax.tree.map(jnp.asarray, self.mixing)
        check_functional(function, jax.tree.map(lambda leaf: leaf[0, 0], mixing))
        # Traced again at each call: the function may read variables that have changed since the last.
        return np.asarray(over_draws(lambda one: function(one.weights / jnp.sum(one.weights), one.theta), mixing))

    def co_clustering(self) -> np.ndarray:
        """The posterior probability [n, n] that two records share a cluster; it needs ``collect=("labels",)``."""
        labels = self._labels()
        total = np.zeros((labels.shape[1],) * 2)
        for row in labels:
            total += row[:, None] == row[None, :]
        return total / len(labels)

    def partition(
        self, key: Key, *, loss: Loss = "variation", num_starts: int = 8, max_clusters: int | None = None
    ) -> Partition:
        """The partition of least expected distance to those drawn; it needs ``collect=("labels",)``.

        Parameters and errors are those of `dpjax.mixture.find_partition`.
        """
        return find_partition(key, self._labels(), loss=loss, num_starts=num_starts, max_clusters=max_clusters)

    @implemented_by("dpjax.plot.mixtures.plot_density")
    def plot_density(self, grid: Any, *, level: float = 0.95, axes: Any = None) -> Any:
        """`density` on a grid [points], drawn into Matplotlib axes, new ones if none are given; the axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed, by ``pip install matplotlib``.
        """

    @implemented_by("dpjax.plot.mixtures.plot_num_clusters")
    def plot_num_clusters(self, *, axes: Any = None) -> Any:
        """The posterior probability of each number of clusters, drawn into Matplotlib axes; the axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed, by ``pip install matplotlib``.
        """

    @implemented_by("dpjax.plot.mixtures.plot_co_clustering")
    def plot_co_clustering(self, partition: Partition, *, axes: Any = None) -> Any:
        """`co_clustering`, with the records in the order of a partition, drawn into Matplotlib axes; the axes.

        Parameters
        ----------
        partition
            What `partition` returned.
        axes
            The Matplotlib axes to draw in; None for new ones.

        Raises
        ------
        ImportError
            If matplotlib is not installed, by ``pip install matplotlib``.
        """

    @implemented_by("dpjax.adapters.arviz.mixture_to_arviz")
    def to_arviz(self) -> Any:
        """The draws, reports and released values for ArviZ: InferenceData for arviz 0.23, a DataTree from 1.0 on.

        Raises
        ------
        ImportError
            If arviz is not installed, by ``pip install arviz``.
        """

    def _labels(self) -> np.ndarray:
        """The labels [draws, n] of all chains."""
        if not isinstance(self.collected, dict) or "labels" not in self.collected:
            fail("collect", "a run without labels", "one that kept them", "Sample with collect=('labels',).")
        return self.collected["labels"].reshape(-1, self.collected["labels"].shape[-1])

    def _check_grid(self, grid: Any) -> Array:
        shape = record_shape(self.problem.component)
        expected, remedy = f"finite points {['points', *shape]}", "Pass the points at which to evaluate the density."
        if grid is None:
            fail("grid", "None", expected, remedy, error=TypeError)
        check_array("grid", grid, lambda array: array.size > 0, expected, remedy)
        points = jnp.asarray(np.asarray(grid), float)
        if points.shape[1:] != shape or points.ndim == 0:
            fail("grid", f"shape {list(points.shape)}", expected, remedy)
        return points


def check_functional(function: Any, mixing: Mixing) -> None:
    """Raise unless a function of one mixing measure returns an array."""
    expected, remedy = "a function (weights, theta) -> array", "Write it with jax.numpy, for arrays [H] and [H, ...]."
    try:
        returned = jax.eval_shape(function, mixing.weights, mixing.theta)
    except KeyError as error:
        fail("function", f"one that asks for {error}", f"parameters among {sorted(mixing.theta)}", remedy)
    except jax.errors.JAXTypeError as error:
        given = f"one that NumPy or a branch cannot trace ({type(error).__name__})"
        fail("function", given, expected, remedy, error=TypeError)
    if not hasattr(returned, "shape"):
        fail("function", f"one that returns a {type(returned).__name__}", expected, remedy, error=TypeError)


def mixture_density(component: Component, points: Array, mixing: Mixing) -> Array:
    """The density [points] of one mixture, renormalised without the atoms beyond the slots."""
    over_slots = jax.vmap(record_density(component), in_axes=(None, 0))
    densities = jnp.exp(jax.vmap(over_slots, in_axes=(0, None))(points, mixing.theta))
    return product(densities, mixing.weights / jnp.sum(mixing.weights))


@jax.jit
def mixture_densities(problem: MixtureProblem, points: Array, mixing: Mixing) -> Array:
    """The densities [chain, draw, points] of mixtures [chain, draw, ...]."""
    return over_draws(partial(mixture_density, problem.component, points), mixing)


def over_draws(function: Callable[[Mixing], Array], mixing: Mixing) -> Array:
    """A function of one mixing measure, at each of [chain, draw]."""
    return jax.lax.map(lambda chain: jax.lax.map(function, chain), mixing)
