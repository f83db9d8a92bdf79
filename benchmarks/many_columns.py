"""Noisy tables of two columns each, of people with many columns: a log-linear model by its tree of tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax
import numpy as np

import dpjax
from benchmarks.first_draws import Size, measure_first
from benchmarks.rows import Row


@dataclass(frozen=True)
class Case:
    """How many levels each column may have, how many tables and people there are, the noise, and the likelihood."""

    num_columns: int
    levels: tuple[int, int]
    num_tables: int
    n: int
    scale: float = 8.0
    likelihood: Any = None


CASES = {
    "8 columns of 3 levels, 14 tables": Case(8, (3, 3), 14, 1_000),
    "20 columns of 2 to 10 levels, 30 tables": Case(
        20, (2, 10), 30, 100_000, likelihood=dpjax.normal_sum(hold_covariance=True)
    ),
}
SIZES = {
    "full": Size(tuple(CASES), steps=(400, 600)),
    "quick": Size(("8 columns of 3 levels, 14 tables",), steps=(400, 600)),
    "tiny": Size(("8 columns of 3 levels, 14 tables",), 1, (20, 20)),
}


def measure(size: Size) -> Iterator[Row]:
    """A row for each case: with records imputed, or by the Normal sum."""
    for name in size.cases:
        model, release = make_problem(CASES[name])
        yield measure_call(name, model, release, size, likelihood=CASES[name].likelihood)


def make_problem(case: Case) -> tuple[dpjax.Model, dpjax.Release]:
    """The model and the noisy tables of made-up people, of three kinds that differ in every column."""
    rng = np.random.default_rng(1)
    low, high = case.levels
    names = [f"c{place}" for place in range(case.num_columns)]
    sizes = dict(zip(names, rng.integers(low, high + 1, case.num_columns).tolist(), strict=True))
    pairs = list(combinations(names, 2))
    chosen = [pairs[place] for place in sorted(rng.choice(len(pairs), case.num_tables, replace=False))]
    kinds = rng.integers(0, 3, case.n)
    records = {name: draw_column(rng, kinds, size) for name, size in sizes.items()}
    releases = []
    for pair in chosen:
        shape = [sizes[name] for name in pair]
        cell = np.ravel_multi_index([records[name] for name in pair], shape)
        noisy = np.bincount(cell, minlength=np.prod(shape)) + np.rint(rng.normal(0, case.scale, np.prod(shape)))
        statistic = dpjax.statistics.cells(pair, shape)
        releases.append(dpjax.Release(noisy, dpjax.DiscreteGaussian(case.scale), statistic, case.n))
    return dpjax.models.log_linear(sizes, chosen), dpjax.joint(*releases)


def draw_column(rng: np.random.Generator, kinds: np.ndarray, size: int) -> np.ndarray:
    """The levels [n] of a column, given the kinds of the people."""
    edges = np.cumsum(rng.dirichlet(np.ones(size), 3), axis=1)[:, :-1]
    return np.sum(rng.random(len(kinds))[:, None] >= edges[kinds], axis=1)


def measure_call(case: str, model: dpjax.Model, release: dpjax.Release, size: Size, **options: Any) -> Row:
    """The effective draws of the worst effect per CPU second of a first call."""

    def draw() -> dict[str, np.ndarray]:
        return dpjax.sample(jax.random.key(1), model, release, **size.options, **options).draws

    return measure_first("many_columns", case, (release.n, release.value.size), size, draw)
