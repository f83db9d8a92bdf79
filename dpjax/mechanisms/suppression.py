"""Counts that an agency publishes as they are, but for small ones, which it suppresses."""

from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, check_number, fail
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import ProtectedSums, Unpromised

__all__ = ["PrimarySuppression"]


NO_RULE = "If units were withheld without a limit, pass dpjax.Microdata: NaN is missing at random there."


@frozen_pytree
@dataclass(frozen=True)
class PrimarySuppression(Mechanism):
    """Releases counts as they are, but a code in place of each from `least` to `limit` - 1.

    Parameters
    ----------
    limit
        The smallest count, above 0, that is always published.
    least
        The smallest count that is suppressed: 0, or 1 if zeros are published.
    code
        The number that stands for a suppressed count: one that no published count can be.

    Raises
    ------
    TypeError, ValueError
        If the limit is not a whole number above `least`, that is neither 0 nor 1, or the code could be a count that is
        published.

    Notes
    -----
    Files mark suppressed counts in many ways; `dpjax.releases.suppressed` takes NaN.

    The published counts are known, so that single records could hardly move: `dpjax.sample` imputes counts, in which
    only suppressed ones move. Other counts that were left out to protect them (secondary suppression) are no part of
    the rule: leave them out of the statistic.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> below_five = dpjax.mechanisms.PrimarySuppression(limit=5, least=1)
    >>> below_five.sample(jax.random.key(1), jax.numpy.array([0, 3, 12])).tolist()
    [0.0, -1.0, 12.0]
    """

    json_name: ClassVar[str | None] = "primary_suppression"
    integer_noise: ClassVar[bool] = True

    limit: int = field(metadata={"static": True})
    least: int = field(default=0, metadata={"static": True})
    code: float = field(default=-1.0, metadata={"static": True})

    def __post_init__(self) -> None:
        check_count("least", self.least, "Pass 0, or 1 where zeros are published.", least=0)
        if self.least > 1:
            fail("least", self.least, "0 or 1", "Pass 1 where zeros are published.")
        remedy = f"Pass the smallest count that is always published. {NO_RULE}"
        check_count("limit", self.limit, remedy, least=self.least + 1)
        remedy = "Pass the number that marks suppressed counts, such as -1."
        check_number("code", self.code)
        check_array("code", self.code, lambda code: ~self._is_published(code), "no published count", remedy)
        object.__setattr__(self, "code", float(self.code))

    def _words(self) -> str:
        """Which counts are suppressed."""
        return f"none, but counts from {self.least} to {self.limit - 1} are suppressed"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: most counts are published as they are."""
        del sums
        raise Unpromised("Counts are published as they are where they are not suppressed.")

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each number is a count that is published, or the code."""
        zero = "0 or " if self.least else ""
        expected = f"{zero}counts of at least {self.limit}, or {self.code:g} for suppressed ones"
        remedy = "Check the limit." if self.least else "Check the limit. If zeros are published, pass least=1."
        remedy = f"{remedy} {NO_RULE}"
        check_array(argument, value, lambda array: (array == self.code) | self._is_published(array), expected, remedy)

    def _withheld(self, value: np.ndarray) -> np.ndarray:
        """Those with the code."""
        return np.asarray(value) == self.code

    @property
    def sums(self) -> PossibleSums:
        """Published counts are known, and suppressed ones within the limits."""
        return PossibleSums(bounds=self._possible_counts, reveals=True, tells=True, whole=all_whole)

    def _possible_counts(self, value: Array) -> tuple[Array, Array]:
        """The published count, or the least and the greatest suppressed one [d]."""
        suppressed = value == self.code
        return jnp.where(suppressed, float(self.least), value), jnp.where(suppressed, self.limit - 1.0, value)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability, 0 or ``-inf``, of each number [..., d] given its count [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        return jnp.where(self._published(statistic) == value, jnp.zeros_like(value - statistic), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the numbers [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The numbers [d] that are published of counts [d]."""
        del key
        return self._published(as_floating(statistic))

    def _published(self, counts: Array) -> Array:
        """The counts with the code in place of those that are suppressed."""
        return jnp.where((counts >= self.least) & (counts < self.limit), self.code, counts)

    def _is_published(self, number: np.ndarray) -> np.ndarray:
        """Whether a number is a count that is published."""
        whole = number == np.round(number)
        return whole & ((number >= self.limit) | ((number >= 0) & (number < self.least)))
