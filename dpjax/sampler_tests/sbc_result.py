"""The result of simulation-based calibration: ranks, tests of their uniformity, and their plot."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpjax._util.lazy import implemented_by
from dpjax._util.spelling import names_methods
from dpjax.diagnostics.summary import Summary, tabulate

MAX_BINS = 20
MIN_PER_BIN = 10


@names_methods
@dataclass(frozen=True, eq=False)
class SBCResult:
    """The ranks of the true values among draws from the posterior.

    Parameters
    ----------
    ranks
        The number of draws below the true value [replicate, ...], by name: the parameters, the given quantities, and
        ``"log_density"`` of the release. Ties are broken at random.
    num_samples
        The number L of draws; ranks are from 0 to L.
    autocorrelation
        The lag-1 autocorrelation of the draws, averaged over replicates [...], by name. Ranks are uniform only if it is
        near 0.

    Examples
    --------
    >>> from dpjax.sampler_tests.sbc_result import SBCResult
    >>> import numpy as np
    >>> ranks = np.random.default_rng(1).integers(0, 100, size=400)
    >>> right = SBCResult({"mean": ranks}, num_samples=99, autocorrelation={"mean": np.zeros(())})
    >>> bool(right.p_values()["mean"] > 0.01)
    True
    >>> wrong = SBCResult({"mean": ranks // 2}, num_samples=99, autocorrelation={"mean": np.zeros(())})
    >>> bool(wrong.p_values()["mean"] > 0.01)
    False
    """

    ranks: dict[str, np.ndarray]
    num_samples: int
    autocorrelation: dict[str, np.ndarray]

    def p_values(self) -> dict[str, np.ndarray]:
        """The p-values [...] of χ² tests of uniform ranks, times the number of tests (Bonferroni).

        If any of them is small, the draws are not from the posterior of the model that made the data.
        """
        expected = self.expected_counts()
        single = {
            name: scipy.stats.chisquare(counts, expected.reshape(-1, *(1,) * (counts.ndim - 1)), axis=0).pvalue
            for name, counts in self.counts().items()
        }
        number = sum(np.size(p_value) for p_value in single.values())
        return {name: np.minimum(np.asarray(p_value) * number, 1.0) for name, p_value in single.items()}

    def counts(self) -> dict[str, np.ndarray]:
        """The number of ranks in each bin [bin, ...], by name."""
        bins = np.arange(len(self.expected_counts()))
        return {
            name: np.sum(self.bin_of(ranks) == bins.reshape(-1, *(1,) * ranks.ndim), axis=1)
            for name, ranks in self.ranks.items()
        }

    def expected_counts(self) -> np.ndarray:
        """The expected number of uniform ranks in each bin [bin]."""
        held = np.bincount(self.bin_of(np.arange(self.num_samples + 1)))
        return held * (self.num_replicates / (self.num_samples + 1))

    def bin_of(self, ranks: np.ndarray) -> np.ndarray:
        """The bin of each rank: at most twenty bins, with ten ranks or more each."""
        wanted = min(MAX_BINS, self.num_replicates // MIN_PER_BIN, self.num_samples + 1)
        return ranks * max(wanted, 2) // (self.num_samples + 1)

    @property
    def num_replicates(self) -> int:
        """The number of replicates."""
        return len(next(iter(self.ranks.values())))

    def summary(self) -> Summary:
        """The mean and sd of the ranks, divided by the number of draws, p-values and autocorrelations.

        Uniform ranks have mean 0.5 and sd 0.289. Another mean shows a bias; a larger sd, draws that vary too little.
        """
        p_values, highest = self.p_values(), self.num_samples
        figures = {
            name: {
                "mean": np.mean(ranks, axis=0) / highest,
                "sd": np.std(ranks, axis=0, ddof=1) / highest,
                "p_value": p_values[name],
                "autocorrelation": self.autocorrelation[name],
            }
            for name, ranks in self.ranks.items()
        }
        return tabulate(figures)

    @implemented_by("dpjax.plot.sampler_tests.plot_ranks")
    def plot(self, *, axes: Any = None) -> Any:
        """Histograms of the ranks of up to 24 quantities, with the bands that contain 99 % of their bars.

        Parameters
        ----------
        axes
            Matplotlib axes to draw into, one for each scalar quantity; by default those of a new figure.

        Returns
        -------
        numpy.ndarray
            The axes [quantity].

        Raises
        ------
        ImportError
            If matplotlib is not installed, by ``pip install matplotlib``.
        ValueError
            If there are not as many axes as quantities.
        """
