"""Noisy values that were rounded before they were published."""

from dataclasses import dataclass
from functools import reduce
from math import sqrt
from operator import add
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, is_traced
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import Tails
from dpjax.mechanisms.additive import checked_scale
from dpjax.mechanisms.base import Mechanism, as_floating, convert_mechanisms
from dpjax.mechanisms.censored import check_tails
from dpjax.mechanisms.largest_density import at_nearest, by_tails
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.promises import Promise, ProtectedSums
from dpjax.numerics.next_floats import where_near
from dpjax.numerics.tails import log_complement

__all__ = ["Rounded", "log_probability_between"]

NODES, WEIGHTS = (0.5 - sqrt(0.15), 0.5, 0.5 + sqrt(0.15)), (5 / 18, 8 / 18, 5 / 18)
"""The rule of Gauss and Legendre on [0, 1]."""

LEVEL = 1 / 16
"""How far a log-density may fall within an interval of the nodes, and their share of the lengths where it bends."""

REACH = 40.0
"""How many lengths from 0 the density no longer bends."""

NEAR_MULTIPLE = 1e-3
"""How far from a multiple, in steps, a value may be: it is written in decimals, and held in single precision."""


@frozen_pytree
@dataclass(frozen=True)
class Rounded(Mechanism):
    """Releases the value of an additive mechanism rounded to the nearest multiple of a step.

    Its probability is that of all noise that leads there: a difference of the noise's distribution function, taken in
    the tail where it is small. A value midway between two multiples, which integer noise can give, goes to the even
    one, as in NumPy.

    Parameters
    ----------
    mechanism
        The additive mechanism whose value was rounded; `dpjax.Exact` for records without noise.
    step : [] or [d]
        The distance between published values, in their units; a whole number under integer noise.

    Raises
    ------
    TypeError
        If the mechanism is not additive.
    ValueError
        If a step is not finite and positive, or not whole under integer noise.

    Notes
    -----
    Rounding what is noisy costs no privacy. It matters for inference if the step is not small against the noise. If it
    is, a difference of tails loses the digits that both share, and values of the density take its place. For real
    Laplace and Gaussian noise that is exact. For whole noise, and for sums where a scale is below 16 steps, half of the
    digits are left at worst. For other noise the difference stands: of it as many are lost as the step is smaller.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> hundreds = dpjax.mechanisms.Rounded(dpjax.Laplace(40.0), step=100.0)
    >>> round(float(jnp.exp(hundreds.log_density(jnp.array([1200.0]), jnp.array([1180.0])))), 3)
    0.677
    """

    json_name: ClassVar[str | None] = "rounded"
    parameter_axes: ClassVar[dict[str, int] | None] = {}

    mechanism: Mechanism | Any
    step: Array | float

    def __post_init__(self) -> None:
        convert_mechanisms(self, "mechanism")
        check_tails(self.mechanism, exact=True)
        remedy = "Pass the distance between published values, such as 100."
        object.__setattr__(self, "step", checked_scale(self.step, remedy, "step"))
        if self.integer_noise and not is_traced(self.step):
            remedy = "Integer noise on whole numbers gives whole numbers."
            check_array("step", self.step, lambda array: array == np.round(array), "whole numbers", remedy)

    def _words(self) -> str:
        """The noise, and the step."""
        noise = "none, but" if self.mechanism.sums.known else f"{self.mechanism.promise.words()}, then"
        return f"{noise} rounded to multiples of {amount(self.step)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the noise: rounding what is noisy already costs nothing."""
        return self.mechanism.promise.of_sums(sums)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the value is a multiple of the step."""
        if is_traced(self):
            return
        step = np.asarray(self.step, float)

        def is_multiple(array: np.ndarray) -> np.ndarray:
            steps = np.asarray(array, float) / step
            return np.abs(steps - np.round(steps)) <= NEAR_MULTIPLE

        remedy = "Values that were rounded are such multiples: check the step, and the units of both."
        check_array(argument, value, is_multiple, f"multiples of {amount(step)}", remedy)

    def _largest_below(self, threshold: Any) -> Any:
        """The largest multiple [] or [d] of the step below a threshold."""
        step = np.asarray(self.step, float)
        return step * (np.ceil(threshold / step - NEAR_MULTIPLE) - 1)

    def _to_atoms(self, value: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The value [d] moved to a multiple of the step if that is within its error [d]."""
        step = np.asarray(self.step, float)
        return where_near(value, step * np.round(value / step), error)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        if self.mechanism.sums.known:
            return self.mechanism.log_density_terms(jnp.round(value / self.step), jnp.round(statistic / self.step))
        center, half = value - statistic, jnp.asarray(self.step, value.dtype) / 2
        if not self.integer_noise:
            return log_probability_between(self.mechanism, center - half, 2 * half, unit=0)
        # Whole noise that leads midway between two multiples belongs to the even one.
        is_even = jnp.mod(jnp.round(value / self.step), 2) == 0
        low, high = jnp.ceil(center - half), jnp.floor(center + half)
        low = jnp.where((low == center - half) & ~is_even, low + 1, low)
        high = jnp.where((high == center + half) & ~is_even, high - 1, high)
        return log_probability_between(self.mechanism, low, high - low, unit=1)

    @property
    def sums(self) -> PossibleSums:
        """As many as the noise says, and as far from the value."""
        found = super().sums._replace(largest=self._largest)
        return found._replace(known=False, tells=False, within=True, bounds=self._ends) if found.known else found

    def _ends(self, value: Array) -> tuple[Array, Array]:
        """Between which numbers the sum [d] was."""
        half = jnp.asarray(self.step, value.dtype) / 2
        return value - half, value + half

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """The log-probability at the nearest sum, or that of all values as far away."""
        noise = self.mechanism.noise
        if noise is None or not noise.is_unimodal:
            return by_tails(self._inner_tails, value, low, high, jnp.asarray(self.step, value.dtype) / 2)
        return at_nearest(lambda nearest: self.log_density_terms(value, nearest), value, low, high)

    @property
    def tails(self) -> Tails | None:
        """Those of values clamped at a multiple of the step, unless whole noise leads midway between two."""
        return Tails(self._log_cdf, self._log_survival) if not self.integer_noise or self._is_odd else None

    @property
    def _inner_tails(self) -> Tails:
        """The tails of the mechanism."""
        assert self.mechanism.tails is not None
        return self.mechanism.tails

    @property
    def _is_odd(self) -> bool:
        """Whether all steps are known to be odd."""
        return not is_traced(self.step) and bool(np.all(np.mod(np.asarray(self.step, float), 2) == 1))

    def _log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] of values up to a multiple of the step, this far from the statistic."""
        return self._inner_tails.log_cdf(noise + self._reach(noise.dtype))

    def _log_survival(self, noise: Array) -> Array:
        """The log-probability [..., d] of values from a multiple of the step on, this far from the statistic."""
        return self._inner_tails.log_survival(noise - self._reach(noise.dtype))

    def _reach(self, dtype: Any) -> Array:
        """How far from a multiple noise leads to it: under whole noise half of an odd step, rounded down."""
        half = jnp.asarray(self.step, dtype) / 2
        return jnp.floor(half) if self.integer_noise else half

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the value [d] given the statistic [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """A rounded value [d] given the statistic [d]."""
        value = self.mechanism.sample(key, statistic)
        return jnp.round(value / self.step) * self.step


def log_probability_between(mechanism: Any, low: Array, width: Array, unit: int) -> Array:
    """The log-probability of noise from `low` to `low + width`, elementwise, to full precision in both tails.

    Parameters
    ----------
    unit
        1 for integer noise, between whole ends that are included; 0 for real noise.

    Notes
    -----
    The difference of two tails loses the digits that both share. If the density hardly changes within the interval,
    and the noise says where its density bends, a few values of the density take its place.
    """
    high = low + width
    beyond = low + high > 0
    larger = jnp.where(beyond, mechanism.tails.log_survival(low), mechanism.tails.log_cdf(high))
    smaller = jnp.where(beyond, mechanism.tails.log_survival(high + unit), mechanism.tails.log_cdf(low - unit))
    is_any = (width >= 0) & (larger > -jnp.inf)
    difference = jnp.where(is_any & (smaller > -jnp.inf), smaller - jnp.where(is_any, larger, 0), -jnp.inf)
    bends = None if mechanism.noise is None else mechanism.noise.bends
    if bends is None:
        return jnp.where(is_any, larger + log_complement(difference), -jnp.inf)
    lower = jnp.abs(low + width / 2) - width / 2
    is_level = is_nearly_level(difference, larger, lower, width, None if unit else bends)
    by_tails = larger + log_complement(jnp.where(is_level, -1.0, difference))
    by_values = (log_by_middles if unit else log_by_nodes)(mechanism, lower, width)
    return jnp.where(is_any, jnp.where(is_level, by_values, by_tails), -jnp.inf)


def is_nearly_level(
    difference: Array, larger: Array, lower: Array, width: Array, bends: tuple[Any, ...] | None
) -> Array:
    """Whether values of the density lose less than a difference of logarithms of tails does, elementwise.

    What bends within the interval changes the density by less than the difference.
    """
    epsilon = float(jnp.finfo(difference.dtype).eps)
    slack = 8 * epsilon * jnp.abs(larger)
    is_level = difference >= -(sqrt(50 * epsilon) + slack)
    if bends is None:
        return is_level
    is_smooth = difference >= -(LEVEL + slack)
    for scale in bends:
        is_smooth &= (width <= LEVEL * scale) | (lower >= REACH * scale)
    return is_level | is_smooth


def log_by_nodes(mechanism: Any, lower: Array, width: Array) -> Array:
    """The log-probability of real noise from `lower` to `lower + width`, of which 0 is in the first half at most."""
    start, across = jnp.maximum(lower, 0.0), jnp.maximum(-lower, 0.0)
    lengths = [length for length in (width - across, across) for _ in NODES]
    places = [start + length * node for length, node in zip(lengths, NODES * 2, strict=True)]
    return log_weighted(mechanism, places, [weight * one for weight, one in zip(WEIGHTS * 2, lengths, strict=True)])


def log_by_middles(mechanism: Any, lower: Array, width: Array) -> Array:
    """The same of whole noise, both ends included."""
    start, across = jnp.maximum(lower, 0.0), jnp.maximum(-lower, 0.0)
    numbers = (width - across + 1, across)
    middles = (start + (numbers[0] - 1) / 2, jnp.where(across > 0, (1 + across) / 2, start))
    places = [whole(middle) for middle in middles for whole in (jnp.floor, jnp.ceil)]
    return log_weighted(mechanism, places, [number / 2 for number in numbers for _ in range(2)])


def log_weighted(mechanism: Any, places: list[Array], weights: list[Array]) -> Array:
    """The logarithm of a weighted sum of densities, with finite slopes where it is not wanted, too."""
    pairs = list(zip(weights, jax.vmap(mechanism.noise.log_density)(jnp.stack(places)), strict=True))
    peak = jax.lax.stop_gradient(reduce(jnp.maximum, [jnp.where(weight > 0, log, -jnp.inf) for weight, log in pairs]))
    peak = jnp.where(jnp.isfinite(peak), peak, 0.0)
    total = reduce(add, [weight * jnp.exp(jnp.minimum(log - peak, 0.0)) for weight, log in pairs])
    return peak + jnp.log(jnp.maximum(total, jnp.finfo(total.dtype).tiny))
