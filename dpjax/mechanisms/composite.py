"""Several mechanisms side by side, each on coordinates of its own: the law of several releases of the same records."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree, is_opaque
from dpjax._util.validation import check_count, fail, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.base import (
    AdditiveNoise,
    CategoricalChannel,
    ElementwiseDensity,
    KnownDensity,
    Mechanism,
    Parts,
    as_floating,
    drawn_size,
    has_integer_noise,
    is_exact,
    parts_of,
)

__all__ = ["Independent"]


@frozen_pytree
@dataclass(frozen=True)
class Independent:
    """Releases consecutive coordinates of a statistic by several mechanisms, each independent of the others.

    It has `log_density_terms` and `log_noise` where all its parts have them. What else is asked of a mechanism, such as
    whether its noise is whole, is asked of each part; parts within parts become parts of the whole.

    Parameters
    ----------
    mechanisms
        The mechanisms, in the order of the coordinates.
    sizes
        How many coordinates each releases.

    Raises
    ------
    TypeError, ValueError
        If there is none, or not as many sizes; a part is no mechanism, or one whose value is not as long as the
        statistic under it; or a size is not a whole number of at least 1.

    Examples
    --------
    >>> import dpjax
    >>> noise = dpjax.Independent((dpjax.Laplace(1.0), dpjax.Exact()), sizes=(3, 1))
    """

    mechanisms: tuple[Any, ...]
    sizes: tuple[int, ...] = field(metadata={"static": True})

    def __new__(cls, mechanisms: Sequence[Any] = (), sizes: Sequence[int] = ()) -> "Independent":
        """An instance of the kind that declares what all parts do."""
        del sizes
        return object.__new__(_kind_of(mechanisms) if cls is Independent and mechanisms else cls)

    def __post_init__(self) -> None:
        _check_pairs(self.mechanisms, self.sizes)
        pairs = [pair for part, size in self.parts for pair in _flatten(part, int(size))]
        object.__setattr__(self, "mechanisms", tuple(mechanism for mechanism, _ in pairs))
        object.__setattr__(self, "sizes", tuple(size for _, size in pairs))

    @property
    def parts(self) -> tuple[tuple[Any, int], ...]:
        """The mechanisms and how many coordinates each releases."""
        return tuple(zip(self.mechanisms, self.sizes, strict=True))

    @property
    def integer_noise(self) -> bool:
        """Whether the noise of every part is whole."""
        return all(map(has_integer_noise, self.mechanisms))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        return reduce(add, (part.log_density(value[where], statistic[where]) for part, where in self._places()))

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
class IndependentTerms(Independent):
    """The same of parts whose log-densities are sums over coordinates."""

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        terms = [part.log_density_terms(value[..., where], statistic[..., where]) for part, where in self._places()]
        return jnp.concatenate(terms, axis=-1)


@frozen_pytree
@dataclass(frozen=True)
class IndependentNoise(IndependentTerms):
    """The same of parts that add noise."""

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""
        return jnp.concatenate([part.log_noise(noise[..., where]) for part, where in self._places()], axis=-1)


def _kind_of(mechanisms: Sequence[Any]) -> type[Independent]:
    """The kind that declares what all parts do; nonsense is left to the checks."""
    parts = mechanisms if isinstance(mechanisms, (list, tuple)) else ()
    if not all(isinstance(part, ElementwiseDensity) for part in parts):
        return Independent
    return IndependentNoise if all(isinstance(part, AdditiveNoise) for part in parts) else IndependentTerms


def _check_pairs(mechanisms: Any, sizes: Any) -> None:
    """Raise unless there are mechanisms, and as many numbers of coordinates."""
    if not (isinstance(mechanisms, (list, tuple)) and mechanisms):
        remedy = "Pass the mechanisms in the order of the coordinates."
        fail("mechanisms", repr(mechanisms), "a sequence of mechanisms", remedy, error=TypeError)
    if not (isinstance(sizes, (list, tuple)) and len(sizes) == len(mechanisms)):
        remedy = "Pass how many coordinates each mechanism releases."
        fail("sizes", repr(sizes), f"{len(mechanisms)} numbers, one for each mechanism", remedy)
    for place, (mechanism, size) in enumerate(zip(mechanisms, sizes, strict=True)):
        _check_part(f"mechanisms[{place}]", mechanism)
        check_count(f"sizes[{place}]", size)


def _check_part(argument: str, mechanism: Any) -> None:
    """Raise unless a mechanism releases as many numbers as the statistic under it has."""
    expected, remedy = "a mechanism that releases a noisy sum", "Pass mechanisms such as dpjax.Laplace(scale)."
    if isinstance(mechanism, type) or not isinstance(mechanism, KnownDensity):
        fail(argument, name_of(mechanism), expected, remedy, error=TypeError)
    if drawn_size(mechanism) is not None or isinstance(mechanism, CategoricalChannel):
        fail(argument, name_of(mechanism), expected, remedy, error=TypeError)


def _flatten(mechanism: Any, size: int) -> tuple[tuple[Any, int], ...]:
    """The parts of a mechanism that has some, else itself."""
    if not isinstance(mechanism, Parts):
        return ((mechanism, size),)
    parts = mechanism.parts
    if (total := sum(part_size for _, part_size in parts)) != size:
        fail("sizes", size, f"{total}, as many as its parts release", "Pass the coordinates of each mechanism.")
    return parts


def temper_mechanism(mechanism: Mechanism, power: Array) -> Mechanism:
    """The mechanism with its density raised to a power [] above 0: the impossible stays impossible.

    Parts side by side are raised one by one, and what is exact stays so. It adds noise, or has a density that is
    elementwise, where the mechanism is so and JAX can look into it. Exact draws of a Normal record are of the mechanism
    itself: a tempered local release falls back to enumeration or a Metropolis step.
    """
    if isinstance(mechanism, Parts):
        parts = [(temper_mechanism(part, power), size) for part, size in mechanism.parts]
        return Independent(*zip(*parts, strict=True))
    if is_exact(mechanism):
        return mechanism
    if is_opaque(mechanism) or not isinstance(mechanism, ElementwiseDensity):
        return Tempered(mechanism, power)
    kind = TemperedNoise if isinstance(mechanism, AdditiveNoise) else TemperedTerms
    return kind(mechanism, power)


@frozen_pytree
@dataclass(frozen=True)
class Tempered:
    """The density η(value | statistic)^power: no law of a value, but a likelihood of the records."""

    mechanism: Mechanism
    power: Array

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d], times the power."""
        return jnp.asarray(self.power) * self.mechanism.log_density(value, statistic)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A value drawn by the mechanism itself, of the right shape; the power is no part of its law."""
        return self.mechanism.sample(key, statistic)


@frozen_pytree
@dataclass(frozen=True)
class TemperedTerms(Tempered):
    """The same where the log-density is a sum over coordinates."""

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The terms [..., d] of the log-density, times the power."""
        assert isinstance(self.mechanism, ElementwiseDensity)
        return jnp.asarray(self.power) * self.mechanism.log_density_terms(value, statistic)


@frozen_pytree
@dataclass(frozen=True)
class TemperedNoise(TemperedTerms):
    """The same of a mechanism that adds noise."""

    def log_noise(self, noise: Array) -> Array:
        """The log-density [..., d] of the noise, times the power."""
        assert isinstance(self.mechanism, AdditiveNoise)
        return jnp.asarray(self.power) * self.mechanism.log_noise(noise)
