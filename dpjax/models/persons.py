"""A check that channels of units of several persons have the numbers of persons that the model has.

A model says how many a unit has where that number is possible and the next one is not, as of a binomial count. One of
which every number is possible, such as a Poisson count, says nothing.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_traced, name_of
from dpjax.base import Array, Model
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_position
from dpjax.release import PrivateRelease

__all__ = ["check_persons"]

NUM_DRAWS = 4
"""Draws of all that is hidden, at each of which the numbers have to disagree."""

FAR = 2**30


def check_persons(model: Model, release: PrivateRelease) -> None:
    """Raise if a channel is of other numbers of persons than the model has in the units, one count [n] of each."""
    for key, field in release.fields.items():
        persons = field.channel.sums.num_records
        if persons is None or field.values.ndim != 1 or is_traced((model, release)):
            continue
        numbers = np.broadcast_to(np.asarray(persons), field.values.shape)
        few, many = map(np.asarray, find_others.unoptimized(model, field.field, release, jnp.asarray(numbers)))
        seen = ~np.asarray(release.microdata.missing.get(key, np.zeros(release.n, bool)))
        for wrong, words in ((few, "fewer"), (many, "more")):
            if np.any(wrong & seen):
                unit = int(np.argmax(wrong & seen))
                given = f"{name_of(field.channel._innermost)} of n = {numbers[unit]} in unit {unit}"
                expected = f"the model's number of persons of {field.field!r}, which is {words}"
                fail("release", given, expected, "Pass n for each unit, as the model has them.")


@partial(jit_model, static_argnames=("name",))
def find_others(model: Model, name: str, release: PrivateRelease, persons: Array) -> tuple[Array, Array]:
    """Which units [n] have fewer persons by the model, and which have more."""

    def at(key: Array) -> tuple[Array, Array]:
        position = draw_position(key, model, len(persons))
        own = position.records[name]
        records = release.microdata.hold(position.records)

        def possible(numbers: Array | int) -> Array:
            given = records | {name: jnp.broadcast_to(numbers, own.shape).astype(own.dtype)}
            return model.log_density(position.parameters, given) > -jnp.inf

        some = possible(0) | possible(1) | possible(own)
        return some & ~possible(persons), possible(persons + 1) & ~possible(FAR)

    few, many = jax.vmap(at)(jax.random.split(jax.random.key(0), NUM_DRAWS))
    return jnp.all(few, axis=0), jnp.all(many, axis=0)
