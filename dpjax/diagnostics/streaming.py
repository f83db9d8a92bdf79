"""Streaming summaries in constant memory: means, sds, quantiles, effective sample sizes and R-hat of draws not kept.

Draws are added in the order in which they are made, and each is treated according to its index alone. So a summary is
the same to the last bit however a run is split into chunks, and its number of draws determines the shapes of its
arrays.
"""

from typing import NamedTuple, Self

import numpy as np

from dpjax.diagnostics.convergence import ess_mean, safe_divide

__all__ = ["Moments", "Sketch", "StreamingSummary", "empty_summary", "streaming_estimates"]

BLOCK = 32
"""Number of draws of a block, which are averaged at once."""

MAX_BATCHES = 128
"""Number of batches at which neighbours are merged in pairs: there are 64 to 127 of them, of growing length."""

MIN_BATCHES = 20
"""Smallest number of batches per chain for which effective sample sizes are estimated: fewer cannot show whether they
are correlated."""

LEVEL_SIZE = 2048
"""Number of values in a level of the sketch. The relative error of the rank of a quantile of N values is at most log2(N
/ LEVEL_SIZE) / (2 LEVEL_SIZE): 0.27 % for four million."""


class Moments(NamedTuple):
    """The number of draws, their means, and their sums of squares about the means."""

    number: float
    means: np.ndarray
    squares: np.ndarray

    def join(self, other: "Moments") -> "Moments":
        """The moments of both sets of draws (Chan, Golub and LeVeque 1983)."""
        count = self.number + other.number
        if not count:
            return self
        with np.errstate(invalid="ignore", over="ignore"):
            shift = other.means - self.means
            means = self.means + shift * (other.number / count)
            squares = self.squares + other.squares + shift**2 * (self.number * other.number / count)
        return Moments(count, means, squares)


def moments_of(draws: np.ndarray) -> Moments:
    """The moments [...] of draws [draw, ...]; equal draws have exactly that mean and zero squares."""
    first = draws[0] if len(draws) else np.zeros(draws.shape[1:])
    with np.errstate(invalid="ignore", over="ignore"):  # non-finite draws have no moments
        means = first + (np.mean(draws - first, axis=0) if len(draws) else 0.0)
        return Moments(len(draws), means, np.sum((draws - means) ** 2, axis=0))


class Sketch(NamedTuple):
    """A quantile sketch of each of k numbers (Munro and Paterson 1980).

    Values are buffered until there are `LEVEL_SIZE` of them, which are sorted into level 0. Two sets of one level are
    merged into one of the next. Every second value of both in order is kept, in turn the odd and the even ones, with
    twice the weight.

    Parameters
    ----------
    number
        Number of values; its binary digits determine which levels are filled.
    waiting
        Values that are not sorted yet [fewer than LEVEL_SIZE, k].
    levels
        Values [LEVEL_SIZE, k] of each filled level, from the lowest on; those of level l have weight 2^l.
    """

    number: int
    waiting: np.ndarray
    levels: tuple[np.ndarray, ...]

    def add(self, values: np.ndarray) -> "Sketch":
        """The sketch after more values [value, k]."""
        sketch, values = self, np.concatenate([self.waiting, values])
        while len(values) >= LEVEL_SIZE:
            sketch, values = sketch.sort_in(np.sort(values[:LEVEL_SIZE], axis=0)), values[LEVEL_SIZE:]
        full = sketch.number // LEVEL_SIZE * LEVEL_SIZE
        return sketch._replace(number=full + len(values), waiting=values)

    def sort_in(self, ordered: np.ndarray) -> "Sketch":
        """The sketch after `LEVEL_SIZE` more values in order."""
        sets, levels = self.number // LEVEL_SIZE, self.levels
        for level in range(sets.bit_length()):
            if not sets >> level & 1:
                break
            both = np.sort(np.concatenate([levels[0], ordered]), axis=0)
            ordered, levels = both[sets >> (level + 1) & 1 :: 2], levels[1:]
        return self._replace(number=(sets + 1) * LEVEL_SIZE, levels=(ordered, *levels))

    def quantiles(self, probabilities: tuple[float, ...]) -> np.ndarray:
        """The quantiles [probability, k]; those of fewer than `LEVEL_SIZE` values are exact."""
        weights = [
            np.ones(len(self.waiting)),
            *(np.full(LEVEL_SIZE, 2.0**level) for level in filled_levels(self.number)),
        ]
        values, weight = np.concatenate([self.waiting, *self.levels]), np.concatenate(weights)
        order = np.argsort(values, axis=0)
        places = (np.cumsum(weight[order], axis=0) - weight[order] / 2 - 0.5) / max(self.number - 1, 1)
        ordered = np.take_along_axis(values, order, axis=0)
        found = [np.interp(probabilities, places[:, k], ordered[:, k]) for k in range(values.shape[1])]
        return np.reshape(found, (values.shape[1], len(probabilities))).T


