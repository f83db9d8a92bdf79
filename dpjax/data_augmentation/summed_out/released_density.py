"""The intervals in which the hidden number of a record can be, given what was released of it; none is missed.

Channels say how dense a value is at most, whatever the number from one to another: `PossibleSums.largest`. All numbers
are cut into intervals. Those that are dense against the best number are halved, until they are short against all that
are left. What is left out is bounded by what the channels say of it, so that the bound holds for all numbers.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Model, Records
from dpjax.data_augmentation.summed_out.terms import NotSummableError, largest_released, log_released
from dpjax.mechanisms.largest_density import largest_density
from dpjax.models.programs import jit_model
from dpjax.release import Microdata

__all__ = ["FARTHEST", "Intervals", "ReleasedDensity", "WindowEnds", "density_of", "log_released"]

FARTHEST = 2**30

DOUBLINGS = 2.0 ** np.arange(31)
"""The distances from a released value between which the first intervals are."""

SHARE = 32
"""Intervals are halved until they are shorter than all that are dense together, divided by this."""

BLOCK = 32
"""Intervals of each record that a program looks at in one call."""


class WindowEnds(NamedTuple):
    """From where to where the numbers of each record are looked at [n]; ``±inf`` if there is no end."""

    low: np.ndarray
    high: np.ndarray

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
        """Longer by their length on both sides."""
        more = self.high - self.low + 1
        return WindowEnds(np.maximum(self.low - more, max(least, -FARTHEST)), np.minimum(self.high + more, FARTHEST))


class Intervals(NamedTuple):
    """Intervals of numbers of some records, both ends included.

    Attributes
    ----------
    record
        The record of each [i].
    low
        The first number [i], or ``-inf``.
    high
        The last number [i], or ``inf``.
    bound
        A bound [i] of the log-density of what was released of the record, whatever the number.
    """

    record: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """How many numbers each has [i]."""
        return self.high - self.low + 1

    def at(self, chosen: np.ndarray) -> "Intervals":
        """Those that are chosen [i]."""
        return Intervals(*(part[chosen] for part in self))

    def halves(self) -> "Intervals":
        """Each one as two."""
        middle = np.floor((self.low + self.high) / 2)
        ends = (np.concatenate([self.low, middle + 1]), np.concatenate([middle, self.high]))
        return Intervals(np.tile(self.record, 2), *ends, np.tile(self.bound, 2))

    def beside(self, other: "Intervals") -> "Intervals":
        """These and others."""
        return Intervals(*map(np.concatenate, zip(self, other, strict=True)))


class ReleasedDensity(NamedTuple):
    """How dense what was released of a field of whole numbers is, given each number.

    Attributes
    ----------
    model
        The model of the records.
    name
        The name of the field.
    release
        What was released.
    known
        The records [n] with all that is known of them.
    seen
        The records of which something was released [n].
    least
        The least number that the model does not exclude: 0, or ``-inf``.
    centre
        A number that was released of each record [n].
    """

    model: Model
    name: str
    release: Microdata
    known: Records
    seen: np.ndarray
    least: float
    centre: np.ndarray

    def reach(self, decay: float) -> WindowEnds:
        """From where to where the density is above that of the best number times e⁻ᵈᵉᶜᵃʸ."""
        n = len(self.seen)
        dense, *_ = self.cut(WindowEnds(np.full(n, self.least), np.full(n, np.inf)), np.full(n, decay))
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(low, dense.record, dense.low)
        np.maximum.at(high, dense.record, dense.high)
        # If no number is possible, neither is the release.
        return WindowEnds(low, high).where(low <= high, WindowEnds(self.centre, self.centre))

    def cut(self, ends: WindowEnds, decay: np.ndarray) -> tuple[Intervals, np.ndarray, np.ndarray]:
        """Intervals of all numbers within the ends that are dense, and bounds of the log-density elsewhere [n].

        The first bound is of numbers between the ends, the second of those beyond. An interval is dense unless its
        bound is below the density of some number of the record times e⁻ᵈᵉᶜᵃʸ [n].
        """
        n, new = len(self.seen), self._start(ends)
        best, between, beyond = np.full((3, n), -np.inf)
        dense = new.at(np.zeros(len(new.record), bool))
        while len(new.record):
            bound, at_middle = self._look(new)
            np.maximum.at(best, new.record, at_middle)
            found = dense.beside(new._replace(bound=bound))
            inside = (found.low >= ends.low[found.record]) & (found.high <= ends.high[found.record])
            kept = inside & (found.bound > -np.inf) & (found.bound >= (best - decay)[found.record])
            for bound, dropped in ((between, inside & ~kept), (beyond, ~inside)):
                np.maximum.at(bound, found.record[dropped], found.bound[dropped])
            found = found.at(kept)
            together = np.bincount(found.record, found.size, n)[found.record]
            long = (found.size > 1) & (found.size * SHARE > together)
            new, dense = found.at(long).halves(), found.at(~long)
        return dense, between, beyond

    def _start(self, ends: WindowEnds) -> Intervals:
        """Intervals that double in length with the distance from the value, cut at the ends."""
        least = np.full_like(ends.low, self.least)
        below, above = self.centre - DOUBLINGS[:, None] + 1, self.centre + DOUBLINGS[:, None]
        cuts = np.concatenate([[least, ends.low, ends.high + 1, self.centre], below, above])
        low = np.sort(np.maximum(cuts, self.least), axis=0)
        high = np.concatenate([low[1:] - 1, np.full_like(low[:1], np.inf)])
        place, record = np.nonzero((low <= high) & (low < np.inf) & (high > -np.inf))
        low, high = low[place, record], high[place, record]
        return Intervals(record, low, high, np.zeros(len(low)))

    def _look(self, intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
        """A bound of the log-density in each interval [i], and that at a number in its middle [i]."""
        order = np.argsort(intervals.record, kind="stable")
        record = intervals.record[order]
        place = np.arange(len(record)) - np.searchsorted(record, record)
        bound, at_middle = np.zeros((2, len(record)))
        for block in range(int(place.max()) // BLOCK + 1):
            chosen = place // BLOCK == block
            shape, where = (BLOCK, len(self.seen)), (place[chosen] % BLOCK, record[chosen])
            low, high = np.broadcast_to(self.centre, (2, *shape)).copy()
            low[where], high[where] = intervals.low[order][chosen], intervals.high[order][chosen]
            middle = np.floor((np.maximum(low, -FARTHEST) + np.minimum(high, FARTHEST)) / 2)
            middle = np.clip(middle, np.maximum(low, -FARTHEST), np.minimum(high, FARTHEST))
            numbers = jnp.asarray(middle, self.known[self.name].dtype)
            ends = (jnp.asarray(end, float) for end in (low, high))
            found = bound_and_density.unoptimized(self.model, self.name, self.release, self.known, *ends, numbers)
            bound[order[chosen]], at_middle[order[chosen]] = (np.asarray(each, float)[where] for each in found)
        return bound, at_middle


@partial(jit_model, static_argnames=("name",))
def bound_and_density(
    model: Model, name: str, release: Microdata, known: Records, low: Array, high: Array, numbers: Array
) -> tuple[Array, Array]:
    """A bound [b, n] of the log-density of what was released, from `low` to `high` [b, n], and that at numbers."""
    del model
    found = jax.vmap(lambda first, last: largest_released(release, name, first, last))(low, high)
    return found, log_released(release, name, known, numbers)


def density_of(model: Model, release: Microdata, name: str, known: Records) -> ReleasedDensity:
    """How dense what was released of a field is.

    Raises
    ------
    ValueError
        If a channel does not say so.
    """
    n = release.n
    seen, centre = np.zeros(n, bool), np.zeros(n)
    for key, field in release.noisy_parts(name).items():
        if largest_density(field.channel) is None:
            expected = "channels of which it is known where their density is"
            remedy = "Say so in its `sums` (largest), or impute the records: imputation=dpjax.imwg()."
            fail(
                "release",
                f"a field of whole numbers through {name_of(field.channel)}",
                expected,
                remedy,
                error=NotSummableError,
            )
        own = ~np.asarray(release.missing.get(key, np.zeros(n, bool)))
        values = np.mean(np.asarray(field.values, float).reshape(n, -1), axis=1)
        seen, centre = seen | own, np.where(own & ~seen, np.round(values), centre)
    least = 0.0 if np.all(np.asarray(excludes_negative.unoptimized(model, name, known))) else -np.inf
    return ReleasedDensity(model, name, release, known, seen, least, np.clip(centre, max(least, -FARTHEST), FARTHEST))


@partial(jit_model, static_argnames=("name",))
def excludes_negative(model: Model, name: str, known: Records) -> Array:
    """Whether the model excludes -1 of each record [n]."""
    negative = known | {name: jnp.full_like(known[name], -1)}
    return ~jnp.isfinite(model.log_density(model.sample_prior(jax.random.key(0)), negative))
