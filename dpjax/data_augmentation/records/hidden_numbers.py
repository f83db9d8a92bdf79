"""Moves of one number of each record that is hidden among fields that are known or perturbed.

Each is reversible for each record by itself, given the parameters and the other fields.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.records.local import NOISE_DRAWS
from dpjax.mechanisms.spread import width
from dpjax.models.simulation import position_shapes
from dpjax.numerics import accept, decision_uniforms, proper_density, select_indices
from dpjax.release import Microdata
from dpjax.release.fields import FieldValues

__all__ = ["Move", "Moved", "jump", "move_by_curvature", "walk"]

CANDIDATES, REACH = 16, 8.0
"""Number of values in the window of a jump; and its largest width, in deviations of the field given the parameters."""

SPREAD_DRAWS = 64
"""Number of records drawn from the model for the widest step of a random walk."""


class Moved(NamedTuple):
    """What a move leads to.

    Attributes
    ----------
    records
        All records [n].
    accepted
        Whether each took its proposal [n].
    num_nonfinite
        How many proposals were rejected because their density was not finite, int [].
    """

    records: Records
    accepted: Array
    num_nonfinite: Array


Move = Callable[[Key, Parameters, Records], Moved]
"""``(rng_key, parameters, records) -> moved``, reversible for each record by itself."""

Place = tuple[int, ...]
"""The place of one number in a field of a record."""


def along(
    model: Model, release: Microdata, name: str, place: Place, parameters: Parameters, records: Records
) -> tuple[Callable[[Array], Records], Callable[[Array], Array]]:
    """The records and their log-densities [n], up to constants, as functions of one number [n] of a field."""
    where, parts = (slice(None), *place), release.noisy_parts(name)

    def records_at(numbers: Array) -> Records:
        return records | {name: records[name].at[where].set(numbers) if place else numbers}

    def log_density(numbers: Array) -> Array:
        moved = records_at(numbers)
        density = model.log_density(parameters, moved)
        for key, field in parts.items():
            density += release.of_seen(key, field.log_densities(moved))
        return density

    return records_at, log_density


def movable(release: Microdata, name: str) -> Array:
    """Which records [n] do not have the field exactly."""
    return release.missing[name] if name in release.exact else jnp.ones(release.n, bool)


class Expansion(NamedTuple):
    """The log-density [n] at numbers, and the Normal distribution that has its slope and curvature there.

    `concave` [n] says where the curvature is negative, so that there is one.
    """

    log_density: Array
    mean: Array
    scale: Array
    concave: Array


def expand(log_density: Callable[[Array], Array], numbers: Array) -> Expansion:
    """The expansion of log-densities, each of which depends on its own number alone."""
    ones = jnp.ones_like(numbers)

    def slope(numbers: Array) -> tuple[Array, Array]:
        value, slope = jax.jvp(log_density, (numbers,), (ones,))
        return value, slope

    (value, first), (_, second) = jax.jvp(slope, (numbers,), (ones,))
    concave = (second < 0) & jnp.isfinite(first) & jnp.isfinite(second)
    precision = jnp.where(concave, -second, 1.0)
    return Expansion(value, numbers + jnp.where(concave, first, 0.0) / precision, 1 / jnp.sqrt(precision), concave)


def move_by_curvature(model: Model, release: Microdata, name: str, place: Place) -> Move:
    """A Metropolis step of one number of each record, with a proposal from its expansion (Qi and Minka 2002).

    It is an exact draw where the log-density of the number given the rest is quadratic.
    """
    free = movable(release, name)

    def move(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        noise_key, accept_key = jax.random.split(rng_key)
        records_at, log_density = along(model, release, name, place, parameters, records)
        present = records[name][(slice(None), *place)]
        noise = jax.random.normal(noise_key, present.shape, present.dtype)
        here = expand(log_density, present)
        numbers = jnp.where(here.concave & free, here.mean + here.scale * noise, present)
        there = expand(log_density, numbers)
        back = (present - there.mean) / there.scale
        log_ratio = there.log_density - here.log_density + (noise**2 - back**2) / 2 + jnp.log(here.scale / there.scale)
        log_uniforms = jnp.log(decision_uniforms(accept_key, present.shape))
        accepted = free & here.concave & there.concave & (log_uniforms < proper_density(log_ratio))
        return Moved(records_at(jnp.where(accepted, numbers, present)), accepted, jnp.array(0))

    return move


def walk(model: Model, release: Microdata, name: str, place: Place) -> Move:
    """A Metropolis step of one number of each record, by a random walk; whole numbers move by whole steps.

    Its scale is drawn for each record between a part of the noise of its channel and the spread of the field given the
    parameters.
    """
    free, where = movable(release, name), (slice(None), *place)
    noise = noise_width(release, name, place)
    is_real = jnp.issubdtype(position_shapes(model, release.n).records[name].dtype, jnp.floating)

    def move(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        scale_key, step_key, accept_key = jax.random.split(rng_key, 3)
        records_at, log_density = along(model, release, name, place, parameters, records)
        present = records[name][where]
        widest = spread_given(model, release.n, parameters, name, place)
        narrowest = jnp.minimum(noise, widest) / 4
        share = jax.random.uniform(scale_key, present.shape, widest.dtype)
        scales = (widest * 2) ** share * narrowest ** (1 - share)
        steps = scales * jax.random.normal(step_key, present.shape, widest.dtype)
        numbers = present + (steps if is_real else away_from_zero(steps)).astype(present.dtype)
        log_uniforms = jnp.log(decision_uniforms(accept_key, present.shape))
        accepted = free & accept(log_density(numbers), log_density(present), log_uniforms)[0]
        return Moved(records_at(jnp.where(accepted, numbers, present)), accepted, jnp.array(0))

    return move


def spread_given(model: Model, n: int, parameters: Parameters, name: str, place: Place) -> Array:
    """The deviation [] of one number of a field given the parameters, by some draws; 1 if it is not above 0."""
    # The key is fixed, so that the spread is a function of the parameters.
    some = model.sample_records(jax.random.key(0), parameters, min(SPREAD_DRAWS, n))[name][(slice(None), *place)]
    real = some if jnp.issubdtype(some.dtype, jnp.floating) else some.astype(float)
    spread = jnp.nan_to_num(jnp.std(real), posinf=1.0)
    return jnp.where(spread > 0, spread, 1.0)


def jump(model: Model, release: Microdata, name: str, place: Place) -> Move:
    """An exact draw of one number of each record from values at equal distances, of which the present one is any.

    The distance is drawn for each record, or is the period of a channel that tells a number up to multiples of it.
    """
    free, where = movable(release, name), (slice(None), *place)
    periods = [field.channel.sums.period for field in release.noisy_parts(name).values()]
    period = next((each for each in periods if each is not None), None)

    def move(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        stride_key, turn_key, offset_key, choice_key = jax.random.split(rng_key, 4)
        records_at, log_density = along(model, release, name, place, parameters, records)
        present = records[name][where]
        widest = spread_given(model, release.n, parameters, name, place).astype(present.dtype)
        strides = widest * (REACH / CANDIDATES) * jax.random.uniform(stride_key, present.shape, present.dtype)
        if period is not None:
            strides = jnp.where(jax.random.bernoulli(turn_key, shape=present.shape), period, strides)
        offsets = jax.random.randint(offset_key, present.shape, 0, CANDIDATES, jnp.int32)
        steps = (jnp.arange(CANDIDATES, dtype=jnp.int32)[:, None] - offsets[None]).astype(present.dtype)
        candidates = present[None] + steps * strides[None]
        weights = proper_density(jax.vmap(log_density)(candidates))
        chosen, possible = select_indices(weights, jax.random.uniform(choice_key, present.shape))
        numbers = jnp.take_along_axis(candidates, chosen[None], axis=0)[0]
        accepted = free & possible & (chosen.astype(jnp.int32) != offsets)
        return Moved(records_at(jnp.where(accepted, numbers, present)), accepted, jnp.array(0))

    return move


def away_from_zero(steps: Array) -> Array:
    """The next whole numbers further from zero: as likely on either side, and never 0."""
    return jnp.sign(steps) * jnp.ceil(jnp.abs(steps))


def noise_width(release: Microdata, name: str, place: Place) -> Array:
    """The deviation [] or [n] of what a channel releases of one number of a field; ∞ without a channel.

    If a channel makes numbers impossible, at most half of what it leaves of them.
    """

    def deviation(channel: Any, value: Array) -> Array:
        return width(jax.random.key(0), channel, value, partial(jnp.std, axis=0), NOISE_DRAWS)[place]

    limited = [field for field in release.noisy_parts(name).values() if field.channel.sums.bounds is not None]
    deviations = [
        field.over_records(deviation, field.values) if field.varies else deviation(field.channel, field.largest)
        for field in release.noisy_parts(name).values()
    ]
    widths = [*deviations, *(half_span(field)[(slice(None), *place)] for field in limited)]
    return reduce(jnp.minimum, [jnp.where(each > 0, each, jnp.inf) for each in widths], jnp.array(jnp.inf))


def half_span(field: FieldValues) -> Array:
    """Half the distance [n] or [n, k] of the least and the greatest number that can have given each value."""
    least, most = field.possible_ends()
    return (most - least) / 2
