"""Figures of draws that are not kept: means, spreads, quantiles, effective sizes and R-hat, in memory that stays.

Draws enter in the order in which they are made, and what becomes of each depends on its place alone. So a digest is the
same to the last bit however a run is cut, and its count tells the shapes of all that it holds.
"""

from typing import NamedTuple, Self

import numpy as np

from dpjax.diagnostics.convergence import ess_mean, safe_divide

__all__ = ["Digest", "Moments", "Sketch", "digest_figures", "open_digest"]

BLOCK = 32
"""Draws that are averaged at once."""

MOST_BATCHES = 128
"""With so many batches each two neighbours become one: there are from 64 to 127 of them, ever longer."""

LEAST_BATCHES = 20
"""Batches of each chain without which nothing is said of effective sizes: fewer cannot tell whether they depend on each
other."""

SIZE = 2048
"""Values that a level of the sketch holds. The rank of a quantile of N values is then wrong by at most a share
log2(N / SIZE) / (2 SIZE): of four million, 0.27 %."""


class Moments(NamedTuple):
    """Means and sums of squares about these, of so many draws."""

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
    """The moments [...] of draws [draw, ...]; of equal draws, that very number and exactly no spread."""
    first = draws[0] if len(draws) else np.zeros(draws.shape[1:])
    with np.errstate(invalid="ignore", over="ignore"):  # draws that are not finite have no moments
        means = first + (np.mean(draws - first, axis=0) if len(draws) else 0.0)
        return Moments(len(draws), means, np.sum((draws - means) ** 2, axis=0))


class Sketch(NamedTuple):
    """A quantile sketch of each of k numbers (Munro and Paterson 1980).

    Values gather until there are `SIZE` of them, and are sorted into level 0. Two sets of one level become one of the
    next: of both in order every second value is kept, by turns the odd and the even ones, and stands for two.

    Parameters
    ----------
    number
        How many values there were; its binary digits tell which levels are filled.
    waiting
        Values that are not sorted in yet [fewer than SIZE, k].
    levels
        Values [SIZE, k] of each filled level, from the lowest on; those of level l stand for 2^l each.
    """

    number: int
    waiting: np.ndarray
    levels: tuple[np.ndarray, ...]

    def add(self, values: np.ndarray) -> "Sketch":
        """The sketch after more values [value, k]."""
        sketch, values = self, np.concatenate([self.waiting, values])
        while len(values) >= SIZE:
            sketch, values = sketch.sort_in(np.sort(values[:SIZE], axis=0)), values[SIZE:]
        full = sketch.number // SIZE * SIZE
        return sketch._replace(number=full + len(values), waiting=values)

    def sort_in(self, ordered: np.ndarray) -> "Sketch":
        """The sketch after `SIZE` more values in order."""
        sets, levels = self.number // SIZE, self.levels
        for level in range(sets.bit_length()):
            if not sets >> level & 1:
                break
            both = np.sort(np.concatenate([levels[0], ordered]), axis=0)
            ordered, levels = both[sets >> (level + 1) & 1 :: 2], levels[1:]
        return self._replace(number=(sets + 1) * SIZE, levels=(ordered, *levels))

    def quantiles(self, probabilities: tuple[float, ...]) -> np.ndarray:
        """The quantiles [probability, k]; those of fewer than `SIZE` values are exact."""
        weights = [np.ones(len(self.waiting)), *(np.full(SIZE, 2.0**level) for level in filled_levels(self.number))]
        values, weight = np.concatenate([self.waiting, *self.levels]), np.concatenate(weights)
        order = np.argsort(values, axis=0)
        places = (np.cumsum(weight[order], axis=0) - weight[order] / 2 - 0.5) / max(self.number - 1, 1)
        ordered = np.take_along_axis(values, order, axis=0)
        found = [np.interp(probabilities, places[:, k], ordered[:, k]) for k in range(values.shape[1])]
        return np.reshape(found, (values.shape[1], len(probabilities))).T


def filled_levels(count: int) -> list[int]:
    """The levels that a sketch of so many values fills."""
    sets = count // SIZE
    return [level for level in range(sets.bit_length()) if sets >> level & 1]


