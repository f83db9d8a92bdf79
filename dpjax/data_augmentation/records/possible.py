"""Starts of counts of which a release makes most impossible, such as counts that were rounded or suppressed.

What a model draws is hardly ever possible for all of several hundred units at once. Each count that is not is drawn
anew from some that its value can stand for, by their density given the parameters.
"""

from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.records.exchanges import has_known_totals, with_known_totals
from dpjax.numerics import proper_density, tree_where
from dpjax.release import PrivateRelease
from dpjax.release.fields import FieldValues

__all__ = ["limits_counts", "with_possible_counts"]

NUM_CANDIDATES = 64
"""Counts that are tried for each record."""

GROWTH = 3
"""If no count is the largest one, the distance of those tried from the least one doubles after so many."""


def limits_counts(release: PrivateRelease) -> bool:
    """Whether a channel makes numbers of a field of the records impossible, or totals of them are known."""
    return bool(excluding_fields(release)) or has_known_totals(release)


def with_possible_counts(
    key: Key, model: Model, release: PrivateRelease, parameters: Parameters, records: Records
) -> Records:
    """The records [n] with those counts drawn anew that are impossible for what was released, wherever it helps.

    Then counts change until known totals are as released.
    """
    for place, name in enumerate(excluding_fields(release)):
        records = records | {
            name: draw_possible(jax.random.fold_in(key, place), model, release, name, parameters, records)
        }
    if has_known_totals(release):
        (name,) = {part.field for part in release.fields.values() if not part.channel.sums.known} or set(
            release.missing
        )
        ends = possible_ends(noisy_parts(release, name), release.n)
        if name in release.exact:
            known = ~release.missing.get(name, jnp.zeros(release.n, bool))
            least, most = (jnp.where(known, records[name].astype(end.dtype), end) for end in ends)
            ends = least, most
        records = with_known_totals(release, name, ends, records)
    return records


def excluding_fields(release: PrivateRelease) -> list[str]:
    """The names of the fields, one number of each record, that came through such channels."""
    fields = release.fields.values()
    return sorted({part.field for part in fields if part.channel.sums.bounds is not None and part.values.ndim == 1})


def draw_possible(
    key: Key, model: Model, release: PrivateRelease, name: str, parameters: Parameters, records: Records
) -> Array:
    """The numbers [n] of a field, drawn from some candidates each where they are impossible."""
    offset_key, choice_key = jax.random.split(key)
    parts = noisy_parts(release, name)

    def log_released(row: Array) -> Array:
        moved = records | {name: row}
        return reduce(add, [tree_where(gaps, 0.0, part.log_densities(moved)) for part, gaps in parts])

    def log_weights(row: Array) -> Array:
        return model.log_density(parameters, records | {name: row}) + log_released(row)

    candidates = list_candidates(offset_key, *possible_ends(parts, release.n), records[name])
    weights = proper_density(jax.vmap(log_weights)(candidates))
    chosen = jax.random.categorical(choice_key, weights, axis=0)
    drawn = jnp.take_along_axis(candidates, chosen[None], axis=0)[0]
    helps = ~jnp.isfinite(log_released(records[name])) & jnp.any(weights > -jnp.inf, axis=0)
    return jnp.where(helps, drawn, records[name])


def noisy_parts(release: Any, name: str) -> list[tuple[FieldValues, Array]]:
    """What was released of a field through channels, and of whom it was not [n]."""
    nobody = jnp.zeros(release.n, bool)
    return [(part, release.missing.get(key, nobody)) for key, part in release.noisy_parts(name).items()]


def possible_ends(parts: list[tuple[FieldValues, Array]], n: int) -> tuple[Array, Array]:
    """The least and the greatest number [n] that can have given all that was released of a field; ±∞ without limits."""
    limits = [
        [jnp.where(gaps, free, end) for end, free in zip(part.possible_ends(), (-jnp.inf, jnp.inf), strict=True)]
        for part, gaps in parts
    ]
    least, most = zip([jnp.full(n, -jnp.inf), jnp.full(n, jnp.inf)], *limits, strict=True)
    return reduce(jnp.maximum, least), reduce(jnp.minimum, most)


def list_candidates(key: Key, least: Array, most: Array, present: Array) -> Array:
    """Numbers [c, n] from the least to the greatest, evenly from a random start; further apart if there is no greatest.

    Without a least one they are those that are present [n].
    """
    places = jnp.arange(NUM_CANDIDATES, dtype=least.dtype)
    growing = jnp.floor(jnp.exp2(places / GROWTH)) - 1

    def of_record(share: Array, low: Array, high: Array, own: Array) -> Array:
        step = jnp.ceil((jnp.where(jnp.isfinite(high - low), high - low, 0.0) + 1) / NUM_CANDIDATES)
        even = jnp.floor(step * share) + step * places
        found = low + jnp.where(jnp.isfinite(high), even, growing)
        return jnp.where(jnp.isfinite(low), found, own.astype(low.dtype)).astype(own.dtype)

    shares = jax.random.uniform(key, least.shape, least.dtype)
    return jax.vmap(of_record, out_axes=1)(shares, least, most, present)
