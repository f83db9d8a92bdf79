"""Windows of whole numbers, outside of which released values and the model leave nothing.

A window first reaches as far as the noise of the channel: beyond, the density of the released value is e⁻ᴰ of what it
is at its best. Numbers censored from above have no such end. For these, and if prior and data disagree, it also reaches
as far as the model's numbers at given parameters.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import NotSummableError, Terms, Windows
from dpjax.models.programs import jit_model
from dpjax.numerics import proper_density
from dpjax.release import Microdata

__all__ = ["ReleasedDensity", "WindowEnds", "first_windows", "fit_windows", "thin_windows"]

MAX_NUMBERS = 2**24
"""Most numbers in the windows of all records: each takes memory for its density."""

RATIO = 1.05
"""The ratio of neighbouring distances from a released value at which its density is looked at."""

FARTHEST = 2**30

DECAY = 28.0
"""D: logarithms by which the density falls to the end of a window."""

SPREADS, LEAST_SPREAD = 8.0, 12.0
"""How many standard deviations, and at least how many numbers, windows reach beyond the mean of the model's numbers."""

SOME = 64
"""Numbers beyond the end of what is possible, before any parameters are known."""

STRIDES = (2, 3, 4, 6, 8, 12, 16)

MIN_THINNED = 2**12
"""Fewest numbers in the windows of all records of which some are left out."""

MOST_STRIDE_ERROR = 1e-7
"""Largest error of the log-likelihood for which numbers are left out."""

MOST_TRIES = 8
"""Most windows that are tried, each at least twice as wide as the one before where it left out too much."""

STEP = 8
"""Windows are as long as a multiple of it, so that programs for similar releases are the same."""


