"""Published synthetic data sets in place of a release: the posteriors of analyses of each, mixed.

Rows that a data holder drew from a noise-aware posterior are all that is held. Each set is analysed as if it were real.
The mixture of these posteriors tends to the posterior given what the rows were made from, as the sets become large and
many (Räisä, Jälkö and Honkela 2025). Analyses of sets of n* rows vary by W within a set, and by B = V + W between sets,
where V is the variance that is looked for. The mixture has W + B, which is too wide by 2 W.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import check_count, fail, name_of, read_numbers
from dpjax._util.warn import warn_at_the_call
from dpjax.diagnostics.summary import QUANTILES, Summary, check_quantiles, quantile_name, tabulate
from dpjax.posterior.completed import Combined, combine

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

__all__ = ["MixedPosteriors", "combine_synthetic"]

MOST_WIDENED = 1.05
"""How many times too wide intervals may be before it is said."""

FEW_SETS = 20
"""Fewest sets by which standard deviations are known to a sixth."""

LEVEL = 0.99
"""Below this quantile of its distribution, a variance between sets is taken for that of rows alone."""


@names_methods
@dataclass(frozen=True, eq=False)
class MixedPosteriors:
    """The mixture of the posteriors of several synthetic data sets.

    Parameters
    ----------
    draws
        Draws [set, draw, ...] of each parameter, as many of each set.

    Examples
    --------
    >>> from dpjax.posterior.synthetic import MixedPosteriors
    >>> import numpy as np
    >>> mixed = MixedPosteriors({"mean": np.array([[0.9, 1.1], [1.9, 2.1], [2.9, 3.1]])})
    >>> float(mixed.mean["mean"].round(2)), float(mixed.widening["mean"].round(3))
    (2.0, 1.02)
    """

    draws: dict[str, np.ndarray]

    @property
    def num_sets(self) -> int:
        """The number of data sets."""
        return len(next(iter(self.draws.values())))

    @property
    def mean(self) -> dict[str, np.ndarray]:
        """The mean [...] of each parameter."""
        return {name: leaf.mean(axis=(0, 1)) for name, leaf in self.draws.items()}

    @property
    def within(self) -> dict[str, np.ndarray]:
        """The mean [...] of the variances of the sets' posteriors: W."""
        return {name: leaf.var(axis=1, ddof=1).mean(axis=0) for name, leaf in self.draws.items()}

    @property
    def between(self) -> dict[str, np.ndarray]:
        """The variance [...] between the means of these posteriors: B."""
        return {name: leaf.mean(axis=1).var(axis=0, ddof=1) for name, leaf in self.draws.items()}

    @property
    def widening(self) -> dict[str, np.ndarray]:
        """How many times wider the mixture is than the posterior without the sampling of rows [...].

        It is √((B + W) / (B − W)), infinite where B does not exceed W.
        """
        return {name: widening_of(self.within[name], self.between[name]) for name in self.draws}

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, standard deviation and quantiles of every parameter, with the error of the mean by so many sets.

        The last column is the widening, which more rows in each set make smaller.
        """
        levels, within, between, widening = check_quantiles(quantiles), self.within, self.between, self.widening
        found = {}
        for name, leaf in self.draws.items():
            at = np.quantile(leaf, levels, axis=(0, 1))
            found[name] = {
                "mean": self.mean[name],
                "sd": np.sqrt(within[name] + between[name]),
                **{quantile_name(level): one for level, one in zip(levels, at, strict=True)},
                "mcse_mean": np.sqrt(between[name] / self.num_sets),
                "widening": widening[name],
            }
        return tabulate(found)

    def combined(self, name: str) -> Combined:
        """The classical estimate of one parameter: Normal, by the rule for fully synthetic data.

        Its variance (1 + 1/m) B − W is free of how many rows the sets have (Raghunathan, Reiter and Rubin 2003). It
        needs posteriors that are nearly Normal, and only means and variances of these.
        """
        leaf = self.draws[name].reshape(*self.draws[name].shape[:2], -1)
        deviations = leaf - leaf.mean(axis=1, keepdims=True)
        covariances = np.einsum("msi,msj->mij", deviations, deviations) / (leaf.shape[1] - 1)
        return combine(leaf.mean(axis=1), covariances, kind="synthetic")


@names_arguments
def combine_synthetic(
    draws: "Sequence[Posterior | Mapping[str, ArrayLike]]",
    *,
    n: int | None = None,
    sizes: int | Sequence[int] | None = None,
) -> MixedPosteriors:
    """The mixture of the posteriors of several published synthetic data sets, each analysed as if it were real.

    It tends to the posterior of the analyst's model if four conditions hold. Each set is drawn with parameters of its
    own, from a posterior that knows of the privacy noise. The holder's model has that of the analysis in it. The sets
    are much larger than the real data. And they are many. The first is looked for in the draws, the third and the
    fourth are measured. The second cannot be seen. One set is not enough, nor are several from one fitted generator.

    Parameters
    ----------
    draws
        For each set the draws of its posterior: a `dpjax.Posterior`, or arrays [draw, ...] by the names of the
        parameters, of any software.
    n
        The number of people in the real data, if it is known.
    sizes
        The number of rows of each set, or one for all, if it is known.

    Returns
    -------
    MixedPosteriors
        With ``draws``, ``summary()``, and ``combined(name)``, the classical rule for synthetic data.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two sets, or they differ in their parameters. If sets have fewer rows than there were
        people. If sets differ no more than rows from one fitted generator do, in all parameters.

    Warns
    -----
    UserWarning
        If intervals are more than 5 % too wide by the sizes of the sets, or there are fewer than 20 of these.

    Notes
    -----
    See Räisä, Jälkö and Honkela, "On Consistent Bayesian Inference from Synthetic Data" (JMLR 2025). If the noisy
    tables from which rows were drawn were published, their exact posterior is better: see `dpjax.sample`.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> centers = rng.normal(3.0, 0.5, 100)  # draws from a posterior, of each a set of many rows
    >>> mixed = dpjax.combine_synthetic([{"mean": rng.normal(center, 0.02, 200)} for center in centers])
    >>> bool(abs(mixed.summary()["mean"]["sd"] - 0.5) < 0.1)
    True
    """
    found = [read_set(place, one) for place, one in enumerate(check_sets(draws))]
    shapes = [{name: leaf.shape[1:] for name, leaf in one.items()} for one in found]
    for place, one in enumerate(shapes):
        if one != shapes[0]:
            given = f"parameters {one}"
            fail(f"draws[{place}]", given, f"{shapes[0]}, as in the first set", "Analyse all sets by one model.")
    check_sizes(n, sizes, len(found))
    least = min(len(leaf) for one in found for leaf in one.values())
    mixed = MixedPosteriors({name: np.stack([thin(one[name], least) for one in found]) for name in found[0]})
    check_variation(mixed)
    return mixed


def widening_of(within: np.ndarray, between: np.ndarray) -> np.ndarray:
    """√((B + W) / (B − W)); infinite where that is undefined."""
    left = between - within
    return np.where(left > 0, np.sqrt((between + within) / np.where(left > 0, left, 1.0)), np.inf)


def check_sets(draws: Any) -> Sequence[Any]:
    """The sets, of which there are two or more."""
    remedy = "Pass the posterior of each synthetic data set: [{'mean': draws}, ...]."
    if not isinstance(draws, Sequence) or isinstance(draws, str):
        fail("draws", name_of(draws), "a list of posteriors, one for each set", remedy, error=TypeError)
    if len(draws) < 2:
        expected = "two or more, as one set does not show how uncertain its parameters are"
        fail("draws", f"{len(draws)} sets", expected, remedy)
    return draws


def read_set(place: int, given: Any) -> dict[str, np.ndarray]:
    """The draws [draw, ...] of one set by name."""
    argument, remedy = f"draws[{place}]", "Pass a dpjax.Posterior, or arrays [draw, ...] by name."
    own = getattr(given, "draws", None)
    arrays = given if own is None else own
    if not isinstance(arrays, Mapping) or not arrays:
        fail(argument, name_of(given), "a posterior, or draws by name", remedy, error=TypeError)
    found = {}
    for name, leaf in arrays.items():
        array = np.asarray(read_numbers(f"{argument}[{name!r}]", leaf, "finite numbers [draw, ...]", remedy), float)
        array = array if own is None else array.reshape(-1, *array.shape[2:])
        if array.ndim < 1 or len(array) < 2 or not np.all(np.isfinite(array)):
            given_array = f"an array of shape {list(array.shape)}" + (
                "" if array.ndim < 1 or len(array) < 2 else ", with NaN"
            )
            fail(f"{argument}[{name!r}]", given_array, "two finite draws or more [draw, ...]", remedy)
        found[name] = array
    return found


def thin(draws: np.ndarray, number: int) -> np.ndarray:
    """So many of the draws, evenly spaced."""
    return draws[np.linspace(0, len(draws) - 1, number).round().astype(int)]


def check_sizes(n: Any, sizes: Any, number: int) -> None:
    """Raise if sets have fewer rows than there were people."""
    remedy = "Pass the number of rows of each set, and of the people."
    if n is not None:
        check_count("n", n, remedy)
    if sizes is None:
        return
    several = np.atleast_1d(read_numbers("sizes", sizes, "whole numbers of rows", remedy))
    if several.dtype.kind not in "iu" or several.shape not in ((1,), (number,)) or np.any(several < 1):
        expected = f"one whole number, or one for each of {number} sets"
        fail("sizes", f"{several.dtype}{list(several.shape)}", expected, remedy)
    if n is None:
        return
    if np.min(several) < n:
        given = f"{np.min(several)} rows for n = {n} people"
        remedy = "Ask for larger sets; MixedPosteriors(draws).combined(name) is a rule that takes small ones."
        fail("sizes", given, "sets larger than the real data", remedy)


def check_variation(mixed: MixedPosteriors) -> None:
    """Raise if sets differ no more than by their rows, and warn if that is much of it, or they are few."""
    m, within, between = mixed.num_sets, mixed.within, mixed.between
    ratios = np.concatenate([np.ravel(between[name] / np.maximum(within[name], 1e-300)) for name in within])
    if np.all(ratios < scipy.stats.chi2.ppf(LEVEL, m - 1) / (m - 1)):
        given = f"{m} sets whose posteriors differ no more than by chance among rows, by {np.max(ratios):.2g} variances"
        expected = "sets with parameters of their own, each drawn from a posterior"
        remedy = "Rows of one fitted generator do not say how uncertain it is: ask for what it was fitted to."
        fail("draws", given, expected, remedy)
    widest = float(np.max(np.concatenate([np.ravel(leaf) for leaf in mixed.widening.values()])))
    if widest > MOST_WIDENED:
        text = f"The sampling of rows makes intervals up to {widest:.2f} times too wide, as `widening` says."
        warn_at_the_call(f"{text} Ask for larger sets, or use combined(name), the rule of classical statistics.")
    if m < FEW_SETS:
        error = 1 / np.sqrt(2 * (m - 1))
        warn_at_the_call(f"{m} sets give standard deviations to {100 * error:.0f} %. Ask for {FEW_SETS} or more.")
