"""The variance of records with noise on it."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar, NoReturn

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_count, fail, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating, as_mechanism, convert_mechanisms, is_mechanism
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.promises import ProtectedSums, Unpromised

__all__ = ["NoisyVariance", "check_on_variance"]


@frozen_pytree
@dataclass(frozen=True)
class NoisyVariance(Mechanism):
    """Releases the variance of n numbers [1] with noise on it.

    The statistic [2] is the sum of their distances from any point, and that of the squares of these distances
    (`dpjax.statistics.powers`).

    Parameters
    ----------
    on_variance
        The noise on the variance: such as `dpjax.Laplace`, or that in `dpjax.mechanisms.Truncated` or
        `dpjax.mechanisms.Censored`.
    n
        The public number of records.
    degrees
        What the sum of squared deviations is divided by: n or n − 1.

    Raises
    ------
    TypeError, ValueError
        If the noise is no mechanism of one real number, n is no number of at least two, or the divisor is no
        whole number.

    Examples
    --------
    >>> from dpjax.mechanisms.noisy_variance import NoisyVariance
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = NoisyVariance(dpjax.Laplace(0.5), n=4, degrees=4)
    >>> round(float(mechanism.log_density(jnp.array([1.5]), jnp.array([2.0, 7.0]))), 3)
    0.0
    """

    json_name: ClassVar[str | None] = "noisy_variance"
    value_size: ClassVar[int] = 1

    on_variance: Mechanism | Any
    n: int = field(metadata={"static": True})
    degrees: int = field(metadata={"static": True})

    def __post_init__(self) -> None:
        check_on_variance("on_variance", self.on_variance)
        convert_mechanisms(self, "on_variance")
        check_count("n", self.n, "Pass the public number of records.", least=2)
        check_count("degrees", self.degrees, "Pass n or n - 1.")

    @property
    def sums(self) -> PossibleSums:
        """Those of n records."""
        return PossibleSums(num_records=self.n)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the noise can lead to the published variance."""
        for layer in self.on_variance._layers:
            layer.check_value(argument, value)

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise unless the statistic is two sums."""
        del argument, value
        if dimension != 2:
            fail(
                "statistic",
                f"{dimension} coordinates",
                "2: distances and their squares",
                "Use dpjax.releases.variance.",
            )

    def _words(self) -> str:
        """The noise on the variance."""
        return f"none on the sums; on their variance, of divisor {self.degrees:,}, {self.on_variance.promise.words()}"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """Nothing that follows from the release alone.

        Raises
        ------
        Unpromised
            Always.
        """
        del sums
        raise Unpromised("It depends on how far one record can move the variance")

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float] | None:
        """The scale of the noise, and the largest mean square, of distances up to a bound with this radius."""
        found = self.on_variance._noise_and_sum(value, n, radius)
        if found is None or radius is None:
            return found
        # The radius r of h and h² is that of one record at the bound h: r² = h² + h⁴.
        square = (sqrt(1 + 4 * radius**2) - 1) / 2
        return found[0], max(found[1], square * self.n / self.degrees)

    def variance(self, statistic: Array) -> Array:
        """The variance [1] of the records with these sums [2]."""
        total, squares = as_floating(statistic)
        return jnp.maximum(squares - total**2 / self.n, 0)[None] / self.degrees

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the published variance [1] given the sums [2]."""
        return jnp.sum(self.on_variance.log_density_terms(as_floating(value), self.variance(statistic)))

    def sample(self, key: Key, statistic: Array) -> Array:
        """A noisy variance [1] of the sums [2]."""
        return self.on_variance.sample(key, self.variance(statistic))


def check_on_variance(argument: str, noise: Any) -> None:
    """Raise unless noise can be on a variance: real, on one number."""
    known = as_mechanism(noise)
    if not (is_mechanism(noise) and known._is_elementwise) or known.integer_noise or known.sums.known:
        remedy = "Pass the noise on the variance, such as dpjax.Laplace(scale)."
        fail(argument, name_of(noise), "a mechanism that adds real noise to one number", remedy, error=TypeError)
