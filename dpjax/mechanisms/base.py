"""What a mechanism must have, and what it may declare beyond that.

`log_density`, and `sample` where values are to be drawn, make an object a mechanism. Each other protocol here is a
capability: a mechanism declares it by having the members, whether it inherits from a class of dpjax or not, and code
that can use it asks for it with ``isinstance``. The posterior is correct without any of them: they make kernels faster
or exact, and let mistakes be refused before anything is compiled.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_positive, fail
from dpjax.base import Array, Key

__all__ = [
    "AdditiveNoise",
    "BinnedDensity",
    "CategoricalChannel",
    "Censorable",
    "ChecksValues",
    "DrawnValue",
    "ElementwiseDensity",
    "ExactValue",
    "IntegerNoise",
    "KnownDensity",
    "LatentNormalSampler",
    "Mechanism",
    "NormalNoise",
    "Parts",
    "ScaledNoise",
    "StatesPrivacy",
    "Wrapper",
    "adds_noise",
    "can_sample",
    "drawn_size",
    "has_integer_noise",
    "is_exact",
    "is_normal",
    "layers",
    "noise_scale",
    "parts_of",
]


@runtime_checkable
class Mechanism(Protocol):
    """How a statistic was privatized: a conditional law of the released value given the statistic."""

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The normalised log-density [] of the value [d] given the statistic [d]."""

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the statistic [d]."""


@runtime_checkable
class KnownDensity(Protocol):
    """What a posterior needs of a mechanism. Without `sample` nothing can be released or predicted by it."""

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The normalised log-density [] of the value [d] given the statistic [d]."""


@runtime_checkable
class ElementwiseDensity(Protocol):
    """The log-density is a sum over coordinates, and its terms are computed elementwise.

    A `dpjax.Release` asks for many statistics at once: its value is then [d, 1], the statistics are [d, m], and the
    mechanism is rebuilt with each parameter [d] as a column [d, 1].
    """

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""


@runtime_checkable
class AdditiveNoise(Protocol):
    """The value is the statistic plus noise of independent coordinates, whose law does not depend on the statistic.

    Each parameter of the mechanism is [] or [d]. With `log_density_terms` beside it, columns of noise [d, m] are asked
    for, as `ElementwiseDensity` says.
    """

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""


@runtime_checkable
class ScaledNoise(AdditiveNoise, Protocol):
    """Additive noise of a known scale: where that is too small for single precision, the user is warned."""

    @property
    def scale(self) -> Array | float:
        """The scale [] or [d]."""


@runtime_checkable
class IntegerNoise(Protocol):
    """Says whether the noise is whole: then so must be the released values and the statistic under it."""

    @property
    def integer_noise(self) -> bool:
        """Whether every draw of the noise is a whole number."""


@runtime_checkable
class ExactValue(Protocol):
    """Says whether the statistic is released as it is: then only records with that very sum are possible."""

    @property
    def exact(self) -> bool:
        """Whether the value is the statistic."""


@runtime_checkable
class NormalNoise(ScaledNoise, Protocol):
    """Says whether the noise is Normal, its scale being the standard deviation."""

    @property
    def normal_noise(self) -> bool:
        """Whether the noise is N(0, scale²)."""


@runtime_checkable
class BinnedDensity(Protocol):
    """The log-density of numbers in [0, 1], given the counts of equal bins, is a sum over the bins."""

    def log_density_by_bin(self, value: Array, counts: Array, n: Array) -> Array:
        """What each bin [m] adds to the log-density of the value [k], given its count [m] of n records."""


