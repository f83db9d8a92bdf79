"""Quotients of two noisy sums, such as means over a noisy count, of which only the quotient was published."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_count, fail, is_traced, name_of
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.additive import Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, smallest
from dpjax.numerics.quotients import (
    gaussian_by_gaussian,
    gaussian_by_laplace,
    laplace_by_gaussian,
    laplace_by_laplace,
)
from dpjax.numerics.whole_quotients import (
    gaussian_by_whole_gaussian,
    laplace_by_whole_gaussian,
    laplace_by_whole_laplace,
    num_terms,
    of_whole,
)

__all__ = ["Quotient"]

DENSITIES: dict[tuple[type, type], Callable[..., Array]] = {
    (Gaussian, Gaussian): gaussian_by_gaussian,
    (Gaussian, Laplace): gaussian_by_laplace,
    (Laplace, Gaussian): laplace_by_gaussian,
    (Laplace, Laplace): laplace_by_laplace,
    (Laplace, DiscreteLaplace): laplace_by_whole_laplace,
    (DiscreteLaplace, Laplace): partial(of_whole, laplace_by_whole_laplace),
}
"""By the noise of numerator and denominator."""

SERIES = {Gaussian: gaussian_by_whole_gaussian, Laplace: laplace_by_whole_gaussian}
"""By the noise of the other sum, if one has discrete Gaussian noise: these take a number of terms."""

KINDS = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace)

LARGEST_SCALE = 56.0
"""Largest scale of discrete Gaussian noise, whose series has 1,024 terms."""


@frozen_pytree
@dataclass(frozen=True)
class Quotient(Mechanism):
    """Releases (A + u) / (B + v), elementwise, with independent noise u and v; neither noisy sum is published.

    The statistic [2 k] is the k sums A, then the k sums B.

    Parameters
    ----------
    numerator
        The noise u: a `dpjax.Gaussian` or a `dpjax.Laplace`, with a scale [] or [k]; or integer noise, as below.
    denominator
        The noise v, likewise; it may be of the other family. One of the two may have integer noise: a
        `dpjax.DiscreteLaplace` beside a `dpjax.Laplace`, or beside either a `dpjax.DiscreteGaussian` of a scale up to
        56. Its sums are whole.
    size
        The number k of quotients.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If noise is of another kind, has another number of scales, or two kinds of noise whose quotient has no exact
        density are given.

    Notes
    -----
    The density of r is the integral over b of |b| f_u(r b − A) f_v(b − B). For Gaussian noise it is Hinkley's (1969),
    for Laplace noise four integrals of a line times an exponential function, and else a quadrature, exact to rounding.
    With integer noise it is a sum over whole numbers: four geometric sequences, or as many terms as are above rounding.
    A whole numerator of 0 is the quotient 0, which has a probability; a whole denominator of 0 gives no quotient, NaN
    in draws.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = Quotient(dpjax.Laplace(4.0), dpjax.Laplace(1.0))
    >>> round(float(mechanism.log_density(jnp.array([2.1]), jnp.array([80.0, 40.0]))), 3)
    0.678
    """

    json_name: ClassVar[str | None] = "quotient"

    numerator: Any
    denominator: Any
    size: int = field(default=1, metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)
    terms: int = field(init=False, default=0, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        size = check_count("size", self.size, "Pass the number of quotients.")
        check_noise("numerator", self.numerator, size)
        check_noise("denominator", self.denominator, size)
        check_pair(self.numerator, self.denominator)
        object.__setattr__(self, "terms", terms_for(self.numerator, self.denominator))

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name: the number of terms follows from it."""
        return {name: value for name, value in super()._json_fields().items() if name != "terms"}

    @property
    def value_size(self) -> int:
        """The number k of quotients."""
        return self.size

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise unless the statistic has k numerators and k denominators."""
        del argument, value
        if dimension != 2 * self.size:
            expected = f"{2 * self.size}: {quantity(self.size, 'numerator')}, then as many denominators"
            fail("statistic", f"{dimension} coordinates", expected, "Use dpjax.releases.quotient.")

    def _words(self) -> str:
        """The noise of both sums."""
        below = f"on its denominator {self.denominator.promise.words()}"
        above = f"on the numerator of each quotient {self.numerator.promise.words()}"
        return f"{above}, {below}; the noisy sums were not published"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the noisy sums: one kind of noise at its least scale; two kinds each as if it alone had the sums."""
        if type(self.numerator) is type(self.denominator):
            least = min(smallest(self.numerator.scale), smallest(self.denominator.scale))
            return type(self.numerator)(least).promise.of_sums(sums)
        return Promise(None, self.numerator.promise.of_sums(sums).rho + self.denominator.promise.of_sums(sums).rho)

    @property
    def sums(self) -> PossibleSums:
        """Those with integer noise are whole."""
        return PossibleSums(whole=self._whole_sums)

    def _whole_sums(self, size: int) -> tuple[slice, ...]:
        """The coordinates with integer noise."""
        half = size // 2
        places = (self.numerator, slice(0, half)), (self.denominator, slice(half, size))
        return tuple(where for noise, where in places if noise.integer_noise)

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """Those of the sum that is rounded more coarsely, if denominators are at most the number of records."""
        del radius
        pairs = noise_and_value(self.numerator.scale, value * n), noise_and_value(self.denominator.scale, np.array(n))
        return min(pairs, key=lambda pair: pair[0] / max(pair[1], 1.0))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the quotients [k] given the sums [2 k]."""
        quotients, sums = as_floating(value), as_floating(statistic)
        top, bottom = sums[: self.size], sums[self.size :]
        scales = [
            jnp.broadcast_to(jnp.asarray(noise.scale, quotients.dtype), (self.size,))
            for noise in (self.numerator, self.denominator)
        ]
        found = jax.vmap(self._density())(quotients, top, bottom, *scales)
        if self.numerator.integer_noise:
            found = jnp.where(quotients == 0, self.numerator.noise.log_density(-top), found)
        if self.denominator.integer_noise:
            found = jnp.where(jnp.isnan(quotients), self.denominator.noise.log_density(-bottom), found)
        return jnp.sum(found)

    def _density(self) -> Callable[..., Array]:
        """The log-density of one quotient given both sums and scales."""
        kinds = type(self.numerator), type(self.denominator)
        if DiscreteGaussian not in kinds:
            return DENSITIES[kinds]
        other = kinds[0] if kinds[1] is DiscreteGaussian else kinds[1]
        density = partial(SERIES[other], terms=self.terms)
        return density if kinds[1] is DiscreteGaussian else partial(of_whole, density)

    def sample(self, key: Key, statistic: Array) -> Array:
        """The quotients [k] of the sums [2 k] with draws of their noise; NaN where a denominator is 0."""
        sums = as_floating(statistic)
        key_numerator, key_denominator = jax.random.split(key)
        numerator = self.numerator.sample(key_numerator, sums[: self.size])
        denominator = self.denominator.sample(key_denominator, sums[self.size :])
        return jnp.where(denominator == 0, jnp.nan, numerator / denominator)


def check_noise(argument: str, noise: Any, size: int) -> None:
    """Raise unless the noise is of a known kind, and has a scale for each quotient."""
    if type(noise) not in KINDS:
        remedy = "No density is known for other noise. If both noisy sums were published, release those."
        expected = "a dpjax.Gaussian or a dpjax.Laplace, or a discrete one"
        fail(argument, name_of(noise), expected, remedy, error=TypeError)
    shape = np.shape(noise.scale)
    if shape not in ((), (size,)):
        fail(f"{argument}.scale", f"shape {list(shape)}", f"shape [] or [{size}]", "Give one scale or one each.")
    if isinstance(noise, DiscreteGaussian) and not is_traced(noise.scale) and np.max(noise.scale) > LARGEST_SCALE:
        remedy = "The series of its density would be too long. dpjax.Gaussian is a close approximation of wide noise."
        fail(f"{argument}.scale", f"{np.max(noise.scale):g}", f"at most {LARGEST_SCALE:g}", remedy)


def check_pair(numerator: Any, denominator: Any) -> None:
    """Raise if no exact density is known of a quotient, though each noise by itself is of a known kind."""
    kinds = type(numerator), type(denominator)
    given = f"{name_of(denominator)} below {name_of(numerator)}"
    if numerator.integer_noise and denominator.integer_noise:
        remedy = (
            "A quotient of two whole numbers reveals both up to a common factor, and once it was rounded for print "
            "nothing exact. Release both noisy sums if they were published."
        )
        fail("denominator", given, "integer noise on one of the two", remedy, error=TypeError)
    if set(kinds) == {Gaussian, DiscreteLaplace}:
        remedy = "The series of this density has no bound on its length. Take Gaussian with dpjax.DiscreteGaussian."
        fail("denominator", given, "a DiscreteLaplace beside a Laplace", remedy, error=TypeError)


def terms_for(*noises: Any) -> int:
    """The number of terms of the series of discrete Gaussian noise: the most if its scale is traced, 0 without."""
    scales = [noise.scale for noise in noises if isinstance(noise, DiscreteGaussian)]
    if not scales:
        return 0
    return num_terms(LARGEST_SCALE if is_traced(scales[0]) else float(np.max(scales[0])))
