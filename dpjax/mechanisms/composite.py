"""Mechanisms side by side, each on coordinates of its own, and a mechanism whose density is raised to a power."""

from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add, is_
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_count, describe, fail, name_of
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise
from dpjax.mechanisms.additive import Additive
from dpjax.mechanisms.base import Mechanism, as_floating, as_mechanism, is_mechanism, parts_of
from dpjax.mechanisms.largest_density import bounded_as, largest_density
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums

__all__ = ["Independent"]


@frozen_pytree
@dataclass(frozen=True)
class Independent(Mechanism):
    """Releases consecutive coordinates of a statistic by several mechanisms, each independent of the others.

    Its log-density is elementwise, and it adds noise, if that is so of all its parts. What else is asked of a
    mechanism, such as whether its noise is integer, is asked of each part; parts within parts become parts of the
    whole.

    Parameters
    ----------
    mechanisms
        The mechanisms, in the order of the coordinates.
    sizes
        How many coordinates each releases.
    privacy
        What all of them promise together; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If there is none, or not as many sizes. If a part is no mechanism, or one whose value is not as long as the
        statistic under it. If a size is not a whole number of at least 1.

    Examples
    --------
    >>> import dpjax
    >>> noise = dpjax.mechanisms.Independent((dpjax.Laplace(1.0), dpjax.Exact()), sizes=(3, 1))
    """

    json_name: ClassVar[str | None] = "independent"

    mechanisms: tuple[Any, ...]
    sizes: tuple[int, ...] = field(metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        _check_pairs(self.mechanisms, self.sizes)
        given = zip(map(as_mechanism, self.mechanisms), self.sizes, strict=True)
        pairs = [pair for part, size in given for pair in _flatten(part, int(size))]
        object.__setattr__(self, "mechanisms", tuple(mechanism for mechanism, _ in pairs))
        object.__setattr__(self, "sizes", tuple(size for _, size in pairs))

    @property
    def parts(self) -> tuple[tuple[Any, int], ...]:
        """The mechanisms and how many coordinates each releases."""
        return tuple(zip(self.mechanisms, self.sizes, strict=True))

    @property
    def _is_elementwise(self) -> bool:
        """Whether all parts have `log_density_terms`."""
        return all(part._is_elementwise for part in self.mechanisms)

    @property
    def noise(self) -> AddedNoise | None:
        """That of all parts, if each adds some."""
        adds = self._is_elementwise and all(part.noise is not None for part in self.mechanisms)
        return AddedNoise(self._log_noise) if adds else None

    def _tabulated(self, value: Array) -> "Independent":
        """Each part so."""
        made = tuple(part._tabulated(value[where]) for part, where in self._places())
        return self if all(map(is_, made, self.mechanisms)) else Independent(made, self.sizes)

    def _words(self) -> str:
        """The noise of each part, with the number of its coordinates."""
        return "; ".join(f"{part.promise.words()} ({quantity(size, 'number')})" for part, size in self.parts)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        return reduce(add, (part.log_density(value[where], statistic[where]) for part, where in self._places()))

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        terms = [part.log_density_terms(value[..., where], statistic[..., where]) for part, where in self._places()]
        return jnp.concatenate(terms, axis=-1)

    def _log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""
        return jnp.concatenate([part.noise.log_density(noise[..., where]) for part, where in self._places()], axis=-1)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the statistic [d]."""
        keys = jax.random.split(key, len(self.mechanisms))
        drawn = [part.sample(one, statistic[where]) for one, (part, where) in zip(keys, self._places(), strict=True)]
        return jnp.concatenate([as_floating(value) for value in drawn])

    def _places(self) -> tuple[tuple[Any, slice], ...]:
        """The parts with their coordinates."""
        return parts_of(self, sum(self.sizes))


@frozen_pytree
@dataclass(frozen=True)
class Padded(Mechanism):
    """A mechanism whose value [k] is shorter than the statistic [d], with zeros after the value, as a part of several.

    Parameters
    ----------
    drawn
        The mechanism.
    """

    json_name: ClassVar[str | None] = "padded"

    drawn: Any

    def _words(self) -> str:
        """Those of the mechanism."""
        return self.drawn.promise.words()

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the mechanism."""
        return self.drawn.promise.of_sums(sums)

    @property
    def sums(self) -> PossibleSums:
        """Those of the mechanism that must be whole, and their number of records."""
        return PossibleSums(whole=self.drawn.sums.whole, num_records=self.drawn.sums.num_records)

    @property
    def _can_sample(self) -> bool:
        """Whether values can be drawn by the mechanism."""
        return self.drawn._can_sample

    @property
    def _stated_privacy(self) -> Any:
        """What was stated with the mechanism."""
        return self.drawn.promise.stated

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the first entries of the value [d] given the statistic [d]."""
        return self.drawn.log_density(value[: self.drawn._drawn_size], statistic)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value given the statistic, with zeros after it [d]."""
        drawn = as_floating(self.drawn.sample(key, statistic))
        return jnp.pad(drawn, (0, len(statistic) - len(drawn)))


def _check_pairs(mechanisms: Any, sizes: Any) -> None:
    """Raise unless there are mechanisms, and as many numbers of coordinates."""
    if not (isinstance(mechanisms, (list, tuple)) and mechanisms):
        remedy = "Pass the mechanisms in the order of the coordinates."
        fail("mechanisms", describe(mechanisms), "a sequence of mechanisms", remedy, error=TypeError)
    if not (isinstance(sizes, (list, tuple)) and len(sizes) == len(mechanisms)):
        remedy = "Pass how many coordinates each mechanism releases."
        fail("sizes", describe(sizes), f"{len(mechanisms)} numbers, one for each mechanism", remedy)
    for place, (mechanism, size) in enumerate(zip(mechanisms, sizes, strict=True)):
        _check_part(f"mechanisms[{place}]", mechanism)
        check_count(f"sizes[{place}]", size)


def _check_part(argument: str, mechanism: Any) -> None:
    """Raise unless a mechanism releases as many numbers as the statistic under it has."""
    expected, remedy = "a mechanism that releases a noisy sum", "Pass mechanisms such as dpjax.Laplace(scale)."
    if not is_mechanism(mechanism):
        fail(argument, name_of(mechanism), expected, remedy, error=TypeError)
    known = as_mechanism(mechanism)
    if known._drawn_size is not None or known._is_categorical:
        fail(argument, name_of(mechanism), expected, remedy, error=TypeError)


def _flatten(mechanism: Any, size: int) -> tuple[tuple[Any, int], ...]:
    """The parts of a mechanism that has some, else itself."""
    parts = mechanism.parts
    if parts is None:
        return ((mechanism, size),)
    if (total := sum(part_size for _, part_size in parts)) != size:
        fail("sizes", size, f"{total}, as many as its parts release", "Pass the coordinates of each mechanism.")
    return parts


def merge_parts(mechanism: Mechanism) -> Mechanism:
    """The mechanism with neighbouring parts that add noise of one family as one part, so that they compile once.

    Each parameter of such a part has one number for each coordinate, whatever the numbers are, so that releases that
    differ in numbers share programs. What parts promise is left out, as samplers do not ask for it.
    """
    merged: list[tuple[Mechanism, int]] = []
    for part, size in mechanism.parts or ():
        part = without_promise(part) if isinstance(part, Additive) else part
        last = merged[-1] if merged else None
        if last is not None and isinstance(part, Additive) and alike(last[0], part):
            merged[-1] = jax.tree.map(partial(join, last[1], size), last[0], part), last[1] + size
        else:
            merged.append((part, size))
    if len(merged) == len(mechanism.parts or ()):
        return mechanism
    return merged[0][0] if len(merged) == 1 else Independent(*zip(*merged, strict=True))


def without_promise(part: Any) -> Mechanism:
    """The mechanism without what was stated of it, which belongs to its structure."""
    return replace(part, privacy=None) if hasattr(part, "privacy") else part


def alike(one: Mechanism, other: Mechanism) -> bool:
    """Whether two mechanisms differ in numbers alone."""
    structures: list[Any] = [jax.tree.structure(one), jax.tree.structure(other)]
    return bool(structures[0] == structures[1])


def join(size: int, other_size: int, one: Any, other: Any) -> Any:
    """A parameter of so many coordinates, and of others after them, one number for each."""
    return jnp.concatenate([jnp.broadcast_to(as_floating(one), size), jnp.broadcast_to(as_floating(other), other_size)])


def temper_mechanism(mechanism: Mechanism, power: Array) -> Mechanism:
    """The mechanism with its density raised to a power [] above 0: the impossible stays impossible.

    Parts side by side are raised one by one, and what is exact stays so.
    """
    if mechanism.parts is not None:
        parts = [(temper_mechanism(part, power), size) for part, size in mechanism.parts]
        return Independent(*zip(*parts, strict=True))
    return mechanism if mechanism.sums.known else Tempered(mechanism, power)


@frozen_pytree
@dataclass(frozen=True)
class Tempered(Mechanism):
    """The density η(value | statistic)^power, a likelihood of the records that is not normalised over values.

    Its log-density is elementwise, and it adds noise, if that is so of the mechanism, and JAX can look into it.
    Exact draws of a Normal record are of the mechanism itself: a tempered local release falls back to enumeration or a
    Metropolis step.
    """

    mechanism: Mechanism | Any
    power: Array

    @property
    def _is_elementwise(self) -> bool:
        """Whether the mechanism has `log_density_terms`, and is a pytree."""
        return not self.mechanism._is_opaque and self.mechanism._is_elementwise

    @property
    def noise(self) -> AddedNoise | None:
        """That of the mechanism, with its density raised to the power."""
        return AddedNoise(self._log_noise) if self._is_elementwise and self.mechanism.noise is not None else None

    @property
    def sums(self) -> PossibleSums:
        """Those of the mechanism, with its largest density raised to the power."""
        return bounded_as(self.mechanism, super().sums, self._largest)

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """That of the mechanism, times the power."""
        inside: Any = largest_density(self.mechanism)
        return jnp.asarray(self.power) * inside(value, low, high)

    def _tabulated(self, value: Array) -> "Tempered":
        """The mechanism so."""
        made = self.mechanism._tabulated(value)
        return self if made is self.mechanism else Tempered(made, self.power)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d], times the power."""
        return jnp.asarray(self.power) * self.mechanism.log_density(value, statistic)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The terms [..., d] of the log-density, times the power."""
        return jnp.asarray(self.power) * self.mechanism.log_density_terms(value, statistic)

    def _log_noise(self, noise: Array) -> Array:
        """The log-density [..., d] of the noise, times the power."""
        assert self.mechanism.noise is not None
        return jnp.asarray(self.power) * self.mechanism.noise.log_density(noise)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A value drawn by the mechanism itself, of the right shape; the power does not enter."""
        return self.mechanism.sample(key, statistic)
