"""Point partitions: the losses by their definitions, and the search against all partitions of six records."""

from collections.abc import Iterator
from itertools import combinations

import jax
import numpy as np
import pytest
from scipy import stats

from dpjax import mixture
from dpjax.mixture.partition import PartitionSearch, relabel

N = 6


def all_partitions(n: int) -> Iterator[list[int]]:
    """Every partition of n records, by labels in order of appearance."""
    if n == 0:
        yield []
        return
    for part in all_partitions(n - 1):
        yield from ([*part, label] for label in range(max(part, default=-1) + 2))


PARTITIONS = np.array(list(all_partitions(N)))


def noisy_draws(seed: int, agreement: float) -> np.ndarray:
    """Labels [40, 6] that are those of one partition each with some probability."""
    generator = np.random.default_rng(seed)
    centre = generator.integers(0, 3, N)
    return np.where(generator.uniform(size=(40, N)) < agreement, centre, generator.integers(0, 5, (40, N)))


def pair_disagreements(first: np.ndarray, second: np.ndarray) -> float:
    """The Binder loss by its definition, over all n² ordered pairs."""
    differing = sum((first[i] == first[j]) != (second[i] == second[j]) for i, j in combinations(range(N), 2))
    return 2 * differing / N**2


def information_apart(first: np.ndarray, second: np.ndarray) -> float:
    """H(c) + H(c') - 2 I(c, c') of the cluster of a record drawn at random."""
    joint = np.array([[np.mean((first == a) & (second == b)) for b in np.unique(second)] for a in np.unique(first)])
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    mutual = sum(
        joint[a, b] * np.log(joint[a, b] / (rows[a] * columns[b])) for a, b in zip(*np.nonzero(joint), strict=True)
    )
    return float(stats.entropy(rows) + stats.entropy(columns) - 2 * mutual)


@pytest.mark.parametrize(("loss", "distance"), [("binder", pair_disagreements), ("variation", information_apart)])
def test_losses_are_those_of_the_definitions(loss: str, distance) -> None:
    drawn = noisy_draws(1, 0.5)
    for partition in PARTITIONS[::20]:
        expected = np.mean([distance(row, partition) for row in drawn])
        assert mixture.expected_loss(drawn, partition, loss=loss) == pytest.approx(expected, abs=1e-12)
    assert mixture.expected_loss(PARTITIONS[:1], np.full(N, 7), loss=loss) == 0


def test_there_are_as_many_partitions_as_bell_counted() -> None:
    assert len(PARTITIONS) == 203


@pytest.mark.parametrize("loss", ["binder", "variation"])
def test_the_loss_of_a_search_is_that_of_its_labels(loss: str) -> None:
    """Up to what the draws add: of few records a search that adds up wrong numbers still finds the best end."""
    drawn, generator = noisy_draws(3, 0.5), np.random.default_rng(4)
    search = PartitionSearch(relabel(drawn), loss, N)
    ends = [search.descend(generator, start) for start in (None, np.zeros(N, int), *drawn[:6])]
    gaps = [found - mixture.expected_loss(drawn, labels, loss=loss) for found, labels in ends]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-12)


@pytest.mark.parametrize("loss", ["binder", "variation"])
def test_the_search_finds_the_best_of_all_partitions(loss: str) -> None:
    for seed, agreement in ((1, 0.2), (2, 0.6)):
        drawn = noisy_draws(seed, agreement)
        best = min(mixture.expected_loss(drawn, partition, loss=loss) for partition in PARTITIONS)
        found = mixture.find_partition(jax.random.key(seed), drawn, loss=loss, max_clusters=N)
        assert found.expected_loss == pytest.approx(best, abs=1e-12)
        assert found.num_clusters == len(set(found.labels))
        assert found.expected_loss == mixture.expected_loss(drawn, found.labels, loss=loss)


@pytest.mark.parametrize("loss", ["binder", "variation"])
def test_names_of_clusters_do_not_matter(loss: str) -> None:
    drawn = noisy_draws(5, 0.6)
    names = np.array([31, 4, -7, 12, 0])
    key = jax.random.key(2)
    found, renamed = (mixture.find_partition(key, labels, loss=loss) for labels in (drawn, names[drawn]))
    np.testing.assert_array_equal(found.labels, renamed.labels)
    assert found.expected_loss == renamed.expected_loss
    np.testing.assert_array_equal(relabel(np.array([[9, 2, 9, 5, 2]])), [[0, 1, 0, 2, 1]])


def test_groups_that_most_draws_agree_on_are_found() -> None:
    generator = np.random.default_rng(3)
    groups = np.repeat([0, 1, 2], 20)
    drawn = np.where(generator.uniform(size=(2, 50, 60)) < 0.75, groups, generator.integers(0, 8, (2, 50, 60)))
    found = mixture.find_partition(jax.random.key(1), drawn, num_starts=2)
    np.testing.assert_array_equal(found.labels, groups)
    assert mixture.find_partition(jax.random.key(1), drawn, num_starts=2, max_clusters=2).num_clusters == 2


REFUSED = [
    ({"loss": "entropy"}, ValueError, "loss"),
    ({"labels": np.zeros((2, 0), int)}, ValueError, "labels"),
    ({"labels": np.zeros((2, 3))}, TypeError, "labels"),
    ({"num_starts": 0}, ValueError, "num_starts"),
    ({"max_clusters": 0}, ValueError, "max_clusters"),
    ({"key": 3}, TypeError, "key"),
]


@pytest.mark.parametrize(("change", "error", "argument"), REFUSED)
def test_unusable_arguments_are_refused(change: dict, error: type[Exception], argument: str) -> None:
    with pytest.raises(error, match=rf"^{argument}: given"):
        mixture.find_partition(**({"key": jax.random.key(0), "labels": noisy_draws(1, 0.5)} | change))
    with pytest.raises(ValueError, match=r"^partition: given"):
        mixture.expected_loss(noisy_draws(1, 0.5), np.zeros(3, int))
