"""Totals of groups of records, released beside what was released of each of them.

To such a total each record of a group adds a multiple of its number, as counties add their cases to those of their
state. Given the parameters the groups are then independent of each other.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import fail, is_traced, name_of
from dpjax.base import Array, Model, Records
from dpjax.data_augmentation.records.possible import noisy_parts, possible_ends
from dpjax.data_augmentation.summed_out.terms import NotSummableError
from dpjax.mechanisms.base import Mechanism, as_floating, parts_of
from dpjax.mechanisms.largest_density import LargestDensity, by_bounds, largest_density
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_position
from dpjax.release import Microdata, Release
from dpjax.release.fields import FieldValues

__all__ = ["GroupTotals", "IntervalChannel", "check_straight", "find_totals", "limited"]

FEW = np.array([0, 1, 7])
"""Numbers at which contributions are looked at where the possible ones are not listed."""


class GroupTotals(NamedTuple):
    """Totals of groups of records.

    Attributes
    ----------
    name
        The field that is summed.
    summed
        The release of all totals, d numbers.
    group
        The group of each record [n]; -1 for those that are in no total.
    group_of_total
        The group of each number of the release [d]; -1 where it is of none.
    slope
        What one more in a group's sum adds to each number of the release [d].
    offset
        What that number would be if the sum were 0 [d].
    least
        The least number of each record [n], by all that is known but the totals; −∞ if there is none.
    most
        The greatest one [n]; ∞ if there is none.
    """

    name: str
    summed: Release
    group: np.ndarray
    group_of_total: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @property
    def num_groups(self) -> int:
        """The number of groups."""
        return int(np.max(self.group)) + 1

    def of_groups(self, numbers: np.ndarray) -> np.ndarray:
        """The sums over each group [group] of numbers of the records [n]."""
        inside = self.group >= 0
        return np.bincount(self.group[inside], numbers[inside], self.num_groups)

    def log_density(self, low: np.ndarray, size: int) -> np.ndarray:
        """The log-density [group, size] of what was released of each group, if its sum is `low`, `low` + 1, ..."""
        known = np.maximum(self.group_of_total, 0)
        sums = low[known][:, None] + np.arange(size)[None]
        terms = self.log_density_terms(self.offset[:, None] + self.slope[:, None] * sums)
        found = np.zeros((self.num_groups, size))
        np.add.at(found, known, np.where(self.group_of_total[:, None] >= 0, terms, 0.0))
        return found

    def log_density_terms(self, statistic: np.ndarray) -> np.ndarray:
        """The log-density of each number of the release [d, m], given m statistics [d, m]."""
        released = self.summed.value
        at = jnp.asarray(statistic, released.dtype)
        return np.asarray(tabulate(self.summed.mechanism, released, at), float)

    @property
    def constant(self) -> float:
        """The log-density of those numbers of the release that are of no group, and always the same."""
        terms = self.log_density_terms(self.offset[:, None])[:, 0]
        return float(np.sum(terms[self.group_of_total < 0]))

    def largest(self) -> np.ndarray:
        """A bound [group] of the log-density of what was released, whatever the sum of the group."""
        released = as_floating(self.summed.value)
        ends = jnp.full(released.shape, jnp.inf)
        terms = np.concatenate(
            [
                np.asarray(bound_of(mechanism)(released[where], -ends[where], ends[where]), float)
                for mechanism, where in parts_of_release(self.summed)
            ]
        )
        found = np.zeros(self.num_groups)
        inside = self.group_of_total >= 0
        np.add.at(found, self.group_of_total[inside], terms[inside])
        return found

    def possible_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest sum of each group [group] that the release does not exclude."""
        released = self.summed.value
        ends = [possible_ends_of(mechanism, released[where]) for mechanism, where in parts_of_release(self.summed)]
        least, most = (np.concatenate(side) for side in zip(*ends, strict=True))
        slope = np.where(self.slope == 0, 1.0, self.slope)
        sides = np.sort([(least - self.offset) / slope, (most - self.offset) / slope], axis=0)
        low, high = np.full(self.num_groups, -np.inf), np.full(self.num_groups, np.inf)
        inside = self.group_of_total >= 0
        np.maximum.at(low, self.group_of_total[inside], np.ceil(sides[0][inside]))
        np.minimum.at(high, self.group_of_total[inside], np.floor(sides[1][inside]))
        return low, high

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest number [n] of each record that its total leaves, whatever the others are."""
        low, high = self.possible_sums()
        inside, group = self.group >= 0, np.maximum(self.group, 0)
        least = low[group] - self.of_the_others(self.most)
        most = high[group] - self.of_the_others(self.least)
        return np.where(inside, least, -np.inf), np.where(inside, most, np.inf)

    def of_the_others(self, ends: np.ndarray) -> np.ndarray:
        """The sum [n] of ends [n] over the other records of each one's group; infinite where one of them is."""
        infinite = ~np.isfinite(ends)
        finite = np.where(infinite, 0.0, ends)
        group = np.maximum(self.group, 0)
        others = self.of_groups(finite)[group] - finite
        unlimited = self.of_groups(infinite.astype(float))[group] > infinite
        return np.where(unlimited, np.sum(np.where(infinite, ends, 0.0)), others)


