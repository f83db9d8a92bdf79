"""A point estimate of the partition: the one with the least posterior expected distance to the partitions drawn.

Both distances are sums over the sizes of clusters and of their overlaps: D(c, c') = Σ_a f(n_a) + Σ_b f(n_b') - 2 Σ_ab
f(n_ab). So one search serves both and needs no table of n² pairs.
"""

from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_choice, check_count, check_key, fail
from dpjax.base import Key

__all__ = ["Loss", "Partition", "expected_loss", "find_partition", "relabel"]

LOSSES = ("binder", "variation")

LEAST_GAIN = 1e-10
"""Smallest gain of a move that is not taken for rounding."""

MAX_REBUILDS = 10
"""Largest number of clusters of one partition that are broken up in search of a better partition."""

Loss = Literal["binder", "variation"]


class Partition(NamedTuple):
    """A partition of the records.

    Attributes
    ----------
    labels
        The cluster [n] of each record, numbered from 0 in the order of their first records.
    expected_loss
        Its mean distance to the partitions drawn.
    num_clusters
        How many clusters it has.

    Examples
    --------
    >>> import jax
    >>> import numpy as np
    >>> from dpjax import mixture
    >>> labels = np.array([[0, 0, 1], [2, 2, 0], [0, 1, 1]])
    >>> partition = mixture.find_partition(jax.random.key(1), labels)
    >>> partition.labels.tolist(), partition.num_clusters
    ([0, 0, 1], 2)
    """

    labels: np.ndarray
    expected_loss: float
    num_clusters: int


@names_arguments
def find_partition(
    key: Key, labels: Any, *, loss: Loss = "variation", num_starts: int = 8, max_clusters: int | None = None
) -> Partition:
    """The partition of least expected distance to those drawn, among all that a greedy search finds.

    From each start, records join the best cluster in random order, then move to the best cluster until none moves.
    Finally single clusters are broken up and their records are allocated again if that is better (Dahl, Johnson and
    Müller 2022). The expectation is the mean over the draws. Memory is proportional to draws times records.

    Parameters
    ----------
    key
        One typed key, for the random orders.
    labels : [..., n]
        The cluster of each record in each draw, as ``MixturePosterior.collected["labels"]``.
    loss
        ``"variation"`` of information, in nats (Meilă 2007), or ``"binder"``: the share of all n² pairs of records that
        are together in one partition and apart in the other.
    num_starts
        Number of starts of the search.
    max_clusters
        Largest number of clusters of the partition; by default the largest among the draws.

    Raises
    ------
    TypeError, ValueError
        If an argument is unusable.

    Examples
    --------
    >>> import dpjax
    >>> import jax, numpy as np
    >>> drawn = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 2]])
    >>> dpjax.mixture.find_partition(jax.random.key(1), drawn).labels.tolist()
    [0, 0, 1, 1]
    """
    check_key("key", key)
    check_loss(loss)
    check_count("num_starts", num_starts, "Pass how many starts to search from, at least 1.")
    drawn = relabel(check_labels(labels))
    largest = int(drawn.max()) + 1 if max_clusters is None else max_clusters
    check_count("max_clusters", largest, "Pass the most clusters the partition may have, at least 1.")
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    search = PartitionSearch(drawn, loss, min(largest, drawn.shape[1]))
    starts = (choose_start(generator, drawn, number) for number in range(num_starts))
    found = min((search.descend(generator, start) for start in starts), key=lambda end: end[0])[1]
    best = relabel(found[None])[0]
    return Partition(best, expected_loss(drawn, best, loss=loss), int(best.max()) + 1)


@names_arguments
def expected_loss(labels: Any, partition: Any, *, loss: Loss = "variation") -> float:
    """The mean distance between a partition [n] and those drawn, labels [..., n].

    Parameters
    ----------
    labels
        The cluster of each record in each draw [..., n].
    partition
        The partition [n].
    loss
        ``"variation"`` or ``"binder"``, as in `find_partition`.

    Raises
    ------
    TypeError, ValueError
        If an argument is unusable.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> float(dpjax.mixture.expected_loss(np.array([[0, 0, 1], [0, 1, 1]]), np.array([0, 0, 1]), loss="binder"))
    0.222
    """
    check_loss(loss)
    drawn, own = relabel(check_labels(labels)), relabel(check_labels(partition, "partition"))
    if own.shape != (1, drawn.shape[1]):
        remedy = "Pass the cluster of each record."
        fail("partition", f"shape {list(np.shape(partition))}", f"shape {[drawn.shape[1]]}", remedy)
    n = drawn.shape[1]
    terms = loss_terms(loss, n, n)

    def total(row: np.ndarray) -> float:
        """Σ f over the sizes of the clusters."""
        return float(terms[np.bincount(row)].sum())

    clusters = int(own.max()) + 1
    distances = [total(row) - 2 * total(row * clusters + own[0]) for row in drawn]
    return max(0.0, total(own[0]) + float(np.mean(distances)))


