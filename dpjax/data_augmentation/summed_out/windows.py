"""Windows of whole numbers, outside of which released values and the model leave nothing.

A window first has all numbers that the noise of the channel leaves: for others, the density of the released value is
e⁻ᴰ of what it is at its best. These need not follow each other. Numbers censored from above have no end. For these, and
if prior and data disagree, it also reaches as far as the model's numbers at given parameters.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.released_density import (
    FARTHEST,
    Intervals,
    ReleasedDensity,
    WindowEnds,
    density_of,
    log_released,
)
from dpjax.data_augmentation.summed_out.terms import Between, NotSummableError, Terms, Windows
from dpjax.models.programs import jit_model
from dpjax.release import Microdata

__all__ = ["first_windows", "fit_windows", "make_windows", "thin_windows"]

MAX_NUMBERS = 2**24
"""Most numbers in the windows of all records: each takes memory for its density."""

DECAY = 28.0
"""D: logarithms by which the density of numbers that are left out is below the best."""

SPREADS, LEAST_SPREAD = 8.0, 12.0
"""How many standard deviations, and at least how many numbers, windows reach beyond the mean of the model's numbers."""

FEWEST_DRAWS = 64
"""Draws of each record's number, of which these are known."""

SOME = 64
"""Numbers beyond the end of what is possible, before any parameters are known."""

STRIDES = (2, 3, 4, 6, 8, 12, 16)

MIN_THINNED = 2**12
"""Fewest numbers in the windows of all records of which some are left out."""

MOST_STRIDE_ERROR = 1e-7
"""Largest error of the log-likelihood for which numbers are left out."""

MOST_TRIES = 8
"""Most windows that are tried, each at least twice as wide as the one before where it left out too much."""

LARGEST = 1e300
"""What is taken to be left out where it is infinite or undefined."""

LEAST_GAIN = 0.9
"""Wider windows are tried while they leave out less than this share of what narrower ones do."""

FEW_NUMBERS = 2**13
"""Numbers in the windows of all records, of which a step of a chain hardly takes longer if they are more.

With other lengths the windows of other keys, or of other releases, often have programs of their own.
"""

STEP = 8
"""Windows are as long as a multiple of it, so that programs for similar releases are the same."""


