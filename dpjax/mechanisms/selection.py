"""Mechanisms that publish which of several candidates was chosen, by utilities of the summed statistic.

Each adds independent noise of scale 2Δ / ε to the utilities and says whose sum is the largest. The exponential
mechanism has Gumbel noise, permute-and-flip exponential noise.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import (
    check_array,
    check_choice,
    check_float,
    check_hashable_function,
    check_positive_number,
    fail,
)
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised, narrow, pure
from dpjax.mechanisms.utilities import Utilities, num_candidates
from dpjax.numerics.winners import log_win_by_exponential, log_win_by_gumbel, log_win_by_laplace

__all__ = ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax", "Selection"]


class NoisyMax(NamedTuple):
    """Noise of scale 1 on each utility, and the log-probability that a candidate wins under it."""

    draw: Callable[..., Array]
    log_win: Callable[[Array, Array], Array]


RACES = {
    "gumbel": NoisyMax(jax.random.gumbel, log_win_by_gumbel),
    "exponential": NoisyMax(jax.random.exponential, log_win_by_exponential),
    "laplace": NoisyMax(jax.random.laplace, log_win_by_laplace),
}

REMOTE = "the likelihood has flat floors, so that remote modes need refreshes or dpjax.sample_smc"


@dataclass(frozen=True)
class Selection(Mechanism):
    """A mechanism that releases the number [1] of the candidate whose utility with noise is the largest.

    Attributes
    ----------
    utilities
        The function ``statistic [d] -> [k]``.
    epsilon
        ε, if no utility moves by more than the sensitivity between neighbours [].
    sensitivity
        Δ [].
    privacy
        What the release promises.
    """

    value_size: ClassVar[int] = 1

    utilities: Any = field(metadata={"static": True})
    epsilon: Array | float
    sensitivity: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    @property
    @abstractmethod
    def race(self) -> NoisyMax:
        """The noise on the utilities, in units of 2Δ / ε."""

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass a function of the summed statistic [d] that is defined once, such as QuantileScores(...)."
        check_hashable_function("utilities", self.utilities, "a hashable function statistic [d] -> [k]", remedy)
        if isinstance(self.utilities, type):
            fail("utilities", f"the class {self.utilities.__name__}", "an instance", remedy, error=TypeError)
        check_positive_number("epsilon", self.epsilon, "Pass the ε by which the candidate was chosen.")
        check_positive_number("sensitivity", self.sensitivity, "Pass how far one record can move a utility.")
        for name in ("epsilon", "sensitivity"):
            check_float(name, getattr(self, name))

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the number of a candidate was released."""
        expected, remedy = "the number of a candidate, 0, 1, ...", "Pass the index of the candidate, not its value."
        check_array(argument, value, lambda array: (array >= 0) & (array == array.round()), expected, remedy)

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise unless the number is that of one of the candidates."""
        k = num_candidates(self.utilities, dimension)
        expected, remedy = f"a whole number from 0 to {k - 1}", f"There are {k} candidates, counted from 0."
        check_array(argument, value, lambda array: array < k, expected, remedy)

    def epsilon_of(self, sums: ProtectedSums) -> float:
        """ε times the ratio of what the utilities really move by to the stated sensitivity.

        Raises
        ------
        Unpromised
            If it is not known how far one record moves them.
        """
        if not isinstance(self.utilities, Utilities):
            stated = f"utilities that move by at most {amount(self.sensitivity)}"
            raise Unpromised(
                f"ε = {amount(self.epsilon)} between data sets with {stated}: whether it is so is not known"
            )
        moved = self.utilities.sensitivity(sums.neighbours)
        return float(self.epsilon) * moved / float(self.sensitivity)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the candidate's number [1] given the statistic [d]."""
        utility = self.scaled(statistic)
        chosen = jnp.round(value[0])
        possible = (value[0] == chosen) & (chosen >= 0) & (chosen < utility.size)
        place = jnp.clip(chosen, 0, utility.size - 1).astype(int)
        return jnp.where(possible, self.race.log_win(utility, place), -jnp.inf)

    def sample(self, key: Key, statistic: Array) -> Array:
        """The number [1] of a candidate given the statistic [d]."""
        utility = self.scaled(statistic)
        noise = self.race.draw(key, utility.shape, utility.dtype)
        return jnp.argmax(utility + noise)[None].astype(utility.dtype)

    def scaled(self, statistic: Array) -> Array:
        """The utilities [k] in units of the noise."""
        utility = as_floating(self.utilities(as_floating(statistic)))
        return utility * (jnp.asarray(self.epsilon, utility.dtype) / (2 * jnp.asarray(self.sensitivity, utility.dtype)))

    def _choice_in_words(self, name: str) -> str:
        """How a candidate was chosen, in words."""
        numbers = f"ε = {amount(self.epsilon)} for utilities of sensitivity {amount(self.sensitivity)}"
        return f"none on the sums; {name} chose a candidate, with {numbers}; {REMOTE}"


