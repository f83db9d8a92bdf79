"""Quotients of two whole noisy sums, such as means by query engines whose sums and counts have integer noise."""

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, fail, is_traced
from dpjax.base import Array, Key
from dpjax.mechanisms.base import as_floating
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.quotient import Quotient
from dpjax.numerics.fractions import by_geometric_sums, by_window

__all__ = ["WholeQuotient"]

GAUSSIAN_REACH, LAPLACE_REACH = 9.0, 41.0
"""How many scales from its mode noise is followed: what is left out is exp(-40) of it."""

MOST_REACH = 2**14
"""Largest number of multiples on each side that are added up one by one."""


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
        scales = [
            jnp.broadcast_to(jnp.asarray(noise.scale, sums.dtype), (self.size,))
            for noise in (self.numerator, self.denominator)
        ]
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
