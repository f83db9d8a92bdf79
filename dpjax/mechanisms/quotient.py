"""Quotients of two noisy sums, such as means over a noisy count, of which only the quotient was published."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, fail, is_traced, name_of
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.additive import Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, smallest
from dpjax.numerics.quotients import (
    by_geometric_sums,
    by_window,
    gaussian_by_gaussian,
    gaussian_by_laplace,
    laplace_by_gaussian,
    laplace_by_laplace,
)

__all__ = ["Quotient", "WholeQuotient"]

DENSITIES: dict[tuple[type, type], Callable[..., Array]] = {
    (Gaussian, Gaussian): gaussian_by_gaussian,
    (Gaussian, Laplace): gaussian_by_laplace,
    (Laplace, Gaussian): laplace_by_gaussian,
    (Laplace, Laplace): laplace_by_laplace,
}
"""By the noise of numerator and denominator."""

GAUSSIAN_REACH, LAPLACE_REACH = 9.0, 41.0
"""How many scales from its mode noise is followed: what is left out is exp(-40) of it."""

MOST_REACH = 2**14
"""Largest number of multiples on each side that are added up one by one."""


@frozen_pytree
@dataclass(frozen=True)
class Quotient(Mechanism):
    """Releases (A + u) / (B + v), elementwise, with independent noise u and v; neither noisy sum is published.

    The statistic [2 k] is the k sums A, then the k sums B.

    Parameters
    ----------
    numerator
        The noise u: a `dpjax.Gaussian` or a `dpjax.Laplace`, with a scale [] or [k].
    denominator
        The noise v, likewise; it may be of the other family.
    size
        The number k of quotients.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If noise is of another kind, or has another number of scales.

    Notes
    -----
    The density of r is the integral over b of |b| f_u(r b − A) f_v(b − B). For Gaussian noise it is Hinkley's (1969),
    for Laplace noise four integrals of a line times an exponential function, and else a quadrature, exact to rounding.

    Examples
    --------
    >>> from dpjax.mechanisms.quotient import Quotient
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = Quotient(dpjax.Laplace(4.0), dpjax.Laplace(1.0))
    >>> round(float(mechanism.log_density(jnp.array([2.1]), jnp.array([80.0, 40.0]))), 3)
    0.678
    """

    json_name: ClassVar[str | None] = "quotient"
    NOISES: ClassVar[tuple[type, ...]] = (Gaussian, Laplace)

    numerator: Any
    denominator: Any
    size: int = field(default=1, metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        size = check_count("size", self.size, "Pass the number of quotients.")
        check_noise("numerator", self.numerator, size, self.NOISES)
        check_noise("denominator", self.denominator, size, self.NOISES)

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

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """Those of the sum that is rounded more coarsely, if denominators are at most the number of records."""
        del radius
        pairs = noise_and_value(self.numerator.scale, value * n), noise_and_value(self.denominator.scale, np.array(n))
        return min(pairs, key=lambda pair: pair[0] / max(pair[1], 1.0))

    def _scales(self, dtype: Any) -> list[Array]:
        """The scales of the noise of numerators [k] and of denominators [k]."""
        noises = self.numerator, self.denominator
        return [jnp.broadcast_to(jnp.asarray(noise.scale, dtype), (self.size,)) for noise in noises]

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the quotients [k] given the sums [2 k]."""
        quotients, sums = as_floating(value), as_floating(statistic)
        top, bottom = sums[: self.size], sums[self.size :]
        scales = self._scales(quotients.dtype)
        density = DENSITIES[type(self.numerator), type(self.denominator)]
        return jnp.sum(jax.vmap(density)(quotients, top, bottom, *scales))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The quotients [k] of the sums [2 k] with draws of their noise."""
        sums = as_floating(statistic)
        key_numerator, key_denominator = jax.random.split(key)
        numerator = self.numerator.sample(key_numerator, sums[: self.size])
        denominator = self.denominator.sample(key_denominator, sums[self.size :])
        return numerator / denominator


def check_noise(argument: str, noise: Any, size: int, kinds: tuple[type, ...]) -> None:
    """Raise unless the noise is of a known kind, and has a scale for each quotient."""
    if type(noise) not in kinds:
        remedy = "No density is known for other noise. If both noisy sums were published, release those."
        expected = " or ".join(f"a dpjax.{kind.__name__}" for kind in kinds)
        fail(argument, name_of(noise), expected, remedy, error=TypeError)
    shape = np.shape(noise.scale)
    if shape not in ((), (size,)):
        fail(f"{argument}.scale", f"shape {list(shape)}", f"shape [] or [{size}]", "Give one scale or one each.")


@frozen_pytree
@dataclass(frozen=True)
class WholeQuotient(Quotient):
    """Releases (A + u) / (B + v) as a fraction in lowest terms, with independent integer noise u and v, elementwise.

    The statistic [2 k] is the k whole sums A, then the k whole sums B. The value [2 k] is the k numerators of the
    published quotients, in lowest terms, then their denominators, which are positive.

    Parameters
    ----------
    numerator
        The noise u: a `dpjax.DiscreteLaplace` or a `dpjax.DiscreteGaussian`, with a scale [] or [k].
    denominator
        The noise v, likewise; it may be of the other family.
    size
        The number k of quotients.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If noise is of another kind, has another number of scales, or scales beyond 400 beside Gaussian noise.

    Notes
    -----
    The probability of p / q is the sum over m of those of m p − A and m q − B. For Laplace noise it is made of
    geometric sums, and else added up about its mode.

    Examples
    --------
    >>> from dpjax.mechanisms import WholeQuotient
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = WholeQuotient(dpjax.DiscreteLaplace(4.0), dpjax.DiscreteLaplace(1.0))
    >>> round(float(mechanism.log_density(jnp.array([2.0, 1.0]), jnp.array([80.0, 40.0]))), 3)
    -2.403
    """

    json_name: ClassVar[str | None] = "whole_quotient"
    integer_noise: ClassVar[bool] = True
    NOISES: ClassVar[tuple[type, ...]] = (DiscreteLaplace, DiscreteGaussian)

    # What the noise of two sums promises, and how it is said, does not depend on its kind.
    _words = Quotient._words
    _promise_of = Quotient._promise_of

    reach: int = field(init=False, default=0, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        noises = self.numerator, self.denominator
        if all(isinstance(noise, DiscreteLaplace) for noise in noises):
            return
        if is_traced(noises):
            remedy = "How far the noise reaches follows from its scale: build it outside jit and vmap."
            fail("numerator, denominator", "traced scales", "numbers", remedy, error=TypeError)
        widths = [
            np.max(noise.scale) * (GAUSSIAN_REACH if isinstance(noise, DiscreteGaussian) else LAPLACE_REACH)
            for noise in noises
        ]
        if max(widths) > MOST_REACH:
            remedy = "If both noisy sums were published, release those."
            fail("numerator, denominator", f"noise that reaches {max(widths):.3g}", f"at most {MOST_REACH}", remedy)
        object.__setattr__(self, "reach", ceil(max(widths)) + 1)

    @property
    def value_size(self) -> int:
        """Twice the number k of quotients."""
        return 2 * self.size

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name: the reach follows from it."""
        return {name: value for name, value in super()._json_fields().items() if name != "reach"}

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless there are k whole numerators and k positive denominators without common divisors."""

        def in_lowest_terms(array: np.ndarray) -> Any:
            top, bottom = array[..., : self.size], array[..., self.size :]
            whole = np.all(array == np.round(array)) and np.all(bottom > 0)
            return whole and np.gcd(top.astype(np.int64), bottom.astype(np.int64)) == 1

        remedy = "Use dpjax.releases.quotient, which finds them."
        check_array(argument, value, in_lowest_terms, "numerators, then denominators, in lowest terms", remedy)

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """See `Quotient`, of the quotients themselves."""
        return super()._noise_and_sum(value[: self.size] / value[self.size :], n, radius)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the fractions [2 k] given the sums [2 k]."""
        fractions, sums = as_floating(value), as_floating(statistic)
        scales = self._scales(sums.dtype)
        split = (leaf[at] for leaf in (fractions, sums) for at in (slice(self.size), slice(self.size, None)))
        return jnp.sum(jax.vmap(self._of_one)(*split, *scales))

    def _of_one(self, top: Array, bottom: Array, over: Array, under: Array, *scales: Array) -> Array:
        """The log-probability [] of one fraction, given the two sums and the scales of their noise."""
        noises = [
            replace(each, scale=own) for each, own in zip((self.numerator, self.denominator), scales, strict=True)
        ]

        def log_terms(multiple: Array) -> Array:
            return noises[0].log_noise(multiple * top - over) + noises[1].log_noise(multiple * bottom - under)

        is_level = top == 0
        kinks = jnp.where(is_level, under / bottom, over / jnp.where(is_level, 1.0, top)), under / bottom
        rates = jnp.abs(top) / scales[0], bottom / scales[1]
        if not self.reach:
            return by_geometric_sums(log_terms, kinks, rates)
        bent = [isinstance(noise, DiscreteLaplace) for noise in noises]
        if not any(bent):
            weights = rates[0] ** 2, rates[1] ** 2
            return by_window(log_terms, (weights[0] * kinks[0] + weights[1] * kinks[1]) / sum(weights), self.reach)
        # The slope on one side of the kink of Laplace noise moves the mode of Gaussian noise towards it.
        straight, curved = (0, 1) if bent[0] else (1, 0)
        shift = rates[straight] / jnp.maximum(rates[curved] ** 2, jnp.finfo(top.dtype).tiny)
        mode = kinks[curved] + jnp.clip(kinks[straight] - kinks[curved], -shift, shift)
        return by_window(log_terms, mode, self.reach)

    def sample(self, key: Key, statistic: Array) -> Array:
        """The fractions [2 k] of the sums [2 k] with draws of their noise; 1 / 0 where the noisy denominator is 0."""
        sums = as_floating(statistic)
        top_key, bottom_key = jax.random.split(key)
        top = self.numerator.sample(top_key, sums[: self.size]).astype(int)
        bottom = self.denominator.sample(bottom_key, sums[self.size :]).astype(int)
        divisor = jnp.gcd(top, bottom) * jnp.where(bottom < 0, -1, 1)
        safe = jnp.where(divisor == 0, 1, divisor)
        found = jnp.where(bottom == 0, 1, top // safe), jnp.where(bottom == 0, 0, bottom // safe)
        return jnp.concatenate(found).astype(sums.dtype)
