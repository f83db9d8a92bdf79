"""How records are added up to the totals of their groups: which numbers of which records, and in which order."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.data_augmentation.summed_out.groups import GroupedTerms, count_products
from dpjax.data_augmentation.summed_out.terms import Listed, NotSummableError, Windows
from dpjax.data_augmentation.summed_out.totals import GroupTotals

__all__ = ["with_totals"]

MOST_PRODUCTS = 2**24
"""Most products of which the sums of all groups are made: a gradient takes some ten milliseconds."""

FEW, STEPS = 16, 8
"""Nodes with more than a few numbers have one of four sizes between powers of two, multiples of an eighth of the next.

So programs for similar releases, and for other keys, are mostly the same.
"""


class SumRanges(NamedTuple):
    """From which number to which the sums of nodes [group, node] are, both included."""

    low: np.ndarray
    high: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """How many numbers these are [group, node]."""
        return self.high - self.low + 1

    @property
    def total(self) -> "SumRanges":
        """Those of the sums of all these nodes [group, 1]."""
        return SumRanges(*(np.sum(end, axis=1, keepdims=True) for end in self))

    def paired(self) -> "SumRanges":
        """Those of the sums of pairs of nodes; see `groups.halves`."""
        padded = [np.pad(end, ((0, 0), (0, end.shape[1] % 2))) for end in self]
        half = padded[0].shape[1] // 2
        return SumRanges(*(end[:, :half] + end[:, half:] for end in padded))

    def trimmed(self, whole: "SumRanges", allowed: "SumRanges") -> "SumRanges":
        """Without the sums that no total allows.

        Parameters
        ----------
        whole
            The ends of these nodes if nothing is left out of their leaves.
        allowed
            Those of the sums of all leaves [group, 1], which the total allows.
        """
        every = whole.total
        low = np.maximum(self.low, allowed.low - (every.high - whole.high))
        high = np.minimum(self.high, allowed.high - (every.low - whole.low))
        return SumRanges(low, np.maximum(high, low))


class Layout(NamedTuple):
    """The tree of each group, from the leaves up; see `GroupedTerms`."""

    starts: list[np.ndarray]
    widths: list[tuple[int, int]]
    root: SumRanges


def with_totals(totals: GroupTotals, records: Listed | Windows) -> GroupedTerms:
    """The records summed out beside totals of their groups.

    Raises
    ------
    ValueError
        If the sums are of more than `MOST_PRODUCTS` products.
    """
    start, stop = possible_places(np.asarray(records.log_released))
    low, several = np.asarray(records.least, np.int64), stop > start
    leaf = place_leaves(totals, np.where((totals.group >= 0) & several, stop - start, 0))
    whole = SumRanges(*(at_leaves(leaf, low + place) for place in (start, stop)))
    of_fixed = totals.of_groups(np.where(several, 0, low + start)).astype(np.int64)[:, None]
    sums = SumRanges(*(end + of_fixed for end in whole.total))
    log_total = totals.log_density(sums.low[:, 0], int(np.max(sums.size)))
    log_total = np.where(np.arange(log_total.shape[1]) < sums.size, log_total, -np.inf)
    allowed = ends_of(log_total, whole.total.low)
    leaves = whole.trimmed(whole, allowed)
    layout = lay_out(leaves, allowed)
    check_size(leaf, layout)
    real, root = records.log_released.dtype, layout.root
    return GroupedTerms(
        records.known,
        records,
        fixed=jnp.asarray(np.where(several, -1, start)),
        alone=jnp.asarray(np.flatnonzero(several & (totals.group < 0))),
        group=jnp.asarray(totals.group),
        first=jnp.asarray([np.argmax(totals.group == group) for group in range(totals.num_groups)]),
        leaf=jnp.asarray(leaf),
        place=jnp.asarray(leaves.low - at_leaves(leaf, low)),
        size_of_leaf=jnp.asarray(leaves.size),
        starts=tuple(map(jnp.asarray, layout.starts)),
        root=jnp.asarray((root.low - leaves.total.low)[:, 0]),
        log_total=jnp.asarray(
            at_root(log_total, root.low + of_fixed - sums.low, root.size, layout.widths[-1][0]), real
        ),
        log_largest=jnp.asarray(totals.largest(), real),
        constant=jnp.asarray(totals.constant, real),
        widths=tuple(layout.widths),
    )


def possible_places(released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of the first and the last possible number [m], given the log-densities [w, m] of what was released."""
    possible = released > -np.inf
    first = np.argmax(possible, axis=0)
    return first, np.where(possible.any(axis=0), len(released) - 1 - np.argmax(possible[::-1], axis=0), first)


