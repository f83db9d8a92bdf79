"""Records that agree in all that is known of them are one row, which is evaluated once."""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from dpjax._util.validation import is_traced
from dpjax.base import Array, Key, Model, Parameters
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_parameters
from dpjax.release import Microdata

__all__ = ["Rows", "divides", "group_each", "group_records"]

MIN_GROUPED = 64
"""Fewest records that are grouped: of few, another program is all that it would bring."""

NUM_DRAWS = 4


class Rows(NamedTuple):
    """The distinct records.

    Attributes
    ----------
    model
        The model of these.
    release
        What was released of them.
    weights
        How many records each stands for [m], or the sum of their survey weights.
    rows
        The row of each record [n].
    """

    model: Model
    release: Microdata
    weights: np.ndarray
    rows: np.ndarray


class EqualRecords(NamedTuple):
    """Which records are equal: the first of each kind [m], the kind of each [n], and how many each kind has [m]."""

    first: np.ndarray
    rows: np.ndarray
    weights: np.ndarray

    def padded(self, number: int) -> "EqualRecords":
        """With the first kind again, without any weight, until there are so many."""
        more = number - len(self.first)
        return self._replace(
            first=np.concatenate([self.first, np.repeat(self.first[:1], more)]),
            weights=np.concatenate([self.weights, np.zeros(more, self.weights.dtype)]),
        )


def group_records(model: Model, release: Microdata) -> Rows:
    """The distinct records; all of them where grouping does not halve their number, or the model cannot be divided."""
    alike = find_alike(model, release)
    grouped = None if alike is None else take_rows(model, release, alike)
    return every_record(model, release) if grouped is None else grouped


def group_each(model: Model, releases: list[Microdata]) -> list[Rows]:
    """The distinct records of each of several releases, with as many rows for all."""
    alike = [found for release in releases if (found := find_alike(model, release)) is not None]
    if len(alike) == len(releases):
        number = max(len(found.first) for found in alike)
        pairs = zip(releases, alike, strict=True)
        grouped = [take_rows(model, release, found.padded(number)) for release, found in pairs]
        if not any(rows is None for rows in grouped):
            return [rows for rows in grouped if rows is not None]
    return [every_record(model, release) for release in releases]


def every_record(model: Model, release: Microdata) -> Rows:
    """Each record as a row of its own."""
    weights = np.ones(release.n) if release.weights is None else np.asarray(release.weights, float)
    return Rows(model, release, weights, np.arange(release.n))


def find_alike(model: Model, release: Microdata) -> EqualRecords | None:
    """Which records are equal in all that is known of them; None if these are too few, or it is not known."""
    n, covariates = release.n, model.record_covariates
    varies = any(field.varies for field in release.fields.values())
    if n < MIN_GROUPED or covariates is None or varies or is_traced((release, covariates)):
        return None
    columns = [*columns_of(release), *map(np.asarray, covariates)]
    _, first, rows, weights = np.unique(
        np.concatenate([as_bytes(column) for column in columns], axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    return None if 2 * len(first) > n else EqualRecords(first, rows.reshape(-1), weights)


def take_rows(model: Model, release: Microdata, alike: EqualRecords) -> Rows | None:
    """One record of each kind; None if the model cannot be divided."""
    divided = model.of_records(alike.first)
    if divided is not model and not agrees(model, divided, alike.first, alike.rows):
        return None
    weights = alike.weights
    if release.weights is not None:
        weights = np.bincount(alike.rows, np.asarray(release.weights, float), len(weights))
    return Rows(divided, take_records(release, alike.first), weights, alike.rows)


def columns_of(release: Microdata) -> list[np.ndarray]:
    """The values of all fields and which of them are missing, each [n, ...]."""
    values = [np.asarray(field.values) for field in release.fields.values()]
    return values + [np.asarray(mask) for mask in release.missing.values()]


def as_bytes(column: np.ndarray) -> np.ndarray:
    """The bytes [n, k] of what a column holds of each record."""
    return np.ascontiguousarray(column.reshape(len(column), -1)).view(np.uint8).reshape(len(column), -1)


def take_records(release: Microdata, places: np.ndarray) -> Microdata:
    """What was released of some of the records."""
    fields = {name: replace(field, values=field.values[places]) for name, field in release.fields.items()}
    missing = {name: mask[places] for name, mask in release.missing.items()}
    return replace(release, fields=fields, missing=missing, weights=None)


def divides(model: Model, n: int) -> bool:
    """Whether the model of some of n records alone gives them the density that they have among all.

    A NumPyro model with a parameter for each record does not: its covariates are divided, and its parameters are not.
    """
    if model.exchangeable or model.record_covariates is None:
        return model.exchangeable
    back = np.arange(n)[::-1]
    return agrees(model, model.of_records(back), back, back)


def agrees(model: Model, divided: Model, first: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the model of the first record of each row gives it the density that each record of that row has."""
    parameters = draw_parameters.unoptimized(jax.random.key(0), model, NUM_DRAWS)
    try:
        every, alone = densities_both_ways.unoptimized(model, divided, first, rows, parameters)
    except Exception:  # whatever a model may raise that is not written for fewer records
        return False
    return bool(np.all(np.isclose(np.asarray(every), np.asarray(alone), rtol=1e-5, equal_nan=True)))


@jit_model
def densities_both_ways(
    model: Model, divided: Model, first: Array, rows: Array, parameters: Parameters
) -> tuple[Array, Array]:
    """The log-densities [draw, n] of records that are equal within rows, by the model and by that of the first ones."""

    def at(key: Key, parameters: Parameters) -> tuple[Array, Array]:
        some = jax.tree.map(lambda leaf: leaf[first], model.sample_records(key, parameters, len(rows)))
        equal = jax.tree.map(lambda leaf: leaf[rows], some)
        return model.log_density(parameters, equal), divided.log_density(parameters, some)[rows]

    return jax.vmap(at)(jax.random.split(jax.random.key(1), NUM_DRAWS), parameters)