@frozen_pytree
@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """Releases the number of a candidate, chosen with probability proportional to exp(ε u / 2Δ).

    Parameters
    ----------
    utilities
        The function ``statistic [d] -> [k]`` of the summed statistic; `dpjax.mechanisms.QuantileScores`, or any of your
        own. Programs are compiled for it, so build it once.
    epsilon : []
        ε.
    sensitivity : []
        Δ, by which one record can move any utility.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the utilities are no hashable function, or ε or Δ is not finite and positive.

    Notes
    -----
    McSherry and Talwar (2007). Its ρ is ε² / 8 or less, as its log ratios lie in an interval of length ε (Cesar and
    Rogers 2021).

    Examples
    --------
    >>> import dpjax
    >>> scores = dpjax.mechanisms.QuantileScores(0.5, num_candidates=3)
    >>> mechanism = dpjax.mechanisms.ExponentialMechanism(scores, epsilon=1.0, sensitivity=0.5)
    >>> release = dpjax.Release([1], mechanism, dpjax.statistics.around("y", [0.0, 1.0, 2.0]), n=50)
    """

    json_name: ClassVar[str | None] = "exponential"

    @property
    def race(self) -> NoisyMax:
        """Gumbel noise, of which the winner is a draw from the softmax."""
        return RACES["gumbel"]

    def _words(self) -> str:
        """The mechanism, ε and Δ."""
        return self._choice_in_words("the exponential mechanism")

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε-DP with ρ = ε² / 8, or less for large ε."""
        return narrow(self.epsilon_of(sums))


@frozen_pytree
@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Releases the number of a candidate: in random order each is taken with probability exp(ε (u − max u) / 2Δ).

    Parameters
    ----------
    utilities
        The function ``statistic [d] -> [k]`` of the summed statistic, as in `dpjax.mechanisms.ExponentialMechanism`.
    epsilon : []
        ε.
    sensitivity : []
        Δ, by which one record can move any utility.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the utilities are no hashable function, or ε or Δ is not finite and positive.

    Notes
    -----
    McKenna and Sheldon (2020). The probability of candidate r is q_r ∫₀¹ Π_{i ≠ r} (1 − t q_i) dt, with t the place in
    the order; `dpjax.mechanisms.ReportNoisyMax` with exponential noise has the same distribution.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = dpjax.mechanisms.PermuteAndFlip(jnp.negative, epsilon=2.0, sensitivity=1.0)
    >>> round(float(jnp.exp(mechanism.log_density(jnp.array([0.0]), jnp.array([1.0, 1.0])))), 3)
    0.5
    """

    json_name: ClassVar[str | None] = "permute_and_flip"

    @property
    def race(self) -> NoisyMax:
        """Exponential noise."""
        return RACES["exponential"]

    def _words(self) -> str:
        """The mechanism, ε and Δ."""
        return self._choice_in_words("permute-and-flip")

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε-DP."""
        return pure(self.epsilon_of(sums))


@frozen_pytree
@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """Releases the number of the candidate whose utility is the largest after noise of scale 2Δ / ε.

    Parameters
    ----------
    utilities
        The function ``statistic [d] -> [k]`` of the summed statistic, as in `dpjax.mechanisms.ExponentialMechanism`.
    epsilon : []
        ε.
    sensitivity : []
        Δ, by which one record can move any utility.
    family
        The distribution of the noise: ``"exponential"``, ``"gumbel"`` or ``"laplace"``.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the utilities are no hashable function, ε or Δ is not finite and positive, or the noise is another.

    Notes
    -----
    With Laplace noise the probability is an integral with a kink at each utility, which is computed to a relative 1e-8.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = dpjax.mechanisms.ReportNoisyMax(jnp.negative, epsilon=2.0, sensitivity=1.0, family="laplace")
    >>> round(float(jnp.exp(mechanism.log_density(jnp.array([0.0]), jnp.array([1.0, 1.0])))), 3)
    0.5
    """

    json_name: ClassVar[str | None] = "report_noisy_max"

    family: Literal["exponential", "gumbel", "laplace"] = field(default="exponential", metadata={"static": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("family", self.family, RACES, "Name the noise that was added to the utilities.")

    @property
    def race(self) -> NoisyMax:
        """The noise that was named."""
        return RACES[self.family]

    def _words(self) -> str:
        """The mechanism with its noise, ε and Δ."""
        return self._choice_in_words(f"report noisy max with {self.family} noise")

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε-DP; with Gumbel noise what the exponential mechanism promises."""
        return (narrow if self.family == "gumbel" else pure)(self.epsilon_of(sums))