@runtime_checkable
class Censorable(ElementwiseDensity, Protocol):
    """A mechanism whose value `dpjax.Censored` can clamp: the probability beyond a bound is known."""

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""

    def log_survival(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at least the given one."""

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the statistic [d]."""


@runtime_checkable
class DrawnValue(Protocol):
    """The value is no noisy sum but a number of draws of its own given the summed statistic, as of a histogram."""

    @property
    def value_size(self) -> int:
        """How many numbers are released."""


@runtime_checkable
class CategoricalChannel(Protocol):
    """A channel of categories coded 0, ..., k - 1: it releases one code for each record, and never a sum."""

    @property
    def num_categories(self) -> int | None:
        """The number k of categories."""


@runtime_checkable
class LatentNormalSampler(Protocol):
    """The law of a Normal statistic given the released value is known, so that Normal records are drawn exactly."""

    def sample_latent_normal(self, key: Key, value: Array, mean: Array, scale: Array) -> Array:
        """A draw of the statistic y given the released value, where y ~ N(mean, scale²), elementwise."""


@runtime_checkable
class ChecksValues(Protocol):
    """Knows which values can have been released. That whole noise needs whole values need not be checked here."""

    def check_value(self, argument: str, value: Array) -> None:
        """Raise, in the name of this argument, unless the value [d], or values [n, ...], can have been released."""


@runtime_checkable
class StatesPrivacy(Protocol):
    """Carries what was published of its privacy promise; inference never asks for it."""

    @property
    def privacy(self) -> Any:
        """The `dpjax.Privacy`, or None."""


@runtime_checkable
class Wrapper(Protocol):
    """A mechanism around another, such as `dpjax.Censored`: what is asked of the noise is asked of the other."""

    @property
    def mechanism(self) -> Any:
        """The mechanism inside."""


@runtime_checkable
class Parts(Protocol):
    """Several mechanisms side by side, such as `dpjax.Independent`: each is asked about its own coordinates alone."""

    @property
    def parts(self) -> tuple[tuple[Any, int], ...]:
        """The mechanisms and how many coordinates each releases, in the order of the coordinates."""


def parts_of(mechanism: Any, d: int) -> tuple[tuple[Any, slice], ...]:
    """The mechanisms that release d coordinates, each with its own: one mechanism with all, unless it has parts."""
    parts = mechanism.parts if isinstance(mechanism, Parts) else ((mechanism, d),)
    ends = accumulate(size for _, size in parts)
    return tuple((part, slice(end - size, end)) for (part, size), end in zip(parts, ends, strict=True))


def layers(mechanism: Any) -> Iterator[Any]:
    """The mechanism and those that it wraps, from the outermost to the innermost."""
    yield mechanism
    while isinstance(mechanism, Wrapper):
        mechanism = mechanism.mechanism
        yield mechanism


def innermost(mechanism: Any) -> Any:
    """The mechanism inside its wrappers."""
    *_, inner = layers(mechanism)
    return inner


def can_sample(mechanism: Any) -> bool:
    """Whether values can be drawn from the mechanism, with all its parts."""
    if isinstance(mechanism, Parts):
        return all(can_sample(part) for part, _ in mechanism.parts)
    return all(hasattr(layer, "sample") for layer in layers(mechanism))


def adds_noise(mechanism: Any) -> bool:
    """Whether the mechanism, inside its wrappers, adds noise to the statistic."""
    return isinstance(innermost(mechanism), AdditiveNoise)


def has_integer_noise(mechanism: Any) -> bool:
    """Whether the mechanism, inside its wrappers, adds whole numbers."""
    inner = innermost(mechanism)
    return isinstance(inner, IntegerNoise) and inner.integer_noise


def is_normal(mechanism: Any) -> TypeGuard[NormalNoise]:
    """Whether the mechanism adds Normal noise, and does no more."""
    return isinstance(mechanism, NormalNoise) and mechanism.normal_noise


def is_exact(mechanism: Any) -> bool:
    """Whether the mechanism, inside its wrappers, releases the statistic as it is; of parts, whether all do."""
    if isinstance(mechanism, Parts):
        return all(is_exact(part) for part, _ in mechanism.parts)
    inner = innermost(mechanism)
    return isinstance(inner, ExactValue) and inner.exact


def noise_scale(mechanism: Any) -> Array | float | None:
    """The scale of the noise that the mechanism, inside its wrappers, adds; None where that is not known."""
    inner = innermost(mechanism)
    return inner.scale if isinstance(inner, ScaledNoise) else None


def drawn_size(mechanism: Any) -> int | None:
    """How many numbers the mechanism, inside its wrappers, draws given the statistic; None of one that alters it."""
    inner = innermost(mechanism)
    return inner.value_size if isinstance(inner, DrawnValue) else None


class Additive(ABC):
    """Adds independent noise, symmetric about zero, to each coordinate of a statistic.

    A subclass is a frozen pytree dataclass with the three elementwise methods `log_noise`, `log_cdf` and
    `sample_noise`; everything else follows from them. Each parameter is a scalar or has one entry a coordinate.
    Noise of whole numbers says so by ``integer_noise = True``.
    """

    integer_noise: ClassVar[bool] = False

    @abstractmethod
    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""

    @abstractmethod
    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""

    @abstractmethod
    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""

    def log_survival(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at least the given one."""
        return self.log_cdf(-noise)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        return self.log_noise(as_floating(value) - as_floating(statistic))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d] plus a draw of the noise."""
        exact = as_floating(statistic)
        return exact + self.sample_noise(key, exact.shape, exact.dtype)


def as_floating(value: Any) -> Array:
    """The value as a floating array: integers take the default float dtype, floats keep theirs."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


def checked_scale(scale: Any, remedy: str) -> Any:
    """The scale, sequences made floating arrays, or an error unless every entry is finite and positive."""
    check_positive("scale", scale, remedy)
    if np.size(scale) == 0:
        fail("scale", "no number", "one, or one for each coordinate", remedy)
    return as_floating(scale) if isinstance(scale, (list, tuple, np.ndarray, np.generic, jax.Array)) else scale
