"""What a posterior holds in place of draws that were not kept: a streaming summary of them."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, Never

import numpy as np

from dpjax._util.validation import fail
from dpjax.diagnostics.streaming import StreamingSummary, streaming_estimates
from dpjax.diagnostics.summary import QUANTILES, check_quantiles, quantile_name

__all__ = ["NotKept", "StreamingDraws", "refuse"]

Shapes = dict[str, tuple[int, ...]]


class StreamingDraws(NamedTuple):
    """A streaming summary of draws, with the names and shapes of the numbers in it.

    drawn
        The shapes [...] of parameters, which come first.
    reports
        Those of reports, which come after them.
    summary
        Of them all.
    """

    drawn: Shapes
    reports: Shapes
    summary: StreamingSummary

    def figures(self, quantiles: Sequence[float] = QUANTILES) -> dict[str, dict[str, np.ndarray]]:
        """Mean, sd, quantiles, effective size and R-hat of each parameter, each [...]."""
        levels = check_quantiles(quantiles)
        figures = streaming_estimates(self.summary, levels)
        found = figures.pop("quantiles")
        ordered = {name: figures.pop(name) for name in ("mean", "sd")}
        ordered |= {quantile_name(level): row for level, row in zip(levels, found, strict=True)}
        columns = ordered | figures
        places = self.places()
        return {
            name: {figure: column[places[name]].reshape(shape) for figure, column in columns.items()}
            for name, shape in self.drawn.items()
        }

    def spreads(self) -> dict[str, np.ndarray]:
        """Two numbers [chain, 2, ...] of each parameter, equal if a chain has not moved.

        A chain may well stand at a whole number where others do move: that may be one of few values.
        """
        chains, places = self.summary.chains(), self.places()
        still = chains.squares == 0
        still &= np.all(still, axis=0) | (chains.means != np.round(chains.means))
        spread = np.stack([chains.means, np.where(still, chains.means, np.inf)], axis=1)
        return {name: spread[..., places[name]].reshape(len(spread), 2, *shape) for name, shape in self.drawn.items()}

    def describe(self) -> str:
        """How many draws there were, and of what."""
        return f"{self.summary.number} draws, not kept, of {', '.join(self.drawn) or 'no parameters'}"

    def report(self, name: str) -> np.ndarray:
        """The mean of a report over the draws of each chain [chain, 1]."""
        return self.summary.chains().means[:, self.places()[name]]

    def places(self) -> dict[str, slice]:
        """Where the numbers of each name are."""
        sizes = [prod(shape) for shape in [*self.drawn.values(), *self.reports.values()]]
        ends = np.cumsum(sizes, dtype=int).tolist()
        slices = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        return dict(zip([*self.drawn, *self.reports], slices, strict=True))


class NotKept(Mapping[str, Any]):
    """Stands for draws that were not kept: whatever needs them raises an error that says so."""

    def __getitem__(self, name: str) -> Never:
        refuse()

    def __iter__(self) -> Iterator[str]:
        refuse()

    def __len__(self) -> int:
        refuse()

    def __repr__(self) -> str:
        return "draws that were not kept"


def refuse() -> Never:
    """Raise the error of a result that has no draws."""
    remedy = 'Only `summary`, `info` and `describe` are available; sample with keep="draws" for more.'
    fail("draws", 'a run with keep="summary"', "draws that were kept", remedy)
