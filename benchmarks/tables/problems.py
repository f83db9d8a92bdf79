"""Tables whose counts are simulated, and what is released of them."""

from typing import NamedTuple

import numpy as np

import dpjax

VARIANCE = 20.0
"""The squared scale of the discrete Gaussian noise of a single table."""

LEVELS = {"block group": 20.0, "tract": 8.0, "county": 2.0}
"""The squared scale of the noise at each level of the county."""

PEOPLE = 1_200
"""In a typical block group."""

STRENGTH = 100.0
"""Of the prior, in people of a block group: how far its shares of the categories may be from the public ones."""


class County(NamedTuple):
    """A simulated county.

    counts
        People by block group and category [tract · group, category].
    tract
        The tract of each block group [tract · group].
    typical
        Shares of the categories [category] that are public, as from an earlier census.
    """

    counts: np.ndarray
    tract: np.ndarray
    typical: np.ndarray


def draw_table(cells: int, n: int, generator: np.random.Generator) -> np.ndarray:
    """Counts [cells] of n people whose shares are a draw of the flat Dirichlet law."""
    return generator.multinomial(n, generator.dirichlet(np.ones(cells)))


def release_table(counts: np.ndarray, generator: np.random.Generator) -> dpjax.Release:
    """Noisy counts of every cell."""
    value = counts + draw_noise(VARIANCE, counts.shape, generator)
    mechanism = dpjax.DiscreteGaussian(VARIANCE**0.5)
    return dpjax.Release(value, mechanism, dpjax.statistics.cells("cell", counts.size), n=int(counts.sum()))


def draw_noise(variance: float, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Discrete Gaussian noise, by the probabilities of all numbers within 12 standard deviations."""
    reach = int(np.ceil(12 * variance**0.5))
    numbers = np.arange(-reach, reach + 1)
    weights = np.exp(-(numbers**2) / (2 * variance))
    return generator.choice(numbers, shape, p=weights / weights.sum())


def draw_county(tracts: int, groups: int, categories: int, generator: np.random.Generator) -> County:
    """A county whose tracts and block groups are alike, but not the same, in categories of very unequal sizes."""
    typical = np.exp(-1.8 * np.arange(categories) ** 0.4)
    typical /= typical.sum()
    own = generator.dirichlet(5_000 * typical)
    tract = np.repeat(np.arange(tracts), groups)
    shares = np.stack([generator.dirichlet(1_000 * own + 1e-3) for _ in range(tracts)])
    shares = np.stack([generator.dirichlet(300 * shares[place] + 1e-3) for place in tract])
    people = generator.poisson(PEOPLE * np.exp(0.4 * generator.normal(size=len(tract))))
    counts = np.stack([generator.multinomial(size, row) for size, row in zip(people, shares, strict=True)])
    return County(counts, tract, typical)


def release_county(county: County, known_totals: bool, generator: np.random.Generator) -> dpjax.Release:
    """Noisy tables of the block groups, the tracts and the county, or the county's exact one, of one n."""
    n = int(county.counts.sum())
    parts = []
    for level, variance in LEVELS.items():
        groups = groups_of(county, level)
        exact = np.bincount(groups, county.counts.reshape(-1))
        statistic = dpjax.statistics.grouped("cell", groups)
        if level == "county" and known_totals:
            parts.append(dpjax.Release(exact, dpjax.Exact(), statistic, n))
        else:
            mechanism = dpjax.DiscreteGaussian(variance**0.5)
            value = exact + draw_noise(variance, exact.shape, generator)
            parts.append(dpjax.Release(value, mechanism, statistic, n))
    return dpjax.joint(*parts)


def groups_of(county: County, level: str) -> np.ndarray:
    """The area and category of a level to which each cell [tract · group · category] adds."""
    area = {"block group": np.arange(len(county.tract)), "tract": county.tract, "county": 0 * county.tract}[level]
    return (area[:, None] * len(county.typical) + np.arange(len(county.typical))).reshape(-1)


def believe_county(county: County) -> dpjax.Model:
    """What an analyst believes who knows the typical shares: block groups alike in size, more or less typical."""
    concentration = np.tile(STRENGTH * county.typical, len(county.tract))
    return dpjax.models.categorical(concentration)