def find_totals(model: Model, release: Microdata, hidden: dict[str, Any], listed: Records | None) -> GroupTotals | str:
    """The totals beside what was released of the records, or in words what is in the way of summing these out.

    Parameters
    ----------
    hidden
        The fields [n, ...] that are not wholly known.
    listed
        The possible values [c] of the hidden field; None if they are not listed.
    """
    summed = release.summed
    assert summed is not None
    if is_traced((model, release)):
        return "totals of releases that run at once"
    whole = all(leaf.ndim == 1 and not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in hidden.values())
    if len(hidden) != 1 or not whole or has_gaps(listed):
        return "a sum over the records, which makes them depend on each other"
    (name,) = hidden
    numbers = FEW if listed is None else np.asarray(listed[name], int)
    if not (summed.is_noisy_sum and summed.mechanism._is_elementwise):
        return "totals whose numbers depend on each other"
    added, excluded = contributions_of.unoptimized(model, name, release, numbers)
    slope = slope_of(np.asarray(added, float), numbers)
    if slope is not None and not np.any(slope):
        given = f"totals to which no {name!r} of any record adds anything"
        remedy = "Fields of text hold numbers of levels, not texts: use dpjax.statistics.group_totals."
        fail("release", given, "totals of the numbers of the records", remedy)
    if slope is None:
        return f"a sum over the records that is no total of {name!r}"
    group = group_by(slope)
    if group is None:
        return "totals of groups that overlap"
    of_total = np.max(np.where(slope != 0, group[None], -1), axis=1)
    of_one = slope[np.arange(len(slope)), np.argmax(slope != 0, axis=1)]
    if np.any((slope != 0) & (slope != of_one[:, None])):
        return "totals to which the records of a group add different multiples"
    offset = np.sum(np.asarray(added[0], float) - slope * numbers[0], axis=1)
    least, most = (np.asarray(end, float) for end in possible_ends(noisy_parts(release, name), release.n))
    if listed is not None:
        least, most = np.maximum(least, numbers[0]), np.minimum(most, numbers[-1])
    elif np.all(excluded):
        least = np.maximum(least, 0)
    return GroupTotals(name, summed, group, of_total, of_one, offset, least, most)


def has_gaps(listed: Records | None) -> bool:
    """Whether the possible values are no whole numbers that follow each other."""
    if listed is None:
        return False
    values = np.asarray(next(iter(listed.values()))).astype(int)
    return len(listed) != 1 or len(values) < 2 or bool(np.any(np.diff(values) != 1))


def slope_of(added: np.ndarray, numbers: np.ndarray) -> np.ndarray | None:
    """What one more in each record adds [d, n], given what records with some numbers add [c, d, n].

    None if that is no whole number, or not the same at all of the numbers.
    """
    slope = (added[1] - added[0]) / (numbers[1] - numbers[0])
    straight = added[0] + slope * (numbers - numbers[0])[:, None, None]
    return slope if np.array_equal(added, straight) and np.array_equal(slope, np.round(slope)) else None


def group_by(slope: np.ndarray) -> np.ndarray | None:
    """The group of each record [n], given the slopes [d, n]: those in the same totals, -1 in none; None on overlap."""
    patterns, group = np.unique(slope != 0, axis=1, return_inverse=True)
    if np.any(np.sum(patterns, axis=1) > 1):
        return None
    inside = np.any(patterns, axis=0)
    return np.where(inside, np.cumsum(inside) - 1, -1)[group.reshape(-1)]


@partial(jit_model, static_argnames=("name",))
def contributions_of(model: Model, name: str, release: Microdata, numbers: Array) -> tuple[Array, Array]:
    """What records with some numbers add to the totals [c, d, n], and whether the model excludes -1 of each [n]."""
    known = release.hold(draw_position(jax.random.key(0), model, release.n).records)
    added = jax.lax.map(partial(contributions_at, release, name, known), jnp.asarray(numbers))
    negative = known | {name: jnp.full_like(known[name], -1)}
    return added, ~jnp.isfinite(model.log_density(model.sample_prior(jax.random.key(0)), negative))


