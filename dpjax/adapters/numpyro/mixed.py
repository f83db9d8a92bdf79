"""Records of a NumPyro model with discrete fields among continuous ones, by scores and levels."""

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.forms import form_of
from dpjax.adapters.numpyro.support import domain_of_levels, numbers_of
from dpjax.adapters.numpyro.trace import SiteLayout
from dpjax.adapters.numpyro.truncation import log_density
from dpjax.base import Array, MixedRecords, Parameters, Records
from dpjax.domain import LARGEST_DOMAIN, Domain, LevelNumbers

__all__ = ["Kinds", "find_kinds", "mixed_records"]


class Kinds(NamedTuple):
    """The fields of one record by kind.

    Attributes
    ----------
    levels
        The domain of the discrete fields.
    shapes
        The names of the continuous fields, and the shapes of their scores.
    """

    levels: Domain
    shapes: tuple[tuple[str, tuple[int, ...]], ...]


def find_kinds(layout: SiteLayout) -> Kinds | None:
    """The fields by kind; None unless there are both kinds, with levels to list and noise free of the parameters."""
    levels: dict[str, LevelNumbers] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    is_known: list[bool] = []

    def collect(name: str, distribution: Any, value: Array) -> None:
        found = numbers_of(distribution, value.dtype)
        if found is not None:
            levels[name] = found
            return
        form = form_of(distribution)
        is_real = bool(jnp.issubdtype(value.dtype, jnp.floating))
        is_known.append(is_real and form.scores is not None and form.log_density is None)
        shapes[name] = form.noise(jax.random.key(0), value).shape[1:]

    layout.trace_fields(collect)
    kinds = Kinds(domain_of_levels(levels), tuple(shapes.items()))
    return kinds if levels and shapes and all(is_known) and kinds.levels.size <= LARGEST_DOMAIN else None


def mixed_records(layout: SiteLayout, kinds: Kinds) -> MixedRecords:
    """The records by scores and levels."""
    shapes = dict(kinds.shapes)
    return MixedRecords(
        levels=kinds.levels,
        num_scores=sum(map(prod, shapes.values())),
        records=lambda parameters, scores, levels: records_at(layout, shapes, parameters, scores, levels),
    )


def records_at(
    layout: SiteLayout, shapes: dict[str, tuple[int, ...]], parameters: Parameters, scores: Array, levels: Records
) -> tuple[Records, Array]:
    """The records [m] of scores [k, m] and levels [m], and the log-probabilities [m] of the levels."""
    records: Records = {}
    terms: list[Array] = []
    rows = iter(jnp.split(scores, np.cumsum([prod(shape) for shape in shapes.values()])[:-1]))

    def choose(name: str, distribution: Any) -> Array:
        if name not in layout.fields:
            return parameters[name]
        if name in levels:
            records[name] = levels[name]
            terms.append(log_density(on_floats(distribution), levels[name]))
            return records[name]
        form = form_of(distribution)
        assert form.scores is not None
        records[name] = form.value(form.scores.noise(next(rows).T.reshape(-1, *shapes[name])))
        return records[name]

    n = scores.shape[1]
    layout.run(n, choose)
    return records | layout.known_fields(n), sum(terms[1:], start=terms[0])
