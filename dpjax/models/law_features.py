"""Bounded functions of parameters and records, whose averages are compared before and after a move."""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Model
from dpjax.models.law_moves import LawFacts, LawState, record_numbers
from dpjax.models.unconstrained import to_vector
from dpjax.numerics.linear_algebra import product

__all__ = ["Label", "Scales", "features", "find_facts", "find_scales", "labels_of"]

MOST_NUMBERS = 10
"""Largest number of parameters, and of numbers of a record, that are looked at one by one; beyond, sums of them are."""

FEW, OFTEN = 0.5, 0.01
"""A number takes few values if this share of its draws is among the values of others; and the share of an atom."""


class Scales(NamedTuple):
    """Centres and widths by which numbers are squashed, and the sums [q, k] of them that are looked at."""

    vector: Any
    vector_width: Any
    vector_mix: Any
    number: Any
    number_width: Any
    number_mix: Any
    mean: Any
    mean_width: Any


def features(model: Model, scales: Scales, state: LawState) -> Array:
    """Numbers in (−1, 1) [f] of parameters and of averages over their records, and products of two of them."""
    centred = (to_vector(model, state.parameters)[0].astype(float) - scales.vector) / scales.vector_width
    looked = jnp.tanh(product(scales.vector_mix, jnp.nan_to_num(centred)))
    means = jnp.tanh((record_means(scales, state) - scales.mean) / scales.mean_width)
    size = len(scales.number_mix)
    looked = jnp.concatenate([looked, means[:size]])
    return jnp.concatenate([looked, pairs_of(looked), means[size:]])


def record_means(scales: Scales, state: LawState) -> Array:
    """Averages over records of squashed numbers and of products of two [q + q (q + 1) / 2]."""
    centred = jnp.nan_to_num((record_numbers(state.records) - scales.number[None]) / scales.number_width[None])
    squashed = jnp.tanh(product(centred, scales.number_mix.T))
    return jnp.mean(jax.vmap(lambda row: jnp.concatenate([row, pairs_of(row)]))(squashed), axis=0)


def pairs_of(values: Array) -> Array:
    """The products of two of the values [q], also of one with itself [q (q + 1) / 2]."""
    one, other = np.triu_indices(len(values))
    return values[one] * values[other]


def find_scales(rng: np.random.Generator, model: Model, states: LawState) -> Scales:
    """The scales that fit some states [draw, ...]."""
    vectors = np.asarray(jax.vmap(lambda state: to_vector(model, state.parameters)[0])(states), float)
    numbers = np.asarray(jax.vmap(record_numbers)(states.records), float)
    scales = Scales(
        *centre_and_width(vectors),
        choose_sums(rng, vectors.shape[1]),
        *centre_and_width(numbers.reshape(-1, numbers.shape[-1])),
        choose_sums(rng, numbers.shape[-1]),
        0.0,
        1.0,
    )
    scales = Scales(*(np.asarray(leaf, jnp.result_type(float)) for leaf in scales))
    means = np.asarray(jax.vmap(lambda state: record_means(scales, state))(states), float)
    centre, width = centre_and_width(means)
    return scales._replace(mean=centre.astype(scales.mean.dtype), mean_width=width.astype(scales.mean.dtype))


def centre_and_width(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The median and the spread of each column of draws [draw, q]; a width of 1 where they do not vary."""
    if not draws.size:
        return np.zeros(draws.shape[1]), np.ones(draws.shape[1])
    finite = np.where(np.isfinite(draws), draws, np.nan)
    finite = np.where(np.all(np.isnan(finite), axis=0), 0.0, finite)
    low, centre, high = np.nanquantile(finite, [0.16, 0.5, 0.84], axis=0)
    spread = (high - low) / 2
    spread = np.where(spread > 0, spread, np.nanstd(finite, axis=0))
    return centre, np.where(spread > 0, spread, 1.0)


def choose_sums(rng: np.random.Generator, size: int) -> np.ndarray:
    """The numbers themselves if they are few, else sums of them with random weights [q, size]."""
    if size <= MOST_NUMBERS:
        return np.eye(size)
    return rng.normal(size=(MOST_NUMBERS, size)) / np.sqrt(size)


class Label(NamedTuple):
    """The name of a feature, and whether it is of parameters alone."""

    name: str
    of_parameters: bool


def labels_of(model: Model, state: LawState) -> list[Label]:
    """The labels of all features, for the shapes of a state."""
    free = jax.eval_shape(model.unconstrain, state.parameters)
    looked = [Label(name, True) for name in looked_at(list(number_names(free, 0)), "of parameters")]
    rows = looked_at(list(number_names(state.records, 1)), "of a record")
    looked += [Label(f"the average of {row}", False) for row in rows]
    pairs = [
        Label(f"{one.name} times {other.name}", one.of_parameters and other.of_parameters)
        for one, other in combinations_with_replacement(looked, 2)
    ]
    inner = combinations_with_replacement(rows, 2)
    return [*looked, *pairs, *(Label(f"{one} times {other} within a record", False) for one, other in inner)]


def looked_at(names: list[str], what: str) -> list[str]:
    """The names of numbers, or of their sums."""
    return names if len(names) <= MOST_NUMBERS else [f"sum {place} {what}" for place in range(MOST_NUMBERS)]


def number_names(tree: Any, axes: int) -> Iterator[str]:
    """The names of the numbers of a tree of shapes, without their first axes."""
    for path, leaf in jax.tree.leaves_with_path(tree):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        for index in np.ndindex(leaf.shape[axes:]):
            yield name + (str(list(index)) if index else "")


def find_facts(model: Model, states: LawState) -> LawFacts:
    """What some states [draw, ...] tell of each number of a record."""
    listed = model.domain()
    leaves = [(name, leaf) for name, field in sorted(states.records.items()) for leaf in jax.tree.leaves(field)]
    free, whole = [], []
    for name, leaf in leaves:
        size = int(np.prod(leaf.shape[2:]))
        free += [name not in listed] * size
        whole += [not jnp.issubdtype(leaf.dtype, jnp.floating)] * size
    numbers = np.asarray(jax.vmap(record_numbers)(states.records), float)
    columns = numbers.reshape(-1, numbers.shape[-1]).T
    found = [facts_of(column) for column in columns]
    steps, atoms = (np.array([each[place] for each in found]) for place in range(2))
    ends = np.min(columns, axis=1), np.max(columns, axis=1)
    low, high, atoms = (leaf.astype(jnp.result_type(float)) for leaf in (*ends, atoms))
    return LawFacts(np.array(free), steps | np.array(whole), low, high, atoms)


def facts_of(draws: np.ndarray) -> tuple[bool, np.ndarray]:
    """Whether a number takes few values, and its two most frequent values if it is continuous but for these."""
    values, counts = np.unique(draws, return_counts=True)
    frequent = values[np.argsort(counts)[-2:]]
    shares = np.sort(counts)[-2:] / draws.size
    atoms = np.full(2, np.nan)
    atoms[: len(frequent)] = np.where(shares > OFTEN, frequent, np.nan)
    rest = counts[~np.isin(values, atoms)]
    return bool(rest.sum() == 0 or np.sum(rest[rest > 1]) > FEW * rest.sum()), atoms
