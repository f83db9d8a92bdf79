"""The Poisson binomial mechanism: a number as a count of successes, whose probability is linear in it."""

from dataclasses import dataclass, field
from math import inf, tanh
from typing import ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, check_number, check_positive_number, fail
from dpjax._util.words import amount, quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating, as_leaf
from dpjax.mechanisms.local_channel import as_integers, check_codes
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, pure
from dpjax.numerics.counts import draw_binomial
from dpjax.numerics.next_floats import next_below

__all__ = ["PoissonBinomial"]

MOST_TRIALS = 1_000_000

TRIALS = "Pass the number of trials."


@frozen_pytree
@dataclass(frozen=True)
class PoissonBinomial(Mechanism):
    """Releases a count z ~ Binomial(m, p) of a number y, with p = 1/2 - θ + 2θ (y - lower) / (upper - lower).

    Numbers outside of the bounds have the distribution of the nearer bound.

    Parameters
    ----------
    theta : [] or [n]
        θ in (0, 1/2]; `from_epsilon` computes one. Or one for each record.
    num_trials
        The number m of trials.
    lower
        The least number.
    upper
        The largest number.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If θ is not in (0, 1/2], m is not a whole number from 1 to 1,000,000, or the bounds are not finite and in order.

    Notes
    -----
    Chen, Özgür and Kairouz (2022), The Poisson binomial mechanism for secure and private federated learning. It is what
    one client sends; the sum over clients is Poisson binomial. Each count is ε-locally private with
    ε = m log((1/2 + θ) / (1/2 - θ)), and locally zero-concentrated private with ρ = 2θ ε. With θ = 1/2 nothing is
    promised. Mechanisms that add binomial noise are others.

    `dpjax.mixture.sample` integrates out Beta records within the bounds.

    Examples
    --------
    >>> from dpjax.mechanisms.poisson_binomial import PoissonBinomial
    >>> import dpjax
    >>> release = dpjax.LocalRelease([3, 8, 5], PoissonBinomial(theta=0.1, num_trials=8), field="y")
    >>> round(release.channel.promise.local(1).epsilon, 3)
    3.244
    """

    json_name: ClassVar[str | None] = "poisson_binomial"
    parameter_axes: ClassVar[dict[str, int] | None] = {}

    theta: Array | float
    num_trials: int = field(metadata={"static": True})
    lower: float = field(default=0.0, metadata={"static": True})
    upper: float = field(default=1.0, metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass θ, or write dpjax.mechanisms.PoissonBinomial.from_epsilon(epsilon, num_trials)."
        check_array("theta", self.theta, lambda theta: (theta > 0) & (theta <= 0.5), "numbers in (0, 1/2]", remedy)
        object.__setattr__(self, "theta", as_leaf(self.theta))
        trials = check_count("num_trials", self.num_trials, TRIALS, most=MOST_TRIALS)
        object.__setattr__(self, "num_trials", trials)
        for name in ("lower", "upper"):
            check_number(name, getattr(self, name))
            check_array(name, getattr(self, name), lambda end: end == end, "a finite number", "Pass the public bounds.")
            object.__setattr__(self, name, float(getattr(self, name)))
        if not self.lower < self.upper:
            fail("lower, upper", f"{self.lower:g} and {self.upper:g}", "lower < upper", "Pass the public bounds.")

    @classmethod
    def from_epsilon(cls, epsilon: float, num_trials: int, lower: float = 0.0, upper: float = 1.0) -> Self:
        """The mechanism that is ε-locally private for one number, with θ = tanh(ε / 2m) / 2.

        θ is rounded down in the default float type, so that the promise is kept.

        Parameters
        ----------
        epsilon
            ε.
        num_trials
            The number m of trials.
        lower
            The least number.
        upper
            The largest number.

        Raises
        ------
        TypeError, ValueError
            If ε is not finite and positive, or another argument is not as the class takes it.

        Examples
        --------
        >>> from dpjax.mechanisms.poisson_binomial import PoissonBinomial
        >>> round(PoissonBinomial.from_epsilon(epsilon=4.0, num_trials=8).theta, 4)
        0.1225
        """
        check_positive_number("epsilon", epsilon)
        trials = check_count("num_trials", num_trials, TRIALS, most=MOST_TRIALS)
        theta = next_below(tanh(float(epsilon) / (2 * trials)) / 2, jnp.result_type(float))
        return cls(theta, trials, lower, upper)

    @property
    def num_categories(self) -> int:
        """The number m + 1 of counts that can be released."""
        return self.num_trials + 1

    def _words(self) -> str:
        """The number of trials, and the probabilities at both bounds."""
        low, high = (amount(0.5 + sign * np.asarray(self.theta)) for sign in (-1, 1))
        span = f"from {low} at {self.lower:g} to {high} at {self.upper:g}"
        return f"a binomial count of {quantity(self.num_trials, 'trial')}, whose probability goes {span}"

    def _local_promise(self, num_coordinates: int) -> Promise:
        """That of m answers by randomized response of ε = log((1/2 + θ) / (1/2 - θ)), for each number."""
        theta = self._largest_theta
        return pure(2 * float(np.arctanh(2 * theta)) if theta < 0.5 else inf, num_coordinates * self.num_trials)

    @property
    def _largest_theta(self) -> float:
        """The largest θ as it is computed with, which single precision may have rounded up."""
        return float(np.max(np.asarray(self.theta, jnp.result_type(float))))

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the released counts are integers in 0, ..., m."""
        check_codes(argument, value, self.num_categories, "Pass the number of successes of each record.")

    def probabilities(self, statistic: Array) -> tuple[Array, Array]:
        """The probabilities [...] of success and of failure given numbers [...]; each is exact where it is small."""
        number = as_floating(statistic)
        theta = jnp.asarray(self.theta, number.dtype)
        share = jnp.clip((number - self.lower) / (self.upper - self.lower), 0, 1)
        low, high = 0.5 - theta, 0.5 + theta
        return low * (1 - share) + high * share, high * (1 - share) + low * share

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each count [...] given its number [...]; −∞ outside 0, ..., m."""
        successes = as_integers("value", value)
        possible = (successes >= 0) & (successes <= self.num_trials)
        success, failure = self.probabilities(statistic)
        ways = jnp.asarray(log_ways(self.num_trials), success.dtype)[jnp.where(possible, successes, 0)]
        number = successes.astype(success.dtype)
        log_density = ways + log_power(success, number) + log_power(failure, self.num_trials - number)
        return jnp.where(possible, log_density, -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the counts ([] or [k]) given the numbers of the same shape."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Counts of the numbers, integers of the same shape."""
        return draw_binomial(key, self.num_trials, self.probabilities(statistic)[0])


def log_ways(num_trials: int) -> np.ndarray:
    """log C(m, z) [m + 1] of z = 0, ..., m."""
    first = np.arange(1, num_trials + 1)
    half = np.concatenate([[0.0], np.cumsum(np.log((num_trials + 1 - first) / first))])[: num_trials // 2 + 1]
    return np.concatenate([half, half[: num_trials + 1 - len(half)][::-1]])


def log_power(base: Array, exponent: Array) -> Array:
    """log(base^exponent), elementwise: 0 for 0^0, with gradients that are numbers there."""
    return exponent * jnp.log(jnp.where(exponent > 0, base, 1))
