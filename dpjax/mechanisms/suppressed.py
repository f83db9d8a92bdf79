"""Small counts that are withheld, beside what else was done to counts."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import (
    check_array,
    check_choice,
    check_count,
    check_number,
    fail,
    is_traced,
    name_of,
)
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating, convert_mechanisms
from dpjax.mechanisms.largest_density import by_bounds, largest_density
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised

__all__ = ["Suppressed", "check_by"]


def check_by(by: Any) -> None:
    """Raise unless it is known what was compared with the limit."""
    check_choice("by", by, ("value", "count"), "Say whether noisy or true counts were compared with the limit.")


@frozen_pytree
@dataclass(frozen=True)
class Suppressed(Mechanism):
    """Releases counts through a mechanism, but a code in place of small ones.

    Parameters
    ----------
    mechanism
        What else was done to each count by itself, such as `dpjax.mechanisms.RandomRounding`,
        `dpjax.mechanisms.CellKeys` or noise.
    limit
        The smallest number, above 0, that is always published.
    least
        The smallest that is withheld: 0, or 1 if zeros are published.
    by
        What is compared with the limit: ``"value"``, what the mechanism gives, or ``"count"``, the true count.
    code
        The number that stands for what is withheld: one that the mechanism does not give.

    Raises
    ------
    TypeError, ValueError
        If the mechanism is none on single counts, the limit is not a whole number above `least`, or the mechanism gives
        the code. If noise is compared with the limit: `dpjax.mechanisms.Censored` is that mechanism.

    Notes
    -----
    Counts that were withheld and else published as they are have `dpjax.mechanisms.PrimarySuppression`.

    Examples
    --------
    >>> import dpjax, jax.numpy as jnp
    >>> rule = dpjax.mechanisms.Suppressed(dpjax.mechanisms.RandomRounding(3), limit=6)
    >>> withheld = rule.log_density_terms(jnp.array([-1.0, -1.0, -1.0]), jnp.array([3.0, 4.0, 6.0]))
    >>> [round(float(p), 3) for p in jnp.exp(withheld)]
    [1.0, 0.667, 0.0]
    """

    json_name: ClassVar[str | None] = "suppressed"

    mechanism: Mechanism | Any
    limit: int = field(metadata={"static": True})
    least: int = field(default=0, metadata={"static": True})
    by: Literal["value", "count"] = field(default="value", metadata={"static": True})
    code: float = field(default=-1.0, metadata={"static": True})
    withheld: tuple[int, ...] = field(init=False, default=(), repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        convert_mechanisms(self, "mechanism")
        inner = self.mechanism
        is_elementwise = inner._is_elementwise and inner._can_sample and not inner._is_categorical
        if not is_elementwise or inner.sums.known or inner.sums.within:
            remedy = "Pass such as RandomRounding(3). Counts that are else exact have PrimarySuppression."
            fail("mechanism", name_of(inner), "what was done to each count by itself", remedy, error=TypeError)
        check_by(self.by)
        if self.by == "value" and (inner.noise is not None or inner.tails is not None or not inner.integer_noise):
            remedy = "Pass Censored(noise, lower=...), as thresholded_units does, or by='count' for true counts."
            fail("mechanism", name_of(inner), "random rounding or cell keys, which give whole numbers", remedy)
        check_count("least", self.least, "Pass 0, or 1 where zeros are published.", least=0)
        check_count("limit", self.limit, "Pass the smallest number that is always published.", least=self.least + 1)
        check_number("code", self.code)
        object.__setattr__(self, "code", float(self.code))
        object.__setattr__(self, "withheld", tuple(filter(self._can_give, range(self.least, self.limit))))
        if self._can_give(self.code):
            remedy = "Pass a number that cannot be a value, such as -0.5 beside whole noise."
            fail("code", f"{self.code:g}, which the mechanism can give", "a number that it does not give", remedy)

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name: what is withheld follows from it."""
        return {name: value for name, value in super()._json_fields().items() if name != "withheld"}

    def _can_give(self, number: float) -> bool:
        """Whether a number could be a value of the mechanism; if that is traced, a small one is taken to be."""
        if is_traced(self):
            return number != self.code
        is_whole = number == round(number)
        return (is_whole or not self.mechanism.integer_noise) and self.mechanism._lets_through(number)

    def _words(self) -> str:
        """What else was done, and which are withheld."""
        what = "numbers" if self.by == "value" else "true counts"
        return f"{self.mechanism.promise.words()}; {what} from {self.least} to {self.limit - 1} are withheld"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the mechanism, if its values alone decide."""
        if self.by == "count":
            raise Unpromised("Which counts are withheld depends on the true ones.")
        return self.mechanism.promise.of_sums(sums)

    @property
    def integer_noise(self) -> bool:
        """Whether all values are whole numbers."""
        return bool(self.mechanism.integer_noise) and self.code == round(self.code)

    @property
    def _layers(self) -> Any:
        """The mechanism alone, which checks values by that which it wraps: a code is no value of that."""
        yield self

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each number is the code, or one of the mechanism that is not withheld."""
        if is_traced(self, value):
            return
        others = np.asarray(value) != self.code
        if not others.any():
            return
        if self.by == "value" and np.any(self._is_small(np.asarray(value)) & others):
            expected = f"numbers of at least {self.limit}, or {self.code:g} for those that were withheld"
            remedy = "Check the limit. Pass least=1 if zeros are published, and by='count' if true counts decide."
            fail(argument, f"{np.asarray(value)[self._is_small(np.asarray(value)) & others][0]:g}", expected, remedy)
        if self.mechanism.integer_noise:
            remedy = "Counts are whole; check the code."
            check_array(
                argument, np.asarray(value)[others], lambda array: array == np.round(array), "whole numbers", remedy
            )
        self.mechanism._check_some(argument, np.asarray(value), others)

    @property
    def sums(self) -> PossibleSums:
        """Those of the mechanism, and of a code all that is withheld."""
        inside, known = self.mechanism.sums, largest_density(self.mechanism)
        return inside._replace(
            bounds=self._possible_counts,
            largest=None if known is None else self._largest,
            near=lambda value: jnp.where(value == self.code, float(self.limit + self.least) / 2, inside.near(value)),
            whole=all_whole,
        )

    def _possible_counts(self, value: Array) -> tuple[Array, Array]:
        """The least and the greatest count [d] that each number can stand for."""
        value, bounds = as_floating(value), self.mechanism.sums.bounds
        is_code = value == self.code
        first, last = (jnp.full_like(value, float(end)) for end in (self.least, self.limit - 1))
        if bounds is None:
            unbounded = jnp.zeros_like(value), jnp.full_like(value, jnp.inf)
            withheld, shown = (unbounded if self.by == "value" else (first, last)), unbounded
        else:
            shown = bounds(jnp.where(is_code, last, value))
            withheld = (bounds(first)[0], bounds(last)[1]) if self.by == "value" else (first, last)
        return jnp.where(is_code, withheld[0], shown[0]), jnp.where(is_code, withheld[1], shown[1])

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """That of the mechanism; at most 1 of a code."""
        inside: Any = largest_density(self.mechanism)
        value = as_floating(value)
        is_code = value == self.code
        others = inside(jnp.where(is_code, float(self.limit), value), low, high)
        return jnp.where(is_code, by_bounds(self._possible_counts, value, low, high), others)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each number [..., d] given its count [..., d]."""
        value, count = as_floating(value), jnp.round(as_floating(statistic))
        is_code, is_small = value == self.code, self._is_small(count)
        shown = self.mechanism.log_density_terms(jnp.where(is_code, float(self.limit), value), count)
        if self.by == "count":
            return jnp.where(is_code == is_small, jnp.where(is_code, 0.0, shown), -jnp.inf)
        numbers = [jnp.full_like(value, float(number)) for number in self.withheld]
        none = jnp.full_like(value - count, -jnp.inf)
        every = [none, *(self.mechanism.log_density_terms(one, count) for one in numbers)]
        withheld = logsumexp(jnp.stack(every), axis=0)
        return jnp.where(is_code, jnp.minimum(withheld, 0.0), jnp.where(self._is_small(value), -jnp.inf, shown))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the numbers [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Published numbers [d] given the counts [d]."""
        count = as_floating(statistic)
        value = self.mechanism.sample(key, count)
        return jnp.where(self._is_small(value if self.by == "value" else count), self.code, value)

    def _is_small(self, number: Any) -> Any:
        """Whether numbers are withheld."""
        return (number >= self.least) & (number < self.limit)
