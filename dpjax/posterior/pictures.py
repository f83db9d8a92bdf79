"""The pictures of a posterior; Matplotlib is imported when one is drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpjax._util.lazy import implemented_by
from dpjax.base import Key

__all__ = ["Pictures"]


class Pictures:
    """What a posterior can be seen by: its intervals, predictions, acceptance rates and tables.

    Each picture returns the Matplotlib axes that it was drawn into. Without Matplotlib it raises ImportError;
    ``pip install arviz matplotlib`` installs it.
    """

    @implemented_by("dpjax.plot.intervals.plot_forest")
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

        Raises
        ------
        TypeError, ValueError
            If another answer has no draws, or not of the parameters asked for.
        """

    @implemented_by("dpjax.plot.predictive.plot_predictive")
    def plot_predictive(
        self,
        key: Key,
        *,
        num_samples: int | None = None,
        level: float = 0.95,
        show: Sequence[int] | None = None,
        labels: Sequence[str] | None = None,
        axes: Any = None,
    ) -> Any:
        """The released value beside releases that the posterior predicts, to see whether the model fits.

        Each number of a released sum has a bar with the central half and the central `level` of the predictions. A mark
        shows what was released, and is orange outside of its bar. Both are less the mean of the predictions, and in
        units of their standard deviation. The values of a local release are shown together: how many records fall in
        each bin, over the band that holds that number with probability `level`. Values that were withheld, or are at
        a bound, are not in it. The legend has their share, and the interval that is predicted for it.

        Parameters
        ----------
        key
            For `predict`.
        num_samples
            How many releases to predict, at least 20; by default 400, or as many as there are draws.
        level
            The probability that each bar, or the band at each bin, holds.
        show
            The places of the numbers to show in a released sum [d]; by default the first 60.
        labels
            Names of all numbers of a released sum [d]; by default their places.
        axes
            Matplotlib axes to draw into; by default those of a new figure.

        Raises
        ------
        TypeError, ValueError
            If there are too few draws, places and labels do not fit the release, or a local release has several values
            for a record.

        Notes
        -----
        Some of many numbers are outside of their bars by chance: one in twenty at a level of 0.95.
        """

    @implemented_by("dpjax.plot.acceptance.plot_acceptance")
    def plot_acceptance(self, *, epsilon: float | None = None, axes: Any = None) -> Any:
        """How many proposals to each record were accepted in a sweep, and the least that theory allows for their mean.

        Each record has a dot for the mean over chains, and a line from the lowest chain to the highest. The dashed line
        is e^(−ε) for IMwG and m / (m + e^ε − 1) for SOMA with m attempts (Xiong and Ju 2025, Theorem 12 and Remark 4).
        Here ε bounds the log ratio of the release's density between records that differ in one.

        Parameters
        ----------
        epsilon
            ε for replacing one record. By default what follows from Laplace noise and the range of a statistic of
            dpjax, else what the mechanism's `Privacy` promises; without either no line is drawn.
        axes
            Matplotlib axes to draw into; by default those of a new figure.

        Raises
        ------
        TypeError, ValueError
            If no records were imputed, or ε is no positive number.
        """

    @implemented_by("dpjax.plot.tables.plot_table")
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

        Each part of a joint release has a panel, and each released number three marks in it. The first is the number
        with a bar of its noise. The second is the estimate by weighted least squares on the whole release, which may
        be negative. The third is the posterior mean and interval of the sum of counts that was released.

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
            Names of all released numbers [d]; by default those of a table, else their places.
        axes
            Matplotlib axes to draw into, one for each part that is shown; by default those of a new figure.

        Returns
        -------
        numpy.ndarray
            The axes [part].

        Raises
        ------
        TypeError, ValueError
            If the release is no noisy sum, the model's records are not of finitely many kinds, or places, labels and
            axes do not fit the release.
        """