class WindowEnds(NamedTuple):
    """From where to where the numbers of each record are looked at [n]; ``±inf`` if there is no end."""

    low: np.ndarray
    high: np.ndarray

    @property
    def is_open(self) -> np.ndarray:
        """Whether there is no end on some side [n]."""
        return ~np.isfinite(self.low) | ~np.isfinite(self.high)

    def where(self, chosen: np.ndarray, other: "WindowEnds") -> "WindowEnds":
        """As far as this one for the records [n] that are chosen, and as another for the rest."""
        return WindowEnds(np.where(chosen, self.low, other.low), np.where(chosen, self.high, other.high))

    def hull(self, other: "WindowEnds") -> "WindowEnds":
        """As far as either reaches."""
        return WindowEnds(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def bounded_by(self, other: "WindowEnds") -> "WindowEnds":
        """With the ends of another where there are none."""
        low = np.where(np.isfinite(self.low), self.low, np.minimum(other.low, self.high))
        high = np.where(np.isfinite(self.high), self.high, np.maximum(other.high, low))
        return WindowEnds(low, high)

    def wider(self, least: float) -> "WindowEnds":
        """Twice as far on both sides."""
        more = self.high - self.low + 1
        return WindowEnds(np.maximum(self.low - np.ceil(more / 2), least), self.high + np.ceil(more / 2))


class ReleasedDensity(NamedTuple):
    """What was released of a field, at numbers near and far from it.

    Attributes
    ----------
    numbers
        In order [g, n].
    density
        The log-density of what was released, given each of them [g, n].
    seen
        The records of which something was released [n].
    least
        The least number that the model does not exclude: 0, or ``-inf``.
    """

    numbers: np.ndarray
    density: np.ndarray
    seen: np.ndarray
    least: float

    @property
    def reach(self) -> WindowEnds:
        """From where to where the density is not negligible against its best."""
        worth = self.density >= np.max(self.density, axis=0) - DECAY
        first, last = np.argmax(worth, axis=0), len(worth) - 1 - np.argmax(worth[::-1], axis=0)
        columns = np.arange(worth.shape[1])
        below = self.numbers[np.maximum(first - 1, 0), columns] + 1
        above = self.numbers[np.minimum(last + 1, len(worth) - 1), columns] - 1
        low = np.where(first == 0, -np.inf, np.minimum(below, self.numbers[first, columns]))
        high = np.where(last == len(worth) - 1, np.inf, np.maximum(above, self.numbers[last, columns]))
        return WindowEnds(np.maximum(low, self.least), high)

    def largest_outside(self, low: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """The largest density [n] at numbers below `low`, or from `stop` on."""
        outside = ((self.numbers < low) & (self.numbers >= self.least)) | (self.numbers >= stop)
        return np.max(np.where(outside, self.density, -np.inf), axis=0)


def offsets() -> np.ndarray:
    """The distances, growing by `RATIO`, at which densities are looked at."""
    exponents = np.arange(int(np.log(FARTHEST) / np.log(RATIO)) + 1)
    return np.unique(np.round(RATIO**exponents)).astype(np.int32)


def look(model: Model, release: Microdata, name: str, known: Records) -> ReleasedDensity:
    """What was released of a field of whole numbers, at numbers near and far from it."""
    numbers, density, excluded = look_around.unoptimized(model, name, release, known, offsets())
    seen = np.zeros(release.n, bool)
    for key in release.noisy_parts(name):
        seen |= ~np.asarray(release.missing.get(key, np.zeros(release.n, bool)))
    return ReleasedDensity(np.asarray(numbers), np.asarray(density), seen, 0.0 if np.all(excluded) else -np.inf)


@partial(jit_model, static_argnames=("name",))
def look_around(
    model: Model, name: str, release: Microdata, known: Records, distances: Array
) -> tuple[Array, Array, Array]:
    """The numbers and densities of `ReleasedDensity`, and whether the model excludes -1 of each record [n]."""
    numbers = known[name]
    centres = [jnp.zeros_like(numbers)]
    for field in release.noisy_parts(name).values():
        centres.append(jnp.round(jnp.nan_to_num(field.values.astype(float))).astype(numbers.dtype))
    steps = jnp.concatenate([-distances[::-1], jnp.zeros(1, distances.dtype), distances]).astype(numbers.dtype)
    looked = jnp.concatenate([centre[None] + steps[:, None] for centre in centres])
    looked = jnp.sort(jnp.clip(looked, -FARTHEST, FARTHEST), axis=0)
    negative = known | {name: jnp.full_like(numbers, -1)}
    parameters = model.sample_prior(jax.random.key(0))
    excluded = ~jnp.isfinite(model.log_density(parameters, negative))
    return looked, log_released(release, name, known, looked), excluded


def log_released(release: Microdata, name: str, known: Records, numbers: Array) -> Array:
    """The log-density [w, n] of what was released of a field, given numbers [w, n] of it."""
    parts = release.noisy_parts(name)

    def at(row: Array) -> Array:
        terms = [release.of_seen(key, field.log_densities(known | {name: row})) for key, field in parts.items()]
        return sum(terms, start=jnp.zeros(row.shape))

    return proper_density(jax.vmap(at)(numbers))


@partial(jit_model, static_argnames=("name", "n"))
def draw_numbers(model: Model, name: str, n: int, key: Key, parameters: Parameters) -> Array:
    """Numbers [draw, n] of the model at parameters [draw, ...]."""
    keys = jax.random.split(key, len(jax.tree.leaves(parameters)[0]))
    return jax.vmap(lambda key, one: model.sample_records(key, one, n)[name])(keys, parameters)


def expected_reach(numbers: np.ndarray, least: float) -> WindowEnds:
    """From where to where numbers like these draws [draw, n] are expected."""
    numbers = numbers.astype(float)
    spread = SPREADS * np.std(numbers, axis=0) + LEAST_SPREAD
    mean = np.mean(numbers, axis=0)
    low, high = np.floor(mean - spread), np.ceil(mean + spread)
    return WindowEnds(np.clip(low, least, FARTHEST), np.clip(high, least, FARTHEST))


def first_windows(model: Model, release: Microdata, name: str, known: Records) -> tuple[Windows, ReleasedDensity]:
    """Windows that reach as far as the noise; where that has no end, some way beyond the end that it has."""
    found = look(model, release, name, known)
    noise = found.reach
    end = np.where(np.isfinite(noise.low), noise.low, np.where(np.isfinite(noise.high), noise.high, 0))
    some = WindowEnds(np.maximum(np.floor(end / 2) - SOME, found.least), 2 * end + SOME)
    reach = noise.bounded_by(some)
    nothing = WindowEnds(np.maximum(np.zeros_like(end), found.least), np.zeros_like(end))
    return make_windows(model, release, name, known, reach.where(found.seen, nothing), found), found


def fit_windows(
    model: Model,
    release: Microdata,
    windows: Windows,
    found: ReleasedDensity,
    parameters: Parameters,
    most: float,
    finish: Callable[[Windows], Terms],
) -> Terms:
    """What `finish` makes of windows that leave out at most so much of the likelihood at parameters [draw, ...].

    They reach as far as the noise, or as far as the model's numbers if that is less. They reach as far as
    both where one of them alone leaves out too much.
    """
    name, known = windows.field, windows.known
    draws = np.asarray(draw_numbers.unoptimized(model, name, release.n, jax.random.key(0), parameters))
    own, noise = expected_reach(draws, found.least), found.reach
    closed = noise.bounded_by(own)
    nothing = WindowEnds(np.maximum(np.zeros_like(own.low), found.least), np.zeros_like(own.low))
    narrower = own.where(own.high - own.low < closed.high - closed.low, closed)
    reach, wider, terms, first = narrower, closed.hull(own), None, windows
    for _ in range(MOST_TRIES):
        if length_of(reach.where(found.seen, nothing)) * len(found.seen) > MAX_NUMBERS:
            break  # the report says what is left out
        windows = make_windows(model, release, name, known, reach.where(found.seen, nothing), found)
        try:
            terms = finish(windows)
        except NotSummableError:
            break  # likewise
        errors = np.max(np.asarray(measure.unoptimized(model, terms, parameters)), axis=0)
        if np.sum(errors) <= most:
            break
        reach = wider.where(errors > most / (4 * len(errors)), reach)
        wider = wider.wider(found.least)
    return finish(first) if terms is None else terms


def thin_windows(model: Model, windows: Windows, parameters: Parameters) -> Windows:
    """Windows over every k-th number, where sums over these are as good at parameters [draw, ...].

    Sums of smooth numbers are: those of densities with a kink, as of Laplace noise, hardly ever.
    """
    width, n = windows.log_released.shape
    strides = tuple(stride for stride in STRIDES if stride * STEP <= width)
    if width * n < MIN_THINNED or not strides:
        return windows
    errors = np.asarray(measure_strides.unoptimized(model, strides, windows, parameters))
    good = np.max(errors, axis=0) <= max(MOST_STRIDE_ERROR / n, 32 * np.finfo(errors.dtype).eps)
    # A stride is good only if all smaller ones are.
    good = np.logical_and.accumulate(good, axis=0)
    stride = np.max(np.where(good, np.array(strides)[:, None], 1), axis=0)
    seen = np.asarray(windows.seen)
    length = -(-int(np.max(np.where(seen, -(-width // stride), 1))) // STEP) * STEP
    if 2 * length > width:
        return windows
    places = np.arange(length)[:, None] * stride
    table = np.asarray(windows.log_released)
    taken = np.take_along_axis(table, np.minimum(places, width - 1), axis=0) + np.log(stride)
    thinned = jnp.asarray(np.where(places < width, taken, -np.inf), table.dtype)
    return replace(windows, stride=jnp.asarray(stride, windows.low.dtype), log_released=thinned)


@partial(jit_model, static_argnames=("strides",))
def measure_strides(model: Model, strides: tuple[int, ...], windows: Windows, parameters: Parameters) -> Array:
    """The errors of strides [draw, stride, n] at parameters [draw, ...]."""
    return jax.lax.map(lambda one: windows.errors_of_strides(model, one, strides), parameters)


@jit_model
def measure(model: Model, terms: Terms, parameters: Parameters) -> Array:
    """What the sums leave out of each record's density [draw, n] at parameters [draw, ...]."""
    return jax.lax.map(lambda one: terms.left_out(model, one), parameters)


def length_of(reach: WindowEnds) -> int:
    """How long windows are that reach so far: one of four lengths between powers of two, or a multiple of `STEP`."""
    width = int(np.max(reach.high - reach.low)) + 1
    step = max(STEP, 2 ** (width.bit_length() - 3))
    return -(-width // step) * step


def make_windows(
    model: Model, release: Microdata, name: str, known: Records, reach: WindowEnds, found: ReleasedDensity
) -> Windows:
    """The windows that reach so far; all are as long as the longest."""
    low = reach.low.astype(np.int64)
    width = length_of(reach)
    if width * len(low) > MAX_NUMBERS:
        given = f"windows of {width:,} numbers for each of {len(low):,} records"
        expected = f"at most {MAX_NUMBERS:,} numbers in all"
        fail("release", given, expected, "Impute the records: dpjax.imwg().", error=NotSummableError)
    dtype = known[name].dtype
    ends = np.stack([low - 1, low + width])
    numbers = jnp.asarray(np.concatenate([low[None] + np.arange(width)[:, None], ends]), dtype)
    released = tabulate.unoptimized(model, name, release, known, numbers)
    at_ends = np.where(ends >= found.least, np.asarray(released[width:]), -np.inf)
    outside = np.maximum(np.max(at_ends, axis=0), found.largest_outside(low, low + width))
    return Windows(
        known,
        jnp.asarray(low, dtype),
        jnp.ones(len(low), dtype),
        released[:width],
        jnp.asarray(outside, released.dtype),
        jnp.asarray(found.seen),
        name,
    )


@partial(jit_model, static_argnames=("name",))
def tabulate(model: Model, name: str, release: Microdata, known: Records, numbers: Array) -> Array:
    """See `log_released`."""
    del model
    return log_released(release, name, known, numbers)