def contributions_at(release: Microdata, name: str, known: Records, number: Array) -> Array:
    """What each record adds to the totals [d, n] if its number is the one given, or [n]; 0 of those of other people."""
    summed: Any = release.summed
    whole = jnp.broadcast_to(number, known[name].shape).astype(known[name].dtype)
    added = summed.contributions(release.of_sum(known | {name: whole}))
    return jnp.pad(added, ((0, 0), (0, release.num_others)))


def check_straight(model: Model, release: Microdata, totals: GroupTotals, records: Any) -> None:
    """Raise if records with some of the numbers that are summed over do not add multiples of these to the totals."""
    if not np.asarray(bends.unoptimized(model, totals.name, release, records)):
        return
    given = f"totals to which large numbers of {totals.name!r} add less, or more, than small ones"
    remedy = "Impute the records: imputation=dpjax.imwg()."
    fail("release", given, "plain sums of the numbers", remedy, error=NotSummableError)


@partial(jit_model, static_argnames=("name",))
def bends(model: Model, name: str, release: Microdata, records: Any) -> Array:
    """Whether contributions are off a straight line through those of 0 and 1, at some number that is summed over []."""
    del model
    at = partial(contributions_at, release, name, records.known)
    first = at(jnp.array(0))
    slope = at(jnp.array(1)) - first

    def off(place: Array) -> Array:
        numbers = records.least + place.astype(records.least.dtype)
        return jnp.any(at(numbers) != first + slope * numbers[None].astype(slope.dtype))

    return jnp.any(jax.lax.map(off, jnp.arange(len(records.log_released))))


@jax.jit
def tabulate(mechanism: Mechanism, value: Array, statistic: Array) -> Array:
    """The log-density of each number of the value [d] given m statistics [d, m]."""
    return jax.vmap(partial(mechanism.log_density_terms, value), in_axes=1, out_axes=1)(statistic)


def parts_of_release(summed: Release) -> Any:
    """The mechanisms of a sum, each with its coordinates."""
    return parts_of(summed.mechanism, len(summed.value))


def bound_of(mechanism: Mechanism) -> LargestDensity:
    """The largest density of the mechanism's values, or an error if it is not known."""
    bound = largest_density(mechanism)
    if bound is None:
        expected = "noise of which it is known where its density is"
        remedy = "Say so in its `sums` (largest), or impute the records: imputation=dpjax.imwg()."
        fail("release", name_of(mechanism), expected, remedy, error=NotSummableError)
    return bound


def possible_ends_of(mechanism: Mechanism, value: Array) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest statistic [d] that can have given each number of the value; ±∞ without an end."""
    if mechanism.sums.known:
        return np.asarray(value, float), np.asarray(value, float)
    if mechanism.sums.bounds is None:
        return np.full(len(value), -np.inf), np.full(len(value), np.inf)
    least, most = mechanism.sums.bounds(value)
    return np.asarray(least, float), np.asarray(most, float)


def limited(release: Microdata, totals: GroupTotals) -> Microdata:
    """The release without the totals, in whose place each record has the limits that its total leaves it."""
    least, most = (jnp.asarray(end, float) for end in totals.limits())
    part = FieldValues(jnp.zeros(release.n), IntervalChannel(least, most), totals.name)
    key = f"{totals.name} (total)"
    outside = jnp.asarray(totals.group < 0)
    return replace(
        release,
        fields=release.fields | {key: part},
        missing=release.missing | {key: outside},
        summed=None,
        num_others=0,
    )


@frozen_pytree
@dataclass(frozen=True)
class IntervalChannel(Mechanism):
    """A channel that tells of a number that it lies within limits, and nothing else.

    Parameters
    ----------
    least
        The lower limits [] or [n].
    most
        The upper limits [] or [n].
    """

    parameter_axes: ClassVar[dict[str, int] | None] = {}

    least: Array
    most: Array

    @property
    def sums(self) -> PossibleSums:
        """Numbers within the limits."""
        return PossibleSums(largest=self._largest)

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """0 if some number is within the limits, else ``-inf``."""
        return by_bounds(lambda value: (self.least, self.most), value, low, high)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """0 within the limits and ``-inf`` beyond []."""
        del value
        number = as_floating(statistic)
        return jnp.where((number >= self.least) & (number <= self.most), 0.0, -jnp.inf).astype(number.dtype)
