"""Records of a NumPyro model with discrete fields among continuous ones, by scores and levels."""

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.forms import form_of
from dpjax.adapters.numpyro.support import values_of
from dpjax.adapters.numpyro.trace import Layout
from dpjax.adapters.numpyro.truncation import log_density
from dpjax.base import Array, MixedRecords, Parameters, Records
from dpjax.models.record_noise import list_places

__all__ = ["find_mixed"]


class Kinds(NamedTuple):
    """The fields of one record by kind.

    Attributes
    ----------
    levels
        The values of each discrete field.
    shapes
        The shapes of the scores of each continuous field.
    """

    levels: dict[str, np.ndarray]
    shapes: dict[str, tuple[int, ...]]


def find_mixed(layout: Layout) -> MixedRecords | None:
    """The records by scores and levels; None unless there are fields of both kinds, all of them with such a form."""
    kinds = find_kinds(layout)
    if kinds is None or not (kinds.levels and kinds.shapes):
        return None
    places = list_places([len(values) for values in kinds.levels.values()])
    if places is None:
        return None
    listed = {name: values[place] for (name, values), place in zip(kinds.levels.items(), places, strict=True)}
    return MixedRecords(
        levels=lambda: {name: jnp.asarray(values) for name, values in listed.items()},
        num_scores=sum(prod(shape) for shape in kinds.shapes.values()),
        records=lambda parameters, scores, levels: records_at(layout, kinds.shapes, parameters, scores, levels),
    )


def find_kinds(layout: Layout) -> Kinds | None:
    """The fields by kind; None if one has neither levels that can be listed nor noise free of the parameters."""
    kinds, is_known = Kinds({}, {}), []

    def collect(name: str, distribution: Any, value: Array) -> None:
        levels = values_of(distribution, value.dtype)
        if levels is not None:
            kinds.levels[name] = levels
            return
        form = form_of(distribution)
        is_real = jnp.issubdtype(value.dtype, jnp.floating)
        is_known.append(is_real and form.scores is not None and form.log_density is None)
        kinds.shapes[name] = form.noise(jax.random.key(0), value).shape[1:]

    layout.trace_fields(collect)
    return kinds if all(is_known) else None


def records_at(
    layout: Layout, shapes: dict[str, tuple[int, ...]], parameters: Parameters, scores: Array, levels: Records
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
