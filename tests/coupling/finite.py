"""Exact chains on a few record values: transition matrices of SOMA and IMwG, and their couplings, by enumeration.

A target of `n` records with `len(proposals)` values has a density for every count of values, so that neighbouring data
sets may differ by any ratio within e^ε; random tables of 0 and ε are the hardest.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

Records = tuple[int, ...]
Choices = Callable[["Target", Records, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Target:
    """Records of `n` values with proposals [values], and η by sorted records."""

    n: int
    proposals: np.ndarray
    density: dict[Records, float]

    def weights(self, records: Records, proposal: int) -> np.ndarray:
        """η with the proposal in each place [n]."""
        return np.array([self.density[replaced(records, place, proposal)] for place in range(self.n)])

    def weight(self, records: Records) -> float:
        """η of the records as they are."""
        return self.density[tuple(sorted(records))]

    def states(self) -> list[Records]:
        """All records in all orders."""
        return list(product(range(len(self.proposals)), repeat=self.n))


def random_target(rng: np.random.Generator, n: int, values: int, epsilon: float) -> Target:
    """Log-densities of 0 or ε, and proposals of any law."""
    states = {tuple(sorted(state)) for state in product(range(values), repeat=n)}
    density = {state: float(np.exp(epsilon * rng.integers(2))) for state in sorted(states)}
    return Target(n, rng.dirichlet(np.ones(values)), density)


def replaced(records: Records, place: int, proposal: int) -> Records:
    """The records with the proposal in one place, sorted."""
    return tuple(sorted((*records[:place], proposal, *records[place + 1 :])))


def soma_choices(target: Target, records: Records, proposal: int) -> tuple[np.ndarray, np.ndarray]:
    """The chance of each place, and of accepting there, [n] each: equations (7) and (8)."""
    weights, current = target.weights(records, proposal), target.weight(records)
    total = weights.sum()
    return weights / total, np.minimum(1.0, total / (total + current - weights))


def imwg_choices(target: Target, records: Records, proposal: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of IMwG with random scan."""
    ratios = target.weights(records, proposal) / target.weight(records)
    return np.full(target.n, 1 / target.n), np.minimum(1.0, ratios)


def acceptance(target: Target, records: Records, choices: Choices) -> float:
    """A(x), the chance that a proposal is accepted: equations (13) and (14)."""
    return sum(chance * np.dot(*choices(target, records, y)) for y, chance in enumerate(target.proposals))


def matrix(target: Target, choices: Choices, places: range | None = None) -> np.ndarray:
    """The transition matrix of one proposal over multisets, or, at given places in turn, over ordered records."""
    ordered = places is not None
    states = target.states() if ordered else sorted(target.density)
    number = {state: row for row, state in enumerate(states)}
    result = np.eye(len(states))
    for place in places if ordered else [None]:
        step = np.zeros_like(result)
        for state in states:
            for y, chance in enumerate(target.proposals):
                chosen, accepted = choices(target, state, y)
                if place is not None:
                    chosen = np.eye(target.n)[place]
                for spot in range(target.n):
                    new = (*state[:spot], y, *state[spot + 1 :]) if ordered else replaced(state, spot, y)
                    step[number[state], number[new]] += chance * chosen[spot] * accepted[spot]
        step += np.diag(1 - step.sum(axis=1))
        result = result @ step
    return result


def second_modulus(transition: np.ndarray) -> float:
    """The second largest modulus of the eigenvalues: the convergence rate of a finite chain."""
    return float(np.sort(np.abs(np.linalg.eigvals(transition)))[-2])


def coupled_pairs(target: Target) -> Iterator[tuple[Records, Records, int]]:
    """All pairs of data sets that differ, their unmatched records first, and in how many."""
    for first, second in product(sorted(target.density), repeat=2):
        common = Counter(first) & Counter(second)
        distance = target.n - common.total()
        if distance:
            matched = tuple(common.elements())
            heads = [tuple((Counter(side) - common).elements()) for side in (first, second)]
            yield heads[0] + matched, heads[1] + matched, distance


def distances_after(target: Target, first: Records, second: Records, choices: Choices) -> dict[int, float]:
    """The law of the distance after one proposal of the coupling of Appendix A.6, its residual by place."""
    law: dict[int, float] = Counter()
    for y, chance in enumerate(target.proposals):
        (p, a), (q, b) = choices(target, first, y), choices(target, second, y)
        for (i, j), joint in index_law(p, q).items():
            moved, other = replaced(first, i, y), replaced(second, j, y)
            both = min(a[i], b[j])
            stays = tuple(sorted(first)), tuple(sorted(second))
            ends = (
                (moved, other, both),
                (moved, stays[1], a[i] - both),
                (stays[0], other, b[j] - both),
                (*stays, 1 - max(a[i], b[j])),
            )
            for one, two, part in ends:
                law[target.n - (Counter(one) & Counter(two)).total()] += chance * joint * part
    return law


def index_law(p: np.ndarray, q: np.ndarray) -> dict[tuple[int, int], float]:
    """The joint law of the two places: a maximal coupling whose residuals share one uniform, as in Figure 5."""
    common = np.minimum(p, q)
    law = {(i, i): mass for i, mass in enumerate(common)}
    ends, other_ends = np.cumsum(p - common), np.cumsum(q - common)
    cuts = np.concatenate([[0.0], np.sort(np.concatenate([ends, other_ends]))])
    for low, high in pairwise(cuts):
        if high - low > 1e-15:
            middle = (low + high) / 2
            place = int(np.searchsorted(ends, middle)), int(np.searchsorted(other_ends, middle))
            law[place] = law.get(place, 0.0) + high - low
    return law