def relabel(labels: np.ndarray) -> np.ndarray:
    """The same partitions [draw, n] with clusters numbered from 0 in the order of their first records."""

    def one(row: np.ndarray) -> np.ndarray:
        _, first, place = np.unique(row, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[place]

    return np.stack([one(row) for row in labels])


def loss_terms(loss: str, n: int, largest: int) -> np.ndarray:
    """f(0), ..., f(largest): (x / n)² for the pairs, (x / n) log x for the information."""
    sizes = np.arange(largest + 1)
    return (sizes / n) ** 2 if loss == "binder" else sizes / n * np.log(np.maximum(sizes, 1))


class PartitionSearch:
    """A greedy search for a partition of least expected loss, from its clusters' overlaps with those of each draw.

    Parameters
    ----------
    drawn : [draw, n]
        The partitions drawn, numbered from 0.
    max_clusters
        Largest number of clusters of the partition.
    """

    def __init__(self, drawn: np.ndarray, loss: str, max_clusters: int) -> None:
        draws, self.n = drawn.shape
        widest = int(drawn.max()) + 1
        self.rows = np.ascontiguousarray((drawn + widest * np.arange(draws)[:, None]).T)
        self.steps = np.diff(loss_terms(loss, self.n, self.n + 1))
        self.shares = np.full(draws, 1 / draws)
        self.shape = (draws * widest, max_clusters)
        self.clear()

    def clear(self) -> None:
        """Take out all records."""
        self.labels = np.full(self.n, -1)
        self.sizes = np.zeros(self.shape[1], int)
        self.counts = np.zeros(self.shape, np.int32)
        # The gain of each overlap's term if it had one more record.
        self.growth = np.full(self.shape, self.steps[0])
        self.loss = 0.0

    def costs(self, record: int) -> np.ndarray:
        """The change of the loss if the record, once taken out, joined each of the clusters."""
        shared = self.shares @ np.take(self.growth, self.rows[record], axis=0)
        costs = self.steps[self.sizes] - 2 * shared
        own = self.labels[record]
        if own >= 0:
            without = self.steps[self.counts[self.rows[record], own] - 1]
            costs[own] = self.steps[self.sizes[own] - 1] - 2 * self.shares @ without
        return costs

    def place(self, record: int) -> bool:
        """Move a record to the best cluster, and return whether it moved."""
        costs, own = self.costs(record), self.labels[record]
        best = int(np.argmin(costs))
        if own >= 0 and costs[best] > costs[own] - LEAST_GAIN:
            return False
        self.move(record, best, costs)
        return True

    def move(self, record: int, cluster: int, costs: np.ndarray) -> None:
        """Move a record to a cluster; -1 stands for none."""
        own = self.labels[record]
        self.loss += (costs[cluster] if cluster >= 0 else 0) - (costs[own] if own >= 0 else 0)
        self.add(record, own, -1)
        self.add(record, cluster, 1)
        self.labels[record] = cluster

    def add(self, record: int, cluster: int, number: int) -> None:
        """Add a record to the counts of a cluster, or subtract it."""
        if cluster >= 0:
            rows = self.rows[record]
            self.counts[rows, cluster] += number
            self.growth[rows, cluster] = self.steps[self.counts[rows, cluster]]
            self.sizes[cluster] += number

    def settle(self, generator: np.random.Generator) -> None:
        """Move records, in random order, until none moves."""
        while np.count_nonzero([self.place(record) for record in generator.permutation(self.n)]):
            pass

    def rebuild(self, cluster: int, generator: np.random.Generator) -> None:
        """Break up a cluster and allocate its records again; keep the result if it is better."""
        before, labels = self.loss, self.labels.copy()
        members = generator.permutation(np.flatnonzero(labels == cluster))
        for record in members:
            self.move(record, -1, self.costs(record))
        for record in members:
            self.place(record)
        self.settle(generator)
        if self.loss > before - LEAST_GAIN:
            for record in np.flatnonzero(self.labels != labels).tolist():
                self.add(record, self.labels[record], -1)
                self.add(record, labels[record], 1)
            self.loss, self.labels = before, labels

    def descend(self, generator: np.random.Generator, start: np.ndarray | None) -> tuple[float, np.ndarray]:
        """A partition that no move improves, and its loss up to a constant, from a given partition or from none."""
        self.clear()
        for record in generator.permutation(self.n):
            if start is None:
                self.place(record)
            else:
                self.move(record, min(start[record], self.sizes.size - 1), self.costs(record))
        self.settle(generator)
        for cluster in generator.permutation(np.unique(self.labels))[:MAX_REBUILDS]:
            if self.sizes[cluster]:
                self.rebuild(cluster, generator)
        return self.loss, self.labels.copy()


def choose_start(generator: np.random.Generator, drawn: np.ndarray, number: int) -> np.ndarray | None:
    """The start of a search: every second time none, once a single cluster, else a draw.

    Without a start, sequential allocation opens too many clusters if the draws disagree.
    """
    if number % 2 == 0:
        return None
    return np.zeros_like(drawn[0]) if number == 1 else generator.choice(drawn)


def check_loss(loss: Any) -> None:
    """Raise unless the loss is known."""
    check_choice("loss", loss, LOSSES, "Name the distance between partitions.")


def check_labels(labels: Any, argument: str = "labels") -> np.ndarray:
    """Labels [draw, n], or an error unless they are whole numbers of at least one record."""
    remedy = "Pass the cluster of each record, one draw a row."
    check_array(argument, labels, lambda array: array.ndim > 0 and array.size > 0, "labels [..., n]", remedy)
    array = np.asarray(labels)
    if array.dtype.kind not in "iu":
        fail(argument, f"an array of {array.dtype}", "whole numbers", remedy, error=TypeError)
    return array.reshape(-1, array.shape[-1])