@partial(jit_model, static_argnames=("name", "n"))
def draw_numbers(model: Model, name: str, n: int, key: Key, parameters: Parameters) -> Array:
    """Numbers [draw, n] of the model at parameters [draw, ...], of few parameters several."""
    number = len(jax.tree.leaves(parameters)[0])
    keys = jax.random.split(key, (max(1, FEWEST_DRAWS // number), number))
    at_all = jax.vmap(lambda key, one: model.sample_records(key, one, n)[name])
    return jax.lax.map(lambda own: at_all(own, parameters), keys).reshape(-1, n)


def expected_reach(numbers: np.ndarray, least: float) -> WindowEnds:
    """From where to where numbers like these draws [draw, n] are expected."""
    numbers = numbers.astype(float)
    spread = SPREADS * np.std(numbers, axis=0) + LEAST_SPREAD
    mean = np.mean(numbers, axis=0)
    low, high = np.floor(mean - spread), np.ceil(mean + spread)
    return WindowEnds(np.clip(low, least, FARTHEST), np.clip(high, least, FARTHEST))


def first_windows(
    model: Model, release: Microdata, name: str, known: Records, gapless: bool = False
) -> tuple[Windows, ReleasedDensity]:
    """Windows that reach as far as the noise; where that has no end, some way beyond the end that it has.

    Parameters
    ----------
    gapless
        Whether the numbers of a window are to follow each other.
    """
    found = density_of(model, release, name, known)
    noise = found.reach(DECAY)
    end = np.where(np.isfinite(noise.low), noise.low, np.where(np.isfinite(noise.high), noise.high, 0))
    some = WindowEnds(np.maximum(np.floor(end / 2) - SOME, found.least), 2 * end + SOME)
    return make_windows(found, noise.bounded_by(some), np.full(release.n, DECAY), gapless), found


def fit_windows(
    found: ReleasedDensity,
    windows: Windows,
    parameters: Parameters,
    most: float,
    finish: Callable[[Windows], Terms],
    gapless: bool = False,
) -> Terms:
    """What `finish` makes of windows that leave out at most so much of the likelihood at parameters [draw, ...].

    They reach as far as the noise, or as far as the model's numbers if that is less. They reach as far as
    both where one of them alone leaves out too much, and have all numbers that are dense enough.
    """
    n = len(found.seen)
    draws = np.asarray(draw_numbers.unoptimized(found.model, found.name, n, jax.random.key(0), parameters))
    own, noise = expected_reach(draws, found.least), found.reach(DECAY)
    closed = noise.bounded_by(own)
    reach = own.where(own.high - own.low < closed.high - closed.low, closed)
    wider, decay, terms, before = closed.hull(own), np.full(n, DECAY), None, np.array(np.inf)
    wider = wider.wider(found.least).where((wider.low == reach.low) & (wider.high == reach.high), wider)
    for _ in range(MOST_TRIES):
        try:
            terms = finish(make_windows(found, reach, decay, gapless))
        except NotSummableError:
            break  # the report says what is left out
        measured = np.asarray(measure.unoptimized(found.model, terms, parameters), float)
        # Bounded, so that their sum is a number.
        errors = np.minimum(np.where(np.isnan(measured), LARGEST, measured), LARGEST)
        large, worst = errors > most / (4 * n), np.max(errors, axis=0)
        helped = errors < LEAST_GAIN * before
        # Otherwise only rounding errors are left, which grow with the window.
        before, bad = errors, np.any(large & helped, axis=0)
        if np.sum(worst) <= most or not np.any(bad):
            break
        decay = np.where(bad, decay + np.log(np.where(bad, worst, most)) - np.log(most / (8 * n)), decay)
        reach, wider = wider.where(bad, reach), wider.wider(found.least)
    return finish(windows) if terms is None else terms


def thin_windows(model: Model, windows: Windows, parameters: Parameters) -> Windows:
    """Windows over every k-th number, where sums over these are as good at parameters [draw, ...].

    Sums of smooth numbers are: those of densities with a kink, as of Laplace noise, hardly ever.
    """
    (width, n), size = windows.log_released.shape, np.asarray(windows.size_of_window)
    strides = tuple(stride for stride in STRIDES if stride * STEP <= width)
    if width * n < MIN_THINNED or not strides:
        return windows
    errors = np.asarray(measure_strides.unoptimized(model, strides, windows, parameters))
    good = np.max(errors, axis=0) <= max(MOST_STRIDE_ERROR / n, 32 * np.finfo(errors.dtype).eps)
    # A stride is good only if all smaller ones are.
    good = np.logical_and.accumulate(good, axis=0)
    stride = np.max(np.where(good, np.array(strides)[:, None], 1), axis=0)
    length = -(-int(np.max(-(-size // stride))) // STEP) * STEP
    if 2 * length > width:
        return windows
    places = np.arange(length)[:, None] * stride
    at = np.minimum(places, width - 1)
    taken = np.take_along_axis(np.asarray(windows.log_released), at, axis=0) + np.log(stride)
    return replace(
        windows,
        numbers=jnp.asarray(np.take_along_axis(np.asarray(windows.numbers), at, axis=0)),
        size_of_window=jnp.asarray(-(-size // stride)),
        stride=jnp.asarray(stride, windows.numbers.dtype),
        log_released=jnp.asarray(np.where(places < size, taken, -np.inf), windows.log_released.dtype),
    )


@partial(jit_model, static_argnames=("strides",))
def measure_strides(model: Model, strides: tuple[int, ...], windows: Windows, parameters: Parameters) -> Array:
    """The errors of strides [draw, stride, n] at parameters [draw, ...]."""
    return jax.lax.map(lambda one: windows.errors_of_strides(model, one, strides), parameters)


@jit_model
def measure(model: Model, terms: Terms, parameters: Parameters) -> Array:
    """What the sums leave out of each record's density [draw, n] at parameters [draw, ...]."""
    return jax.lax.map(lambda one: terms.left_out(model, one), parameters)


def length_of(sizes: np.ndarray) -> int:
    """How long windows are of so many numbers: of few in all a power of two, else one of four lengths between these."""
    width = int(np.max(sizes))
    whole = 2 ** (width - 1).bit_length()
    step = max(STEP, whole if whole * len(sizes) <= FEW_NUMBERS else whole // 8)
    return -(-width // step) * step


def make_windows(found: ReleasedDensity, ends: WindowEnds, decay: np.ndarray, gapless: bool = False) -> Windows:
    """The windows within the ends, of numbers that are dense against the best [n]; all are as long as the longest."""
    n, dtype = len(found.seen), found.known[found.name].dtype
    nothing = np.full(n, max(found.least, 0.0))
    ends = WindowEnds(*(np.floor(end) for end in ends)).where(found.seen, WindowEnds(nothing, nothing))
    dense, between, beyond = found.cut(ends, decay)
    numbers, sizes = list_numbers(dense, ends, gapless)
    table = np.asarray(tabulate.unoptimized(*found[:4], jnp.asarray(numbers, dtype)), float)
    table = np.where(np.arange(len(numbers))[:, None] < sizes, table, -np.inf)
    # What the bounds of intervals have let in, and the densities do not.
    kept = table >= np.maximum(np.max(table, axis=0) - decay, np.finfo(float).min)
    if gapless:
        kept = np.logical_or.accumulate(kept, axis=0) & np.logical_or.accumulate(kept[::-1], axis=0)[::-1]
    between = np.maximum(between, np.max(np.where(kept, -np.inf, table), axis=0))
    order = np.argsort(~kept, axis=0, kind="stable")
    sizes = np.maximum(np.sum(kept, axis=0), 1)
    order = order[: length_of(sizes)]
    # Where numbers beyond the ends are as dense as those of the window, what is between these is no part of them.
    span = ends.high - ends.low + 1
    is_open = found.seen & (beyond > np.max(table, axis=0) - decay) & (sizes < span)
    span = np.where(is_open, span, 0)
    check_length(int(np.max(span)), n)
    released = np.where(np.arange(len(order))[:, None] < sizes, np.take_along_axis(table, order, axis=0), -np.inf)
    return Windows(
        found.known,
        jnp.asarray(np.take_along_axis(numbers, order, axis=0), dtype),
        jnp.asarray(sizes),
        jnp.ones(n, dtype),
        jnp.asarray(released, float),
        jnp.asarray(np.where(is_open, beyond, np.maximum(beyond, between)), float),
        Between(jnp.asarray(ends.low, dtype), jnp.asarray(span, int), jnp.asarray(between, float))
        if span.any()
        else None,
        jnp.asarray(found.seen),
        found.name,
    )


def check_length(width: int, n: int) -> None:
    """Raise if windows of so many numbers are too long for all records."""
    if width * n > MAX_NUMBERS:
        given = f"windows of {width:,} numbers for each of {n:,} records"
        expected = f"at most {MAX_NUMBERS:,} numbers in all"
        fail("release", given, expected, "Impute the records: dpjax.imwg().", error=NotSummableError)


def list_numbers(dense: Intervals, ends: WindowEnds, gapless: bool) -> tuple[np.ndarray, np.ndarray]:
    """The numbers [w, n] of each record in these intervals, in order, and how many they are [n]; one if they are none.

    Behind them the last number goes on by ones.
    """
    n = len(ends.low)
    if gapless:
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(low, dense.record, dense.low)
        np.maximum.at(high, dense.record, dense.high)
        dense = Intervals(np.flatnonzero(low <= high), low[low <= high], high[low <= high], low[low <= high])
    empty = np.setdiff1d(np.arange(n), dense.record)
    dense = dense.beside(Intervals(empty, ends.low[empty], ends.low[empty], ends.low[empty]))
    dense = dense.at(np.lexsort((dense.low, dense.record)))
    sizes = np.bincount(dense.record, dense.size, n).astype(np.int64)
    width = length_of(sizes)
    check_length(width, n)
    counts = dense.size.astype(np.int64)
    record = np.repeat(dense.record, counts)
    place = np.arange(len(record)) - np.repeat((np.cumsum(sizes) - sizes), sizes)
    number = np.arange(len(record)) - np.repeat(np.cumsum(counts) - counts - dense.low.astype(np.int64), counts)
    last = np.zeros(n, np.int64)
    last[record] = number  # the last one is written last
    numbers = last + np.maximum(np.arange(width)[:, None] - sizes + 1, 0)
    numbers[place, record] = number
    return numbers, sizes


@partial(jit_model, static_argnames=("name",))
def tabulate(model: Model, name: str, release: Microdata, known: Records, numbers: Array) -> Array:
    """See `log_released`."""
    del model
    return log_released(release, name, known, numbers)