class Digest(NamedTuple):
    """What is known of the draws of k numbers by some chains.

    number
        Draws of each chain.
    held
        The last draws, fewer than a block [draw, chain, k].
    means
        Of batches of draws [batch, chain, k].
    squares
        Sums of squares about these [batch, chain, k].
    last_means
        Means of the batch that is not full yet [chain, k].
    last_squares
        Its sums of squares [chain, k].
    sketch
        The quantiles of all chains together.
    """

    number: int
    held: np.ndarray
    means: np.ndarray
    squares: np.ndarray
    last_means: np.ndarray
    last_squares: np.ndarray
    sketch: Sketch

    def add(self, draws: np.ndarray) -> Self:
        """The digest after more draws [draw, chain, k]; this one stays as it is."""
        digest, held = self, np.concatenate([self.held, draws])
        while len(held) >= BLOCK:
            digest, held = digest.add_block(moments_of(held[:BLOCK])), held[BLOCK:]
        sketch = self.sketch.add(draws.reshape(-1, draws.shape[-1]))
        return digest._replace(number=self.number + len(draws), held=held.copy(), sketch=sketch)

    def add_block(self, block: Moments) -> Self:
        """The digest after one more block, whose draws are not counted yet elsewhere."""
        blocks = self.number // BLOCK
        width = batch_width(blocks)
        joined = Moments(blocks % width * BLOCK, self.last_means, self.last_squares).join(block)
        after = self._replace(number=(blocks + 1) * BLOCK)
        if joined.number < width * BLOCK:
            return after._replace(last_means=joined.means, last_squares=joined.squares)
        nothing = np.zeros_like(joined.means)
        means, squares = (np.append(old, new[None], axis=0) for old, new in zip(self[2:4], joined[1:], strict=True))
        full = after._replace(means=means, squares=squares, last_means=nothing, last_squares=nothing)
        return full.halve(width) if len(means) == MOST_BATCHES else full

    def halve(self, width: int) -> Self:
        """The digest with each two neighbouring batches, of so many blocks, as one."""
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
    """The moments of all parts together, which are as long as each other, and along the first axis."""
    number = len(parts.means)
    if not number:
        return Moments(0, np.zeros(parts.means.shape[1:]), np.zeros(parts.means.shape[1:]))
    between = moments_of(parts.means)
    return Moments(number * parts.number, between.means, np.sum(parts.squares, axis=0) + parts.number * between.squares)


def batch_width(blocks: int) -> int:
    """How many blocks are in a batch where there are so many of them: a power of 2."""
    width = 1
    while blocks // width >= MOST_BATCHES:
        width *= 2
    return width


def open_digest(num_chains: int, size: int, count: int = 0) -> Digest:
    """The digest of `size` numbers before the first draw; or, for `count` draws of each chain, one of its shapes."""
    blocks, values = count // BLOCK, count * num_chains
    zeros = np.zeros((blocks // batch_width(blocks), num_chains, size))
    levels = tuple(np.zeros((SIZE, size)) for _ in filled_levels(values))
    sketch = Sketch(values, np.zeros((values % SIZE, size)), levels)
    last = np.zeros((num_chains, size))
    return Digest(count, np.zeros((count % BLOCK, num_chains, size)), zeros, zeros, last, last, sketch)


def digest_figures(digest: Digest, probabilities: tuple[float, ...]) -> dict[str, np.ndarray]:
    """The figures of each number [k]: mean, sd, quantiles [probability, k], standard error, effective size and R-hat.

    R-hat compares the halves of all chains, by their batches, without ranks. What cannot be told is NaN: of effective
    sizes and standard errors that is so with fewer than 20 batches a chain, 640 draws, and where all draws are one.
    """
    chains = digest.chains()
    total = merge(chains)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = total.squares / max(total.number - 1, 1)
        size, ratio = effective_size(digest, variance), split_r_hat(digest)
        figures = {
            "mean": total.means,
            "sd": np.sqrt(variance),
            "quantiles": digest.sketch.quantiles(probabilities),
            "mcse_mean": np.sqrt(variance / size),
            "ess_mean": size,
            "r_hat": ratio,
        }
    fine = np.isfinite(variance)
    return {name: np.where(fine, values, np.nan) for name, values in figures.items()}


def effective_size(digest: Digest, variance: np.ndarray) -> np.ndarray:
    """The number of independent draws that know the mean as well [k]; NaN with too few batches, or without a spread.

    The means of a chain's batches are a chain themselves, and theirs is its mean: its variance is told as that of any
    draws, with what neighbouring batches and the spread of chains say of it. Long batches see slow moves that are small
    beside fast ones, so that of several widths the least size is taken, and never more than there are draws.
    """
    means, draws = np.swapaxes(digest.batches().means, 0, 1), float(digest.number * digest.means.shape[1])
    sizes = [np.full(variance.shape, np.nan if means.shape[1] < LEAST_BATCHES else draws)]
    while means.shape[1] >= LEAST_BATCHES:
        sizes.append(variance * safe_divide(ess_mean(means), np.var(means, axis=(0, 1), ddof=1)))
        even = means.shape[1] // 2 * 2
        means = (means[:, 0:even:2] + means[:, 1:even:2]) / 2
    size: np.ndarray = np.where(variance > 0, np.fmin.reduce(sizes), np.nan)
    return size


def split_r_hat(digest: Digest) -> np.ndarray:
    """The square root of the pooled over the within-chain variance [k], of the first and last halves of the batches."""
    batches = digest.batches()
    half = len(batches.means) // 2
    if half < 2:
        return np.full(digest.means.shape[-1], np.nan)
    parts = [slice(None, half), slice(-half, None)]
    halves = [merge(Moments(batches.number, batches.means[part], batches.squares[part])) for part in parts]
    length = halves[0].number
    within = np.mean(np.concatenate([part.squares for part in halves]) / (length - 1), axis=0)
    between = np.var(np.concatenate([part.means for part in halves]), axis=0, ddof=1)
    ratio = np.sqrt((length - 1) / length + safe_divide(between, within))
    return np.where((within == 0) & (between > 0), np.inf, ratio)
