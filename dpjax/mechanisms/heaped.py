"""Numbers that people report as round ones with some probability, such as cigarettes in tens."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, fail, is_traced
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import ProtectedSums, Unpromised
from dpjax.mechanisms.random_rounding import NO_PRIVACY

__all__ = ["Heaped"]


@frozen_pytree
@dataclass(frozen=True)
class Heaped(Mechanism):
    """Releases each whole number as it is, or rounded to the nearest multiple of a step, each with a probability.

    If two multiples are as near, each is reported half the time.

    Parameters
    ----------
    probabilities
        The probability of rounding to each step, in their order: numbers, or `dpjax.unknown` ones. The number is
        reported as it is with what they leave of 1.
    steps
        The steps, such as 10 or ``(5, 10)``.

    Raises
    ------
    TypeError, ValueError
        If a step is no whole number of at least 2, or there is not one probability for each. If these are not between 0
        and 1, or more than 1 together.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> heaped = dpjax.mechanisms.Heaped((0.3, 0.2), steps=(5, 10))
    >>> truth = jnp.array([20.0, 18.0, 15.0, 12.0])
    >>> jnp.exp(heaped.log_density_terms(jnp.full(4, 20.0), truth)).round(3).tolist()
    [1.0, 0.5, 0.1, 0.0]
    """

    json_name: ClassVar[str | None] = "heaped"
    integer_noise: ClassVar[bool] = True

    probabilities: Any
    steps: Any = field(metadata={"static": True})

    def __post_init__(self) -> None:
        steps = self.steps if isinstance(self.steps, (tuple, list)) else (self.steps,)
        given = self.probabilities if isinstance(self.probabilities, (tuple, list)) else (self.probabilities,)
        remedy = "Pass the probability of rounding to each step."
        steps = tuple(check_count("steps", step, "Pass whole numbers such as (5, 10).", least=2) for step in steps)
        if len(given) != len(steps):
            fail("probabilities", f"{len(given)} of them", f"{len(steps)}, one for each step", remedy)
        for one in given:
            check_array("probabilities", one, lambda array: (array >= 0) & (array <= 1), "numbers from 0 to 1", remedy)
        if not is_traced(*given) and sum(float(one) for one in given) > 1 + 1e-6:
            fail("probabilities", " and ".join(map(amount, given)), "numbers that are at most 1 together", remedy)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "probabilities", tuple(given))

    def _words(self) -> str:
        """The steps and their probabilities."""
        parts = [f"{step} with probability {amount(one)}" for one, step in self._pairs()]
        return f"numbers are reported as the nearest multiple of {', of '.join(parts)}, and else as they are"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: the number is known to half a step."""
        del sums
        raise Unpromised(NO_PRIVACY)

    def _pairs(self) -> list[tuple[Any, int]]:
        """Each probability with its step."""
        return list(zip(self.probabilities, self.steps, strict=True))

    @property
    def sums(self) -> PossibleSums:
        """Numbers at most half the largest step away."""
        return PossibleSums(bounds=self._possible_numbers, whole=all_whole)

    def _possible_numbers(self, value: Array) -> tuple[Array, Array]:
        """The least and the greatest number [d] that each reported one can stand for."""
        reach = jnp.zeros_like(value)
        for step in self.steps:
            reach = jnp.maximum(reach, jnp.where(jnp.mod(value, step) == 0, step // 2, 0).astype(value.dtype))
        return value - reach, value + reach

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each reported number [..., d] given the true one [..., d]."""
        value, truth = as_floating(value), as_floating(statistic)
        rest, found = jnp.ones((), value.dtype), jnp.zeros(jnp.broadcast_shapes(value.shape, truth.shape), value.dtype)
        for given, step in self._pairs():
            one, twice = jnp.asarray(given, value.dtype), 2 * jnp.abs(value - truth)
            near = jnp.where(twice < step, 1.0, jnp.where(twice == step, 0.5, 0.0)).astype(value.dtype)
            found, rest = found + one * jnp.where(jnp.mod(value, step) == 0, near, 0), rest - one
        # With priors of several probabilities, these may be more than 1 together.
        found = jnp.where(rest < -1e-6, 0, found + jnp.where(value == truth, jnp.maximum(rest, 0), 0))
        return jnp.where(found > 0, jnp.log(jnp.where(found > 0, found, 1)), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the reported numbers [d] given the true ones [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Reported numbers [d] given the true ones [d]."""
        truth = as_floating(statistic)
        step_key, tie_key = jax.random.split(key)
        uniform = jax.random.uniform(step_key, truth.shape, truth.dtype)
        up = jax.random.bernoulli(tie_key, 0.5, truth.shape)
        drawn, start = truth, jnp.zeros((), truth.dtype)
        for one, step in self._pairs():
            below = jnp.floor(truth / step) * step
            twice = 2 * (truth - below)
            nearest = below + jnp.where((twice > step) | ((twice == step) & up), step, 0)
            drawn = jnp.where((uniform >= start) & (uniform < start + one), nearest, drawn)
            start = start + one
        return drawn

    def _json_fields(self) -> dict[str, Any]:
        """The probabilities and steps as lists."""
        return {"probabilities": [float(one) for one in self.probabilities], "steps": list(self.steps)}