def filled_levels(count: int) -> list[int]:
    """The filled levels of a sketch of `count` values."""
    sets = count // LEVEL_SIZE
    return [level for level in range(sets.bit_length()) if sets >> level & 1]


class StreamingSummary(NamedTuple):
    """A summary of the draws of k numbers by several chains.

    number
        Number of draws per chain.
    held
        The draws since the last full block [draw, chain, k].
    means
        Means of batches of draws [batch, chain, k].
    squares
        Sums of squares about the means [batch, chain, k].
    last_means
        Means of the incomplete batch [chain, k].
    last_squares
        Sums of squares of the incomplete batch [chain, k].
    sketch
        The quantile sketch of all chains together.
    """

    number: int
    held: np.ndarray
    means: np.ndarray
    squares: np.ndarray
    last_means: np.ndarray
    last_squares: np.ndarray
    sketch: Sketch

    def add(self, draws: np.ndarray) -> Self:
        """The summary after more draws [draw, chain, k]; the present one does not change."""
        summary, held = self, np.concatenate([self.held, draws])
        while len(held) >= BLOCK:
            summary, held = summary.add_block(moments_of(held[:BLOCK])), held[BLOCK:]
        sketch = self.sketch.add(draws.reshape(-1, draws.shape[-1]))
        return summary._replace(number=self.number + len(draws), held=held.copy(), sketch=sketch)

    def add_block(self, block: Moments) -> Self:
        """The summary after one more block, without its draws in `held` or `sketch`."""
        blocks = self.number // BLOCK
        width = batch_width(blocks)
        joined = Moments(blocks % width * BLOCK, self.last_means, self.last_squares).join(block)
        after = self._replace(number=(blocks + 1) * BLOCK)
        if joined.number < width * BLOCK:
            return after._replace(last_means=joined.means, last_squares=joined.squares)
        nothing = np.zeros_like(joined.means)
        means, squares = (np.append(old, new[None], axis=0) for old, new in zip(self[2:4], joined[1:], strict=True))
        full = after._replace(means=means, squares=squares, last_means=nothing, last_squares=nothing)
        return full.halve(width) if len(means) == MAX_BATCHES else full

    def halve(self, width: int) -> Self:
        """The summary with neighbouring batches, of `width` blocks each, merged in pairs."""
        one, other = (Moments(width * BLOCK, self.means[k::2], self.squares[k::2]) for k in (0, 1))
        joined = one.join(other)
        return self._replace(means=joined.means, squares=joined.squares)

    def batches(self) -> Moments:
        """The moments of the full batches [batch, chain, k]."""
        return Moments(batch_width(self.number // BLOCK) * BLOCK, self.means, self.squares)

    def chains(self) -> Moments:
        """The moments of all draws of each chain [chain, k]."""
        blocks = self.number // BLOCK
        last = Moments(blocks % batch_width(blocks) * BLOCK, self.last_means, self.last_squares)
        return merge(self.batches()).join(last).join(moments_of(self.held))


def merge(parts: Moments) -> Moments:
    """The moments of all parts together: parts of equal length, along the first axis."""
    number = len(parts.means)
    if not number:
        return Moments(0, np.zeros(parts.means.shape[1:]), np.zeros(parts.means.shape[1:]))
    between = moments_of(parts.means)
    return Moments(number * parts.number, between.means, np.sum(parts.squares, axis=0) + parts.number * between.squares)


def batch_width(blocks: int) -> int:
    """The number of blocks per batch for a total of `blocks`: a power of 2."""
    width = 1
    while blocks // width >= MAX_BATCHES:
        width *= 2
    return width


def empty_summary(num_chains: int, size: int, count: int = 0) -> StreamingSummary:
    """The summary of `size` numbers before the first draw; zeros of the same shapes for `count` draws per chain."""
    blocks, values = count // BLOCK, count * num_chains
    zeros = np.zeros((blocks // batch_width(blocks), num_chains, size))
    levels = tuple(np.zeros((LEVEL_SIZE, size)) for _ in filled_levels(values))
    sketch = Sketch(values, np.zeros((values % LEVEL_SIZE, size)), levels)
    last = np.zeros((num_chains, size))
    return StreamingSummary(count, np.zeros((count % BLOCK, num_chains, size)), zeros, zeros, last, last, sketch)


def streaming_estimates(summary: StreamingSummary, probabilities: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Estimates for each number [k]: mean, sd, quantiles [probability, k], standard error, effective size and R-hat.

    R-hat compares the halves of all chains, by their batches, without ranks. Unknown values are NaN: effective sizes
    and standard errors with fewer than 20 batches per chain, that is 640 draws, or if all draws are equal.
    """
    chains = summary.chains()
    total = merge(chains)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = total.squares / max(total.number - 1, 1)
        size, ratio = effective_size(summary, variance), split_r_hat(summary)
        figures = {
            "mean": total.means,
            "sd": np.sqrt(variance),
            "quantiles": summary.sketch.quantiles(probabilities),
            "mcse_mean": np.sqrt(variance / size),
            "ess_mean": size,
            "r_hat": ratio,
        }
    finite = np.isfinite(variance)
    return {name: np.where(finite, values, np.nan) for name, values in figures.items()}


def effective_size(summary: StreamingSummary, variance: np.ndarray) -> np.ndarray:
    """The effective sample size of the mean [k]; NaN with too few batches, or if all draws are equal.

    The batch means of a chain are themselves a chain, with the same mean: its variance is estimated as for any draws,
    from their autocorrelations and the differences between chains. Long batches show slow components that are small
    beside fast ones, so the smallest of the sizes for several batch lengths is taken, and at most the number of draws.
    """
    means, draws = np.swapaxes(summary.batches().means, 0, 1), float(summary.number * summary.means.shape[1])
    sizes = [np.full(variance.shape, np.nan if means.shape[1] < MIN_BATCHES else draws)]
    while means.shape[1] >= MIN_BATCHES:
        sizes.append(variance * safe_divide(ess_mean(means), np.var(means, axis=(0, 1), ddof=1)))
        even = means.shape[1] // 2 * 2
        means = (means[:, 0:even:2] + means[:, 1:even:2]) / 2
    size: np.ndarray = np.where(variance > 0, np.fmin.reduce(sizes), np.nan)
    return size


def split_r_hat(summary: StreamingSummary) -> np.ndarray:
    """The square root of the pooled over the within-chain variance [k], of the first and last halves of the batches."""
    batches = summary.batches()
    half = len(batches.means) // 2
    if half < 2:
        return np.full(summary.means.shape[-1], np.nan)
    parts = [slice(None, half), slice(-half, None)]
    halves = [merge(Moments(batches.number, batches.means[part], batches.squares[part])) for part in parts]
    length = halves[0].number
    within = np.mean(np.concatenate([part.squares for part in halves]) / (length - 1), axis=0)
    between = np.var(np.concatenate([part.means for part in halves]), axis=0, ddof=1)
    ratio = np.sqrt((length - 1) / length + safe_divide(between, within))
    return np.where((within == 0) & (between > 0), np.inf, ratio)
