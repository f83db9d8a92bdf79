"""Counts that an agency publishes rounded at random to multiples of a base."""

from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole
from dpjax.mechanisms.promises import ProtectedSums, Unpromised

__all__ = ["NO_PRIVACY", "RandomRounding"]

NO_PRIVACY = "Some numbers are possible for some tables only, so that no differential privacy is promised."


@frozen_pytree
@dataclass(frozen=True)
class RandomRounding(Mechanism):
    """Releases counts as multiples of a base: the one below or the one above, at random and without bias.

    A count q b + r is published as q b with probability 1 - r / b, and as (q + 1) b with probability r / b. Multiples
    of b are published as they are. Each count is rounded by itself.

    Parameters
    ----------
    base
        The base b: 3 at Stats NZ, 5 at Statistics Canada.

    Raises
    ------
    TypeError, ValueError
        If the base is not a whole number of at least 2.

    Notes
    -----
    A published number says that the count is less than b away, and tells nothing else but the odds: it is no
    differential privacy. Numbers that are no multiples of b, or negative, are refused. Sums of published numbers need
    not be the published sums: join these by `dpjax.joint`.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> rounded = dpjax.mechanisms.RandomRounding(base=3)
    >>> [round(float(jnp.exp(rounded.log_density(jnp.array([6.0]), jnp.array([count])))), 3) for count in (4, 5, 6, 9)]
    [0.333, 0.667, 1.0, 0.0]
    """

    json_name: ClassVar[str | None] = "random_rounding"
    integer_noise: ClassVar[bool] = True

    base: int = field(default=3, metadata={"static": True})

    def __post_init__(self) -> None:
        check_count("base", self.base, "Pass the base that was published, such as 3 or 5.", least=2)

    def _words(self) -> str:
        """The base."""
        return f"random rounding to multiples of {self.base}, without bias"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: the count is known to less than the base."""
        del sums
        raise Unpromised(NO_PRIVACY)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the published numbers are multiples of the base, and not negative."""
        expected = f"multiples of {self.base} of at least 0"
        remedy = f"Counts that were rounded at random to base {self.base} are such multiples: check the base."
        check_array(argument, value, lambda array: (array >= 0) & (np.mod(array, self.base) == 0), expected, remedy)

    @property
    def sums(self) -> PossibleSums:
        """Counts less than the base away."""
        return PossibleSums(bounds=self._possible_counts, whole=all_whole)

    def _possible_counts(self, value: Array) -> tuple[Array, Array]:
        """The least and the greatest count [d] that each published number can stand for."""
        reach = self.base - 1
        return jnp.maximum(value - reach, 0), value + reach

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each published number [..., d] given its count [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        distance = jnp.abs(value - statistic)
        possible = (distance < self.base) & (jnp.mod(value, self.base) == 0)
        return jnp.where(possible, jnp.log1p(-jnp.where(possible, distance, 0) / self.base), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the published numbers [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Published numbers [d] given the counts [d]."""
        counts = as_floating(statistic)
        above = jnp.mod(counts, self.base)
        uniform = jax.random.uniform(key, counts.shape, counts.dtype)
        return counts - above + jnp.where(uniform * self.base < above, self.base, 0)
