"""Quotients of two noisy sums, such as means over a noisy count, of which only the quotient was published."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_count, fail, name_of
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.additive import Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, smallest
from dpjax.numerics.quotients import (
    gaussian_by_gaussian,
    gaussian_by_laplace,
    laplace_by_gaussian,
    laplace_by_laplace,
)

__all__ = ["Quotient"]

DENSITIES: dict[tuple[type, type], Callable[..., Array]] = {
    (Gaussian, Gaussian): gaussian_by_gaussian,
    (Gaussian, Laplace): gaussian_by_laplace,
    (Laplace, Gaussian): laplace_by_gaussian,
    (Laplace, Laplace): laplace_by_laplace,
}
"""By the noise of numerator and denominator."""


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

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the quotients [k] given the sums [2 k]."""
        quotients, sums = as_floating(value), as_floating(statistic)
        top, bottom = sums[: self.size], sums[self.size :]
        scales = [
            jnp.broadcast_to(jnp.asarray(noise.scale, quotients.dtype), (self.size,))
            for noise in (self.numerator, self.denominator)
        ]
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