def at_leaves(leaf: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The numbers [group, leaf] of the records of the leaves, from those of all records [m]; 0 for padding."""
    return np.append(numbers, 0)[leaf]


def lay_out(leaves: SumRanges, allowed: SumRanges) -> Layout:
    """The trees over these leaves, with sums that some total allows."""
    starts: list[np.ndarray] = []
    widths, trimmed, whole = [(rounded(leaves.size), 0)], leaves, leaves
    while (count := trimmed.low.shape[1]) > 1:
        second = trimmed.size[:, -(-count // 2) :]
        paired, whole = trimmed.paired(), whole.paired()
        trimmed = paired.trimmed(whole, allowed)
        starts.append(trimmed.low - paired.low)
        widths.append((rounded(trimmed.size), rounded(second)))
    return Layout(starts, widths, trimmed)


def check_size(leaf: np.ndarray, layout: Layout) -> None:
    """Raise if the sums of all groups are too many products."""
    products = len(leaf) * count_products(leaf.shape[1], tuple(layout.widths))
    if products > MOST_PRODUCTS:
        given = f"totals of {len(leaf)} groups, whose sums are made of {products:,} products"
        remedy = "Impute the records: imputation=dpjax.imwg()."
        fail("release", given, f"at most {MOST_PRODUCTS:,}", remedy, error=NotSummableError)


def at_root(log_total: np.ndarray, first: np.ndarray, sizes: np.ndarray, width: int) -> np.ndarray:
    """The log-densities [group, width] of as many sums [group, 1] as there are, from the first on; else ``-inf``."""
    places = first + np.arange(width)
    found = np.take_along_axis(log_total, np.minimum(places, log_total.shape[1] - 1), axis=1)
    return np.where(np.arange(width) < sizes, found, -np.inf)


def place_leaves(totals: GroupTotals, spans: np.ndarray) -> np.ndarray:
    """The records [group, leaf] of each group that have several possible numbers, those with the longest list first.

    Records n, which do not exist, stand behind those of groups with fewer. Nodes are paired with others half of all
    nodes away: so one of each pair is short, and the work is in proportion to its length.
    """
    order = np.argsort(-spans, kind="stable")
    members = [order[(totals.group[order] == group) & (spans[order] > 0)] for group in range(totals.num_groups)]
    most = max(1, *map(len, members))
    return np.stack([np.pad(each, (0, most - len(each)), constant_values=len(spans)) for each in members])


def ends_of(log_total: np.ndarray, low: np.ndarray) -> SumRanges:
    """The ends [group, 1] of the possible sums, given the log-densities [group, s] of sums from some low ones on."""
    possible = log_total > -np.inf
    first = np.argmax(possible, axis=1)[:, None]
    last = log_total.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)[:, None]
    # If no sum is possible, neither is the release, whatever is summed over.
    return SumRanges(low + first, low + np.where(possible.any(axis=1, keepdims=True), last, first))


def rounded(sizes: np.ndarray) -> int:
    """The largest size, or a little more."""
    most = int(np.max(sizes))
    step = 2 ** (most - 1).bit_length() // STEPS
    return most if most <= FEW else -(-most // step) * step
